/* The opened model behind pnb_model: configuration, weights and planned encoders. */
#ifndef PNB_MODELS_MODEL_H
#define PNB_MODELS_MODEL_H

#include "models/prolip/prolip.h"
#include "models/weights.h"

/* One planned tower for fixed sizes; reused while they stay the same. */
typedef struct pnb__encoder {
    pnb__graph *graph;
    pnb__tensor *input, *kept, *kept_positions;
    pnb__tensor *rows, *visible; /* texts pooled at an end token */
    pnb__dist raw, unit;         /* mean before and after L2; the same log_var */
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

/* A folder's parts by path; config NULL: from the shapes of the weights (OpenAI's layout). */
typedef struct pnb__model_files {
    const char *config, *weights;
} pnb__model_files;

/* Fills m->info from configuration and weights. */
void pnb__model_fill_info(pnb_model *m);
/* Planned graphs, which depend on how weights are stored. */
void pnb__model_drop_encoders(pnb_model *m);

/* Opens a model from two files. `opts` may be NULL. */
pnb_status pnb__model_open(pnb_model **out, const pnb_ctx *ctx, const pnb__model_files *files,
                           pnb__real real, const pnb_model_load_opts *opts, pnb_error *err);
/* Path of the configuration of a folder, allocated; NULL without an error when there is none. */
pnb_status pnb__model_find_config(char **out, const char *dir, pnb_error *err);
/* Sets what the weights decide: absent towers, a projection stored or not. */
pnb_status pnb__config_fit(pnb__config *c, const pnb__layout *layout, const pnb__weight_file *file,
                           pnb_error *err);

#endif
