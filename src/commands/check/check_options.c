/* penumbra check: a model folder examined before it is trusted.
 *
 * Options and the exit status; what is looked at and how it is judged is in
 * src/commands/check/check.c. */
#include "commands/check/check.h"
#include "commands/commands.h"

struct check_args {
    const char *dir, *photo;
};

#define AT(field) PNB__FIELD(struct check_args, field)
static const pnb__option options[] = {
    PNB__ROW_REST("dir", AT(dir), "DIR", "Model folder, or hf-hub:ORG/NAME from the local cache",
                  .required = true),
    PNB__ROW_FILE(
        "photo", AT(photo), "FILE",
        "The photo of ProLIP's published numbers (COCO val2017 000000039769.jpg); looked for "
        "in DIR too"),
};
#undef AT

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const struct check_args *a = args;
    pnb__verdict verdict = {0};
    pnb_status status = pnb__check_model(app, a->dir, a->photo, &verdict, r);
    if (status != PNB_OK || verdict.n_errors == 0)
        return status;
    status = pnb__result_print(r, app->out, app->common.json, &app->err);
    return status != PNB_OK ? status
                            : pnb__fail(&app->err, PNB_FORMAT, "%s: %zu error%s, %zu warning%s",
                                        a->dir, verdict.n_errors, verdict.n_errors == 1 ? "" : "s",
                                        verdict.n_warnings, verdict.n_warnings == 1 ? "" : "s");
}

const pnb__command pnb__cmd_check = {
    .name = "check",
    .summary = "examine a model folder: architecture, weights, tokenizer, preprocessing, a run",
    .about =
        "Says how the folder is understood and where each setting comes from, compares every name "
        "and shape of the weights, says what pads captions, runs the tokenizer there and back, "
        "embeds a built-in picture "
        "and caption, and compares with golden.safetensors (pixels, ids, image, text) or with the "
        "published numbers of ProLIP ViT-B/16 when these are there. Something assumed is a "
        "warning. Exit 0 without errors, 1 otherwise.",
    .examples = "penumbra check clip-vit-base-patch32\n"
                "penumbra check hf-hub:SanghyukChun/ProLIP-ViT-B-16-DC-1B-12_8B --photo "
                "000000039769.jpg",
    PNB__RUNS(options, struct check_args, run)};
