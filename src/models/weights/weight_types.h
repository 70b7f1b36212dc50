/* What the weights of a model are in memory: below loading and saving (weights.h) and below the
 * store of those in fewer bits (quantized_weights.h), which both work on them. */
#ifndef PNB_MODELS_WEIGHT_TYPES_H
#define PNB_MODELS_WEIGHT_TYPES_H

#include "models/keys/key_mapping.h"
#include "tensor/graph.h"

/* How the reference initialises a weight; value is a std, a bound or a constant. */
typedef enum pnb__init_kind {
    PNB__INIT_CONSTANT,
    PNB__INIT_NORMAL,
    PNB__INIT_UNIFORM,
    PNB__INIT_SINCOS
} pnb__init_kind;

/* Position tables of another size than the configuration's: the file's grid and context. A zero
 * means that the sizes must agree. */
typedef struct pnb__resize {
    size_t old_height, old_width; /* image grid of the file */
    bool text;
} pnb__resize;

/* Rows (n_old, C) of a file made into those of a weight (R, C). */
typedef struct pnb__resize_rows {
    const pnb__param *param;
    const pnb__config *config;
    const pnb__resize *resize;
    const double *old;
    size_t n_old;
    double *fresh;
} pnb__resize_rows;
typedef pnb_status (*pnb__resize_rows_fn)(const pnb__resize_rows *r, pnb_error *err);

typedef struct pnb__weight {
    pnb__param param;
    pnb__init_kind init;
    double value, centre;            /* centre: added to what is drawn */
    bool is_text, owned;             /* owned: data was allocated, not mapped */
    bool resized;                    /* the file's values have another shape */
    pnb__resize_rows_fn resize_rows; /* how, where a model may be opened at another size; or NULL */
} pnb__weight;

typedef struct pnb__weights {
    pnb__arena arena;   /* names and structures */
    pnb__weight *items; /* NULL while they are counted */
    size_t n, capacity;
    bool failed;    /* an allocation did */
    void *tower[2]; /* by pnb__side: the tower's own struct of parameters; in the arena */
    pnb__param *logit_scale, *logit_bias; /* NULL when the configuration has none */
    pnb__kernels kernels;                 /* memory of the device and the real type */
    pnb__weight_file file;                /* map that unowned weights point into */
    pnb__key_mapping layout;              /* of the file, or of what a new model is saved as */
    pnb_dtype half; /* BF16 or F16: block matrices hold such values and are saved so; else F32 */
    int i8_levels;  /* activations of 8-bit products, when the file has any */
    const char *record; /* JSON text of PNB__STORE_RECORD; in the arena, or NULL */
} pnb__weights;

#endif
