/* penumbra check: a model folder examined before it is trusted.
 *
 * Options and the exit status; what is looked at and how it is judged is in
 * src/commands/check/check.c. */
#include "commands/check/check.h"
#include "commands/commands.h"
#include "commands/common/encode_use.h"
#include "commands/common/option_rows.h"

struct check_args {
    const char *dir, *photo, *caption_key;
    pnb__text_list images, texts;
};

#define AT(field) PNB__FIELD(struct check_args, field)
static const pnb__option options[] = {
    PNB__ROW_REST("dir", AT(dir), "DIR",
                  "Model folder, or hf-hub:ORG/NAME from the local cache, or shipped:tiny",
                  .required = true),
    PNB__ROW_FILE(
        "photo", AT(photo), "FILE",
        "The photo of ProLIP's published numbers (COCO val2017 000000039769.jpg); looked for "
        "in DIR too"),
    PNB__ROW_FILES("images", AT(images), "PATH...",
                   "Pictures to embed in every precision: files, folders, data sets",
                   .group = "Precisions on data of one's own"),
    PNB__ROW_FILES("texts", AT(texts), "FILE...",
                   "Captions: text files (one a line, an empty one too), jsonl, csv, data sets"),
    PNB__TEXT_KEY_ROW(AT(caption_key)),
};
#undef AT

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    const struct check_args *a = args;
    pnb__image_inputs *images = NULL;
    pnb__text_inputs texts = {0};
    pnb__verdict verdict = {0};
    pnb_status status = PNB_OK;
    if (a->images.n > 0)
        PNB_TRY(pnb__image_inputs_open(&images, a->images.items, a->images.n, app->in, &app->err));
    if (a->texts.n > 0)
        PNB_TRY(pnb__text_inputs_read(app, &texts, &a->texts, NULL, a->caption_key));
    const pnb__check_inputs inputs = {
        .photo = a->photo, .images = images, .texts = texts.n > 0 ? &texts : NULL};
    PNB_TRY(pnb__check_model(app, a->dir, &inputs, &verdict, r));
    if (verdict.n_errors == 0)
        goto done;
    PNB_TRY(pnb__result_print(r, app->out, app->common.json, &app->err));
    status = pnb__fail(&app->err, PNB_FORMAT, "%s: %zu error%s, %zu warning%s", a->dir,
                       verdict.n_errors, verdict.n_errors == 1 ? "" : "s", verdict.n_warnings,
                       verdict.n_warnings == 1 ? "" : "s");
done:
    pnb__image_inputs_free(images);
    pnb__text_inputs_reset(&texts);
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
        "published numbers of ProLIP ViT-B/16 when these are there. With --images or --texts it "
        "embeds these in every precision that embed --precision takes, and tells of each what it "
        "changes, its time, and whether its promise held. Something assumed is a warning. Exit 0 "
        "without errors, 1 otherwise.",
    .examples = "penumbra check clip-vit-base-patch32\n"
                "penumbra check model --images photos/ --texts captions.txt\n"
                "penumbra check hf-hub:SanghyukChun/ProLIP-ViT-B-16-DC-1B-12_8B --photo "
                "000000039769.jpg",
    PNB__RUNS(options, struct check_args, run)};
