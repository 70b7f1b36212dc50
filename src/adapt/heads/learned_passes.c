/* A step in several forward passes, which processes share out (train/ranks/exchange.h).
 *
 * The rows of a batch are cut into passes of one size. Each process puts those of its passes
 * through the heads, all gather what came out, compute the loss of the whole batch and its gradient
 * by that, and go back through their own passes. Gradients of passes are added in doubles: so many
 * passes are the same step, whoever makes them. */
#include <string.h>

#include "adapt/heads/learned.h"

/* ---- making ---- */

/* What a side makes, a part at a time; a mean that is the rows as they are read is everybody's. */
static bool is_made(pnb__learned_passes *p, int side, int part)
{
    const pnb__tensor *x = *pnb__learned_part(&p->encode.side[side], part);
    return x != NULL && x != p->encode.x[side];
}

static pnb_status check(const pnb__learned_passes *p, size_t n_pairs, pnb_error *err)
{
    size_t n_ranks = p->exchange->n_ranks;
    if (p->n_all < n_ranks)
        return pnb__fail(err, PNB_ARG,
                         "%zu passes of a step for %zu processes: one would have nothing to do",
                         p->n_all, n_ranks);
    if (n_pairs % p->n_all == 0 && n_pairs / p->n_all > 0)
        return PNB_OK;
    return pnb__fail(err, PNB_ARG, "batches of %zu pairs do not come out even in %zu passes",
                     n_pairs, p->n_all);
}

/* Before any graph: they see then that gradients lie outside of them. */
static pnb_status make_stores(pnb__learned_passes *p, pnb__learned *l, pnb_error *err)
{
    const pnb_ctx *ctx = p->a->ctx;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < l->n_params && status == PNB_OK; i++) {
        pnb__param *w = &l->params[i];
        if (!w->trainable)
            continue;
        status = l->kernels.mem_alloc(ctx, &w->grad_store, w->n * sizeof(float), err);
        if (status == PNB_OK)
            p->stores[p->n_stores++] = (pnb__flat){w->grad_store, w->n};
        else
            w->grad_store = NULL;
    }
    return status;
}

/* sum over parts of sum(part * seed): its gradient is that of the loss by the weights. */
static pnb_status build_back(pnb__learned_passes *p, pnb_error *err)
{
    pnb__tensor *total = NULL;
    pnb_status status = pnb__learned_graph_sides(&p->back, p->a, p->rows, true, err);
    if (status != PNB_OK)
        return status;
    for (int i = 0; i < PNB_N_ADAPTER_SIDES * PNB__LEARNED_N_PARTS; i++) {
        int side = i / PNB__LEARNED_N_PARTS, part = i % PNB__LEARNED_N_PARTS;
        pnb__tensor *x = *pnb__learned_part(&p->back.side[side], part);
        if (!is_made(p, side, part) || x == NULL)
            continue;
        const size_t shape[2] = {p->rows, pnb__n(x) / p->rows};
        pnb__tensor *seed = pnb__input(p->back.g, PNB__REAL, pnb__n_dims(x), shape);
        *pnb__learned_part(&p->seed[side], part) = seed;
        pnb__tensor *sum = pnb__sum(pnb__mul(x, seed), PNB__ALL_AXES);
        total = total == NULL ? sum : pnb__add(total, sum);
    }
    return pnb__graph_plan(p->back.g, total, err);
}

static pnb_status make_arrays(pnb__learned_passes *p, size_t n_pairs, pnb_error *err)
{
    size_t widest = 1;
    pnb_status status = PNB_OK;
    for (int i = 0; i < PNB_N_ADAPTER_SIDES * PNB__LEARNED_N_PARTS && status == PNB_OK; i++) {
        int side = i / PNB__LEARNED_N_PARTS, part = i % PNB__LEARNED_N_PARTS;
        if (!is_made(p, side, part))
            continue;
        pnb__tensor *x = *pnb__learned_part(&p->encode.side[side], part);
        pnb__keep(x);
        p->part[i].width = pnb__n(x) / p->rows;
        widest = PNB_MAX(widest, p->part[i].width);
        status = PNB_ALLOC_ROWS(p->part[i].value, n_pairs, p->part[i].width, err);
        if (status == PNB_OK)
            status = PNB_ALLOC_ROWS(p->part[i].d, n_pairs, p->part[i].width, err);
    }
    if (status == PNB_OK)
        status = PNB_ALLOC_ROWS(p->wide, n_pairs, widest, err);
    return status == PNB_OK ? PNB_ALLOC(p->from, p->exchange->n_ranks + 1, err) : status;
}

pnb_status pnb__learned_passes_init(pnb__learned_passes *p, pnb_adapter *a, size_t n_pairs,
                                    size_t n_all, const pnb__exchange *x, pnb_error *err)
{
    pnb_status status;
    *p = (pnb__learned_passes){.a = a, .exchange = x, .n_all = n_all};
    PNB_TRY(check(p, n_pairs, err));
    p->rows = n_pairs / n_all;
    PNB_TRY(make_stores(p, a->self, err));
    PNB_TRY(pnb__learned_graph_sides(&p->encode, a, p->rows, false, err));
    PNB_TRY(make_arrays(p, n_pairs, err));
    PNB_TRY(pnb__graph_plan(p->encode.g, NULL, err));
    PNB_TRY(build_back(p, err));
    status = pnb__learned_graph_loss(&p->loss, a, n_pairs, &p->encode, err);
done:
    return status;
}

void pnb__learned_passes_reset(pnb__learned_passes *p)
{
    pnb__learned *l = p->a != NULL ? p->a->self : NULL;
    pnb__learned_graph_reset(&p->encode);
    pnb__learned_graph_reset(&p->back);
    pnb__learned_graph_reset(&p->loss);
    for (size_t i = 0; i < PNB_COUNT(p->part); i++) {
        pnb__free(p->part[i].value);
        pnb__free(p->part[i].d);
    }
    for (size_t i = 0; l != NULL && i < l->n_params; i++) {
        pnb__param *w = &l->params[i];
        l->kernels.mem_free(p->a->ctx, w->grad_store, w->n * sizeof(float));
        w->grad_store = w->grad = NULL;
    }
    pnb__free(p->wide);
    pnb__free(p->from);
    *p = (pnb__learned_passes){0};
}

/* ---- running ---- */

/* First pass of a process. */
static size_t first_pass(const pnb__learned_passes *p, size_t rank)
{
    return rank * p->n_all / p->exchange->n_ranks;
}

/* The rows of a pass, and its draws: a function of the step and the pass, whoever makes it. */
static void set_pass(pnb__learned_passes *p, pnb__learned_graph *lg, size_t pass,
                     float *const x[PNB_N_ADAPTER_SIDES], uint64_t step)
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        pnb__write_f32(lg->x[s], x[s] + pass * p->rows * p->a->part[s].dim);
    pnb__graph_set_stream(lg->g, step * p->n_all + pass);
}

static pnb_status encode(pnb__learned_passes *p, size_t pass, float *const x[PNB_N_ADAPTER_SIDES],
                         uint64_t step, pnb_error *err)
{
    set_pass(p, &p->encode, pass, x, step);
    pnb_status status = pnb__graph_run(p->encode.g, err);
    for (int i = 0; i < (int)PNB_COUNT(p->part) && status == PNB_OK; i++)
        if (p->part[i].width > 0)
            pnb__read_f32(*pnb__learned_part(&p->encode.side[i / PNB__LEARNED_N_PARTS],
                                             i % PNB__LEARNED_N_PARTS),
                          p->part[i].value + pass * p->rows * p->part[i].width);
    return status == PNB_OK ? pnb__graph_check(p->encode.g, err) : status;
}

static pnb_status gather(const pnb__learned_passes *p, pnb_error *err)
{
    const pnb__exchange *x = p->exchange;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(p->part) && status == PNB_OK; i++) {
        for (size_t r = 0; r <= x->n_ranks; r++)
            p->from[r] = first_pass(p, r) * p->rows * p->part[i].width;
        if (p->part[i].width > 0)
            status = x->gather(x->self, p->part[i].value, p->from, err);
    }
    return status;
}

/* Values and gradients of all rows, in every process alike. */
static pnb_status run_loss(pnb__learned_passes *p, float *const x[PNB_N_ADAPTER_SIDES],
                           uint64_t step, pnb_error *err)
{
    pnb__tensor *leaf[PNB_COUNT(p->part)] = {NULL};
    for (int i = 0; i < (int)PNB_COUNT(p->part); i++)
        if (p->part[i].width > 0) {
            leaf[i] = *pnb__learned_part(&p->loss.side[i / PNB__LEARNED_N_PARTS],
                                         i % PNB__LEARNED_N_PARTS);
            pnb__write_f32(leaf[i], p->part[i].value);
        }
    pnb_status status = pnb__learned_graph_run(&p->loss, x, step, err);
    for (size_t i = 0; i < PNB_COUNT(p->part) && status == PNB_OK; i++) {
        if (leaf[i] == NULL)
            continue;
        bool has = pnb__read_grad_f64(leaf[i], p->wide);
        for (size_t k = 0; k < pnb__n(leaf[i]); k++)
            p->part[i].d[k] = has ? (float)p->wide[k] : 0;
    }
    return status == PNB_OK ? pnb__graph_check(p->loss.g, err) : status;
}

static pnb_status back(pnb__learned_passes *p, size_t pass, float *const x[PNB_N_ADAPTER_SIDES],
                       uint64_t step, pnb_error *err)
{
    set_pass(p, &p->back, pass, x, step);
    for (int i = 0; i < (int)PNB_COUNT(p->part); i++)
        if (p->part[i].width > 0)
            pnb__write_f32(
                *pnb__learned_part(&p->seed[i / PNB__LEARNED_N_PARTS], i % PNB__LEARNED_N_PARTS),
                p->part[i].d + pass * p->rows * p->part[i].width);
    return pnb__graph_run(p->back.g, err);
}

static pnb_status clear_stores(const pnb__learned_passes *p, pnb_error *err)
{
    const pnb__kernels *k = &((const pnb__learned *)p->a->self)->kernels;
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < p->n_stores && status == PNB_OK; i++)
        status = k->mem_zero(p->a->ctx, p->stores[i].data, p->stores[i].n * sizeof(float), err);
    return status;
}

/* What the stores hold joins the sums. */
static pnb_status add_stores(const pnb__learned_passes *p, pnb_error *err)
{
    const pnb__exchange *x = p->exchange;
    const pnb__kernels *k = &((const pnb__learned *)p->a->self)->kernels;
    pnb_status status = x->add(x->self, k, p->stores, p->n_stores, err);
    return status == PNB_OK ? clear_stores(p, err) : status;
}

/* The loss's own scalars have their gradient in every process: that of rank 0 counts. */
pnb_status pnb__learned_passes_run(pnb__learned_passes *p, float *const x[PNB_N_ADAPTER_SIDES],
                                   uint64_t step, pnb_error *err)
{
    const pnb__exchange *e = p->exchange;
    size_t first = first_pass(p, e->rank), last = first_pass(p, e->rank + 1);
    pnb_status status;
    PNB_TRY(clear_stores(p, err));
    PNB_TRY(e->open(e->self, p->stores, p->n_stores, err));
    for (size_t pass = first; pass < last; pass++)
        PNB_TRY(encode(p, pass, x, step, err));
    PNB_TRY(gather(p, err));
    PNB_TRY(run_loss(p, x, step, err));
    if (e->rank > 0)
        PNB_TRY(clear_stores(p, err));
    for (size_t pass = first; pass < last; pass++) {
        PNB_TRY(add_stores(p, err));
        PNB_TRY(back(p, pass, x, step, err));
    }
done:
    return status;
}
