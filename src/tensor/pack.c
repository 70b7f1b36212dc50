/* Weights packed once for graphs that run many times.
 *
 * A product rearranges its second factor into the order of its inner loops in every call; for a
 * weight that never changes this is done once, at a graph's second run, and every graph that shares
 * the weight gains. The bits of the results are the same. Weights in 8 or 16 bits are packed before
 * the first run: products read them in no other form. The copy takes the place of the mapped pages,
 * which are dropped as soon as they are packed, so the resident memory does not double.
 *
 * Graphs on several threads may share a weight: whoever packs it first hangs the finished copy up
 * in one atomic step, and the others, who may have begun the same, throw theirs away. */
#include <stdatomic.h>

#include "tensor/graph_internal.h"

static size_t value_bytes(const pnb__graph *g, pnb__store store)
{
    return store == PNB__STORE_I8     ? 1
           : store == PNB__STORE_REAL ? PNB__REAL_SIZE(g->kernels.real)
                                      : sizeof(uint16_t);
}

static void free_packed(const pnb__packed *packed, const pnb__kernels *k)
{
    if (packed != NULL && packed->data != NULL)
        k->mem_free(k->ctx, packed->data, packed->bytes);
    pnb__free((void *)(uintptr_t)packed);
}

/* A convolution's weight (O,C,KH,KW), in an order of its kernel's own. */
static pnb_status pack_conv2d(const pnb__graph *g, const pnb__tensor *t, pnb__packed *to,
                              pnb_error *err)
{
    pnb__conv2d_args args;
    pnb__conv2d_args_of(t, &args);
    *to = (pnb__packed){.k = args.channels * args.kernel_h * args.kernel_w,
                        .n = args.out_channels,
                        .bytes = g->kernels.conv2d_pack_bytes(&args),
                        .is_conv2d = true};
    pnb_status status = g->kernels.mem_alloc(g->ctx, &to->data, to->bytes, err);
    if (status == PNB_OK)
        g->kernels.conv2d_pack(g->ctx, &args, to->data);
    return status;
}

static pnb_status pack(const pnb__graph *g, const pnb__tensor *t, const pnb__param *p,
                       pnb__packed *to, pnb_error *err)
{
    const pnb__kernels *k = &g->kernels;
    pnb__gemm_args args = {.n_batch = 1, .alpha = 1, .act = PNB__IDENTITY};
    pnb__linear_factor(t, &args);
    *to = (pnb__packed){.k = args.k,
                        .n = args.n,
                        .store = p->store,
                        .levels = p->i8_levels,
                        .bf16_parts = pnb__linear_bf16_parts(t)};
    to->bytes = p->store == PNB__STORE_I8 ? k->gemm_i8_pack_bytes(to->k, to->n)
                : to->bf16_parts > 0      ? k->gemm_bf16_pack_bytes(to->k, to->n, to->bf16_parts)
                                          : k->gemm_pack_bytes(to->k, to->n, to->store);
    pnb_status status = k->mem_alloc(g->ctx, &to->data, to->bytes, err);
    if (status != PNB_OK)
        return status;
    if (p->store == PNB__STORE_I8)
        k->gemm_i8_pack(g->ctx, p->data, p->scales, to);
    else if (to->bf16_parts > 0)
        k->gemm_bf16_pack(g->ctx, &args, to);
    else
        k->gemm_pack(g->ctx, &args, to);
    return PNB_OK;
}

static bool is_wanted(const pnb__tensor *t, bool small)
{
    if (t->op == &pnb__ops[PNB__OP_CONV2D] && t->needed)
        return !small && pnb__conv2d_can_pack(t);
    if (t->op != &pnb__ops[PNB__OP_LINEAR] || !t->needed)
        return false;
    return small ? pnb__linear_wants_packed(t) : pnb__linear_can_pack(t);
}

pnb_status pnb__graph_pack(pnb__graph *g, bool small, pnb_error *err)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        pnb__tensor *t = g->nodes[i];
        if (!is_wanted(t, small))
            continue;
        pnb__param *p = pnb__root(t->in[1])->param;
        const pnb__packed *none = NULL;
        if (atomic_load(&p->packed) != NULL)
            continue;
        pnb_error why = PNB_ERROR_INIT;
        pnb__packed *to = pnb__alloc_zero(1, sizeof *to);
        bool is_conv2d = t->op == &pnb__ops[PNB__OP_CONV2D];
        pnb_status status = to == NULL  ? pnb__fail_nomem(&why, sizeof *to)
                            : is_conv2d ? pack_conv2d(g, t, to, &why)
                                        : pack(g, t, p, to, &why);
        if (status != PNB_OK) {
            pnb__free(to);
            return small || status != PNB_NOMEM ? pnb__fail(err, status, "%s", why.text) : PNB_OK;
        }
        if (!atomic_compare_exchange_strong(&p->packed, &none, to))
            free_packed(to, &g->kernels);
        else if (p->mapped)
            pnb__drop_pages(p->data, p->n * value_bytes(g, p->store));
    }
    return PNB_OK;
}

void pnb__param_unpack(pnb__param *p, const pnb__kernels *k)
{
    free_packed(atomic_exchange(&p->packed, NULL), k);
}
