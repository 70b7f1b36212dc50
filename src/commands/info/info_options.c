/* penumbra info: what a model, an embedding set, a data set or a tensor file holds.
 *
 * Which reader fits a path is decided in src/commands/info/info.c. */
#include "commands/commands.h"
#include "commands/info/info.h"

static const pnb__option options[] = {
    PNB__ROW_REST("path", PNB__FIELD(pnb__info_opts, path), "PATH",
                  "Model directory, embedding set, data set, .safetensors or tokenizer.json",
                  .required = true),
};

const pnb__command pnb__cmd_info = {
    .name = "info",
    .summary = "say what a model, embedding set or data set holds",
    .examples = "penumbra info model\npenumbra info images.safetensors --json",
    PNB__RUNS(options, pnb__info_opts, pnb__info_run)};
