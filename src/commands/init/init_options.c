/* penumbra init: a randomly initialised model directory.
 *
 * Options only; the parts that must agree are made in src/commands/init/init.c. */
#include <string.h>

#include "commands/commands.h"
#include "commands/init/init.h"
#include "program/result.h"

struct init_args {
    const char *config, *out, *tokenizer, *overrides;
    int64_t image_size, context_length;
};

#define AT(field) offsetof(struct init_args, field)
static const pnb__option options[] = {
    {.name = "config",
     .kind = PNB__OPT_FILE,
     .at = AT(config),
     .value = "NAME|FILE",
     .required = true,
     .help =
         "Built-in configuration (tiny, ViT-B-16, ViT-B-16-long, ViT-L-16, SO400M-14, ViT-H-14) "
         "or a config.json"},
    {.name = "out",
     .kind = PNB__OPT_FILE,
     .writes = "/",
     .at = AT(out),
     .value = "DIR",
     .required = true,
     .help = "Model directory to write"},
    {.name = "tokenizer",
     .kind = PNB__OPT_FILE,
     .at = AT(tokenizer),
     .value = "PATH",
     .help = "tokenizer.json, or a folder with one, to put into the model; its size sets the "
             "vocabulary"},
    {.name = "force-image-size",
     .kind = PNB__OPT_INT,
     .at = AT(image_size),
     .value = "PIXELS",
     .min = 1,
     .max = 16384,
     .help = "Picture size instead of the configuration's"},
    {.name = "force-context-length",
     .kind = PNB__OPT_INT,
     .at = AT(context_length),
     .value = "N",
     .min = 2,
     .max = 65536,
     .help = "Tokens of a caption instead of the configuration's"},
    {.name = "override",
     .kind = PNB__OPT_TEXT,
     .at = AT(overrides),
     .value = "JSON",
     .help = "JSON object merged into the configuration, as {\"vision_cfg\":{\"layers\":3}}"},
};
#undef AT

static pnb_status run(pnb__app *app, const void *args)
{
    const struct init_args *a = args;
    pnb__model_dir_opts opts = {.config = a->config,
                                .dir = a->out,
                                .tokenizer = a->tokenizer,
                                .overrides = a->overrides,
                                .image_size = a->image_size,
                                .context_length = a->context_length,
                                .seed = (uint64_t)app->common.seed};
    pnb__result *r = pnb__result_create();
    pnb_status status = pnb__model_dir_create(app, &opts, r);
    return pnb__result_finish(r, app, status);
}

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
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct init_args),
    .run = run};
