/* penumbra eval retrieval | uncertainty: figures of embedding sets.
 *
 * Options only: the figures are put together in src/app/retrieval.c and src/app/claims.c. */
#include <string.h>

#include "app/claims.h"
#include "app/result.h"
#include "app/retrieval.h"
#include "commands.h"
#include "rows.h"

/* ---- retrieval ---- */

struct retrieval_args {
    const char *images, *texts, *truth, *measure, *uncertainty, *binning, *bin_by, *dataset;
    int64_t level, bins;
    pnb__text_list recall_k;
};

#define AT(field) offsetof(struct retrieval_args, field)
static const pnb__option retrieval_options[] = {
    {.name = "images",
     .kind = PNB__OPT_FILE,
     .at = AT(images),
     .value = "SET",
     .required = true,
     .help = "Embedding set of the pictures"},
    {.name = "texts",
     .kind = PNB__OPT_FILE,
     .at = AT(texts),
     .value = "SET",
     .required = true,
     .help = "Embedding set of the captions"},
    {.name = "truth",
     .kind = PNB__OPT_FILE,
     .at = AT(truth),
     .value = "PAIRS",
     .help = "True pairs: picture id, tab, caption id on each line; without it row i belongs to "
             "row i"},
    {.name = "level",
     .kind = PNB__OPT_INT,
     .at = AT(level),
     .value = "N",
     .min = 0,
     .max = 7,
     .help = "Only captions of this level"},
    PNB__MEASURE_ROW(AT(measure)),
    {.name = "recall-k",
     .kind = PNB__OPT_LIST,
     .at = AT(recall_k),
     .value = "K...",
     .help = "Cut-offs of the recall, up to 16; 1 5 10 by default"},
    {.name = "bins",
     .kind = PNB__OPT_INT,
     .at = AT(bins),
     .value = "N",
     .fallback = "10",
     .min = 2,
     .max = 256,
     .group = "Uncertainty bins",
     .help = "Bins of queries sorted by uncertainty"},
    {.name = "binning",
     .kind = PNB__OPT_CHOICE,
     .at = AT(binning),
     .value = "NAME",
     .fallback = "equal_count",
     .choices = "equal_count|equal_count_all|equal_width|grove_samples|grove_spacing",
     .help = "How the bins are cut"},
    {.name = "bin-by",
     .kind = PNB__OPT_CHOICE,
     .at = AT(bin_by),
     .value = "WHOSE",
     .fallback = "query",
     .choices = "query|hit",
     .help = "Whose uncertainty sorts: the query's, or that of the item it found"},
    {.name = "uncertainty",
     .kind = PNB__OPT_CHOICE,
     .at = AT(uncertainty),
     .value = "NAME",
     .fallback = "trace",
     .choices = "trace|mean_var|geo_std",
     .help = "Scalar uncertainty of a Gaussian row"},
    {.name = "dataset",
     .kind = PNB__OPT_TEXT,
     .at = AT(dataset),
     .value = "NAME",
     .group = "Result",
     .help = "Name of the data set in the JSON result"},
};
#undef AT

static pnb_status fill_opts(pnb__app *app, const struct retrieval_args *a,
                            pnb__retrieval_opts *opts)
{
    pnb_status status = pnb_measure_parse(&opts->measure, a->measure, &app->err);
    if (status == PNB_OK)
        status = pnb_uncertainty_parse(&opts->uncertainty, a->uncertainty, &app->err);
    if (status == PNB_OK)
        status = pnb_binning_parse(&opts->binning, a->binning, &app->err);
    opts->images = a->images;
    opts->texts = a->texts;
    opts->truth = a->truth;
    opts->level = a->level != PNB__INT_UNSET ? (int)a->level : -1;
    opts->n_bins = (size_t)a->bins;
    opts->bin_by_hit = strcmp(a->bin_by, "hit") == 0;
    if (a->recall_k.n > PNB_MAX_RECALLS)
        return pnb__usage(app, "--recall-k takes at most %d values", PNB_MAX_RECALLS);
    for (size_t i = 0; i < a->recall_k.n; i++) {
        int64_t k = 0;
        if (!pnb__read_int(a->recall_k.items[i], &k) || k < 1)
            return pnb__usage(app, "--recall-k %s: a whole number above 0 is wanted",
                              a->recall_k.items[i]);
        opts->k[i] = (size_t)k;
        opts->n_k = a->recall_k.n;
    }
    return status;
}

static pnb_status run_retrieval(pnb__app *app, const void *args)
{
    const struct retrieval_args *a = args;
    pnb__retrieval_opts opts = pnb__retrieval_opts_default();
    pnb__retrieval run = {0};
    pnb_status status = fill_opts(app, a, &opts);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    status = pnb__retrieval_run(app, &opts, &run);
    if (status == PNB_OK) {
        pnb__result_text(r, "dataset", NULL, a->dataset != NULL ? a->dataset : a->images);
        pnb__retrieval_report(&run, &opts, r);
        status = pnb__result_print(r, app->out, app->common.json, &app->err);
    }
    pnb__result_free(r);
    pnb__retrieval_reset(&run);
    return status;
}

/* ---- uncertainty ---- */

struct uncertainty_args {
    pnb__claims_sets model, control;
};

#define AT(field) offsetof(struct uncertainty_args, field)
static const pnb__option uncertainty_options[] = {
    {.name = "texts",
     .kind = PNB__OPT_FILE,
     .at = AT(model.texts),
     .value = "SET",
     .required = true,
     .help = "Embedding set of the captions, with levels"},
    {.name = "images",
     .kind = PNB__OPT_FILE,
     .at = AT(model.images),
     .value = "SET",
     .help = "Embedding set of the pictures"},
    {.name = "truth",
     .kind = PNB__OPT_FILE,
     .at = AT(model.truth),
     .value = "PAIRS",
     .help = "True pairs of picture and caption"},
    PNB__CLAIMS_MASKED_ROWS(AT(model.masked_images), AT(model.masked_texts)),
    PNB__CLAIMS_CONTROL_ROWS(AT(control.images), AT(control.texts), AT(control.masked_images),
                             AT(control.masked_texts)),
};
#undef AT

static pnb_status run_uncertainty(pnb__app *app, const void *args)
{
    const struct uncertainty_args *a = args;
    pnb__claims_sets control_sets = a->control;
    pnb__claims claims, control;
    bool has_control = control_sets.texts != NULL;
    control_sets.truth = control_sets.images != NULL ? a->model.truth : NULL;
    if (!has_control && (control_sets.images != NULL || control_sets.masked_images != NULL ||
                         control_sets.masked_texts != NULL))
        return pnb__usage(app, "a control needs --control-texts");
    pnb_status status = pnb__claims_measure(app, &a->model, &claims);
    if (status == PNB_OK && has_control)
        status = pnb__claims_measure(app, &control_sets, &control);
    if (status != PNB_OK)
        return status;
    pnb__result *r = pnb__result_create();
    pnb__claims_report(&claims, has_control ? &control : NULL, r);
    status = pnb__result_print(r, app->out, app->common.json, &app->err);
    pnb__result_free(r);
    return status;
}

static const pnb__command retrieval = {
    .name = "retrieval",
    .summary = "find captions by pictures and pictures by captions",
    .about = "Recall at k both ways beside chance, their sum, R-Precision, and recall at 1 in "
             "bins of uncertainty with Spearman's S, R2 of the line and -S R2. Shares are "
             "fractions in JSON and percent in text. Memory grows with the number of pairs and "
             "rows, never with their product.",
    .examples = "penumbra eval retrieval --images images.safetensors --texts texts.safetensors "
                "--truth shapes/truth/test.pairs --level 3",
    .options = retrieval_options,
    .n_options = sizeof retrieval_options / sizeof *retrieval_options,
    .args_bytes = sizeof(struct retrieval_args),
    .run = run_retrieval};

static const pnb__command uncertainty = {
    .name = "uncertainty",
    .summary = "measure what the learned uncertainty shows, beside a control",
    .about = "Mean uncertainty by caption level and the order of levels, whether masked copies "
             "are more uncertain than their originals and include them. What has no set is left "
             "out. The control is the same measurement on a model whose log-variance head was "
             "never trained: the difference is what training taught.",
    .examples = "penumbra eval uncertainty --texts texts.safetensors --images images.safetensors "
                "--truth shapes/truth/test.pairs --masked-texts masked.safetensors",
    .options = uncertainty_options,
    .n_options = sizeof uncertainty_options / sizeof *uncertainty_options,
    .args_bytes = sizeof(struct uncertainty_args),
    .run = run_uncertainty};

static const pnb__command *const subs[] = {&retrieval, &uncertainty, &pnb__cmd_vqa, NULL};
const pnb__command pnb__cmd_eval = {
    .name = "eval", .summary = "measure retrieval and uncertainty of embedding sets", .subs = subs};
