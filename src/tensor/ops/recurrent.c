/* A GRU over sequences of differing lengths, and the mask that lengths make.
 *
 *   r = s(gx_r + gh_r),  z = s(gx_z + gh_z),  n = tanh(gx_n + r gh_n),  h' = (1 - z) n + z h
 *   gx = W_ih x + b_ih of all positions before,  gh = W_hh h + b_hh of one step after the other
 * (Cho et al. 2014; r is applied after W_hh h as cuDNN and torch do, the paper does it before).
 *
 * Sequences are taken in order of falling length, so those that still go on are always the first
 * ones, and a step is one product with that many rows and one pass over their gates. What backward
 * reads is packed in the same order, step after step: dW_hh is then one product over all steps.
 * The first step starts from 0 and multiplies nothing. */
#include "tensor/graph_internal.h"

#include <math.h>
#include <string.h>

enum { GX, W_HH, B_HH, LENGTHS, N_GRU_INPUTS };
enum { ALIGNMENT = 64 };

/* The host's side of one run, in the graph's arena. */
typedef struct gru_attrs {
    bool reverse, last;
    int32_t *lengths; /* (B) */
    int32_t *order;   /* (B) sequences by falling length; those of one length as they come */
    int32_t *at;      /* (B T) row of gx of each row of each step, packed; order follows it */
    size_t *active;   /* (T + 2) sequences that step s takes, 0 behind the last */
    size_t n_rows;    /* of all steps: the sum of the lengths */
} gru_attrs;

pnb__tensor *pnb__gru(pnb__tensor *gx, pnb__tensor *w_hh, pnb__tensor *b_hh, pnb__tensor *lengths,
                      const pnb__gru_opts *opts)
{
    if (gx == NULL || w_hh == NULL || b_hh == NULL)
        return NULL;
    pnb__tensor *in[N_GRU_INPUTS] = {gx, w_hh, b_hh, lengths};
    gru_attrs attrs = {.reverse = opts->reverse, .last = opts->last};
    return pnb__node(gx->graph, PNB__OP_GRU, in, N_GRU_INPUTS, &attrs, sizeof attrs);
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Sizes, and where things lie in the buffers of a node. */
typedef struct gru_layout {
    size_t n_batch, n_steps, width, bytes; /* bytes: of a number */
    size_t index_bytes, pack_bytes;        /* at and order; W_hh as products read it */
} gru_layout;

static gru_layout layout_of(const pnb__tensor *t)
{
    const pnb__tensor *gx = t->in[GX];
    const pnb__kernels *k = &t->graph->kernels;
    gru_layout l = {gx->shape[0], gx->shape[1], t->in[W_HH]->shape[1], pnb__elem_bytes(t), 0, 0};
    l.index_bytes = aligned((l.n_batch * l.n_steps + l.n_batch) * sizeof(int32_t));
    if (k->gemm_pack_bytes != NULL && l.n_steps > 1)
        l.pack_bytes = aligned(PNB_MAX(k->gemm_pack_bytes(l.width, 3 * l.width, PNB__STORE_REAL),
                                       k->gemm_pack_bytes(3 * l.width, l.width, PNB__STORE_REAL)));
    return l;
}

/* Room for the host's side: at most B T rows, and the order and lengths of B sequences. Taken while
 * building, so that a run allocates nothing. */
static bool alloc_plan(pnb__tensor *t, const gru_layout *l)
{
    gru_attrs *a = t->attrs;
    size_t n_index = l->n_batch * l->n_steps + 2 * l->n_batch;
    a->at = pnb__arena_alloc(&t->graph->arena, (n_index + 1) * sizeof *a->at);
    a->active = pnb__arena_alloc(&t->graph->arena, (l->n_steps + 2) * sizeof *a->active);
    if (a->at == NULL || a->active == NULL)
        return pnb__node_fail(t->graph, PNB_NOMEM, "out of memory while building a graph");
    a->order = a->at + l->n_batch * l->n_steps;
    a->lengths = a->order + l->n_batch;
    return true;
}

/* W_hh has three square blocks, one a gate, and gx and b_hh a value for each of their rows. */
static bool gru_fits(const pnb__tensor *t)
{
    const pnb__tensor *gx = t->in[GX], *w = t->in[W_HH], *b = t->in[B_HH], *len = t->in[LENGTHS];
    bool fits = gx->n_dims == 3 && w->n_dims == 2 && w->shape[0] == 3 * w->shape[1] &&
                gx->shape[2] == w->shape[0] && b->n_dims == 1 && b->n == w->shape[0];
    return fits && (len == NULL || (len->kind == PNB__INT32 && len->n == gx->shape[0]));
}

/* gx (B,T,3C), W_hh (3C,C), b_hh (3C), lengths (B) -> (B,T,C), or (B,C) of the last step alone.
 * aux 0: r, z, n and gh_n of every row, packed; backward leaves dgh in their place. aux 1: the
 * state before each row but those of the first step, and which rows they are. */
bool pnb__op_gru_shape(pnb__tensor *t)
{
    const gru_attrs *a = t->attrs;
    char tx[96], tw[96];
    if (!gru_fits(t))
        return pnb__node_fail(t->graph, PNB_SHAPE,
                              "gru: gates %s, W_hh %s, its bias and lengths do not fit",
                              pnb__shape_text(t->in[GX], tx), pnb__shape_text(t->in[W_HH], tw));
    gru_layout l = layout_of(t);
    if (a->last)
        pnb__set_shape(t, 2, (size_t[]){l.n_batch, l.width});
    else
        pnb__set_shape(t, 3, (size_t[]){l.n_batch, l.n_steps, l.width});
    if (!alloc_plan(t, &l))
        return false;
    size_t n = l.n_batch * l.n_steps * l.width, later = l.n_steps > 0 ? n - l.n_batch * l.width : 0;
    t->flops = 6.0 * (double)later * (double)l.width;
    t->work_bytes = l.pack_bytes;
    if (!t->graph->with_grad) {
        t->work_bytes += l.index_bytes + aligned(4 * l.n_batch * l.width * l.bytes);
        return true;
    }
    t->aux_bytes[0] = 4 * n * l.bytes;
    t->aux_bytes[1] = l.index_bytes + later * l.bytes;
    t->work_bwd_bytes = l.pack_bytes + (l.n_batch + 4) * l.width * l.bytes;
    t->saves_in = 1U << W_HH | 1U << B_HH | 1U << LENGTHS;
    return true;
}

/* ---- which rows a step takes ---- */

/* Lengths come from the device. They are data, so one that is wrong ends the run and is no
 * assertion: beyond T there are no gates, and a negative one has no meaning. */
static bool read_lengths(const pnb__tensor *t, const gru_layout *l)
{
    gru_attrs *a = t->attrs;
    pnb__graph *g = t->graph;
    for (size_t b = 0; b < l->n_batch; b++)
        a->lengths[b] = (int32_t)l->n_steps;
    if (t->in[LENGTHS] != NULL && l->n_batch > 0 &&
        g->kernels.mem_read(g->ctx, a->lengths, pnb__data(t->in[LENGTHS]),
                            l->n_batch * sizeof *a->lengths, &g->error) != PNB_OK)
        return false;
    for (size_t b = 0; b < l->n_batch; b++)
        if (a->lengths[b] < 0 || (size_t)a->lengths[b] > l->n_steps)
            return pnb__node_fail(g, PNB_ARG, "gru: sequence %zu has length %d, not 0 to %zu", b,
                                  (int)a->lengths[b], l->n_steps);
    return true;
}

/* Counting sort: active[s] is the number of sequences longer than s, so those of length s begin at
 * active[s]. */
static void sort_by_length(gru_attrs *a, const gru_layout *l)
{
    memset(a->active, 0, (l->n_steps + 2) * sizeof *a->active);
    for (size_t b = 0; b < l->n_batch; b++)
        for (int32_t s = 0; s < a->lengths[b]; s++)
            a->active[s]++;
    a->n_rows = 0;
    for (size_t s = 0; s <= l->n_steps; s++) {
        size_t at = a->active[s];
        for (size_t b = 0; b < l->n_batch; b++)
            if ((size_t)a->lengths[b] == s)
                a->order[at++] = (int32_t)b;
        a->n_rows += a->active[s];
    }
}

/* Plans the run and copies the rows to the device. */
static bool plan_rows(const pnb__tensor *t, const gru_layout *l, void *index)
{
    gru_attrs *a = t->attrs;
    pnb__graph *g = t->graph;
    size_t n = 0;
    if (!read_lengths(t, l))
        return false;
    sort_by_length(a, l);
    for (size_t s = 0; s < l->n_steps; s++)
        for (size_t i = 0; i < a->active[s]; i++) {
            size_t b = (size_t)a->order[i], length = (size_t)a->lengths[b];
            size_t position = a->reverse ? length - 1 - s : s;
            a->at[n++] = (int32_t)(b * l->n_steps + position);
        }
    size_t bytes = (l->n_batch * l->n_steps + l->n_batch) * sizeof *a->at;
    return bytes == 0 || g->kernels.mem_write(g->ctx, index, a->at, bytes, &g->error) == PNB_OK;
}

/* ---- forward ---- */

/* W_hh as the second factor of a product: W^T (C,3C) for gh, W (3C,C) for dh. Packed once where
 * the table gains by it, for all steps. */
static void factor(const pnb__tensor *t, const gru_layout *l, bool transposed, void *room,
                   pnb__packed *packed, pnb__gemm_args *m)
{
    const pnb__graph *g = t->graph;
    size_t k = transposed ? l->width : 3 * l->width, n = transposed ? 3 * l->width : l->width;
    *m = (pnb__gemm_args){.trans_b = transposed,
                          .n = n,
                          .k = k,
                          .ldb = l->width,
                          .n_batch = 1,
                          .alpha = 1,
                          .b = pnb__data(t->in[W_HH]),
                          .act = PNB__IDENTITY};
    if (l->pack_bytes == 0)
        return;
    *packed = (pnb__packed){.k = k,
                            .n = n,
                            .bytes = g->kernels.gemm_pack_bytes(k, n, PNB__STORE_REAL),
                            .data = room,
                            .store = PNB__STORE_REAL};
    g->kernels.gemm_pack(g->ctx, m, packed);
    m->packed = packed;
}

/* The buffers of a forward run: gates and states of all rows where backward will ask for them,
 * else of one step. */
typedef struct gru_room {
    unsigned char *gates, *states;
    int32_t *at, *order;
    void *packed;
    bool kept;
} gru_room;

/* With gradients: gates (n,4C) one step behind the other in aux 0, states likewise in aux 1.
 * Without: gh (B,3C) of one step and one state (B,C), written over by each, both in the workspace.
 */
static gru_room forward_room(const pnb__tensor *t, const gru_layout *l)
{
    unsigned char *work = t->work;
    gru_room r = {.packed = work, .kept = t->graph->with_grad};
    unsigned char *index = r.kept ? t->aux[1] : work + l->pack_bytes;
    r.at = (int32_t *)(void *)index;
    r.order = r.at + l->n_batch * l->n_steps;
    r.gates = r.kept ? t->aux[0] : index + l->index_bytes;
    r.states = r.kept ? index + l->index_bytes : r.gates + 3 * l->n_batch * l->width * l->bytes;
    return r;
}

/* Steps 0, 1, ...: gh = h W_hh^T + b_hh of the sequences that go on, then their gates. */
static void run_steps(const pnb__tensor *t, const gru_layout *l, const gru_room *r)
{
    const gru_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    pnb__packed packed = {.data = NULL};
    pnb__gemm_args m = {.m = 0};
    size_t row = l->width * l->bytes, first = 0;
    unsigned char *gates = r->gates, *h = NULL, *next = r->states;
    if (a->active[0] > 0 && a->active[1] > 0)
        factor(t, l, true, r->packed, &packed, &m);
    for (size_t s = 0; a->active[s] > 0; s++) {
        pnb__gru_args step = {.rows = a->active[s],
                              .width = l->width,
                              .n_next = a->active[s + 1],
                              .at = r->at + first,
                              .out_at = a->last ? r->order : r->at + first,
                              .gx = pnb__data(t->in[GX]),
                              .gh = pnb__data(t->in[B_HH]),
                              .h = h,
                              .gates = r->kept ? gates : NULL,
                              .out = t->data,
                              .h_next = next};
        if (h != NULL) {
            m.m = step.rows;
            m.a = h;
            m.lda = l->width;
            m.bias = pnb__data(t->in[B_HH]);
            m.c = gates;
            m.ldc = step.ld_gh = (r->kept ? 4 : 3) * l->width;
            g->kernels.gemm(g->ctx, &m);
            step.gh = gates;
        }
        g->kernels.gru(g->ctx, &step);
        h = next;
        first += step.rows;
        if (r->kept) {
            gates += 4 * step.rows * row;
            next += step.n_next * row;
        }
    }
}

/* Rows that no step writes are those beyond a length, or, of last states, sequences of length 0:
 * they hold the state that all begin with. */
bool pnb__op_gru_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    gru_layout l = layout_of(t);
    gru_room r = forward_room(t, &l);
    const gru_attrs *a = t->attrs;
    if (!plan_rows(t, &l, r.at))
        return true; /* the graph knows why */
    bool covers = a->last ? a->active[0] == l.n_batch : a->n_rows == l.n_batch * l.n_steps;
    if (!covers && t->n > 0)
        pnb__zero(t, t->data, t->n * l.bytes);
    run_steps(t, &l, &r);
    return true;
}

/* ---- backward ---- */

/* From the last step back:  dh' = what step s + 1 gives and what is read of this step
 *   h' = (1 - z) n + z h:      dh = z dh' + dgh W_hh,  dn = (1 - z) dh',  dz = (h - n) dh'
 *   n = tanh(gx_n + r gh_n):   da = (1 - n^2) dn,  dgx_n = da,  dgh_n = r da,  dr = gh_n da
 *   z = s(.), r = s(.):        dgx_z = dgh_z = z (1 - z) dz,  dgx_r = dgh_r = r (1 - r) dr
 * The gates of a row make place for dgh. A sequence enters at its own last step, where nothing
 * comes from behind, so `d_state` needs no zeros: only the first n_next rows are read of it. The
 * first step gives dh to nobody. */
static void run_back(pnb__tensor *t, const gru_layout *l, unsigned char *d_state)
{
    const gru_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    const int32_t *at = t->aux[1], *order = at + l->n_batch * l->n_steps;
    const unsigned char *states = (const unsigned char *)t->aux[1] + l->index_bytes;
    size_t row = l->width * l->bytes, n_steps = 0, first = a->n_rows;
    pnb__packed packed = {.data = NULL};
    pnb__gemm_args m = {.m = 0};
    while (a->active[n_steps] > 0)
        n_steps++;
    if (n_steps > 1)
        factor(t, l, false, t->work_bwd, &packed, &m);
    for (size_t s = n_steps; s-- > 0;) {
        first -= a->active[s];
        unsigned char *gates = (unsigned char *)t->aux[0] + 4 * first * row;
        pnb__gru_args step = {.rows = a->active[s],
                              .width = l->width,
                              .n_next = a->active[s + 1],
                              .at = at + first,
                              .out_at = a->last ? order : at + first,
                              .h = s > 0 ? states + (first - a->active[0]) * row : NULL,
                              .gates = gates,
                              .d_out = t->grad,
                              .d_next = d_state,
                              .d_out_ends = a->last,
                              .dgx = t->d_in[GX],
                              .dgh = gates,
                              .dh = s > 0 ? d_state : NULL,
                              .ld_dgh = 4 * l->width,
                              .accumulate_gx = t->acc_in[GX]};
        g->kernels.gru_bwd(g->ctx, &step);
        if (s == 0)
            break;
        m.m = step.rows;
        m.a = gates;
        m.lda = 4 * l->width;
        m.c = d_state;
        m.ldc = l->width;
        m.beta = 1;
        g->kernels.gemm(g->ctx, &m);
    }
}

/* gh = h W_hh^T + b_hh of all rows but those of the first step, whose h is 0:  dW_hh = dgh^T h */
static void state_weight_grad(pnb__tensor *t, const gru_layout *l)
{
    const gru_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    size_t row = l->width * l->bytes, later = a->n_rows - a->active[0];
    if (later == 0) {
        if (!t->acc_in[W_HH])
            pnb__zero(t, t->d_in[W_HH], t->in[W_HH]->n * l->bytes);
        return;
    }
    pnb__gemm_args m = {.trans_a = true,
                        .m = 3 * l->width,
                        .n = l->width,
                        .k = later,
                        .lda = 4 * l->width,
                        .ldb = l->width,
                        .ldc = l->width,
                        .n_batch = 1,
                        .alpha = 1,
                        .beta = t->acc_in[W_HH],
                        .a = (const unsigned char *)t->aux[0] + 4 * a->active[0] * row,
                        .b = (const unsigned char *)t->aux[1] + l->index_bytes,
                        .c = t->d_in[W_HH],
                        .act = PNB__IDENTITY};
    g->kernels.gemm(g->ctx, &m);
}

/* db_hh = sum of dgh over all rows: the first three of the four parts of what stands there. */
static void state_bias_grad(pnb__tensor *t, const gru_layout *l, void *sums)
{
    const gru_attrs *a = t->attrs;
    const pnb__graph *g = t->graph;
    g->kernels.sum(g->ctx, 1, a->n_rows, 4 * l->width, 1.0, t->aux[0], sums, false);
    pnb__copy_args c = {.dims = {1, 1, 1, 1, 3 * l->width},
                        .stride_src = {0, 0, 0, 0, 1},
                        .stride_dst = {0, 0, 0, 0, 1},
                        .src = sums,
                        .dst = t->d_in[B_HH],
                        .accumulate = t->acc_in[B_HH]};
    g->kernels.copy(g->ctx, &c);
}

/* gx_t = W_ih x_t + b_ih is an input: d gx of each row of each step, 0 where none reads it. The
 * weights' gradients are sums over all of dgh, which the steps leave where the gates were. */
void pnb__op_gru_backward(pnb__tensor *t)
{
    const gru_attrs *a = t->attrs;
    gru_layout l = layout_of(t);
    unsigned char *d_state = (unsigned char *)t->work_bwd + l.pack_bytes;
    bool covers = a->n_rows == l.n_batch * l.n_steps; /* else some gx is read by no step */
    if (t->d_in[GX] != NULL && !t->acc_in[GX] && !covers && t->in[GX]->n > 0)
        pnb__zero(t, t->d_in[GX], t->in[GX]->n * l.bytes);
    run_back(t, &l, d_state);
    if (t->d_in[W_HH] != NULL)
        state_weight_grad(t, &l);
    if (t->d_in[B_HH] != NULL)
        state_bias_grad(t, &l, d_state + l.n_batch * l.width * l.bytes);
}

/* ---- the mask that lengths make ---- */

typedef struct mask_attrs {
    size_t n_positions;
    int32_t *lengths; /* (B), the host's */
} mask_attrs;

pnb__tensor *pnb__length_mask(pnb__tensor *lengths, size_t n_positions)
{
    if (lengths == NULL)
        return NULL;
    mask_attrs attrs = {.n_positions = n_positions};
    return pnb__node(lengths->graph, PNB__OP_LENGTH_MASK, &lengths, 1, &attrs, sizeof attrs);
}

/* lengths (B) int32 -> (B,T) */
bool pnb__op_length_mask_shape(pnb__tensor *t)
{
    mask_attrs *a = t->attrs;
    const pnb__tensor *len = t->in[0];
    char tl[96];
    if (len->kind != PNB__INT32 || len->n_dims != 1)
        return pnb__node_fail(t->graph, PNB_SHAPE, "length_mask: %s is no list of lengths",
                              pnb__shape_text(len, tl));
    pnb__set_shape(t, 2, (size_t[]){len->n, a->n_positions});
    a->lengths = pnb__arena_alloc(&t->graph->arena, (len->n + 1) * sizeof *a->lengths);
    if (a->lengths == NULL)
        return pnb__node_fail(t->graph, PNB_NOMEM, "out of memory while building a graph");
    return true;
}

/* 0 where position < length, -inf beyond; a row is two fills. */
bool pnb__op_length_mask_forward(pnb__tensor *t, bool recompute)
{
    (void)recompute;
    const mask_attrs *a = t->attrs;
    pnb__graph *g = t->graph;
    size_t n_batch = t->shape[0], n = t->shape[1], bytes = pnb__elem_bytes(t);
    if (n_batch > 0 && g->kernels.mem_read(g->ctx, a->lengths, pnb__data(t->in[0]),
                                           n_batch * sizeof(int32_t), &g->error) != PNB_OK)
        return true;
    for (size_t b = 0; b < n_batch; b++) {
        size_t length = PNB_MIN((size_t)PNB_MAX(a->lengths[b], 0), n);
        unsigned char *row = (unsigned char *)t->data + b * n * bytes;
        if (length > 0)
            g->kernels.fill(g->ctx, length, 0.0, row);
        if (length < n)
            g->kernels.fill(g->ctx, n - length, (double)-INFINITY, row + length * bytes);
    }
    return true;
}
