/* The opened model behind pnb_model: configuration, weights and planned towers. */
#ifndef PNB_MODELS_MODEL_H
#define PNB_MODELS_MODEL_H

#include <stdatomic.h>

#include "models/prolip/prolip.h"
#include "models/weights.h"

/* One planned tower for fixed sizes; reused while they stay the same. */
typedef struct pnb__plan {
    pnb__graph *graph;
    pnb__tensor *input, *kept, *kept_positions;
    pnb__tensor *rows, *visible; /* texts pooled at an end token */
    pnb__dist raw, unit;         /* mean before and after L2; the same log_var */
    size_t n_batch, n_tokens, n_kept;
} pnb__plan;

/* The planned towers of one worker. All zero: nothing is planned. */
typedef struct pnb__towers {
    pnb__plan image, text;
    unsigned version; /* of the weights, as they were planned for */
} pnb__towers;

struct pnb_model {
    const pnb_ctx *ctx;
    pnb__config config;
    pnb__weights weights;
    char *config_text;
    char sha256[65];
    pnb_model_info info;
    pnb__towers own;                         /* of pnb_model_encode_... */
    unsigned version;                        /* another one when weights are stored differently */
    atomic_bool checked_image, checked_text; /* weights known to be finite */
};

/* A folder's parts by path; config NULL: from the shapes of the weights (OpenAI's layout). */
typedef struct pnb__model_files {
    const char *config, *weights;
} pnb__model_files;

/* Fills m->info from configuration and weights. */
void pnb__model_fill_info(pnb_model *m);
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

/* Opens a model from two files. `opts` may be NULL. */
pnb_status pnb__model_open(pnb_model **out, const pnb_ctx *ctx, const pnb__model_files *files,
                           pnb__real real, const pnb_model_load_opts *opts, pnb_error *err);
/* Path of the configuration of a folder, allocated; NULL without an error when there is none. */
pnb_status pnb__model_find_config(char **out, const char *dir, pnb_error *err);
/* Sets what the weights decide: absent towers, a projection stored or not. */
pnb_status pnb__config_fit(pnb__config *c, const pnb__key_mapping *layout,
                           const pnb__weight_file *file, pnb_error *err);

#endif
