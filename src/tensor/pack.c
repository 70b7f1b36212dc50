/* Weights packed once for graphs that run many times.
 *
 * A product rearranges its second factor into the order of its inner loops in every call; for a
 * weight that never changes this is done once, at a graph's second run, and every graph that shares
 * the weight gains. The bits of the results are the same. The copy takes the place of the mapped
 * pages, which are dropped as soon as they are packed, so the resident memory does not double. */
#include "tensor/node.h"

static bool pack_weight(const pnb__graph *g, const pnb__tensor *t, pnb__param *p)
{
    const pnb__kernels *k = &g->kernels;
    pnb__gemm_args args = {.n_batch = 1, .alpha = 1, .act = PNB__IDENTITY};
    pnb__linear_factor(t, &args);
    pnb__packed to = {args.k, args.n, k->gemm_pack_bytes(args.k, args.n), NULL};
    to.data = k->mem_alloc(to.bytes);
    if (to.data == NULL)
        return false;
    k->gemm_pack(g->ctx, &args, &to);
    p->packed = to;
    if (p->mapped)
        pnb__drop_pages(p->data, p->n * PNB__REAL_SIZE(k->real));
    return true;
}

void pnb__graph_pack(pnb__graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        if (t->op != &pnb__ops[PNB__OP_LINEAR] || !t->needed || !pnb__linear_can_pack(t))
            continue;
        pnb__param *p = pnb__root(t->in[1])->param;
        if (p->packed.data == NULL && !pack_weight(g, t, p))
            return;
    }
}

void pnb__param_unpack(pnb__param *p, const pnb__kernels *k)
{
    if (p->packed.data != NULL)
        k->mem_free(p->packed.data, p->packed.bytes);
    p->packed = (pnb__packed){0, 0, 0, NULL};
}
