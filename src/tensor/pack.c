/* Weights packed once for graphs that run many times.
 *
 * A product rearranges its second factor into the order of its inner loops in every call; for a
 * weight that never changes this is done once, at a graph's second run, and every graph that shares
 * the weight gains. The bits of the results are the same. Weights in signed bytes are packed before
 * the first run: products read them in no other form. The copy takes the place of the mapped pages,
 * which are dropped as soon as they are packed, so the resident memory does not double. */
#include "tensor/node.h"

static bool pack_f32(const pnb__graph *g, const pnb__tensor *t, pnb__packed *to)
{
    const pnb__kernels *k = &g->kernels;
    pnb__gemm_args args = {.n_batch = 1, .alpha = 1, .act = PNB__IDENTITY};
    pnb__linear_factor(t, &args);
    *to = (pnb__packed){args.k, args.n, k->gemm_pack_bytes(args.k, args.n), NULL, 0};
    to->data = k->mem_alloc(to->bytes);
    if (to->data != NULL)
        k->gemm_pack(g->ctx, &args, to);
    return to->data != NULL;
}

static bool pack_i8(const pnb__graph *g, const pnb__param *p, pnb__packed *to)
{
    const pnb__kernels *k = &g->kernels;
    *to = (pnb__packed){p->shape[1], p->shape[0], 0, NULL, p->i8_levels};
    to->bytes = k->gemm_i8_pack_bytes(to->k, to->n);
    to->data = k->mem_alloc(to->bytes);
    if (to->data != NULL)
        k->gemm_i8_pack(g->ctx, p->data, p->scales, to);
    return to->data != NULL;
}

static bool is_linear(const pnb__tensor *t)
{
    return t->op == &pnb__ops[PNB__OP_LINEAR] && t->needed;
}

pnb_status pnb__graph_pack(pnb__graph *g, bool i8, pnb_error *err)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        if (!is_linear(t) || !(i8 ? pnb__linear_is_i8(t) : pnb__linear_can_pack(t)))
            continue;
        pnb__param *p = pnb__root(t->in[1])->param;
        if (p->packed.data != NULL)
            continue;
        pnb__packed to = {0, 0, 0, NULL, 0};
        bool done = i8 ? pack_i8(g, p, &to) : pack_f32(g, t, &to);
        if (!done)
            return i8 ? pnb__fail_nomem(err, to.bytes) : PNB_OK;
        p->packed = to;
        if (p->mapped)
            pnb__drop_pages(p->data, p->n * (i8 ? 1 : PNB__REAL_SIZE(g->kernels.real)));
    }
    return PNB_OK;
}

void pnb__param_unpack(pnb__param *p, const pnb__kernels *k)
{
    if (p->packed.data != NULL)
        k->mem_free(p->packed.data, p->packed.bytes);
    p->packed = (pnb__packed){0, 0, 0, NULL, 0};
}
