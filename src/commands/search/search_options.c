/* penumbra search: the nearest rows of an embedding set.
 *
 * Options only; encoding the query and the table of hits are in src/commands/search/search.c. */
#include "commands/search/search.h"

#include <math.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/common/query.h"
#include "program/result.h"

struct search_args {
    const char *index, *model, *queries, *measure, *tokenizer, *preprocess;
    const char *conformal_by, *calibration, *html;
    pnb__text_list texts, images;
    double min_probability, conformal;
    int64_t k;
    bool exif, trust;
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
    PNB__ROW_FILE("html", AT(html), "FILE",
                  "Write a page with every query and its hits, pictures as pictures",
                  .group = "Result", .writes = "*"),
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct search_args *a = args;
    const pnb__words queries = {a->queries, &a->texts, &a->images, a->exif};
    if (pnb__words_check_query(app, &queries, a->model) != PNB_OK)
        return app->err.status;
    if (!isnan(a->conformal) && !isnan(a->min_probability))
        return pnb__usage(app, "only one of --conformal and --min-probability: the second would "
                               "break what the first promises");
    if (a->conformal_by != NULL && isnan(a->conformal))
        return pnb__usage(app, "--conformal-by needs --conformal");
    const pnb__query_opts opts = {.index = a->index,
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
    pnb_status status = pnb__query_run(app, &opts, r);
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
        "or preprocessing it is refused, and no probability is shown.",
    .examples =
        "penumbra search --index images.safetensors --model model --query-text 'a red star'\n"
        "penumbra search --index texts.safetensors -m model --query-image cat.jpg -k 5 --json\n"
        "penumbra search --index images.safetensors -m model --query-text 'a red star' "
        "--min-probability 0.5\n"
        "penumbra search --index images.safetensors -m model --query-text 'a red star' --conformal "
        "0.1\n"
        "penumbra search --index images.safetensors -m model --query-text 'a red star' --html "
        "found.html",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct search_args),
    .run = run};
