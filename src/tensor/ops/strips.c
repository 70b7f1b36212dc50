/* Products and gradients of a strip of pairs (strips.h).
 *
 * The loops are slots of the kernel table; what stands here is which of them follow each other, so
 * that a loss over pairs has its formula alone to say. */
#include "tensor/ops/strips.h"

#include "kernels/gemm_rows.h"

void pnb__strip_multiply(const pnb__tensor *t, const pnb__strip_product *p)
{
    pnb__gemm_args m = pnb__gemm_rows(p->m, p->n, p->k, p->trans_a, p->trans_b);
    m.alpha = p->alpha;
    m.beta = p->accumulate;
    m.a = p->a, m.b = p->b, m.c = p->c;
    t->graph->kernels.gemm(t->graph->ctx, &m);
}

void pnb__add_scaled_rows(const pnb__tensor *t, size_t rows, size_t dim, const void *sums,
                          const void *x, void *d)
{
    const pnb__binary_args b = {.op = PNB__MUL,
                                .dims = {1, 1, 1, rows, dim},
                                .stride_a = {0, 0, 0, dim, 1},
                                .stride_b = {0, 0, 0, 1, 0},
                                .a = x,
                                .b = sums,
                                .dy = x,
                                .d = d,
                                .accumulate = true};
    t->graph->kernels.binary_bwd(t->graph->ctx, &b);
}

void pnb__spread_weights(const pnb__tensor *t, const pnb__strip_weights *s)
{
    const pnb__graph *g = t->graph;
    if (s->dx != NULL) {
        g->kernels.sum(g->ctx, s->m, s->n, 1, 2.0, s->w, s->rows, false);
        pnb__add_scaled_rows(t, s->m, s->dim, s->rows, s->x, s->dx);
        pnb__strip_multiply(t, &(pnb__strip_product){s->m, s->dim, s->n, false, false, -2.0, s->w,
                                                     s->y, s->dx, true});
    }
    if (s->dy != NULL) {
        g->kernels.sum(g->ctx, 1, s->m, s->n, 2.0, s->w, s->cols, s->add_cols);
        pnb__strip_multiply(t, &(pnb__strip_product){s->n, s->dim, s->m, true, false, -2.0, s->w,
                                                     s->x, s->dy, true});
    }
}
