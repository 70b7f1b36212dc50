/* Fuzz target: config.json of a model, from bytes to checked configuration and declared weights.
 * What is accepted must be usable: sizes above zero and a list of weights with positive shapes. */
#include <stdlib.h>

#include "models/weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void declare(const pnb__config *config)
{
    /* a thousand layers of names say nothing that four do not */
    pnb__config small = *config;
    small.vision.n_layers = PNB_MIN(small.vision.n_layers, (size_t)4);
    small.text.n_layers = PNB_MIN(small.text.n_layers, (size_t)4);
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = {.n_threads = 1, .device = PNB_DEVICE_REF};
    require(pnb_ctx_create(&ctx, &opts, NULL) == PNB_OK);
    pnb__weights w;
    if (pnb__weights_declare(&w, &small, ctx, PNB__F32, NULL) == PNB_OK) {
        for (size_t i = 0; i < w.n; i++)
            require(w.items[i].param.n > 0);
        pnb__weights_reset(&w);
    }
    pnb_ctx_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb__json_load_bytes(&root, (const char *)data, size, "config.json", &err) != PNB_OK)
        return 0;
    pnb__config config;
    pnb_status status = pnb__config_read(&config, root, "config.json", &err);
    if (status == PNB_OK) {
        require(config.embed_dim > 0 && (config.vision.present || config.text.present));
        require(!config.vision.present ||
                (config.vision.n_heads > 0 && config.image_height >= config.patch &&
                 config.image_width >= config.patch));
        require(!config.text.present || (config.text.n_heads > 0 && config.context_length > 0));
        declare(&config);
    } else {
        require(err.status == status && err.text[0] != '\0');
    }
    json_decref(root);
    return 0;
}
