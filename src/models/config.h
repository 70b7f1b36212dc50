/* A ProLIP configuration as read from config.json; see config.c for the keys. */
#ifndef PNB_MODELS_CONFIG_H
#define PNB_MODELS_CONFIG_H

#include "io/json.h"
#include "penumbra/model.h"

typedef struct pnb__tower_config {
    size_t width, n_layers, n_heads, mlp_width;
    double eps;
    double ls_init;       /* LayerScale initial value */
    bool has_layer_scale; /* key present */
    bool has_unc;
    double init_unc_bias;
} pnb__tower_config;

typedef struct pnb__config {
    size_t embed_dim;
    bool quick_gelu;
    bool has_logit_scale, has_logit_bias;
    double init_logit_scale, init_logit_bias; /* scale as a logarithm */
    pnb_text_unc_source text_unc_source;
    pnb__tower_config vision, text;
    size_t image_height, image_width, patch;
    bool no_ln_pre, pool_avg, sincos_positions;
    size_t context_length, vocab_size;
    bool text_proj_bias;
} pnb__config;

/* Reads and checks a whole configuration. `where` names the source in messages.
 * Errors  FORMAT (unknown key or wrong type), ARG (value out of range), UNSUPPORTED (a valid option
 *         of the reference that has no ProLIP meaning) */
pnb_status pnb__config_read(pnb__config *out, json_t *root, const char *where, pnb_error *err);

#endif
