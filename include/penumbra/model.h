/* Models: a directory with configuration, weights, tokenizer and preprocessing, opened for encoding
 * or training. ProLIP, open_clip, Hugging Face CLIP and SigLIP and OpenAI's layouts are read;
 * docs/checkpoints.md has the table.
 *
 * A model is two towers, for pictures and for texts, that end in one space: each in distributions
 * of one family, points where there is no uncertainty. pnb_encoder (penumbra/encode.h) is the
 * easier way in: it takes pictures and words. */
#ifndef PENUMBRA_MODEL_H
#define PENUMBRA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/embeddings.h"
#include "penumbra/error.h"
#include "penumbra/image.h"
#include "penumbra/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnb_model pnb_model; /* opened or made below, freed with pnb_model_free */

/* Where the text log-variance comes from (docs/numerics.md#prolip-text-log-variance). */
typedef enum pnb_text_unc_source {
    PNB_TEXT_UNC_PROJECTED_MEAN, /* released and new models: Linear(projected mean) */
    PNB_TEXT_UNC_TOKEN           /* the paper: Linear(ln_final([UNC])) */
} pnb_text_unc_source;
const char *pnb_text_unc_source_name(pnb_text_unc_source source); /* its word in config.json */

/* One tower as the config describes it; all zero when the model has none of this kind. What follows
 * `family` and the sizes of the inputs is of transformers: 0 and NULL in towers that lack it. */
typedef struct pnb_tower_info {
    bool present;
    pnb_family family;                 /* of the distributions it ends in */
    size_t image_height, image_width;  /* of the pictures an image tower takes */
    size_t context_length, vocab_size; /* of the texts a text tower takes */
    const char *key_names;             /* the layout of the file, in words */
    char architecture[96];             /* in words, of what the numbers below leave out; else "" */
    const char *activation;            /* "gelu", "gelu_tanh", "quick_gelu" */
    const char *activation_source;     /* the key that says so, or whose default it is */
    const char *layernorm_source;      /* of layernorm_eps */
    const char *pooling;               /* what is projected, in words */
    bool causal, has_projection;       /* under a causal mask; embed_dim from the width */
    size_t width, n_layers, n_heads;   /* C, L, H */
    size_t mlp_width;                  /* of the hidden layer in a block */
    double layernorm_eps;              /* added to the variance in every LayerNorm */
    bool quick_gelu;                   /* x s(1.702 x) */
    bool has_unc;                      /* the token [UNC], and a log-variance head */
    bool has_layer_scale, has_ln_pre;  /* gains on the branches; LayerNorm before the blocks */
    size_t patch, n_patches;           /* side in pixels; how many there are, to be kept */
} pnb_tower_info;

/* The two towers may end in different families; where one does in distributions, the model is
 * probabilistic. */
typedef struct pnb_model_info {
    const char *family;            /* of models: "prolip", "clip", "siglip" */
    size_t embed_dim;              /* D, the same of both towers */
    size_t n_embeddings;           /* K that an input gets, beside each other in the D numbers; 1 */
    size_t n_params, weight_bytes; /* numbers, and what they take in memory */
    const char *weights_stored;    /* matrices of the blocks: "f32", "bf16", "int8, ..." */
    pnb_tower_info vision, text;
    bool is_probabilistic;               /* a tower ends in more than points */
    bool has_logit_bias;                 /* b is a weight */
    pnb_text_unc_source text_unc_source; /* of ProLIP */
    pnb_clean trained_clean; /* how captions are cleaned for the released models of its family */
    double logit_scale;      /* a, already exponentiated */
    double logit_bias;       /* b, 0 when the model has none */
    double match_a, match_b; /* a and b of match_prob, and then the two above are NaN; else NaN */
    const char *measure;     /* what its Gaussians are compared by; NULL: csd */
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
    size_t image_height, image_width; /* both or none */
    size_t context_length;
} pnb_model_load_opts;
/* pnb_model_load at those sizes; NULL for none.
 * Errors  as above; ARG (one side alone, too small for a patch), UNSUPPORTED (a family whose models
 *         have one size) */
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
/* pnb_model_init of a configuration that is text already. */
pnb_status pnb_model_init_json(pnb_model **out, const pnb_ctx *ctx, const char *config_json,
                               uint64_t seed, pnb_error *err);

/* Writes configuration and weights into dir (made if missing), each whole or not at all, in the
 * form and under the names the model came in; a new model as ProLIP's config.json +
 * model.safetensors. */
pnb_status pnb_model_save(const pnb_model *model, const char *dir, pnb_error *err);
void pnb_model_free(pnb_model *model); /* NULL is fine */

/* What a model can be written as (docs/checkpoints.md). */
typedef enum pnb_key_mapping {
    PNB_KEYS_PROLIP,    /* config.json of constructor arguments + model.safetensors */
    PNB_KEYS_OPEN_CLIP, /* open_clip_config.json + open_clip_model.safetensors */
    PNB_KEYS_HF,        /* Hugging Face: config.json with model_type + model.safetensors */
    PNB_KEYS_PCME,      /* config.json + model.safetensors with the names of PCME's released
                         * files; its criterion's a and b as "criterion.negative_scale", "shift" */
    PNB_KEYS_PCMEPP     /* PCME++'s config.json of constructor arguments + model.safetensors */
} pnb_key_mapping;

typedef struct pnb_model_convert_opts {
    pnb_key_mapping to;
    pnb_model_load_opts sizes;   /* zeros keep the sizes */
    const char *preprocess_json; /* value of preprocess_cfg in open_clip_config.json, or NULL */
    uint64_t seed;               /* of the parts that ProLIP or PCME++ has and the model lacks */
    size_t n_unc_layers;         /* of PCMEPP only: blocks of the second path; 0: 2, as released */
} pnb_model_convert_opts;

/* Writes the model of `dir` into `out` (made if missing) under the names of another layout. Between
 * open_clip and Hugging Face no value changes: bits and types are copied, q, k and v split or
 * joined, projections transposed. CLIP and SigLIP become ProLIP by adding fresh parts: [UNC] of
 * both towers N(0, 0.01^2), its projections N(0, 1/width), log-variance bias -10, [CLS] of the
 * text; the mask of the text and SigLIP's attention head go. That model is a start for training,
 * its embeddings are not the old ones. PCME, VSE and PVSE are written as PCME alone: bits and types
 * of a released file are copied, a of a model trained here is exp of its logarithm. CLIP becomes
 * PCME++ by fresh blocks and projections of the log-variance (Chun 2024, section 3.4). notes  what
 * is fresh and what was left out, or where the other tools differ; "" for nothing Errors
 * UNSUPPORTED (the layout cannot describe the model: names the reason), EXISTS (out holds a model),
 * ARG (n_unc_layers of another layout), and those of pnb_model_load and saving */
pnb_status pnb_model_convert(const pnb_ctx *ctx, const char *dir, const char *out,
                             const pnb_model_convert_opts *opts, char notes[1024], pnb_error *err);

/* A model whose weights are sum_i shares[i] of dirs[i], number by number; configuration and layout
 * are those of the first. (1 - a, a) of a pretrained model and of one fine-tuned from it is
 * WiSE-FT, equal shares are a soup. Shares add up to 1; they may lie outside 0..1 (extrapolation).
 * Memory  two models
 * Errors  ARG (fewer than two, shares), SHAPE (another configuration, array missing or of another
 *         shape: named), UNSUPPORTED (weights that are small already), those of pnb_model_load */
pnb_status pnb_model_average(pnb_model **out, const pnb_ctx *ctx, const char *const *dirs,
                             const double *shares, size_t n, pnb_error *err);

/* The model that a LoRA adapter (docs/checkpoints.md#lora) and its base make together: every
 * adapted matrix is W + (alpha / r) B A, what was trained whole is the adapter's, to the bits that
 * training had. Configuration and layout are the base's. Errors  NOT_FOUND (no adapter), ARG
 * (another base than it was trained on: both named), FORMAT, SHAPE, UNSUPPORTED (an adapter that
 * does not name its base; weights that are small already), NUMERIC, those of pnb_model_load */
pnb_status pnb_model_merge_lora(pnb_model **out, const pnb_ctx *ctx, const char *base,
                                const char *adapter, pnb_error *err);

/* What a model is; lives as long as it. */
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
typedef enum pnb_weight_type {
    PNB_WEIGHTS_INT8, /* one scale for each output channel; activations are rounded in the product
                       */
    PNB_WEIGHTS_BF16, /* half the memory, results of the rounded weights */
    PNB_WEIGHTS_F16
} pnb_weight_type;

/* Makes a loaded f32 model small in memory; pnb_model_save then writes it so, and such a model is
 * opened like any other. It cannot be trained in INT8, and its precision is FP32 from then on.
 *   activation_bits  7 (fast on every CPU) or 8 (more exact; slow without VNNI); INT8 only
 * Errors  ARG (small already, other bits), UNSUPPORTED (not loaded in f32; no transformer block, as
 *         in PCME's ResNet and GRUs), NOMEM */
pnb_status pnb_model_quantize(pnb_model *model, pnb_weight_type to, int activation_bits,
                              pnb_error *err);
/* Puts figures, a JSON object, under "calibration" into the record that is saved with a small
 * model's weights (safetensors metadata "penumbra.quantization").
 * Errors  ARG, FORMAT, NOMEM */
pnb_status pnb_model_set_calibration(pnb_model *model, const char *json, pnb_error *err);
/* The record as JSON text; NULL for a model that is not small. */
const char *pnb_model_quantization(const pnb_model *model);

/* How products with the matrices of the blocks are computed; nearly all arithmetic is theirs.
 * X(NAME, word, sentence). What each promises against FP32, on golden models with made pictures and
 * captions (tests/models/precision.c):
 *                         cosine of means   variance of a row, a dimension   rank of uncertainties
 *     FP32_TILES          >= 1 - 1e-10      within 1e-5, 1e-5                >= 0.999
 *     FP32_TILES_FAST     >= 1 - 1e-9       within 1e-5, 5e-5                >= 0.999
 *     BF16                >= 0.9999         within 1%, 2%                    >= 0.999
 *     INT8                >= 0.9995         (quantize measures a model on data of its own)
 * FP32_TILES are floats' own products where the processor has no tile unit, which are faster there.
 */
#define PNB_PRECISION_LIST(X)                                                                      \
    X(FP32, "fp32", "floats")                                                                      \
    X(FP32_TILES, "fp32-tiles",                                                                    \
      "floats as three parts of bfloat16 on a tile unit, six products of them in one sum")         \
    X(FP32_TILES_FAST, "fp32-tiles-fast", "as two parts, three products")                          \
    X(BF16, "bf16", "weights and activations rounded to bfloat16, sums and the rest in floats")    \
    X(INT8, "int8", "weights in 8 bits with scales, activations rounded in the product")
typedef enum pnb_precision {
#define PNB_PRECISION_ENUM(NAME, word, sentence) PNB_PRECISION_##NAME,
    PNB_PRECISION_LIST(PNB_PRECISION_ENUM)
#undef PNB_PRECISION_ENUM
} pnb_precision;
const char *pnb_precision_name(pnb_precision precision); /* "fp32" */
/* The precision of a word; *out untouched on failure.  Errors  NOT_FOUND (the text lists them) */
pnb_status pnb_precision_parse(pnb_precision *out, const char *name, pnb_error *err);

/* That promise as numbers: the least cosine of a mean, the largest relative change of a row's
 * variance (infinite: none), the least rank correlation of uncertainties (-1: none). */
typedef struct pnb_precision_promise {
    double least_cosine, variance, rank;
} pnb_precision_promise;
pnb_precision_promise pnb_precision_get_promise(pnb_precision precision);

/* Chooses the precision of encoding from now on; graphs with gradients stay in floats. The weights
 * are not changed and a model may be set back, but for INT8: that replaces them as
 * pnb_model_quantize does, with the most activation bits that are fast here, and is for good. A
 * model whose weights came in 8 bits takes INT8 as what it is and stays at FP32 for its precision.
 * No call may be encoding.
 * Errors  ARG (no such precision; INT8 of a model in 16 bits), UNSUPPORTED (a model without
 *         transformer blocks; weights in 8 bits; a model opened in doubles), NOMEM */
pnb_status pnb_model_set_precision(pnb_model *model, pnb_precision precision, pnb_error *err);
pnb_precision pnb_model_get_precision(const pnb_model *model);
/* Are products in that precision floats' own here, to the bit? Of FP32_TILES without a tile unit.
 */
bool pnb_model_precision_is_floats(const pnb_model *model, pnb_precision precision);

/* Where an encoder writes: the arrays of the tower's family (pnb_tower_info), each NULL where it is
 * not wanted. What a family has is said in penumbra/embeddings.h:
 *
 *     point            mean
 *     gaussian_diag    mean, log_var
 *     vmf, power_spherical    mean, kappa
 *     gen_gaussian     mean, inv_alpha, beta */
typedef struct pnb_encode_out {
    float *mean;             /* (B,D) unit rows; of gen_gaussian as the tower gave them */
    float *log_var;          /* (B,D) log-variances; -INFINITY, zero variance, of points */
    bool skip_normalize;     /* means as the projection gave them */
    float *kappa;            /* (B) concentrations */
    float *inv_alpha, *beta; /* (B,D) inverse scales and shapes */
    float *activations;      /* (B,P) what the last projection reads, of its own width: CLIP's and
                              * ProLIP's towers and SigLIP's text tower end in one. SigLIP's image
                              * tower ends in h + MLP: P is the width of the MLP's hidden layer and,
                              * behind it, that of h */
} pnb_encode_out;

/* Encodes a batch on the model's context. The encoder for a batch size is planned at first use and
 * kept; a call with another batch size plans again. One thread at a time: several threads share a
 * model through penumbra/encode.h.
 *   pixels (B,3,H,W) normalised, or ids (B,T) int32 with T <= context, to what `out` asks for
 * Errors  SHAPE (T over the context), ARG (id outside the vocabulary, no end token in a text that
 * is read there, an array that the tower's family has none of), UNSUPPORTED (no such tower),
 * NUMERIC (result not finite), IO (the file of the weights, which are read where they lie, was
 * written to since it was opened) */
pnb_status pnb_model_encode_image(pnb_model *model, const float *pixels, size_t n_batch,
                                  const pnb_encode_out *out, pnb_error *err);
pnb_status pnb_model_encode_text(pnb_model *model, const int32_t *ids, size_t n_batch,
                                 size_t n_tokens, const pnb_encode_out *out, pnb_error *err);
/* The masked picture of ProLIP training: only the n_kept patches named by kept (sorted, shared by
 * the batch) are seen. Errors  ARG (no such patch; towers without patches have none) */
pnb_status pnb_model_encode_image_kept(pnb_model *model, const float *pixels, size_t n_batch,
                                       const int32_t *kept, size_t n_kept,
                                       const pnb_encode_out *out, pnb_error *err);

/* Floating-point operations of one encode call (GEMM and attention), for rates in benchmarks. */
double pnb_model_flops(pnb_model *model, bool text, size_t n_batch);

#ifdef __cplusplus
}
#endif
#endif
