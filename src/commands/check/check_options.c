/* penumbra check: a model folder examined before it is trusted.
 *
 * Options and the exit status; what is looked at and how it is judged is in
 * src/commands/check/check.c. */
#include "commands/check/check.h"
#include "commands/commands.h"

struct check_args {
    pnb__text_list dirs;
    const char *photo;
};

#define AT(field) offsetof(struct check_args, field)
static const pnb__option options[] = {
    PNB__ROW_REST("dir", AT(dirs), "DIR", "Model folder, or hf-hub:ORG/NAME from the local cache",
                  .required = true),
    PNB__ROW_FILE(
        "photo", AT(photo), "FILE",
        "The photo of ProLIP's published numbers (COCO val2017 000000039769.jpg); looked for "
        "in DIR too"),
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct check_args *a = args;
    if (a->dirs.n > 1)
        return pnb__usage(app, "one DIR at a time, found '%s' too", a->dirs.items[1]);
    pnb__result *r = pnb__result_create();
    pnb__verdict verdict = {0};
    pnb_status status = pnb__check_model(app, a->dirs.items[0], a->photo, &verdict, r);
    if (status == PNB_OK)
        status = pnb__result_print(r, app->out, app->common.json, &app->err);
    if (status == PNB_OK && verdict.n_errors > 0)
        status = pnb__fail(&app->err, PNB_FORMAT, "%s: %zu error%s, %zu warning%s",
                           a->dirs.items[0], verdict.n_errors, verdict.n_errors == 1 ? "" : "s",
                           verdict.n_warnings, verdict.n_warnings == 1 ? "" : "s");
    pnb__result_free(r);
    return status;
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
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct check_args),
    .run = run};
