/* Samples of Gaussian rows that nobody holds: an op that draws them of a stream, and draws them
 * again for the gradient. Where a loss compares the samples of many rows, each block of pairs is a
 * segment of its own with the draws of its rows in it (train/losses/soft_contrastive.c), so that
 * memory is that of a block. */
#include "tensor/graph_internal.h"

typedef struct draw_attrs {
    size_t first, n_rows, n_samples;
} draw_attrs;

/* The key is an input and no attribute: it is of the step, and the graph is planned once. */
pnb__tensor *pnb__draw(const pnb__draw_in *in)
{
    const draw_attrs attrs = {in->first, in->n_rows, in->n_samples};
    if (in->mean == NULL || in->log_var == NULL || in->pairs == NULL || in->key == NULL)
        return NULL;
    return pnb__node(in->mean->graph, PNB__OP_DRAW,
                     (pnb__tensor *[]){in->mean, in->log_var, in->pairs, in->key}, 4, &attrs,
                     sizeof attrs);
}

/* mean, log_var (B,D), pairs (B), key (4) -> (n_rows, J, D) */
bool pnb__op_draw_shape(pnb__tensor *t)
{
    const pnb__tensor *mean = t->in[0], *log_var = t->in[1], *pairs = t->in[2], *key = t->in[3];
    const draw_attrs *a = t->attrs;
    char tm[96], tv[96], tp[96];
    bool fits = mean->n_dims == 2 && log_var->n_dims == 2 && pairs->n_dims == 1 &&
                pairs->kind == PNB__INT32 && key->kind == PNB__INT32 && key->n == 4;
    if (!fits || log_var->n != mean->n || log_var->shape[0] != mean->shape[0] ||
        pairs->n != mean->shape[0] || a->n_rows == 0 || a->n_samples == 0 ||
        a->first > mean->shape[0] || a->n_rows > mean->shape[0] - a->first)
        return pnb__node_fail(t->graph, PNB_SHAPE,
                              "draw: rows %zu .. %zu of means %s and log-variances %s, pairs %s",
                              a->first, a->first + a->n_rows, pnb__shape_text(mean, tm),
                              pnb__shape_text(log_var, tv), pnb__shape_text(pairs, tp));
    pnb__set_shape(t, 3, (size_t[]){a->n_rows, a->n_samples, mean->shape[1]});
    t->saves_in = 2 + 4 + 8; /* a mean has no part in its own gradient */
    return true;
}

static pnb__draw_args draw_args(const pnb__tensor *t)
{
    const draw_attrs *a = t->attrs;
    return (pnb__draw_args){.first = a->first,
                            .n_rows = a->n_rows,
                            .n_samples = a->n_samples,
                            .dim = t->shape[2],
                            .mean = pnb__data(t->in[0]),
                            .log_var = pnb__data(t->in[1]),
                            .pairs = pnb__data(t->in[2]),
                            .key = pnb__data(t->in[3])};
}

/* x_ij = mean_i + exp(log_var_i / 2) e_ij */
bool pnb__op_draw_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    pnb__draw_args a = draw_args(t);
    a.x = t->data;
    t->graph->kernels.draw(t->graph->ctx, &a);
    return true;
}

/* x = mean + exp(log_var / 2) e: some rows of both, others get nothing from here */
void pnb__op_draw_backward(pnb__tensor *t)
{
    pnb__draw_args a = draw_args(t);
    /* the first of many blocks to come here finds nothing to add to */
    for (size_t i = 0; i < 2; i++)
        if (t->d_in[i] != NULL && !t->acc_in[i])
            pnb__zero(t, t->d_in[i], t->in[i]->n * pnb__elem_bytes(t));
    a.dx = t->grad;
    a.d_mean = t->d_in[0];
    a.d_log_var = t->d_in[1];
    t->graph->kernels.draw_bwd(t->graph->ctx, &a);
}
