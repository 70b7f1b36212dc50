/* Row 4: a pre-norm transformer block over the ops of src/tensor. */
#ifndef PNB_NN_BLOCK_H
#define PNB_NN_BLOCK_H

#include "tensor/graph.h"

/* Weights of one block; ls1 and ls2 (LayerScale) are NULL without it. in_w rows are q, k, v. */
typedef struct pnb__block {
    pnb__param *ln1_w, *ln1_b, *in_w, *in_b, *out_w, *out_b, *ls1;
    pnb__param *ln2_w, *ln2_b, *fc_w, *fc_b, *proj_w, *proj_b, *ls2;
} pnb__block;

typedef struct pnb__block_opts {
    size_t n_heads;
    double eps;
    pnb__unary act;
    bool causal;
    pnb__tensor *kv_len; /* (B) int32 valid tokens of each item, or NULL */
} pnb__block_opts;

/* x (B, T, C) -> (B, T, C):  x += LS1 * MHA(LN1(x));  x += LS2 * MLP(LN2(x)). */
pnb__tensor *pnb__block_apply(pnb__graph *g, const pnb__block *b, pnb__tensor *x,
                              const pnb__block_opts *opts);

/* The same for a last block of which only tokens [begin, begin+n) are read: -> (B, n, C). Keys and
 * values come from all tokens; queries, output projection and MLP only from those that are read. */
pnb__tensor *pnb__block_apply_read(pnb__graph *g, const pnb__block *b, pnb__tensor *x, size_t begin,
                                   size_t n, const pnb__block_opts *opts);

/* The same for a last block of which one token of every item is read: rows (B) int32 of the
 * flattened (B*T, C), kv_len (B) the tokens that row may see (a causal mask at its position), or
 * NULL for all. -> (B, 1, C). */
pnb__tensor *pnb__block_apply_rows(pnb__graph *g, const pnb__block *b, pnb__tensor *x,
                                   pnb__tensor *rows, pnb__tensor *kv_len,
                                   const pnb__block_opts *opts);

/* Attention head of SigLIP (Zhai et al. 2022, section 3.3): q from the learnt `probe` (C), keys and
 * values from x (B, T, C); out projection without residual, then h + MLP(LN2(h)). -> (B, 1, C)
 * *read (B, 1, F + C): what the last product reads, act(LN2(h) W_fc^T + b_fc), and h, which is
 * added to what it makes. */
pnb__tensor *pnb__block_pool(pnb__graph *g, const pnb__block *b, pnb__param *probe, pnb__tensor *x,
                             const pnb__block_opts *opts, pnb__tensor **read);

/* LayerNorm and Linear with weights that live outside the graph; w, b may be NULL where noted. */
pnb__tensor *pnb__norm_apply(pnb__graph *g, pnb__tensor *x, pnb__param *w, pnb__param *b,
                             double eps);
pnb__tensor *pnb__linear_apply(pnb__graph *g, pnb__tensor *x, pnb__param *w,
                               pnb__param *b /* or NULL */);
/* A (C) weight as one token for each of n_batch items: (B, 1, C). */
pnb__tensor *pnb__token_apply(pnb__graph *g, pnb__param *token, size_t n_batch);

#endif
