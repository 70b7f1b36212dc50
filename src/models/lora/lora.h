/* Low-rank changes of a model's matrices (LoRA): W = W0 + (alpha / r) B A, W0 (out, in) of the
 * base, A (r, in) and B (out, r) what is trained.
 *
 * A matrix of the model always holds the sum, so that every graph, product in bfloat16 and
 * validation sees a model like any other; what is kept apart is W0. The gradient of the matrix
 * gives those of the factors: dB = (alpha / r) dW A^T, dA = (alpha / r) B^T dW. Source  Hu et al.
 * 2021, LoRA; names of arrays and of the configuration's keys as peft has them */
#ifndef PNB_MODELS_LORA_H
#define PNB_MODELS_LORA_H

#include "models/model.h"

/* What is asked for: which matrices, by how much, begun how. */
typedef struct pnb__lora_spec {
    int64_t rank; /* r, 1 or more */
    double alpha; /* the sum counts alpha / rank, above 0 */
    /* "attn", "mlp", "all", parts of names of weights, patterns of whole names with * and ?; ','
     * between */
    const char *targets;
    bool image, text; /* towers */
    uint64_t seed;    /* of A; B begins at 0 */
} pnb__lora_spec;

/* One matrix of the model. */
typedef struct pnb__lora_item {
    pnb__param *w;   /* of the model */
    pnb__param a, b; /* "<module>.lora_A.weight" and "<module>.lora_B.weight" */
    pnb__param base; /* W0 */
} pnb__lora_item;

/* All of a model's. */
typedef struct pnb__lora {
    const pnb_ctx *ctx;
    pnb__kernels kernels;  /* of the model's device and real type */
    pnb__lora_item *items; /* in the order of the model's weights */
    size_t n;
    double rank, alpha, scale;    /* scale = alpha / rank */
    char *targets;                /* as asked for, for people */
    char base_sha256[65];         /* of the weights that all this is a change of */
    size_t n_factors, n_matrices; /* numbers in all factors, and in all matrices they change */
} pnb__lora;

/* Of matrices in the blocks of a model whose weights are its own (pnb__model_make_trainable); those
 * that give uncertainty are heads and are not among them. `sha256` names the base.
 * Errors  ARG (a rank or alpha out of range, a word of `targets` that no matrix has), NOMEM */
pnb_status pnb__lora_create(pnb__lora **out, pnb_model *m, const pnb__lora_spec *spec,
                            const char *sha256, pnb_error *err);
void pnb__lora_free(pnb__lora *l); /* the model keeps the sums */

/* W of every item from its factors. Errors  IO */
pnb_status pnb__lora_apply(const pnb__lora *l, pnb_error *err);
/* Gradients of the factors from those of the matrices, which a graph has made. */
void pnb__lora_project(pnb__lora *l);

/* ---- lora_file.c ---- a folder with adapter_config.json and adapter_model.safetensors */

/* peft's names of the two. */
#define PNB__LORA_CONFIG "adapter_config.json"
#define PNB__LORA_WEIGHTS "adapter_model.safetensors"

/* Whether both are there. */
bool pnb__lora_is_dir(const char *dir);
/* Where a model is wanted: what makes one of an adapter.  Errors  FORMAT (both are there) */
pnb_status pnb__lora_refuse_dir(const char *dir, pnb_error *err);
/* Writes factors, and `also` whole. `base` is where the base was opened, for people.
 * Errors  IO, NOMEM */
pnb_status pnb__lora_save(const pnb__lora *l, pnb__param *const *also, size_t n_also,
                          const char *base, const char *dir, pnb_error *err);
/* Reads what save wrote into the same; the matrices are left to pnb__lora_apply.
 * Errors  NOT_FOUND, FORMAT, ARG (another base, rank or alpha), SHAPE */
pnb_status pnb__lora_load(pnb__lora *l, pnb__param *const *also, size_t n_also, const char *dir,
                          pnb_error *err);

#endif
