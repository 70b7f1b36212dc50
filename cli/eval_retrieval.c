/* penumbra eval retrieval | compare: retrieval figures of one pair of sets, or of several.
 *
 * Options only: src/app/retrieval*.c compute and show. Both commands share the rows that say what
 * belongs together and how it is measured. */
#include <string.h>

#include "app/retrieval_compare.h"
#include "app/retrieval_table.h"
#include "commands.h"
#include "rows.h"

/* What both commands take. */
struct shared_args {
    const char *truth, *truth_format, *split, *measure, *uncertainty, *dataset, *csv, *markdown;
    const char *cluster, *eccv, *label_vectors;
    bool by_class;
    int64_t level, bins, bootstrap;
    pnb__text_list recall_k;
};

/* clang-format off */
#define TRUTH_ROWS(AT)                                                                             \
    PNB__TRUTH_ROWS(AT(truth), AT(truth_format), AT(split), AT(by_class)),                         \
    {.name = "level",                                                                              \
     .kind = PNB__OPT_INT,                                                                         \
     .at = AT(level),                                                                              \
     .value = "N",                                                                                 \
     .min = 0,                                                                                     \
     .max = 7,                                                                                     \
     .help = "Only captions of this level"},                                                       \
    PNB__SETS_MEASURE_ROW(AT(measure)),                                                                 \
    {.name = "recall-k",                                                                           \
     .kind = PNB__OPT_LIST,                                                                        \
     .at = AT(recall_k),                                                                           \
     .value = "K...",                                                                              \
     .help = "Cut-offs of the recall, up to 16; 1 5 10 by default"}

#define UNCERTAINTY_ROWS(AT)                                                                       \
    {.name = "bins",                                                                               \
     .kind = PNB__OPT_INT,                                                                         \
     .at = AT(bins),                                                                               \
     .value = "N",                                                                                 \
     .fallback = "10",                                                                             \
     .min = 2,                                                                                     \
     .max = 256,                                                                                   \
     .group = "Uncertainty",                                                                       \
     .help = "Bins of queries sorted by uncertainty"},                                             \
    {.name = "uncertainty",                                                                        \
     .kind = PNB__OPT_CHOICE,                                                                      \
     .at = AT(uncertainty),                                                                        \
     .value = "NAME",                                                                              \
     .fallback = "auto",                                                                           \
     .choices = "auto|trace|mean_var|geo_std|inv_kappa|gg_var|cosine",                             \
     .help = "Scalar uncertainty; auto is that of the family: trace, inv_kappa on the sphere, "    \
             "gg_var of generalised Gaussians, and for points cosine, 1 - cosine of a query and "  \
             "its first hit"},                                                                     \
    {.name = "bootstrap",                                                                          \
     .kind = PNB__OPT_INT,                                                                         \
     .at = AT(bootstrap),                                                                          \
     .value = "N",                                                                                 \
     .fallback = "1000",                                                                           \
     .min = 0,                                                                                     \
     .max = 1000000,                                                                               \
     .help = "Resamples of the clusters for 95% intervals; 0 leaves the intervals out"},           \
    PNB__CLUSTER_ROW(AT(cluster))

#define RESULT_ROWS(AT)                                                                            \
    {.name = "dataset",                                                                            \
     .kind = PNB__OPT_TEXT,                                                                        \
     .at = AT(dataset),                                                                            \
     .value = "NAME",                                                                              \
     .group = "Result",                                                                            \
     .help = "Name of the data set in the result"},                                                \
    {.name = "csv",                                                                                \
     .kind = PNB__OPT_FILE,                                                                        \
     .writes = "*",                                                                                \
     .at = AT(csv),                                                                                \
     .value = "FILE",                                                                              \
     .help = "Also write every figure, one a line"},                                               \
    {.name = "markdown",                                                                           \
     .kind = PNB__OPT_FILE,                                                                        \
     .writes = "*",                                                                                \
     .at = AT(markdown),                                                                           \
     .value = "FILE",                                                                              \
     .help = "Also write the table of a paper"}
/* clang-format on */

static pnb_status fill_cutoffs(pnb__app *app, const pnb__text_list *words,
                               pnb__retrieval_opts *opts)
{
    if (words->n > PNB_MAX_RECALLS)
        return pnb__usage(app, "--recall-k takes at most %d values", PNB_MAX_RECALLS);
    for (size_t i = 0; i < words->n; i++) {
        int64_t k = 0;
        if (!pnb__read_int(words->items[i], &k) || k < 1)
            return pnb__usage(app, "--recall-k %s: a whole number above 0 is wanted",
                              words->items[i]);
        opts->k[i] = (size_t)k;
        opts->n_k = words->n;
    }
    return PNB_OK;
}

static pnb_status fill_shared(pnb__app *app, const struct shared_args *a, pnb__retrieval_opts *opts)
{
    pnb_status status = pnb__measure_parse(&opts->measure, a->measure, &app->err);
    if (status == PNB_OK && strcmp(a->uncertainty, "auto") != 0)
        status = pnb_uncertainty_parse(&opts->uncertainty, a->uncertainty, &app->err);
    if (status == PNB_OK)
        status = pnb_truth_format_parse(&opts->read.format, a->truth_format, &app->err);
    if (status != PNB_OK)
        return status;
    opts->truth = a->truth;
    opts->read.split = a->split;
    opts->read.by_class = a->by_class;
    opts->level = a->level != PNB__INT_UNSET ? (int)a->level : -1;
    opts->n_bins = (size_t)a->bins;
    opts->n_resamples = (size_t)a->bootstrap;
    opts->cluster = a->cluster;
    opts->eccv = a->eccv;
    opts->label_vectors = a->label_vectors;
    if (a->truth == NULL && a->split != NULL)
        return pnb__usage(app, "--split is a part of a --truth file, and none is given");
    return fill_cutoffs(app, &a->recall_k, opts);
}

/* ---- retrieval ---- */

struct retrieval_args {
    struct shared_args shared;
    const char *images, *texts, *binning, *bin_by, *output;
};

#define AT(field) offsetof(struct retrieval_args, field)
#define AT_SHARED(field) offsetof(struct retrieval_args, shared.field)
static const pnb__option retrieval_options[] = {
    PNB__IMAGES_TEXTS_ROWS(AT(images), AT(texts)),
    TRUTH_ROWS(AT_SHARED),
    PNB__COCO_ROWS(AT_SHARED(eccv), AT_SHARED(label_vectors)),
    UNCERTAINTY_ROWS(AT_SHARED),
    {.name = "binning",
     .kind = PNB__OPT_CHOICE,
     .at = AT(binning),
     .value = "NAME",
     .fallback = "equal_count",
     .choices = "equal_count|equal_count_all|equal_width|grove_samples|grove_spacing",
     .help = "How the bins that are shown are cut"},
    {.name = "bin-by",
     .kind = PNB__OPT_CHOICE,
     .at = AT(bin_by),
     .value = "WHOSE",
     .fallback = "query",
     .choices = "query|hit",
     .help = "Whose uncertainty sorts them: the query's, or that of the item it found"},
    RESULT_ROWS(AT_SHARED),
    {.name = "output",
     .kind = PNB__OPT_FILE,
     .writes = "*",
     .at = AT(output),
     .value = "FILE",
     .help = "Also write the JSON result; {dataset}, {pretrained}, {model}, {language} and {task} "
             "in the name are filled in, as CLIP_benchmark does"},
};
#undef AT
#undef AT_SHARED

static pnb_status save_tables(pnb__app *app, const struct retrieval_args *a,
                              const pnb__retrieval_opts *opts, const pnb__retrieval *run,
                              const char *dataset)
{
    const char *model = run->images->info.model;
    const pnb__table_row row = pnb__table_row_of(run, model[0] != '\0' ? model : "model");
    const pnb__table t = {dataset, opts->k, opts->n_k, &row, 1, opts->n_resamples > 0};
    pnb_status status = PNB_OK;
    if (a->shared.csv != NULL)
        status = pnb__table_save_csv(&t, a->shared.csv, &app->err);
    if (status == PNB_OK && a->shared.markdown != NULL)
        status = pnb__table_save_markdown(&t, a->shared.markdown, &app->err);
    return status;
}

static pnb_status run_retrieval(pnb__app *app, const void *args)
{
    const struct retrieval_args *a = args;
    pnb__retrieval_opts opts = pnb__retrieval_opts_default();
    pnb__retrieval run = {0};
    pnb__result *r = NULL;
    const char *dataset = a->shared.dataset != NULL ? a->shared.dataset : a->images;
    pnb_status status = fill_shared(app, &a->shared, &opts);
    if (status == PNB_OK)
        status = pnb_binning_parse(&opts.binning, a->binning, &app->err);
    if (status != PNB_OK)
        return status;
    opts.images = a->images;
    opts.texts = a->texts;
    opts.bin_by_hit = strcmp(a->bin_by, "hit") == 0;
    PNB_TRY(pnb__retrieval_run(app, &opts, &run));
    r = pnb__result_create();
    pnb__result_text(r, "dataset", NULL, dataset);
    pnb__retrieval_report(&run, &opts, r);
    PNB_TRY(save_tables(app, a, &opts, &run, dataset));
    if (a->output != NULL)
        PNB_TRY(pnb__retrieval_save(app, &run, dataset, a->output, r));
done:
    status = pnb__result_finish(r, app, status);
    pnb__retrieval_reset(&run);
    return status;
}

const pnb__command pnb__cmd_eval_retrieval = {
    .name = "retrieval",
    .summary = "find captions by pictures and pictures by captions",
    .about =
        "Recall at k both ways beside chance, their sum, R-Precision and mAP@R; recall at 1 in "
        "bins of uncertainty with Spearman's S, R2 of the line and -S R2, by the query's "
        "uncertainty and by that of what it found; Spearman over single queries, AUROC of error, "
        "area under risk and coverage, and how far the probabilities of first hits are off, with "
        "95% intervals over clusters of queries, as a picture with its captions. Bins have no "
        "interval: S and R2 depend on the number of queries; Spearman and AUROC do not. "
        "Probabilities come from the calibration beside the set that is searched, else "
        "from the model's a and b. Shares are fractions everywhere, RSUM too. Memory grows "
        "with the number of pairs and rows, never with their product.",
    .examples = "penumbra eval retrieval --images images.safetensors --texts texts.safetensors "
                "--truth shapes/truth/test.pairs --level 3\n"
                "penumbra eval retrieval --images images.safetensors --texts texts.safetensors "
                "--truth dataset_coco.json --split test --markdown table.md",
    .options = retrieval_options,
    .n_options = sizeof retrieval_options / sizeof *retrieval_options,
    .args_bytes = sizeof(struct retrieval_args),
    .run = run_retrieval};

/* ---- compare ---- */

struct compare_args {
    struct shared_args shared;
    pnb__text_list images, texts, names;
};

#define AT(field) offsetof(struct compare_args, field)
#define AT_SHARED(field) offsetof(struct compare_args, shared.field)
static const pnb__option compare_options[] = {
    {.name = "images",
     .kind = PNB__OPT_FILES,
     .at = AT(images),
     .value = "SET...",
     .required = true,
     .help = "Embedding sets of the pictures, one a model or seed"},
    {.name = "texts",
     .kind = PNB__OPT_FILES,
     .at = AT(texts),
     .value = "SET...",
     .required = true,
     .help = "Embedding sets of the captions, in the same order"},
    {.name = "names",
     .kind = PNB__OPT_LIST,
     .at = AT(names),
     .value = "NAME...",
     .help = "Names of the models, in the same order; equal names are seeds of one model. Without "
             "them the files' names"},
    TRUTH_ROWS(AT_SHARED),
    PNB__COCO_ROWS(AT_SHARED(eccv), AT_SHARED(label_vectors)),
    UNCERTAINTY_ROWS(AT_SHARED),
    RESULT_ROWS(AT_SHARED),
};
#undef AT
#undef AT_SHARED

static pnb_status run_compare(pnb__app *app, const void *args)
{
    const struct compare_args *a = args;
    pnb__compare_opts opts = {.run = pnb__retrieval_opts_default(),
                              .images = a->images.items,
                              .texts = a->texts.items,
                              .names = a->names.n > 0 ? a->names.items : NULL,
                              .n = a->images.n,
                              .dataset = a->shared.dataset != NULL ? a->shared.dataset : "",
                              .csv = a->shared.csv,
                              .markdown = a->shared.markdown};
    pnb_status status = fill_shared(app, &a->shared, &opts.run);
    if (status != PNB_OK)
        return status;
    if (a->texts.n != a->images.n || (a->names.n > 0 && a->names.n != a->images.n))
        return pnb__usage(app,
                          "%zu sets of pictures, %zu of captions and %zu names; as many of each "
                          "are wanted",
                          a->images.n, a->texts.n, a->names.n);
    pnb__result *r = pnb__result_create();
    status = pnb__retrieval_compare(app, &opts, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_eval_compare = {
    .name = "compare",
    .summary = "compare the retrieval of several models or seeds on the same queries",
    .about = "Every figure of `eval retrieval` for each model, as the mean over its seeds with "
             "their standard deviation and a 95% interval over clusters of queries; the difference "
             "from the first model and p of a paired bootstrap test, in which both models are "
             "resampled alike. The sets must hold the same rows in the same order. p is not "
             "corrected for "
             "the number of figures looked at. Figures of --eccv and --label-vectors stand with "
             "their mean, spread and difference, without interval or p.",
    .examples = "penumbra eval compare --images a0.safetensors a1.safetensors b.safetensors "
                "--texts at0.safetensors at1.safetensors bt.safetensors --names base base ours "
                "--truth captions_val2014.json --markdown table.md",
    .options = compare_options,
    .n_options = sizeof compare_options / sizeof *compare_options,
    .args_bytes = sizeof(struct compare_args),
    .run = run_compare};
