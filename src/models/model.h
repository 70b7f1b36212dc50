/* The opened model behind pnb_model: configuration, weights and planned encoders. */
#ifndef PNB_MODELS_MODEL_H
#define PNB_MODELS_MODEL_H

#include "models/prolip.h"
#include "models/weights.h"

/* One planned tower for fixed sizes; reused while they stay the same. */
typedef struct pnb__encoder {
    pnb__graph *graph;
    pnb__tensor *input, *kept, *kept_positions;
    pnb__dist raw, unit; /* mean before and after L2; the same log_var */
    size_t n_batch, n_tokens, n_kept;
} pnb__encoder;

struct pnb_model {
    const pnb_ctx *ctx;
    pnb__config config;
    pnb__weights weights;
    char *config_text;
    char sha256[65];
    pnb_model_info info;
    pnb__encoder image, text;
    bool checked_image, checked_text; /* weights known to be finite */
};

#endif
