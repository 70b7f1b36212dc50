/* The weights of a ProLIP model: which exist for a configuration, loaded, initialised or saved. */
#ifndef PNB_MODELS_WEIGHTS_H
#define PNB_MODELS_WEIGHTS_H

#include "models/config.h"
#include "nn/block.h"
#include "penumbra/safetensors.h"

/* How the reference initialises a weight; value is a std, a bound or a constant. */
typedef enum pnb__init_kind {
    PNB__INIT_CONSTANT,
    PNB__INIT_NORMAL,
    PNB__INIT_UNIFORM,
    PNB__INIT_SINCOS
} pnb__init_kind;

typedef struct pnb__weight {
    pnb__param param;
    pnb__init_kind init;
    double value;
    bool is_text, owned; /* owned: data was allocated, not mapped */
} pnb__weight;

typedef struct pnb__vision_weights {
    pnb__param *cls, *unc, *positions, *conv, *ln_pre_w, *ln_pre_b, *ln_post_w, *ln_post_b;
    pnb__param *proj, *unc_w, *unc_b;
    pnb__block *blocks;
} pnb__vision_weights;

typedef struct pnb__text_weights {
    pnb__param *tokens, *cls, *unc, *positions, *ln_w, *ln_b, *proj_w, *proj_b, *unc_w, *unc_b;
    pnb__block *blocks;
} pnb__text_weights;

typedef struct pnb__weights {
    pnb__arena arena; /* names and structures */
    pnb__weight *items;
    size_t n, capacity;
    bool failed; /* an allocation did */
    pnb__vision_weights vision;
    pnb__text_weights text;
    pnb__param *logit_scale, *logit_bias; /* NULL when the configuration has none */
    pnb__kernels kernels;                 /* memory of the device and the real type */
    pnb_safetensors *file;                /* map that unowned weights point into */
} pnb__weights;

/* Names and shapes for a configuration; no values yet. NOMEM. */
pnb_status pnb__weights_declare(pnb__weights *w, const pnb__config *c, const pnb_ctx *ctx,
                                pnb__real real, pnb_error *err);
void pnb__weights_reset(pnb__weights *w);

/* Values of the reference's initialisation, counter-based on (seed, index of the weight). */
pnb_status pnb__weights_init(pnb__weights *w, uint64_t seed, pnb_error *err);

/* Values from a file: mapped where type, alignment and device allow, else converted. Every key
 * must be expected and every expected key present. Errors  NOT_FOUND, SHAPE, DTYPE, FORMAT */
pnb_status pnb__weights_load(pnb__weights *w, const char *path, pnb_error *err);
pnb_status pnb__weights_save(const pnb__weights *w, const char *path, pnb_error *err);

/* Copies mapped weights into memory of their own. */
pnb_status pnb__weights_make_owned(pnb__weights *w, pnb_error *err);

/* NUMERIC naming the first weight of one tower (or of neither) that is not finite. */
pnb_status pnb__weights_check_finite(const pnb__weights *w, const pnb_ctx *ctx, bool text,
                                     pnb_error *err);

#endif
