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
#include "commands/search/search_inclusion.h"
#include "program/result.h"

struct search_args {
    const char *index, *model, *queries, *measure, *tokenizer, *preprocess;
    const char *conformal_by, *calibration, *html, *inclusion, *order;
    pnb__text_list texts, images;
    double min_probability, conformal, near;
    int64_t k;
    bool exif, trust, published;
};

#define AT(field) offsetof(struct search_args, field)
static const pnb__option options[] = {
    PNB__ROW_FILE("index", AT(index), "SET", "Embedding set to search in", .required = true),
    PNB__QUERY_ROWS(AT(texts), AT(images), AT(queries), AT(model)),
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    PNB__QUERY_EXIF_ROW(AT(exif)),
    PNB__ROW_INT("k", AT(k), "N", "Hits of a query at most: 10, with --conformal the whole list",
                 PNB__RANGE(1, 1e6), .letter = 'k'),
    PNB__SETS_MEASURE_ROW(AT(measure)),
    PNB__ROW_REAL(
        "min-probability", AT(min_probability), "P",
        "End a list where p(match) falls below P; an empty list is an answer: no good result",
        PNB__RANGE(0, 1), .group = "Where lists end"),
    PNB__ROW_REAL(
        "conformal", AT(conformal), "RATE",
        "The smallest list that holds a true match but for this share of queries, by the set's "
        "calibration",
        PNB__RANGE(1e-6, 0.999999)),
    PNB__ROW_CHOICE(
        "conformal-by", AT(conformal_by), "KIND", "score|margin|rank",
        "End such a list by score, by distance from the first hit, or by length; by default "
        "what made the smallest lists in calibration"),
    PNB__ROW_FILE("calibration", AT(calibration), "FILE",
                  "Calibration to use in place of SET.calibration.json beside the index; none: the "
                  "model's own a and b"),
    PNB__TRUST_ROW(AT(trust)),
    PNB__ROW_CHOICE("inclusion", AT(inclusion), "WHICH", "contains|inside",
                    "Rows that contain the query, or rows inside it, in place of the nearest",
                    .group = "Inclusion search"),
    PNB__ROW_CHOICE("order", AT(order), "NAME", "inclusion|nearness",
                    "Sort such rows by H, the default, or by their csd similarity to the query"),
    PNB__ROW_REAL("near", AT(near), "SCORE",
                  "Leave out such rows whose csd similarity to the query is smaller"),
    PNB__ROW_FLAG("published", AT(published),
                  "Take the inclusion as ProLIP's code has it instead of the exact one"),
    PNB__ROW_FILE("html", AT(html), "FILE",
                  "Write a page with every query and its hits, pictures as pictures",
                  .group = "Result", .writes = "*"),
};
#undef AT

/* What belongs to the other kind of search is refused, since it would do nothing. */
static pnb_status check_kind(pnb__app *app, const struct search_args *a)
{
    bool has_limits = !isnan(a->min_probability) || !isnan(a->conformal) ||
                      a->conformal_by != NULL || a->calibration != NULL || a->trust;
    if (a->inclusion == NULL && (a->order != NULL || !isnan(a->near) || a->published))
        return pnb__usage(app, "--order, --near and --published need --inclusion");
    if (a->inclusion != NULL && strcmp(a->measure, "auto") != 0)
        return pnb__usage(app, "--inclusion has a measure of its own: leave --measure out");
    if (a->inclusion != NULL && has_limits)
        return pnb__usage(app, "--inclusion ends lists where H is not positive: probabilities and "
                               "calibrations are of nearest rows");
    if (a->inclusion != NULL && a->html != NULL)
        return pnb__usage(app, "--inclusion has no page: leave --html out");
    return PNB_OK;
}

static pnb_status run_inclusion(pnb__app *app, const struct search_args *a,
                                const pnb__query *queries)
{
    pnb__search_inclusion_opts opts = {.index = a->index,
                                       .model = a->model,
                                       .tokenizer = a->tokenizer,
                                       .preprocess = a->preprocess,
                                       .queries = *queries,
                                       .opts = pnb_inclusion_search_opts_default()};
    opts.opts.inside = strcmp(a->inclusion, "inside") == 0;
    opts.opts.published = a->published;
    if (a->k != PNB__INT_UNSET)
        opts.opts.k = (size_t)a->k;
    if (!isnan(a->near))
        opts.opts.min_nearness = a->near;
    pnb_status status = PNB_OK;
    if (a->order != NULL)
        status = pnb_inclusion_order_parse(&opts.opts.order, a->order, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    status = pnb__search_inclusion_run(app, &opts, r);
    return pnb__result_finish(r, app, status);
}

static pnb_status run(pnb__app *app, const void *args)
{
    const struct search_args *a = args;
    const pnb__query queries = {a->queries, &a->texts, &a->images, a->exif};
    if (pnb__query_check(app, &queries, a->model) != PNB_OK || check_kind(app, a) != PNB_OK)
        return app->err.status;
    if (a->inclusion != NULL)
        return run_inclusion(app, a, &queries);
    if (!isnan(a->conformal) && !isnan(a->min_probability))
        return pnb__usage(app, "only one of --conformal and --min-probability: the second would "
                               "break what the first promises");
    if (a->conformal_by != NULL && isnan(a->conformal))
        return pnb__usage(app, "--conformal-by needs --conformal");
    const pnb__search_opts opts = {.index = a->index,
                                   .model = a->model,
                                   .queries = a->queries,
                                   .texts = &a->texts,
                                   .images = &a->images,
                                   .tokenizer = a->tokenizer,
                                   .preprocess = a->preprocess,
                                   .measure = a->measure,
                                   .html = a->html,
                                   .exif = a->exif,
                                   .limits = {.min_probability = a->min_probability,
                                              .conformal_alpha = a->conformal,
                                              .conformal_by = a->conformal_by,
                                              .calibration = a->calibration,
                                              .trust = a->trust},
                                   .k = a->k != PNB__INT_UNSET ? (size_t)a->k : 0};
    pnb__result *r = pnb__result_create();
    pnb_status status = pnb__search_run(app, &opts, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_search = {
    .name = "search",
    .summary = "find the rows of a set nearest to a caption or picture",
    .about =
        "Hits come with their score (larger is nearer), the probability that the pair "
        "matches, and the uncertainty of the row. The probability is that of the set's "
        "calibration (`penumbra calibrate`) where one lies beside it; else s(a score + b) with "
        "the model's a and b, for csd and mean between a picture and a caption. A calibration "
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
        "penumbra search --index images.safetensors -m model --query-text 'a red star' --html "
        "found.html",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct search_args),
    .run = run};
