/* The opened model behind pnb_model: configuration, weights and planned towers; and what the rooms
 * above need of it beside the public functions. */
#ifndef PNB_MODELS_MODEL_H
#define PNB_MODELS_MODEL_H

#include <stdatomic.h>

#include "models/tower.h"
#include "models/weights/weights.h"

/* One tower planned for fixed sizes; reused while they stay the same. */
typedef struct pnb__plan {
    pnb__graph *graph;
    pnb__tower_in in;
    pnb__dist raw;     /* as the tower gives it */
    pnb__tensor *unit; /* its mean after L2; the raw one where means have lengths */
    size_t n_batch, n_tokens, n_kept;
} pnb__plan;

/* The planned towers of one worker. All zero: nothing is planned. */
typedef struct pnb__towers {
    pnb__plan plan[PNB__N_TOWERS]; /* by pnb__side */
    unsigned version;              /* of the weights, as they were planned for */
} pnb__towers;

struct pnb_model {
    const pnb_ctx *ctx;
    pnb__config config;
    pnb__weights weights;
    char *config_text;
    char sha256[65];
    pnb_model_info info;
    pnb__towers own;                    /* of pnb_model_encode_... */
    unsigned version;                   /* another one when weights are stored differently */
    pnb_precision precision;            /* of products with the blocks' matrices */
    atomic_bool checked[PNB__N_TOWERS]; /* weights known to be finite */
};

/* ---- model_open.c ---- */

/* A folder's parts by path; config NULL: from the shapes of the weights (OpenAI's layout). */
typedef struct pnb__model_files {
    const char *config, *weights;
} pnb__model_files;

/* Opens a model from two files. `opts` may be NULL. */
pnb_status pnb__model_open(pnb_model **out, const pnb_ctx *ctx, const pnb__model_files *files,
                           pnb__real real, const pnb_model_load_opts *opts, pnb_error *err);
/* A double-precision copy for gradient checks and golden cases (graphs in PNB__F64). */
pnb_status pnb__model_load_real(pnb_model **out, const pnb_ctx *ctx, const char *dir,
                                pnb__real real, pnb_error *err);
/* Path of the configuration of a folder, allocated; NULL without an error when there is none. */
pnb_status pnb__model_find_config(char **out, const char *dir, pnb_error *err);
/* Sets what the weights decide: absent towers, a projection stored or not. */
pnb_status pnb__config_fit(pnb__config *c, const pnb__key_mapping *layout,
                           const pnb__weight_file *file, pnb_error *err);

/* ---- model.c ---- */

/* An empty model. NOMEM */
pnb_status pnb__model_create(pnb_model **out, const pnb_ctx *ctx, pnb_error *err);
/* Fills m->info from configuration and weights. Errors  IO (reading the scalars of the logits) */
pnb_status pnb__model_fill_info(pnb_model *m, pnb_error *err);

/* Adds a tower to a graph of somebody else's, for training. `unit`: mean after L2. NULL mean after
 * a building error. */
pnb__dist pnb__model_build(pnb_model *m, pnb__side side, pnb__graph *g, const pnb__tower_in *in,
                           bool unit);

/* Inputs of a text tower that must know where texts end: declared in a graph for n_batch texts,
 * and filled from ids (n_batch, n_tokens). Nothing of towers that need none.
 * Errors  ARG (a text without what is looked for), NOMEM */
void pnb__model_add_places(const pnb_model *m, pnb__graph *g, size_t n_batch, pnb__tower_in *in);
pnb_status pnb__model_write_places(const pnb_model *m, const pnb__tower_in *in, const int32_t *ids,
                                   const size_t shape[2], pnb_error *err);

/* Weights by order of the file, for optimisers and checkpoints; names as in the safetensors file.
 */
size_t pnb__model_n_params(const pnb_model *m);
pnb__param *pnb__model_param(pnb_model *m, size_t i);
pnb__param *pnb__model_find_param(pnb_model *m, const char *name); /* NULL if absent */
/* Copies mapped weights into memory that can be written; call once before training. UNSUPPORTED for
 * models that contrastive training does not build: it wants ProLIP's text tower. */
pnb_status pnb__model_make_trainable(pnb_model *m, pnb_error *err);
/* After weights changed under it: drops the SHA-256 and planned encoders' derived state, reads the
 * scalars anew. Errors  IO */
pnb_status pnb__model_weights_changed(pnb_model *m, pnb_error *err);
/* Is a tokenizer of n_ids the model's? Rows to spare are fine, but where each is a word.
 * Errors  SHAPE */
pnb_status pnb__model_check_vocabulary(const pnb_model *m, size_t n_ids, pnb_error *err);
const pnb_ctx *pnb__model_ctx(const pnb_model *m);
pnb__real pnb__model_real(const pnb_model *m);

/* ---- quantize_model.c ---- */

/* What pnb_model_quantize refuses, asked before. Errors  its ARG and UNSUPPORTED */
pnb_status pnb__model_can_quantize(const pnb_model *m, pnb_weight_type to, int activation_bits,
                                   pnb_error *err);

/* ---- precision.c ---- */

/* The blocks' matrices are those that a graph rounds by pnb__graph_round_products.
 * Errors  UNSUPPORTED (a model without transformer blocks, or in doubles) */
pnb_status pnb__model_train_in_bf16(pnb_model *m, pnb_error *err);

/* ---- model_encode.c ---- */

/* What was encoded last, once more, without moving numbers: until the device is done with it. For
 * benches.  Errors  ARG (that tower has encoded nothing yet), those of encoding */
pnb_status pnb__model_run_again(pnb_model *m, bool is_text, pnb_error *err);
/* and step by step: pnb__graph_time_steps */
pnb_status pnb__model_time_steps(pnb_model *m, bool is_text,
                                 void (*tell)(void *user, const char *what, double seconds),
                                 void *user, pnb_error *err);

/* Planned graphs depend on how weights are stored: all are made again at their next use. */
void pnb__model_replan(pnb_model *m);

/* pnb_model_encode_image_kept and _text on the towers of one worker. Workers with towers of their
 * own may encode at once, with the same results as one after the other; what encoding remembers of
 * the model (weights that are finite, weights packed) is written atomically. Free the towers before
 * the model. */
pnb_status pnb__towers_encode_image(pnb__towers *t, pnb_model *m, const float *pixels,
                                    size_t n_batch, const int32_t *kept, size_t n_kept,
                                    const pnb_encode_out *out, pnb_error *err);
pnb_status pnb__towers_encode_text(pnb__towers *t, pnb_model *m, const int32_t *ids, size_t n_batch,
                                   size_t n_tokens, const pnb_encode_out *out, pnb_error *err);
void pnb__towers_reset(pnb__towers *t);

/* Width of what a tower's last projection reads, and of what is added behind it; 0: it ends in
 * none. */
size_t pnb__model_activations(pnb_model *m, pnb__side side);

/* Where the rows of a set from `first` on take an encoder's output; the set is of the tower's
 * family (pnb_tower_info). */
pnb_encode_out pnb__encode_rows(pnb_embeddings *set, size_t first);

#endif
