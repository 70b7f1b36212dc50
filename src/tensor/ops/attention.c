/* Multi-head attention over a packed projection.
 *
 *   out = softmax(head_dim^-1/2 Q K^T) V per head (Vaswani et al. 2017, Eq. 1)
 * The kernel never holds T x T scores for a batch; backward makes the probabilities again from the
 * log-sum-exp of every row (Dao et al. 2022). Two forms share it: packed (B,T,3C) for whole layers,
 * and q beside packed k|v for the last layer, where only the tokens that are read need a query. */
#include "tensor/graph_internal.h"

#include <math.h>

/* packed: q, k and v are the thirds of one projection, (B,T,3C). causal: query i sees the keys up
 * to its own place. */
typedef struct attention_attrs {
    size_t n_heads;
    bool causal, packed;
} attention_attrs;

enum { KV, Q, KV_LEN, N_ATTENTION_INPUTS };

/* q NULL: packed. kv_len (B) cuts keys off: padding of a text, what a causal reader may see. */
pnb__tensor *pnb__attention(pnb__tensor *q, pnb__tensor *kv, size_t n_heads, bool causal,
                            pnb__tensor *kv_len)
{
    if (kv == NULL)
        return NULL;
    attention_attrs attrs = {n_heads, causal, q == NULL};
    pnb__tensor *in[N_ATTENTION_INPUTS] = {kv, q, kv_len};
    return pnb__node(kv->graph, PNB__OP_ATTENTION, in, N_ATTENTION_INPUTS, &attrs, sizeof attrs);
}

/* Beside products with weights in bfloat16, where a device has attention of that kind. */
static bool rounds_in_training(const pnb__tensor *t, size_t head_dim)
{
    const pnb__graph *g = t->graph;
    return g->rounds_products && g->with_grad && head_dim <= g->kernels.halves_head_dim;
}

/* Where the heads lie: head h of token t is head_dim numbers at h head_dim of the token's row, as
 * torch's multi_head_attention splits it, so no head is ever moved. Keys are the last but one and
 * values the last C numbers of a row of kv, with or without queries before them. */
static void fill_args(const pnb__tensor *t, pnb__attention_args *out)
{
    const attention_attrs *a = t->attrs;
    const pnb__tensor *kv = t->in[KV], *q = a->packed ? t->in[KV] : t->in[Q];
    size_t width = t->shape[2], parts = a->packed ? 3 : 2, bytes = width * pnb__elem_bytes(kv);
    size_t head_dim = width / a->n_heads;
    const unsigned char *kv_data = pnb__data(kv);
    *out = (pnb__attention_args){
        .n_batch = t->shape[0],
        .n_heads = a->n_heads,
        .n_q = q->shape[1],
        .n_kv = kv->shape[1],
        .head_dim = head_dim,
        .batch_q = q->shape[1] * pnb__width(q),
        .row_q = pnb__width(q),
        .batch_kv = kv->shape[1] * parts * width,
        .row_kv = parts * width,
        .batch_out = t->shape[1] * width,
        .row_out = width,
        .q = pnb__data(q),
        .k = kv_data == NULL ? NULL : kv_data + (parts - 2) * bytes,
        .v = kv_data == NULL ? NULL : kv_data + (parts - 1) * bytes,
        .out = t->data,
        .lse = t->aux[0],
        .causal = a->causal,
        .kv_len = t->in[KV_LEN] ? pnb__data(t->in[KV_LEN]) : NULL,
        .scale = 1.0 / sqrt((double)head_dim),
        .work = t->work,
        .rounds = t->is_half || rounds_in_training(t, head_dim),
        .halves = t->is_half,
    };
}

/* C / H: heads lie beside each other in the width. */
size_t pnb__attention_head_dim(const pnb__tensor *t)
{
    return t->shape[2] / ((const attention_attrs *)t->attrs)->n_heads;
}

/* kv (B,T,3C) or q (B,Tq,C) and kv (B,T,2C), kv_len (B) -> (B,Tq,C). The two products of B H
 * matrices (Tq,Dh)(Dh,T) cost 4 B Tq T C operations; the projections are a linear's. */
bool pnb__op_attention_shape(pnb__tensor *t)
{
    const attention_attrs *a = t->attrs;
    const pnb__tensor *kv = t->in[KV], *q = t->in[Q], *len = t->in[KV_LEN];
    char tk[96], tq[96];
    size_t parts = a->packed ? 3 : 2;
    bool fits = kv->n_dims == 3 && kv->shape[2] % parts == 0 && a->n_heads > 0;
    size_t width = fits ? kv->shape[2] / parts : 0;
    fits = fits && width % a->n_heads == 0;
    if (!a->packed)
        fits = fits && q->n_dims == 3 && q->shape[0] == kv->shape[0] && q->shape[2] == width;
    if (!fits)
        return pnb__node_fail(t->graph, PNB_SHAPE, "attention: kv %s, q %s, %zu heads do not fit",
                              pnb__shape_text(kv, tk), a->packed ? "-" : pnb__shape_text(q, tq),
                              a->n_heads);
    if (len != NULL && (len->kind != PNB__INT32 || len->n != kv->shape[0]))
        return pnb__node_fail(t->graph, PNB_SHAPE, "attention: kv_len must be %zu int32 values",
                              kv->shape[0]);
    size_t n_q = a->packed ? kv->shape[1] : q->shape[1];
    pnb__set_shape(t, 3, (size_t[]){kv->shape[0], n_q, width});
    const pnb__kernels *k = &t->graph->kernels;
    pnb__attention_args args;
    fill_args(t, &args);
    t->work_bytes = k->attention_work(t->graph->ctx, &args, false);
    t->flops = 4.0 * (double)t->n * (double)kv->shape[1];
    if (t->graph->with_grad) {
        t->aux_bytes[0] = kv->shape[0] * a->n_heads * n_q * pnb__elem_bytes(t);
        t->work_bwd_bytes = k->attention_work(t->graph->ctx, &args, true);
        t->saves_in = 1U << KV | 1U << Q;
        t->saves_out = true;
    }
    return true;
}

/* S = s Q K^T, s = Dh^-1/2;  P = softmax(S) by rows;  O = P V;  lse_i = log sum_j exp(S_ij), kept
 * as (B,H,Tq). */
bool pnb__op_attention_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__attention_args args;
    fill_args(t, &args);
    t->graph->kernels.attention(t->graph->ctx, &args);
    return true;
}

/* O = P V:                dV = P^T dO,   dP = dO V^T
 * P = softmax(S) by rows: dS_ij = P_ij (dP_ij - sum_k P_ik dP_ik) = P_ij (dP_ij - dO_i . O_i)
 * S = s Q K^T:            dQ = s dS K,   dK = s dS^T Q
 * with P_ij = exp(S_ij - lse_i) made again from Q and K. That is why O is saved and P is not: the
 * row sum is a product of two rows (Dao et al. 2022, section 3.1 and appendix B.2). */
void pnb__op_attention_backward(pnb__tensor *t)
{
    const attention_attrs *a = t->attrs;
    pnb__attention_args args;
    fill_args(t, &args);
    size_t bytes = t->shape[2] * pnb__elem_bytes(t), parts = a->packed ? 3 : 2;
    unsigned char *dkv = t->d_in[KV];
    args.work = t->work_bwd;
    args.d_out = t->grad;
    args.dq = a->packed ? dkv : t->d_in[Q];
    args.dk = dkv == NULL ? NULL : dkv + (parts - 2) * bytes;
    args.dv = dkv == NULL ? NULL : dkv + (parts - 1) * bytes;
    args.accumulate_q = a->packed ? t->acc_in[KV] : t->acc_in[Q];
    args.accumulate_kv = t->acc_in[KV];
    t->graph->kernels.attention_bwd(t->graph->ctx, &args);
}
