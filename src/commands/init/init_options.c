/* penumbra init: a randomly initialised model directory.
 *
 * Options only; the parts that must agree are made in src/commands/init/init.c. */
#include <string.h>

#include "commands/commands.h"
#include "commands/init/init.h"
#include "program/result_end.h"

#define AT(field) PNB__FIELD(pnb__model_dir_opts, field)
static const pnb__option options[] = {
    PNB__ROW_FILE(
        "config", AT(config), "NAME|FILE",
        "Built-in configuration (tiny, ViT-B-16, ViT-B-16-long, ViT-L-16, SO400M-14, ViT-H-14, "
        "pcmepp-tiny, pcmepp-ViT-B-16, pcme-tiny, pcme-vit-tiny, pcme-coco, pcme-cub, vse-tiny, "
        "vse-coco, pvse-tiny, pvse-coco) or a config.json",
        .required = true),
    PNB__ROW_FILE("out", AT(dir), "DIR", "Model directory to write", .required = true,
                  .writes = "/"),
    PNB__ROW_FILE("tokenizer", AT(tokenizer), "PATH",
                  "tokenizer.json, or a folder with one, to put into the model; its size sets the "
                  "vocabulary"),
    PNB__ROW_INT("force-image-size", AT(image_size), "PIXELS",
                 "Picture size instead of the configuration's", PNB__RANGE(1, 16384)),
    PNB__ROW_INT("force-context-length", AT(context_length), "N",
                 "Tokens of a caption instead of the configuration's", PNB__RANGE(2, 65536)),
    PNB__ROW_TEXT("override", AT(overrides), "JSON",
                  "JSON object merged into the configuration, as {\"vision_cfg\":{\"layers\":3}}"),
};
#undef AT

const pnb__command pnb__cmd_init = {
    .name = "init",
    .summary = "make a randomly initialised model",
    .about =
        "Writes config.json, model.safetensors and preprocessor_config.json with the "
        "reference implementation's initialisation, and tokenizer.json where one is given. "
        "The same seed gives the same weights on every machine. A caption's log-variance is read "
        "from its projected mean, as in released models; --override "
        "'{\"text_uncertainty_source\":\"unc_token\"}' reads it from [UNC], as the paper "
        "describes it, which learned less in short trainings.",
    .examples = "penumbra init --config tiny --tokenizer tokenizer.json --seed 1 --out model\n"
                "penumbra init --config ViT-B-16 --out random-b16",
    PNB__RUNS(options, pnb__model_dir_opts, pnb__model_dir_create)};
