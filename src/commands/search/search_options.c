/* penumbra search: the nearest rows of an embedding set, or those that contain a query or lie in
 * it.
 *
 * Options only; encoding the query and the table of hits are in search.c, inclusion
 * search in search_inclusion.c. */
#include "commands/search/search.h"

#include <math.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/common/query.h"
#include "commands/search/search_collection.h"
#include "commands/search/search_inclusion.h"
#include "program/result_end.h"

struct search_args {
    pnb__search_opts job;
    const char *inclusion;         /* contains, inside; NULL: the nearest rows */
    pnb_inclusion_search_opts how; /* of that */
    pnb_store_about about;         /* of the collection */
};

#define NO_ORDER PNB_N_INCLUSION_ORDERS /* --order was not given */

#define AT(field) PNB__FIELD(struct search_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("index", AT(job.in.index), "SET", "Embedding set to search in",
                  .group = "Where (one of both)"),
    PNB__ROW_FILE("collection", AT(job.in.collection), "DIR", "Collection to search in"),
    PNB__ROW_FILTER_ROWS(AT(job.filter.tags), AT(job.filter.since), AT(job.filter.until),
                         AT(job.filter.min_uncertainty), AT(job.filter.max_uncertainty)),
    PNB__QUERY_ROWS(AT(job.in.queries.texts), AT(job.in.queries.images), AT(job.in.queries.set),
                    AT(job.in.model)),
    PNB__MODEL_PARTS_ROWS(AT(job.in.parts.tokenizer), AT(job.in.parts.preprocess)),
    PNB__PRECISION_ROW(AT(job.in.parts.precision)),
    PNB__QUERY_EXIF_ROW(AT(job.in.queries.exif)),
    PNB__ROW_INT("k", AT(job.k), "N",
                 "Hits of a query at most: 10, with --conformal the whole list", PNB__RANGE(1, 1e6),
                 .letter = 'k'),
    PNB__SETS_MEASURE_ROW(AT(job.measure)),
    PNB__MATCH_ROWS(AT(job.match.n_samples), AT(job.match.a), AT(job.match.b)),
    PNB__ROW_INT("shortlist", AT(job.shortlist), "N",
                 "Score only the N rows whose means are nearest to the query's: faster, and others "
                 "may be missed; by default every row",
                 PNB__RANGE(1, 1e9)),
    PNB__ROW_CHOICE("approx", AT(job.approx), "KIND", "int8|bf16|hnsw|ivf",
                    "Look for candidates in a copy of one or two bytes a number, or by a graph or "
                    "cells of FAISS, and score those: faster, and others may be missed, which is "
                    "told. The last two are kept in a file beside the set (SET.hnsw), made when it "
                    "is not there; for collections `collection build` makes them"),
    PNB__ROW_REAL("recall", AT(job.recall), "SHARE",
                  "--approx hnsw or ivf: share of the true hits to aim at when the file is made",
                  PNB__RANGE(0.01, 1), .fallback = "0.99"),
    PNB__ROW_CHOICE(
        "predict", AT(job.prediction), "HOW", PNB__CHOICES(PNB_PREDICTION_LIST(PNB__CHOICE_OF)),
        "What variances do to p(match): nothing but what the measure makes of them, or, by "
        "cosines of their own mean and variance (BayesVLM), logits made smaller where they are "
        "uncertain, or the mean over draws of them",
        .names = PNB_NAMES(PNB_PREDICTION_LIST), .fallback = "plain"),
    PNB__ROW_INT("draws", AT(job.n_draws), "N", "Draws of --predict sampling; 400 by default",
                 PNB__RANGE(1, 100000)),
    PNB__ROW_CHOICE(
        "uncertainty", AT(job.uncertainty), "NAME", "auto" PNB__ROW_UNCERTAINTY_CHOICES,
        "Scalar uncertainty of a hit; auto is that of the family. The last two are parts "
        "of a generalised Gaussian's, where the index has epistemic variances",
        .names = PNB__UNCERTAINTY_NAMES, .fallback = "auto"),
    PNB__ROW_REAL(
        "min-probability", AT(job.limits.min_probability), "P",
        "End a list where p(match) falls below P; an empty list is an answer: no good result",
        PNB__RANGE(0, 1), .group = "Where lists end"),
    PNB__ROW_REAL(
        "conformal", AT(job.limits.conformal_alpha), "RATE",
        "The smallest list that holds a true match but for this share of queries, by the set's "
        "calibration",
        PNB__RANGE(1e-6, 0.999999)),
    PNB__ROW_CHOICE(
        "conformal-by", AT(job.limits.conformal_by), "KIND",
        PNB__CHOICES(PNB_CONFORMAL_LIST(PNB__CHOICE_OF)),
        "End such a list by score, by distance from the first hit, or by length; by default "
        "what made the smallest lists in calibration"),
    PNB__ROW_FILE("calibration", AT(job.limits.calibration), "FILE",
                  "Calibration to use in place of SET.calibration.json beside the index; none: the "
                  "model's own a and b"),
    PNB__TRUST_ROW(AT(job.limits.trust)),
    PNB__ROW_CHOICE("inclusion", AT(inclusion), "WHICH", "contains|inside",
                    "Rows that contain the query, or rows inside it, in place of the nearest",
                    .group = "Inclusion search"),
    PNB__ROW_CHOICE("order", AT(how.order), "NAME",
                    PNB__CHOICES(PNB_INCLUSION_ORDER_LIST(PNB__CHOICE_OF)),
                    "Sort such rows by H, the default, or by their csd similarity to the query"),
    PNB__ROW_REAL("near", AT(how.min_nearness), "SCORE",
                  "Leave out such rows whose csd similarity to the query is smaller"),
    PNB__ROW_FLAG("published", AT(how.published),
                  "Take the inclusion as ProLIP's code has it instead of the exact one"),
    PNB__ROW_FILE("html", AT(job.html), "FILE",
                  "Write a page with every query and its hits, pictures as pictures",
                  .group = "Result", .writes = "*"),
};
#undef AT

/* A set or a collection, and what belongs to a collection alone. */
static pnb_status check_place(pnb__app *app, const struct search_args *a)
{
    bool is_collection = a->job.in.collection != NULL;
    if (is_collection == (a->job.in.index != NULL))
        return pnb__usage(app, "one of --index and --collection is wanted");
    if (!is_collection && pnb__row_filter_given(&a->job.filter))
        return pnb__usage(app, "--tags, --since, --until, --min-uncertainty and --max-uncertainty "
                               "speak of a --collection");
    if (is_collection && (a->inclusion != NULL || a->job.shortlist > 0))
        return pnb__usage(app,
                          "--inclusion and --shortlist speak of an --index, not of a collection");
    return PNB_OK;
}

/* A collection may know its model. */
static pnb_status find_model(pnb__app *app, struct search_args *a)
{
    if (a->job.in.collection == NULL || a->job.in.model != NULL || a->job.in.queries.set != NULL)
        return PNB_OK;
    pnb_status status = pnb__collection_search_model(app, a->job.in.collection, &a->about);
    if (status == PNB_OK && a->about.model_dir[0] != '\0')
        a->job.in.model = a->about.model_dir;
    return status;
}

/* What belongs to the other kind of search is refused, since it would do nothing. */
static pnb_status check_kind(pnb__app *app, const struct search_args *a)
{
    const pnb__list_limits *l = &a->job.limits;
    bool has_limits = !isnan(l->min_probability) || !isnan(l->conformal_alpha) ||
                      l->conformal_by != NULL || l->calibration != NULL || l->trust;
    bool predicts = a->job.prediction != PNB_PREDICTION_PLAIN;
    bool says_how = a->how.order != NO_ORDER || !isnan(a->how.min_nearness) || a->how.published;
    if (a->inclusion == NULL && says_how)
        return pnb__usage(app, "--order, --near and --published need --inclusion");
    if (a->inclusion != NULL && a->job.measure != PNB__MEASURE_AUTO)
        return pnb__usage(app, "--inclusion has a measure of its own: leave --measure out");
    bool has_match = a->job.match.n_samples > 0 || !isnan(a->job.match.a) || !isnan(a->job.match.b);
    if (a->inclusion != NULL && has_match)
        return pnb__usage(app, "--inclusion draws no samples: leave --samples, --match-a and "
                               "--match-b out");
    if (a->inclusion != NULL && a->job.shortlist > 0)
        return pnb__usage(app, "--inclusion looks at every row: leave --shortlist out");
    if (a->job.shortlist > 0 && a->job.shortlist < a->job.k)
        return pnb__usage(app, "--shortlist %zu is shorter than the %zu hits of -k",
                          a->job.shortlist, a->job.k);
    if (a->job.shortlist > 0 && !isnan(l->conformal_alpha))
        return pnb__usage(app,
                          "--conformal promises that nothing is missed: leave --shortlist out");
    if (a->job.approx != NULL &&
        (a->inclusion != NULL || a->job.shortlist > 0 || !isnan(l->conformal_alpha)))
        return pnb__usage(app, "--approx finds candidates its own way and may miss some: leave "
                               "--inclusion, --shortlist and --conformal out");
    if (a->job.n_draws > 0 && a->job.prediction != PNB_PREDICTION_SAMPLING)
        return pnb__usage(app, "--draws needs --predict sampling");
    if (predicts && (!isnan(l->min_probability) || !isnan(l->conformal_alpha)))
        return pnb__usage(app, "lists end by plain scores: leave --predict or their limits out");
    if (a->inclusion != NULL && predicts)
        return pnb__usage(app, "--inclusion gives no probability: leave --predict out");
    if (a->inclusion != NULL && a->job.uncertainty != PNB__UNCERTAINTY_AUTO)
        return pnb__usage(app, "--inclusion shows the trace: leave --uncertainty out");
    if (a->inclusion != NULL && has_limits)
        return pnb__usage(app, "--inclusion ends lists where H is not positive: probabilities and "
                               "calibrations are of nearest rows");
    if (a->inclusion != NULL && a->job.html != NULL)
        return pnb__usage(app, "--inclusion has no page: leave --html out");
    return PNB_OK;
}

static pnb_status run_inclusion(pnb__app *app, const struct search_args *a, pnb__result *r)
{
    const pnb_inclusion_search_opts usual = pnb_inclusion_search_opts_default();
    pnb__search_inclusion_opts job = {.in = a->job.in, .opts = a->how};
    job.opts.inside = strcmp(a->inclusion, "inside") == 0;
    if (a->job.k > 0)
        job.opts.k = a->job.k;
    if (job.opts.order == NO_ORDER)
        job.opts.order = usual.order;
    if (isnan(job.opts.min_nearness))
        job.opts.min_nearness = usual.min_nearness;
    return pnb__search_inclusion_run(app, &job, r);
}

static void defaults(void *args)
{
    struct search_args *a = args;
    *a = (struct search_args){.job.filter = {.min_uncertainty = NAN, .max_uncertainty = NAN},
                              .job.limits = {.min_probability = NAN, .conformal_alpha = NAN},
                              .job.match = {.a = NAN, .b = NAN},
                              .how = pnb_inclusion_search_opts_default()};
    a->how.order = NO_ORDER;
    a->how.min_nearness = NAN;
}

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct search_args *a = args;
    const pnb__list_limits *l = &a->job.limits;
    if (check_place(app, a) != PNB_OK || find_model(app, a) != PNB_OK ||
        pnb__query_check(app, &a->job.in.queries, a->job.in.model) != PNB_OK ||
        check_kind(app, a) != PNB_OK)
        return app->err.status;
    if (a->inclusion != NULL)
        return run_inclusion(app, a, r);
    if (!isnan(l->conformal_alpha) && !isnan(l->min_probability))
        return pnb__usage(app, "only one of --conformal and --min-probability: the second would "
                               "break what the first promises");
    if (l->conformal_by != NULL && isnan(l->conformal_alpha))
        return pnb__usage(app, "--conformal-by needs --conformal");
    return pnb__search_run(app, &a->job, r);
}

const pnb__command pnb__cmd_search = {
    .name = "search",
    .summary = "find the rows of a set nearest to a caption or picture",
    .about =
        "Hits come with their score (larger is nearer), the probability that the pair "
        "matches, and the uncertainty of the row. The probability is that of the set's "
        "calibration (`penumbra calibrate`) where one lies beside it; else s(a score + b) with "
        "the model's a and b, for csd and mean between a picture and a caption; match_prob is "
        "such a probability itself where the set carries its a and b or they are given. A "
        "calibration "
        "speaks of the queries and rows it was fitted on: for another modality, measure, model "
        "or preprocessing it is refused, and no probability is shown.\n\n"
        "--inclusion looks for rows by what they leave open. A caption that leaves things open is "
        "a "
        "wide distribution and contains the pictures it is true of. A row is listed when the "
        "inclusion test H is positive; other rows are never shown, so the answer may be empty. H "
        "grows with the distance of the means too: a very wide row contains nearly everything, "
        "related or not. --near and --order nearness bring the csd similarity in.",
    .examples =
        "penumbra search --index images.safetensors --model model --query-text 'a red star'\n"
        "penumbra search --index texts.safetensors -m model --query-image cat.jpg -k 5 --json\n"
        "penumbra search --index images.safetensors -m model --query-text 'a red star' "
        "--min-probability 0.5\n"
        "penumbra search --index texts.safetensors -m model --query-image cat.jpg --inclusion "
        "contains\n"
        "penumbra search --index images.safetensors -m model --query-text 'a red star' --conformal "
        "0.1\n"
        "penumbra search --collection photos --query-text 'a red star' --tags sea\n"
        "penumbra search --index images.safetensors -m model --query-text 'a red star' --html "
        "found.html",
    .defaults = defaults,
    PNB__RUNS(options, struct search_args, run)};
