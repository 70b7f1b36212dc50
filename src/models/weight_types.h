/* What the weights of a model are in memory: below loading and saving (weights.h) and below the
 * store of those in fewer bits (quantized_weights.h), which both work on them. */
#ifndef PNB_MODELS_WEIGHT_TYPES_H
#define PNB_MODELS_WEIGHT_TYPES_H

#include "models/keys/key_mapping.h"
#include "nn/block.h"

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
    bool resized;        /* the file's values have another shape */
} pnb__weight;

typedef struct pnb__vision_weights {
    pnb__param *cls, *unc, *positions, *conv, *conv_b, *ln_pre_w, *ln_pre_b, *ln_post_w, *ln_post_b;
    pnb__param *proj, *unc_w, *unc_b;
    pnb__param *probe; /* SigLIP's attention head: its query, and a block without a first norm */
    pnb__block head;
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
    pnb__weight_file file;                /* map that unowned weights point into */
    pnb__key_mapping layout;              /* of the file, or of what a new model is saved as */
    pnb_dtype half; /* BF16 or F16: block matrices hold such values and are saved so; else F32 */
    int i8_levels;  /* activations of 8-bit products, when the file has any */
    const char *record; /* JSON text of PNB__STORE_RECORD; in the arena, or NULL */
} pnb__weights;

#endif
