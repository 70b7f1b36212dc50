/* penumbra eval retrieval | compare: retrieval figures of one pair of sets, or of several.
 *
 * Options only: src/commands/eval/ compute and show. What both commands take is in
 * retrieval_args.h. */
#include "commands/commands.h"
#include "commands/eval/eval_compare.h"
#include "commands/eval/retrieval_args.h"

/* ---- retrieval ---- */

struct retrieval_args {
    pnb__retrieval_args shared;
    const char *images, *texts;
};

#define AT(field) offsetof(struct retrieval_args, field)
#define AT_SHARED(field) offsetof(struct retrieval_args, shared.field)
static const pnb__option retrieval_options[] = {
    PNB__IMAGES_TEXTS_ROWS(AT(images), AT(texts)),
    PNB__RETRIEVAL_ROWS(AT_SHARED),
    PNB__RETRIEVAL_UNCERTAINTY_ROWS(AT_SHARED),
    PNB__RETRIEVAL_RESULT_ROWS(AT_SHARED),
};
#undef AT
#undef AT_SHARED

static pnb_status run_retrieval(pnb__app *app, const void *args)
{
    const struct retrieval_args *a = args;
    pnb__retrieval_opts opts = pnb__retrieval_opts_default();
    pnb__retrieval run = {0};
    pnb__result *r = NULL;
    const pnb__retrieval_files files = pnb__retrieval_args_files(&a->shared, a->images);
    pnb_status status = pnb__retrieval_args_read(app, &a->shared, &opts);
    if (status != PNB_OK)
        return status;
    opts.images = a->images;
    opts.texts = a->texts;
    PNB_TRY(pnb__retrieval_run(app, &opts, &run));
    r = pnb__result_create();
    pnb__retrieval_report(&run, &opts, files.dataset, r);
    status = pnb__retrieval_save(app, &run, &opts, &files, r);
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
    pnb__retrieval_args shared;
    pnb__text_list images, texts, names;
};

#define AT(field) offsetof(struct compare_args, field)
#define AT_SHARED(field) offsetof(struct compare_args, shared.field)
static const pnb__option compare_options[] = {
    PNB__ROW_FILES("images", AT(images), "SET...",
                   "Embedding sets of the pictures, one a model or seed", .required = true),
    PNB__ROW_FILES("texts", AT(texts), "SET...",
                   "Embedding sets of the captions, in the same order", .required = true),
    PNB__ROW_LIST(
        "names", AT(names), "NAME...",
        "Names of the models, in the same order; equal names are seeds of one model. Without "
        "them the files' names"),
    PNB__RETRIEVAL_ROWS(AT_SHARED),
    PNB__RETRIEVAL_UNCERTAINTY_ROWS(AT_SHARED),
    PNB__RETRIEVAL_RESULT_ROWS(AT_SHARED),
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
                              .files = pnb__retrieval_args_files(&a->shared, "")};
    pnb_status status = pnb__retrieval_args_read(app, &a->shared, &opts.run);
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
             "the number of figures looked at. The bins of every model and seed stand in the JSON "
             "result; in the name of --output {model} is the models' names joined by +, and "
             "{pretrained} the weights of the first.",
    .examples = "penumbra eval compare --images a0.safetensors a1.safetensors b.safetensors "
                "--texts at0.safetensors at1.safetensors bt.safetensors --names base base ours "
                "--truth captions_val2014.json --markdown table.md",
    .options = compare_options,
    .n_options = sizeof compare_options / sizeof *compare_options,
    .args_bytes = sizeof(struct compare_args),
    .run = run_compare};
