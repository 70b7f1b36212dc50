/* penumbra info: what a model, an embedding set, a data set or a tensor file holds.
 *
 * Which reader fits a path is decided in src/commands/info/info.c. */
#include "commands/commands.h"
#include "commands/info/info.h"

struct info_args {
    pnb__text_list paths;
};

static const pnb__option options[] = {
    PNB__ROW_REST("path", offsetof(struct info_args, paths), "PATH",
                  "Model directory, embedding set, data set, .safetensors or tokenizer.json",
                  .required = true),
};

static pnb_status run(pnb__app *app, const void *args)
{
    const struct info_args *a = args;
    if (a->paths.n > 1)
        return pnb__usage(app, "one PATH at a time, found '%s' too", a->paths.items[1]);
    pnb__result *r = pnb__result_create();
    pnb_status status = pnb__info_run(app, a->paths.items[0], r);
    return pnb__result_finish(r, app, status);
}

const pnb__command pnb__cmd_info = {
    .name = "info",
    .summary = "say what a model, embedding set or data set holds",
    .examples = "penumbra info model\npenumbra info images.safetensors --json",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_bytes = sizeof(struct info_args),
    .run = run};
