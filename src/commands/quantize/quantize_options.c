/* penumbra quantize: a model with small weights, checked against the model it comes from.
 *
 * Options only; comparing and writing lie in src/commands/quantize/quantize.c. */
#include <string.h>

#include "commands/commands.h"
#include "commands/common/option_rows.h"
#include "commands/quantize/quantize.h"

struct quantize_args {
    const char *model, *out, *to, *caption_key, *tokenizer, *preprocess;
    pnb__text_list images, texts;
    int64_t activation_bits;
    double min_cosine, min_rank, min_top1;
};

#define AT(field) offsetof(struct quantize_args, field)
static const pnb__option options[] = {
    PNB__MODEL_ROW(AT(model)),
    {.name = "out",
     .letter = 'o',
     .kind = PNB__OPT_FILE,
     .writes = "/",
     .at = AT(out),
     .value = "DIR",
     .required = true,
     .help = "Model directory to write"},
    {.name = "to",
     .kind = PNB__OPT_CHOICE,
     .at = AT(to),
     .choices = "int8|bf16|f16",
     .value = "TYPE",
     .fallback = "int8",
     .help = "Type of the matrices of the blocks: int8 (a quarter of the memory, fastest), bf16 or "
             "f16 (half the memory)"},
    {.name = "activation-bits",
     .kind = PNB__OPT_INT,
     .at = AT(activation_bits),
     .value = "N",
     .fallback = "7",
     .min = 7,
     .max = 8,
     .help = "Bits that int8 products round their inputs to: 7 is fast on every CPU, 8 is more "
             "exact, as fast with AVX-512 VNNI and slower than f32 without"},
    {.name = "images",
     .kind = PNB__OPT_FILES,
     .at = AT(images),
     .value = "PATH...",
     .group = "Calibration set (at least one of both)",
     .help = "Pictures to compare on: files, folders, data sets"},
    {.name = "texts",
     .kind = PNB__OPT_FILES,
     .at = AT(texts),
     .value = "FILE...",
     .help = "Captions to compare on: text files (one a line, an empty one too), jsonl, csv, data "
             "sets"},
    PNB__CAPTION_KEY_ROW(AT(caption_key)),
    PNB__MODEL_PARTS_ROWS(AT(tokenizer), AT(preprocess)),
    {.name = "min-cosine",
     .kind = PNB__OPT_REAL,
     .at = AT(min_cosine),
     .value = "C",
     .fallback = "0.999",
     .min = -1,
     .max = 1,
     .group = "Limits under which nothing is written",
     .help = "Least mean cosine between the embeddings of both models"},
    {.name = "min-rank",
     .kind = PNB__OPT_REAL,
     .at = AT(min_rank),
     .value = "R",
     .fallback = "0.99",
     .min = -1,
     .max = 1,
     .help = "Least rank correlation of the uncertainties of both models"},
    {.name = "min-top1",
     .kind = PNB__OPT_REAL,
     .at = AT(min_top1),
     .value = "SHARE",
     .fallback = "0.99",
     .min = 0,
     .max = 1,
     .help = "Least share of inputs whose nearest item is the same under both models"},
};
#undef AT

static pnb_model_store store_of(const char *name)
{
    return strcmp(name, "bf16") == 0  ? PNB_STORE_BF16
           : strcmp(name, "f16") == 0 ? PNB_STORE_F16
                                      : PNB_STORE_INT8;
}

static pnb_status quantize(pnb__app *app, const struct quantize_args *a, pnb__result *r)
{
    pnb__pictures *pictures = NULL;
    pnb__captions captions = {0};
    pnb_status status;
    if (a->images.n > 0)
        PNB_TRY(pnb__pictures_open(&pictures, a->images.items, a->images.n, app->in, &app->err));
    if (a->texts.n > 0)
        PNB_TRY(pnb__captions_read(app, &captions, &a->texts, NULL, a->caption_key));
    pnb__quantize_opts opts = {.model = a->model,
                               .out = a->out,
                               .parts = {0, a->tokenizer, a->preprocess},
                               .pictures = pictures,
                               .captions = captions.n > 0 ? &captions : NULL,
                               .to = store_of(a->to),
                               .activation_bits = (int)a->activation_bits,
                               .min_cosine = a->min_cosine,
                               .min_rank = a->min_rank,
                               .min_top1 = a->min_top1};
    status = pnb__quantize_run(app, &opts, r);
done:
    pnb__pictures_free(pictures);
    pnb__captions_reset(&captions);
    return status;
}

static pnb_status run(pnb__app *app, const void *args)
{
    const struct quantize_args *a = args;
    if (a->images.n + a->texts.n == 0)
        return pnb__usage(app, "a calibration set is wanted: --images, --texts or both");
    pnb__result *r = pnb__result_create();
    pnb_status status = quantize(app, a, r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_quantize = {
    .name = "quantize",
    .summary = "make a model small, if it stays the same model",
    .about =
        "Embeds a calibration set with the model and with its weights made small, and writes the "
        "small model when both agree within the limits; else it says which figure fell short and "
        "writes nothing. A few hundred pictures and captions of the kind the model will see are "
        "enough. The figures are stored with the weights and shown by penumbra info. A small model "
        "is opened like any other; int8 ones cannot be trained.",
    .examples =
        "penumbra quantize --model model --images photos/ --texts captions.txt --out small\n"
        "penumbra quantize -m model --to bf16 --texts captions.txt --out half",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct quantize_args),
    .run = run};
