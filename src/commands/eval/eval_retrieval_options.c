/* penumbra eval retrieval | compare: retrieval figures of one pair of sets, or of several.
 *
 * Options only: src/commands/eval/ compute and show. What both commands take is in
 * retrieval_args.h. */
#include "commands/commands.h"
#include "commands/eval/eval_compare.h"
#include "commands/eval/retrieval_args.h"
#include "program/together.h"

/* ---- retrieval ---- */

struct eval_retrieval_args {
    pnb__retrieval_args shared;
    int64_t rank_timeout;
};

#define AT(field) PNB__FIELD(struct eval_retrieval_args, shared.field)
static const pnb__option retrieval_options[] = {
    PNB__IMAGES_TEXTS_ROWS(AT(job.images), AT(job.texts)),
    PNB__RETRIEVAL_ROWS(AT),
    PNB__RETRIEVAL_UNCERTAINTY_ROWS(AT),
    PNB__RETRIEVAL_RESULT_ROWS(AT),
    PNB__RANK_TIMEOUT_ROW(PNB__FIELD(struct eval_retrieval_args, rank_timeout)),
};
#undef AT

static void retrieval_defaults(void *args)
{
    *(struct eval_retrieval_args *)args =
        (struct eval_retrieval_args){.shared = pnb__retrieval_args_default()};
}

static pnb_status run_retrieval(pnb__app *app, void *args, pnb__result *r)
{
    struct eval_retrieval_args *all = args;
    pnb__retrieval_args *a = &all->shared;
    pnb__retrieval run = {0};
    pnb_status status = pnb__retrieval_args_read(app, a, a->job.images);
    if (status != PNB_OK)
        return status;
    a->job.ranks = app->ranks;
    pnb_peers_set_timeout(app->ranks, (double)all->rank_timeout);
    PNB_TRY(pnb__retrieval_run(app, &a->job, &run));
    pnb__retrieval_report(&run, &a->job, a->files.dataset, r);
    PNB_TRY(pnb__retrieval_put_classes(app, &run, r));
    if (pnb__together_writes(app))
        status = pnb__retrieval_save(app, &run, &a->job, &a->files, r);
done:
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
        "from the model's a and b, or are match_prob's own values. Shares are fractions "
        "everywhere, RSUM too. Memory grows "
        "with the number of pairs and rows, never with their product.\n\n"
        "Under mpirun, srun or torchrun each process ranks for its share of the queries, and rank "
        "0 prints and writes the result of one process.",
    .examples = "penumbra eval retrieval --images images.safetensors --texts texts.safetensors "
                "--truth shapes/truth/test.pairs --level 3\n"
                "penumbra eval retrieval --images images.safetensors --texts texts.safetensors "
                "--truth dataset_coco.json --split test --markdown table.md",
    .joins = true,
    .defaults = retrieval_defaults,
    PNB__RUNS(retrieval_options, struct eval_retrieval_args, run_retrieval)};

/* ---- compare ---- */

struct compare_args {
    pnb__retrieval_args shared;
    pnb__text_list images, texts, names;
};

#define AT(field) PNB__FIELD(struct compare_args, field)
#define AT_SHARED(field) AT(shared.field)
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
#undef AT_SHARED
#undef AT

static void compare_defaults(void *args)
{
    *(struct compare_args *)args = (struct compare_args){.shared = pnb__retrieval_args_default()};
}

static pnb_status run_compare(pnb__app *app, void *args, pnb__result *r)
{
    struct compare_args *a = args;
    pnb_status status = pnb__retrieval_args_read(app, &a->shared, "");
    if (status != PNB_OK)
        return status;
    if (a->texts.n != a->images.n || (a->names.n > 0 && a->names.n != a->images.n))
        return pnb__usage(app,
                          "%zu sets of pictures, %zu of captions and %zu names; as many of each "
                          "are wanted",
                          a->images.n, a->texts.n, a->names.n);
    const pnb__compare_opts opts = {.run = a->shared.job,
                                    .images = a->images.items,
                                    .texts = a->texts.items,
                                    .names = a->names.n > 0 ? a->names.items : NULL,
                                    .n = a->images.n,
                                    .files = a->shared.files};
    return pnb__retrieval_compare(app, &opts, r);
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
    .defaults = compare_defaults,
    PNB__RUNS(compare_options, struct compare_args, run_compare)};
