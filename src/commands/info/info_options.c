/* penumbra info: what a model, an embedding set, a data set or a tensor file holds.
 *
 * Which reader fits a path is decided in src/commands/info/info.c. */
#include "commands/commands.h"
#include "commands/info/info.h"

static const pnb__option options[] = {
    PNB__ROW_REST("path", PNB__FIELD(pnb__info_opts, path), "PATH",
                  "Model directory, embedding set, data set, .safetensors or tokenizer.json"),
    PNB__ROW_FLAG("cpu", PNB__FIELD(pnb__info_opts, is_cpu),
                  "The processor in place of a path: which instruction sets were found, which are "
                  "used, and the measured rate of products in f32, bf16 and int8 and of reading "
                  "memory"),
    PNB__ROW_FLAG("gpu", PNB__FIELD(pnb__info_opts, is_gpu),
                  "The GPU of --device cuda in place of a path: its name, memory and driver, and "
                  "the measured rate of products in f32 and bf16 and of copying memory"),
};

const pnb__command pnb__cmd_info = {
    .name = "info",
    .summary = "say what a model, embedding set or data set holds, or what this machine can do",
    .about = "PENUMBRA_CPU=WORD in the environment sets the highest instruction set that any "
             "command uses: generic, avx2, avx512, avx512vnni, avx512bf16 or amx; a set that the "
             "machine lacks is refused. emulated runs the code for AMX's tiles in plain C, slowly, "
             "on any machine.",
    .examples = "penumbra info model\npenumbra info images.safetensors --json\n"
                "penumbra info --cpu\nPENUMBRA_CPU=avx2 penumbra info --cpu\n"
                "penumbra info --gpu --device cuda",
    PNB__RUNS(options, pnb__info_opts, pnb__info_run)};
