/* The two transformers that ProLIP, CLIP and SigLIP share up to their ends: what they are made of
 * before something is read from their tokens, and their parameters. A family adds its ends: which
 * tokens are read, how they become an embedding. */
#ifndef PNB_MODELS_TRANSFORMER_TRANSFORMER_H
#define PNB_MODELS_TRANSFORMER_TRANSFORMER_H

#include "models/tower.h"
#include "nn/block.h"

/* Parameters of an image transformer; NULL for what the configuration leaves out. */
typedef struct pnb__image_transformer {
    pnb__param *cls, *unc;     /* (C) tokens in front of the patches */
    pnb__param *positions;     /* (extra + N, C) */
    pnb__param *conv, *conv_b; /* (C,3,p,p), (C): patch embedding */
    pnb__param *ln_pre_w, *ln_pre_b, *ln_post_w, *ln_post_b; /* (C) */
    pnb__param *proj;                                        /* (C,D) */
    pnb__param *unc_w, *unc_b;                               /* (D,C), (D): log-variance head */
    pnb__param
        *probe; /* (C) query of SigLIP's attention head, and its block, without a first norm */
    pnb__block head;
    pnb__block *blocks;     /* n_layers */
    pnb__block *unc_blocks; /* PCME++: of the log-variance alone; unc_w is (C,D) there */
} pnb__image_transformer;

/* Parameters of a text transformer. */
typedef struct pnb__text_transformer {
    pnb__param *tokens;          /* (V,C) */
    pnb__param *cls, *unc;       /* (C) tokens behind the text */
    pnb__param *positions;       /* (T + extra, C) */
    pnb__param *ln_w, *ln_b;     /* (C) */
    pnb__param *proj_w, *proj_b; /* (D,C), (D); or (C,D) and NULL */
    pnb__param *unc_w, *unc_b;   /* (D,C), (D): log-variance head */
    pnb__block *blocks;          /* n_layers */
    pnb__block *unc_blocks;      /* as in pictures */
} pnb__text_transformer;

/* ---- transformer.c ---- both */
pnb__block_opts pnb__transformer_opts(const pnb__tower_config *t, bool causal);
/* n blocks, one behind the other. (B,T,C) -> (B,T,C) */
pnb__tensor *pnb__transformer_run(pnb__graph *g, const pnb__block *blocks, size_t n, pnb__tensor *x,
                                  const pnb__block_opts *opts);
/* All blocks but the last. (B,T,C) -> (B,T,C) */
pnb__tensor *pnb__transformer_first(pnb__graph *g, const pnb__tower_config *t,
                                    const pnb__block *blocks, pnb__tensor *x,
                                    const pnb__block_opts *opts);
/* Token i of (B,T,C) as (B,C). */
pnb__tensor *pnb__transformer_token(pnb__tensor *x, size_t i);
/* x P, P (C,D), no bias: how CLIP projects. */
pnb__tensor *pnb__transformer_project(pnb__graph *g, pnb__tensor *x, pnb__param *p);
/* Fills what a transformer's configuration says of one tower. */
void pnb__transformer_describe_image(pnb_tower_info *out, const pnb__config *c);
void pnb__transformer_describe_text(pnb_tower_info *out, const pnb__config *c);
/* pnb__family_calls.set_sizes: position tables are resized. */
pnb_status pnb__transformer_set_sizes(pnb__config *c, const pnb_model_load_opts *o,
                                      pnb__resize *resize, pnb_error *err);

/* ---- image_transformer.c ---- */
/* Pixels to tokens (B, extra+N, C) in front of the first block. */
pnb__tensor *pnb__image_tokens(const pnb__image_transformer *w, const pnb__config *c, pnb__graph *g,
                               const pnb__tower_in *in);
/* All blocks; the last one only for tokens [0, n_read) -> (B, n_read, C). */
pnb__tensor *pnb__image_blocks(const pnb__image_transformer *w, const pnb__config *c, pnb__graph *g,
                               pnb__tensor *x, size_t n_read);
pnb__tensor *pnb__image_ln_post(const pnb__image_transformer *w, const pnb__config *c,
                                pnb__graph *g, pnb__tensor *x);

/* ---- text_transformer.c ---- */
/* Ids (B,T) to tokens (B, T+extra, C) in front of the first block. */
pnb__tensor *pnb__text_tokens(const pnb__text_transformer *w, pnb__graph *g, pnb__tensor *ids);
/* All blocks; the last one only for the last n_read tokens -> (B, n_read, C). */
pnb__tensor *pnb__text_blocks(const pnb__text_transformer *w, const pnb__config *c, pnb__graph *g,
                              pnb__tensor *x, size_t n_read);
pnb__tensor *pnb__text_ln_final(const pnb__text_transformer *w, const pnb__config *c, pnb__graph *g,
                                pnb__tensor *x);
/* (B,C) -> (B,D) as the configuration projects: x W^T + b, x P, or x. */
pnb__tensor *pnb__text_project(const pnb__text_transformer *w, const pnb__config *c, pnb__graph *g,
                               pnb__tensor *x);

/* ---- transformer_declare.c ---- parameters up to the log-variance head; NULL out of memory */
pnb__image_transformer *pnb__image_transformer_declare(pnb__weights *w, const pnb__config *c);
pnb__text_transformer *pnb__text_transformer_declare(pnb__weights *w, const pnb__config *c);
/* n blocks of a tower under the names "<stem>.resblocks.<i>.", which start as its own ones do; NULL
 * out of memory. */
pnb__block *pnb__transformer_declare_blocks(pnb__weights *w, pnb__side side, const char *stem,
                                            const pnb__tower_config *t, size_t n);
/* The block of SigLIP's attention head. */
void pnb__image_head_declare(pnb__weights *w, pnb__image_transformer *v,
                             const pnb__tower_config *t);

#endif
