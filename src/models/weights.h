/* The weights of a model: which exist for a configuration, loaded, initialised or saved. */
#ifndef PNB_MODELS_WEIGHTS_H
#define PNB_MODELS_WEIGHTS_H

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
    pnb__layout layout;                   /* of the file, or of what a new model is saved as */
    pnb_dtype half; /* BF16 or F16: block matrices hold such values and are saved so; else F32 */
    int i8_levels;  /* activations of 8-bit products, when the file has any */
    const char *record; /* JSON text of PNB__STORE_RECORD; in the arena, or NULL */
} pnb__weights;

/* Position tables of another size than the configuration's: the file's grid and context. A zero
 * means that the sizes must agree. */
typedef struct pnb__resize {
    size_t old_height, old_width; /* image grid of the file */
    bool text;
} pnb__resize;

/* Names and shapes for a configuration; no values yet. NOMEM. */
pnb_status pnb__weights_declare(pnb__weights *w, const pnb__config *c, const pnb_ctx *ctx,
                                pnb__real real, pnb_error *err);
void pnb__weights_reset(pnb__weights *w);

/* Values of the reference's initialisation, counter-based on (seed, index of the weight). */
pnb_status pnb__weights_init(pnb__weights *w, uint64_t seed, pnb_error *err);

/* Values from w->file by w->layout: mapped where order, type, alignment and device allow, else
 * converted. Every key must be expected and every expected key present. `resize` may be NULL.
 * Errors  NOT_FOUND, SHAPE, DTYPE, FORMAT */
pnb_status pnb__weights_load(pnb__weights *w, const pnb__config *c, const pnb__resize *resize,
                             pnb_error *err);
/* Writes w in its own layout. */
pnb_status pnb__weights_save(const pnb__weights *w, const char *path, pnb_error *err);

/* Writes w under the names of `to` with the bits and types of the file it was loaded from. */
pnb_status pnb__weights_write_as(const pnb__weights *w, const pnb__layout *to, const char *path,
                                 pnb_error *err);

/* Is `key` of the file read or known to be passed over? */
bool pnb__weights_expects(const pnb__weights *w, const char *key);

/* Copies mapped weights into memory of their own. */
pnb_status pnb__weights_make_owned(pnb__weights *w, pnb_error *err);

/* NUMERIC naming the first weight of one tower (or of neither) that is not finite. */
pnb_status pnb__weights_check_finite(const pnb__weights *w, const pnb_ctx *ctx, bool text,
                                     pnb_error *err);

#endif
