/* One description of a two-tower model, whatever wrote its folder. The readers here are those of
 * dialects that several families share: ProLIP's and open_clip's, Hugging Face's of CLIP and
 * SigLIP, OpenAI's bare state dict; a family with a configuration of its own brings its reader
 * (tower.h). The readers fill it, the towers follow it. */
#ifndef PNB_MODELS_CONFIG_CONFIG_H
#define PNB_MODELS_CONFIG_CONFIG_H

#include <assert.h>
#include <string.h>

#include "io/json/json.h"
#include "kernels/kernels.h"
#include "models/model_families.def"
#include "penumbra/model.h"

/* Limits of every reader: larger claims are damaged or hostile files. */
enum {
    PNB__MAX_WIDTH = 1 << 16,
    PNB__MAX_LAYERS = 1024,
    PNB__MAX_PIXELS = 1 << 14,
    PNB__MAX_VOCAB = 1 << 24
};

#define PNB__MODEL_FAMILY_ENUM(NAME, word) PNB__FAMILY_##NAME,
typedef enum pnb__model_family {
    PNB__MODEL_FAMILY_LIST(PNB__MODEL_FAMILY_ENUM) PNB__N_MODEL_FAMILIES
} pnb__model_family;
#undef PNB__MODEL_FAMILY_ENUM

/* Which vector of a tower is projected. */
typedef enum pnb__pool {
    PNB__POOL_CLASS,    /* image: the class token */
    PNB__POOL_AVERAGE,  /* image: mean of the patches */
    PNB__POOL_MAP,      /* image: SigLIP's attention head with a learnt query */
    PNB__POOL_APPENDED, /* text: [CLS] behind the tokens (ProLIP) */
    PNB__POOL_FIRST,    /* text: first position */
    PNB__POOL_LAST,     /* text: last position, padding or not (SigLIP) */
    PNB__POOL_ARGMAX,   /* text: first position of the largest id (CLIP's end token) */
    PNB__POOL_EOS       /* text: first position of eos_id */
} pnb__pool;

typedef enum pnb__projection {
    PNB__PROJECT_NONE,
    PNB__PROJECT_MATRIX, /* x P, P (width, embed) */
    PNB__PROJECT_LINEAR  /* x W^T + b, W (embed, width) */
} pnb__projection;

/* One tower. `present` is every family's; the rest describes a transformer. */
typedef struct pnb__tower_config {
    bool present;
    size_t width, n_layers, n_heads, mlp_width;
    double eps;
    pnb__unary act;
    double ls_init;       /* LayerScale initial value */
    bool has_layer_scale; /* key present */
    bool has_unc;
    double init_unc_bias;
    double init_unc_std; /* of the log-variance head's matrix; width^-1/2 without the key */
    pnb__pool pool;
    pnb__projection projection;
    const char *act_source, *eps_source; /* where the value comes from, for `check` */
} pnb__tower_config;

/* Bytes that a family's own configuration may have. */
enum { PNB__MAX_OWN_CONFIG = 256 };

typedef struct pnb__config {
    /* every family's */
    pnb__model_family family;
    size_t embed_dim;    /* of a row: of all its embeddings together */
    size_t n_embeddings; /* 0: one */
    bool has_logit_scale, has_logit_bias;
    double init_logit_scale, init_logit_bias; /* scale as a logarithm */
    size_t image_height, image_width;         /* pictures the image tower takes */
    size_t context_length, vocab_size;        /* tokens and ids the text tower takes */
    pnb__tower_config vision, text;
    /* transformers: image tower */
    size_t patch;
    bool no_ln_pre, conv_bias, sincos_positions;
    bool norm_after_pool; /* ln_post on the pooled vector instead of on every token */
    /* transformers: text tower */
    pnb_text_unc_source text_unc_source;
    bool causal;
    int64_t eos_id; /* PNB__POOL_EOS */
    /* A tower stored alone may or may not carry its projection; the weight file tells. */
    bool projection_from_file;
    /* other families: a struct of theirs, by the two functions below */
    unsigned char own[PNB__MAX_OWN_CONFIG];
} pnb__config;

/* What a family beside the transformers keeps of its configuration, bytes in and out, so that a
 * configuration stays a value that is copied. A struct that is too large is found by the first test
 * that reads such a model. */
static inline void pnb__config_set_own(pnb__config *c, const void *own, size_t n_bytes)
{
    assert(n_bytes <= sizeof c->own);
    memcpy(c->own, own, n_bytes);
}

static inline void pnb__config_get_own(const pnb__config *c, void *own, size_t n_bytes)
{
    assert(n_bytes <= sizeof c->own);
    memcpy(own, c->own, n_bytes);
}

/* Is a class token in front of the patches? */
static inline bool pnb__config_has_class(const pnb__config *c)
{
    return c->vision.pool != PNB__POOL_MAP;
}

/* Position rows before those of the patches. */
static inline size_t pnb__config_n_extra(const pnb__config *c)
{
    return (pnb__config_has_class(c) ? 1U : 0U) + (c->vision.has_unc ? 1U : 0U);
}

/* Reads and checks a whole configuration of any known form: ProLIP's or open_clip's constructor
 * arguments, open_clip_config.json around them, Hugging Face's config.json with a model_type.
 * `where` names the source in messages.
 * Errors  FORMAT (unknown key or wrong type), ARG (value out of range), UNSUPPORTED (a valid option
 *         of the reference that is not implemented here) */
pnb_status pnb__config_read(pnb__config *out, json_t *root, const char *where, pnb_error *err);

/* ---- shared by the readers ---- */

/* UNSUPPORTED: "<where>: <key> must be <wanted>". */
pnb_status pnb__config_unsupported(pnb__jobj *o, const char *key, const char *wanted,
                                   pnb_error *err);
/* "image_size": a number, or [height, width]. */
void pnb__config_image_size(pnb__config *c, pnb__jobj *o, size_t fallback, pnb_error *err);
/* ARG unless n_heads divide the width. */
void pnb__config_check_heads(const pnb__tower_config *t, pnb__jobj *o, const char *key,
                             pnb_error *err);

/* config.json with "model_type" clip, siglip or one of their towers alone (config_hf.c). */
pnb_status pnb__config_read_hf(pnb__config *out, json_t *root, const char *where, pnb_error *err);
/* vision_cfg with timm_model_name: SigLIP's image tower as timm names it (config_timm.c). */
void pnb__config_read_timm(pnb__config *c, pnb__jobj *o, pnb_error *err);

struct pnb__weight_file;
/* The architecture of OpenAI's bare state dict from the shapes in it, as CLIP's build_model does
 * (config_shapes.c). Errors  NOT_FOUND (nothing says that the file is OpenAI's), SHAPE */
pnb_status pnb__config_from_shapes(pnb__config *out, const struct pnb__weight_file *file,
                                   pnb_error *err);

/* Names for messages and reports. */
const char *pnb__pool_name(pnb__pool pool);
const char *pnb__act_name(pnb__unary act); /* "gelu", "gelu_tanh", "quick_gelu" */

#endif
