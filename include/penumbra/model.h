/* Models: a directory with configuration, weights, tokenizer and preprocessing, opened for encoding
 * or training. ProLIP, open_clip, Hugging Face CLIP and SigLIP and OpenAI's layouts are read;
 * docs/checkpoints.md has the table. */
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
    PNB_TEXT_UNC_PROJECTED_MEAN, /* released and new models: Linear(projected mean) */
    PNB_TEXT_UNC_TOKEN           /* the paper: Linear(ln_final([UNC])) */
} pnb_text_unc_source;
const char *pnb_text_unc_source_name(pnb_text_unc_source source); /* its word in config.json */

/* One tower as the config describes it; all zero when the model has none of this kind. */
typedef struct pnb_tower_info {
    bool present;
    const char *activation;          /* "gelu", "gelu_tanh", "quick_gelu" */
    const char *activation_source;   /* the key that says so, or whose default it is */
    const char *layernorm_source;    /* of layernorm_eps */
    const char *pooling, *key_names; /* in words: what is projected; the layout of the file */
    bool causal, has_projection;
    size_t width, n_layers, n_heads, mlp_width;
    double layernorm_eps;
    bool quick_gelu, has_unc, has_layer_scale, has_ln_pre;
    size_t image_height, image_width, patch, n_patches; /* vision */
    size_t context_length, vocab_size;                  /* text */
} pnb_tower_info;

typedef struct pnb_model_info {
    const char *family; /* "prolip", "clip", "siglip" */
    size_t embed_dim, n_params, weight_bytes;
    const char *weights_stored; /* matrices of the blocks: "f32", "bf16", "int8, ..." */
    pnb_tower_info vision, text;
    bool is_probabilistic; /* towers give a log-variance; else embeddings are of family `point` */
    bool has_logit_bias;
    pnb_text_unc_source text_unc_source;
    double logit_scale; /* a, already exponentiated */
    double logit_bias;  /* b, 0 when the model has none */
} pnb_model_info;

/* Opens a model directory. Weights stay a read-only file map until trained. A model whose file has
 * only one tower opens with that one.
 * Errors  NOT_FOUND (directory, file or key), FORMAT (unknown key of config or weights), SHAPE (a
 *         tensor against the config), ARG (a value out of range), UNSUPPORTED (an architecture that
 *         is not implemented, named), NOMEM */
pnb_status pnb_model_load(pnb_model **out, const pnb_ctx *ctx, const char *dir, pnb_error *err);

/* Another size than the configuration's: position embeddings are resized, bicubic with antialiasing
 * for pictures, linear for texts (above 127 tokens the first 20 and last 2 rows are kept, as in
 * LongProLIP). 0 keeps the model's own. */
typedef struct pnb_model_load_opts {
    size_t image_height, image_width, context_length;
} pnb_model_load_opts;
pnb_status pnb_model_load_with(pnb_model **out, const pnb_ctx *ctx, const char *dir,
                               const pnb_model_load_opts *opts, pnb_error *err);

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
 * allocated text to be freed with pnb_text_free. Where overrides make the text tower of a built-in
 * one wider or narrower than the embedding without naming a text_uncertainty_source, it becomes
 * unc_token, the only one that fits. */
pnb_status pnb_model_config_merge(const char *config, const char *overrides, char **out_json,
                                  pnb_error *err);
pnb_status pnb_model_init_json(pnb_model **out, const pnb_ctx *ctx, const char *config_json,
                               uint64_t seed, pnb_error *err);

/* Writes configuration and weights into dir (made if missing), each whole or not at all, in the
 * form and under the names the model came in; a new model as ProLIP's config.json +
 * model.safetensors. */
pnb_status pnb_model_save(const pnb_model *model, const char *dir, pnb_error *err);
void pnb_model_free(pnb_model *model);

/* What a model can be written as (docs/checkpoints.md). */
typedef enum pnb_model_layout {
    PNB_LAYOUT_PROLIP,    /* config.json of constructor arguments + model.safetensors */
    PNB_LAYOUT_OPEN_CLIP, /* open_clip_config.json + open_clip_model.safetensors */
    PNB_LAYOUT_HF         /* Hugging Face: config.json with model_type + model.safetensors */
} pnb_model_layout;

typedef struct pnb_model_convert_opts {
    pnb_model_layout to;
    pnb_model_load_opts sizes;   /* zeros keep the sizes */
    const char *preprocess_json; /* value of preprocess_cfg in open_clip_config.json, or NULL */
    uint64_t seed;               /* of the parts that ProLIP has and CLIP and SigLIP lack */
} pnb_model_convert_opts;

/* Writes the model of `dir` into `out` (made if missing) under the names of another layout. Between
 * open_clip and Hugging Face no value changes: bits and types are copied, q, k and v split or
 * joined, projections transposed. CLIP and SigLIP become ProLIP by adding fresh parts: [UNC] of
 * both towers N(0, 0.01^2), its projections N(0, 1/width), log-variance bias -10, [CLS] of the
 * text; the mask of the text and SigLIP's attention head go. That model is a start for training,
 * its embeddings are not the old ones. notes  what is fresh and what was left out, or where the
 * other tools differ; "" for nothing
 * Errors  UNSUPPORTED (the layout cannot describe the model:
 * names the reason), EXISTS (out holds a model), and those of pnb_model_load and saving */
pnb_status pnb_model_convert(const pnb_ctx *ctx, const char *dir, const char *out,
                             const pnb_model_convert_opts *opts, char notes[1024], pnb_error *err);

const pnb_model_info *pnb_model_get_info(const pnb_model *model);
const char *pnb_model_config_text(const pnb_model *model); /* the config as JSON text */

/* Does dir look like a model: a configuration, or weights under a known name? */
bool pnb_model_is_dir(const char *dir);

/* The file the weights came from (an index for shards), "" for weights made in memory. */
const char *pnb_model_weights_path(const pnb_model *model);

/* SHA-256 of the weight file as 64 hex digits, "" for weights that were made or changed in memory.
 * Computed at the first call (it reads every byte) and kept; *hex lives as long as the model.
 * Errors  IO */
pnb_status pnb_model_weights_sha256(pnb_model *model, const char **hex, pnb_error *err);

/* Types that the matrices of the blocks can be kept in; nearly all memory and arithmetic is theirs.
 */
typedef enum pnb_model_store {
    PNB_STORE_INT8, /* one scale for each output channel; activations are rounded in the product */
    PNB_STORE_BF16, /* half the memory, results of the rounded weights */
    PNB_STORE_F16
} pnb_model_store;

/* Makes a loaded f32 model small in memory; pnb_model_save then writes it so, and such a model is
 * opened like any other. It cannot be trained in INT8.
 *   activation_bits  7 (fast on every CPU) or 8 (more exact; slow without VNNI); INT8 only
 * Errors  ARG (small already, other bits), UNSUPPORTED, NOMEM */
pnb_status pnb_model_quantize(pnb_model *model, pnb_model_store to, int activation_bits,
                              pnb_error *err);
/* Puts figures, a JSON object, under "calibration" into the record that is saved with a small
 * model's weights (safetensors metadata "penumbra.quantization").
 * Errors  ARG, FORMAT, NOMEM */
pnb_status pnb_model_set_calibration(pnb_model *model, const char *json, pnb_error *err);
/* The record as JSON text; NULL for a model that is not small. */
const char *pnb_model_quantization(const pnb_model *model);

/* Encodes a batch on the model's context. The encoder for a batch size is planned at first use and
 * kept; a call with another batch size plans again. One thread at a time: several threads share a
 * model through penumbra/encode.h.
 *   pixels (B,3,H,W) normalised -> mean (B,D) unit rows, log_var (B,D)
 *   ids (B,T) int32, T <= context -> the same
 * log_var may be NULL; models without uncertainty fill it with -INFINITY (zero variance).
 * normalize false leaves mean as the projection gave it.
 * Errors  SHAPE (T over the context), ARG (id outside the vocabulary, no end token in a text that
 * is read there), UNSUPPORTED (no such tower), NUMERIC (result not finite) */
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
