/* penumbra quantize: a model with small weights, checked against the model it comes from.
 *
 * Options only; comparing and writing lie in src/commands/quantize/quantize.c. */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/encode_use.h"
#include "commands/common/option_rows.h"
#include "commands/quantize/quantize.h"

struct quantize_args {
    pnb__quantize_opts job;
    const char *caption_key;
    pnb__text_list images, texts;
};

#define AT(field) PNB__FIELD(struct quantize_args, field)
static const pnb__option options[] = {
    PNB__MODEL_ROW(AT(job.model)),
    PNB__ROW_FILE("out", AT(job.out), "DIR", "Model directory to write", .letter = 'o',
                  .required = true, .writes = "/"),
    PNB__ROW_CHOICE(
        "to", AT(job.to), "TYPE", "int8|bf16|f16",
        "Type of the matrices of the blocks: int8 (a quarter of the memory, fastest), bf16 or "
        "f16 (half the memory)",
        .fallback = "int8"),
    PNB__ROW_INT("activation-bits", AT(job.activation_bits), "N",
                 "Bits that int8 products round their inputs to: 7 is fast on every CPU, 8 is more "
                 "exact, as fast with AVX-512 VNNI and slower than f32 without",
                 PNB__RANGE(7, 8), .fallback = "7"),
    PNB__ROW_FILES("images", AT(images), "PATH...",
                   "Pictures to compare on: files, folders, data sets",
                   .group = "Calibration set (at least one of both)"),
    PNB__ROW_FILES(
        "texts", AT(texts), "FILE...",
        "Captions to compare on: text files (one a line, an empty one too), jsonl, csv, data "
        "sets"),
    PNB__TEXT_KEY_ROW(AT(caption_key)),
    PNB__MODEL_PARTS_ROWS(AT(job.parts.tokenizer), AT(job.parts.preprocess)),
    PNB__ROW_REAL("min-cosine", AT(job.min_cosine), "C",
                  "Least mean cosine between the embeddings of both models", PNB__RANGE(-1, 1),
                  .fallback = "0.999", .group = "Limits under which nothing is written"),
    PNB__ROW_REAL("min-rank", AT(job.min_rank), "R",
                  "Least rank correlation of the uncertainties of both models", PNB__RANGE(-1, 1),
                  .fallback = "0.99"),
    PNB__ROW_REAL("min-top1", AT(job.min_top1), "SHARE",
                  "Least share of inputs whose nearest item is the same under both models",
                  PNB__RANGE(0, 1), .fallback = "0.99"),
};
#undef AT

static pnb_status run(pnb__app *app, void *args, pnb__result *r)
{
    struct quantize_args *a = args;
    pnb__image_inputs *images = NULL;
    pnb__text_inputs texts = {0};
    pnb_status status;
    if (a->images.n + a->texts.n == 0)
        return pnb__usage(app, "a calibration set is wanted: --images, --texts or both");
    if (a->images.n > 0)
        PNB_TRY(pnb__image_inputs_open(&images, a->images.items, a->images.n, app->in, &app->err));
    if (a->texts.n > 0)
        PNB_TRY(pnb__text_inputs_read(app, &texts, &a->texts, NULL, a->caption_key));
    a->job.images = images;
    a->job.texts = texts.n > 0 ? &texts : NULL;
    status = pnb__quantize_run(app, &a->job, r);
done:
    pnb__image_inputs_free(images);
    pnb__text_inputs_reset(&texts);
    return status;
}

const pnb__command pnb__cmd_quantize = {
    .name = "quantize",
    .summary = "make a model small, if it stays the same model",
    .about =
        "Embeds a calibration set with the model and with its weights made small, and writes the "
        "small model when both agree within the limits; else it says which figure fell short and "
        "writes nothing. A few hundred pictures and captions of the kind the model will see are "
        "enough. The figures are stored with the weights and shown by penumbra info. Beside them "
        "stand every precision that embed --precision takes and that needs no other model, with "
        "what it changes, its time, and whether its promise held on this set. A small model is "
        "opened like any other; int8 ones cannot be trained. Only matrices of transformer blocks "
        "get smaller: a model without any, as PCME's ResNet and GRUs, is refused.",
    .examples =
        "penumbra quantize --model model --images photos/ --texts captions.txt --out small\n"
        "penumbra quantize -m model --to bf16 --texts captions.txt --out half",
    PNB__RUNS(options, struct quantize_args, run)};
