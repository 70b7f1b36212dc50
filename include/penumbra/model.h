/* Models: a directory with config.json, model.safetensors, tokenizer.json and
 * preprocessor_config.json, opened for encoding or training. */
#ifndef PENUMBRA_MODEL_H
#define PENUMBRA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/image.h"
#include "penumbra/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnb_model pnb_model;

/* Where the text log-variance comes from (docs/numerics.md#prolip-text-log-variance). */
typedef enum pnb_text_unc_source {
    PNB_TEXT_UNC_PROJECTED_MEAN, /* released checkpoints: Linear(projected mean) */
    PNB_TEXT_UNC_TOKEN           /* the paper: Linear(ln_final([UNC])) */
} pnb_text_unc_source;

/* One tower as the config describes it. */
typedef struct pnb_tower_info {
    size_t width, n_layers, n_heads, mlp_width;
    double layernorm_eps;
    bool quick_gelu, has_unc, has_layer_scale, has_ln_pre;
    size_t image_height, image_width, patch, n_patches; /* vision */
    size_t context_length, vocab_size;                  /* text */
} pnb_tower_info;

typedef struct pnb_model_info {
    const char *family; /* "prolip" */
    size_t embed_dim, n_params, weight_bytes;
    pnb_tower_info vision, text;
    bool is_probabilistic; /* towers give a log-variance */
    pnb_text_unc_source text_unc_source;
    double logit_scale; /* a, already exponentiated */
    double logit_bias;  /* b, 0 when the model has none */
} pnb_model_info;

/* Opens a model directory. Weights stay a read-only file map until trained.
 * Errors  NOT_FOUND (directory, file or key), FORMAT, SHAPE (a tensor against the config), ARG
 *         (unknown config key), NUMERIC (NaN or Inf weights), NOMEM */
pnb_status pnb_model_load(pnb_model **out, const pnb_ctx *ctx, const char *dir, pnb_error *err);

/* A randomly initialised model with the reference's initialisation (open_clip / ProLIP).
 *   config   a built-in name (pnb_model_config_names) or a path to a config.json
 *   seed     same seed, same weights on every machine */
pnb_status pnb_model_init(pnb_model **out, const pnb_ctx *ctx, const char *config, uint64_t seed,
                          pnb_error *err);
/* Built-in configuration names, NULL-terminated; and the JSON text of one, NULL if unknown. */
const char *const *pnb_model_config_names(void);
const char *pnb_model_config_json(const char *name);

/* Changes a loaded or built-in configuration before initialisation: the JSON text of `config` with
 * the keys of `overrides` (a JSON object, e.g. {"text_cfg":{"vocab_size":1500}}) merged in, as
 * allocated text to be freed with pnb_text_free. */
pnb_status pnb_model_config_merge(const char *config, const char *overrides, char **out_json,
                                  pnb_error *err);
pnb_status pnb_model_init_json(pnb_model **out, const pnb_ctx *ctx, const char *config_json,
                               uint64_t seed, pnb_error *err);

/* Writes config.json and model.safetensors into dir (made if missing), each whole or not at all. */
pnb_status pnb_model_save(const pnb_model *model, const char *dir, pnb_error *err);
void pnb_model_free(pnb_model *model);

const pnb_model_info *pnb_model_get_info(const pnb_model *model);
const char *pnb_model_config_text(const pnb_model *model); /* the config as JSON text */

/* SHA-256 of the weight file as 64 hex digits, "" for weights that were made or changed in memory.
 * Computed at the first call (it reads every byte) and kept; *hex lives as long as the model.
 * Errors  IO */
pnb_status pnb_model_weights_sha256(pnb_model *model, const char **hex, pnb_error *err);

/* Encodes a batch on the model's context. The encoder for a batch size is planned at first use and
 * kept; a call with another batch size plans again.
 *   pixels (B,3,H,W) normalised -> mean (B,D) unit rows, log_var (B,D)
 *   ids (B,T) int32, T <= context -> the same
 * log_var may be NULL; models without uncertainty fill it with -INFINITY (zero variance).
 * normalize false leaves mean as the projection gave it.
 * Errors  SHAPE (T over the context), ARG (id outside the vocabulary), NUMERIC (result not finite)
 */
typedef struct pnb_encode_out {
    float *mean, *log_var;
    bool skip_normalize;
} pnb_encode_out;
pnb_status pnb_model_encode_image(pnb_model *model, const float *pixels, size_t n_batch,
                                  const pnb_encode_out *out, pnb_error *err);
pnb_status pnb_model_encode_text(pnb_model *model, const int32_t *ids, size_t n_batch,
                                 size_t n_tokens, const pnb_encode_out *out, pnb_error *err);
/* The masked picture of ProLIP training: only the n_kept patches named by kept (sorted, shared by
 * the batch) are seen. */
pnb_status pnb_model_encode_image_kept(pnb_model *model, const float *pixels, size_t n_batch,
                                       const int32_t *kept, size_t n_kept,
                                       const pnb_encode_out *out, pnb_error *err);

/* Floating-point operations of one encode call (GEMM and attention), for rates in benchmarks. */
double pnb_model_flops(pnb_model *model, bool text, size_t n_batch);

#ifdef __cplusplus
}
#endif
#endif
