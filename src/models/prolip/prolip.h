/* The towers for the rooms above models: graph building for training. See prolip.c. */
#ifndef PNB_MODELS_PROLIP_PROLIP_H
#define PNB_MODELS_PROLIP_PROLIP_H

#include "penumbra/model.h"
#include "tensor/graph.h"

/* One side's distributions in a graph; log_var NULL for a deterministic tower. mean is unit. */
typedef struct pnb__dist {
    pnb__tensor *mean, *log_var;
} pnb__dist;

typedef struct pnb__image_in {
    pnb__tensor *pixels; /* (B,3,H,W) */
    pnb__tensor *kept;   /* (B, n_kept) int32 flat row indices b*N + patch, or NULL for all */
    pnb__tensor *kept_positions; /* (n_kept) int32 patch indices, with kept */
} pnb__image_in;

/* `rows` (B) int32 names the row b*T + position that a text is read at, `visible` (B) int32 how
 * many tokens that position may see; both only for towers that pool at an end token, else NULL. */
typedef struct pnb__text_in {
    pnb__tensor *ids; /* (B,T) int32 */
    pnb__tensor *rows, *visible;
} pnb__text_in;

/* Adds a tower to a graph. normalize false: mean before L2. NULL mean after a building error. */
pnb__dist pnb__prolip_image(pnb_model *m, pnb__graph *g, const pnb__image_in *in, bool normalize);
pnb__dist pnb__prolip_text(pnb_model *m, pnb__graph *g, pnb__tensor *ids, bool normalize);
pnb__dist pnb__text_tower(pnb_model *m, pnb__graph *g, const pnb__text_in *in, bool normalize);

/* Weights by order of the file, for optimisers and checkpoints; names as in the safetensors file.
 */
size_t pnb__model_n_params(const pnb_model *m);
pnb__param *pnb__model_param(pnb_model *m, size_t i);
pnb__param *pnb__model_find_param(pnb_model *m, const char *name); /* NULL if absent */
/* Copies mapped weights into memory that can be written; call once before training. UNSUPPORTED for
 * models that training does not build: it wants ProLIP's text tower. */
pnb_status pnb__model_make_trainable(pnb_model *m, pnb_error *err);
/* After weights changed under it: drops the SHA-256 and planned encoders' derived state. */
void pnb__model_weights_changed(pnb_model *m);
const pnb_ctx *pnb__model_ctx(const pnb_model *m);
/* A double-precision copy for gradient checks and golden cases (graphs in PNB__F64). */
pnb_status pnb__model_load_real(pnb_model **out, const pnb_ctx *ctx, const char *dir,
                                pnb__real real, pnb_error *err);
pnb__real pnb__model_real(const pnb_model *m);

#endif
