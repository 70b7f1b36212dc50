/* Random products of matrices, attention and convolutions: see shape.h. Each function draws one
 * call and compares all tables. */
#ifndef PNB_TESTS_KERNELS_SHAPES_PRODUCTS_H
#define PNB_TESTS_KERNELS_SHAPES_PRODUCTS_H

#include "tests/kernels/shapes/shape.h"

static const pnb__unary activations[] = {PNB__IDENTITY,   PNB__GELU, PNB__GELU_TANH,
                                         PNB__QUICK_GELU, PNB__RELU, PNB__TANH};

typedef struct gemm_shape {
    pnb__gemm_args g;
    bool bias, scale, residual, in_place, pre, packs, rounds;
    bool a_halves, b_halves, c_halves; /* by tables that have them */
    int a, b, c, b_bias, b_scale, b_residual, b_pre;
    /* the packed weight */
    size_t first, n_packed;
    int levels;
    signed char *bytes;
} gemm_shape;

static void draw_factors(shape *s, gemm_shape *c)
{
    pnb__gemm_args *g = &c->g;
    g->m = size_from(s, "m", 0, 70, 500);
    g->n = size_from(s, "n", 0, 70, 500);
    g->k = size_from(s, "k", 0, 140, 1200);
    g->trans_a = flag(s, "trans_a");
    g->trans_b = flag(s, "trans_b");
    size_t pad = size_from(s, "pad", 0, 9, 40);
    g->lda = (g->trans_a ? g->m : g->k) + pad;
    g->ldb = (g->trans_b ? g->k : g->n) + pad;
    g->ldc = g->n + pad;
    g->n_batch = 1;
    g->alpha = 1;
    g->act = PNB__IDENTITY;
}

static void draw_ending(shape *s, gemm_shape *c)
{
    c->g.act = activations[one_of(s, "act", PNB_COUNT(activations))];
    c->bias = flag(s, "bias");
    c->scale = flag(s, "scale");
    c->pre = flag(s, "pre");
    c->residual = c->g.n_batch == 1 && flag(s, "residual");
    c->in_place = c->residual && flag(s, "in_place");
}

static void add_arrays(gemm_shape *c, fixture *x)
{
    pnb__gemm_args *g = &c->g;
    g->batch_a = (g->trans_a ? g->k : g->m) * g->lda;
    g->batch_b = (g->trans_b ? PNB_MAX(g->n, c->n_packed) : g->k) * g->ldb;
    g->batch_c = g->m * g->ldc;
    g->ld_residual = g->ldc;
    x->threads_change_bits = true; /* OpenBLAS's own edges, in the generic table */
    bool keeps = g->beta != 0 || c->in_place || g->ldc > g->n; /* what lies between rows stays */
    c->a = input(x, g->batch_a * g->n_batch, -1, 1);
    c->b = input(x, g->batch_b * g->n_batch, -1, 1);
    c->c = output(x, g->batch_c * g->n_batch, keeps);
    c->b_bias = input(x, g->n, -1, 1);
    c->b_scale = input(x, c->n_packed + g->n, -2, 2);
    c->b_residual = input(x, g->batch_c, -1, 1);
    c->b_pre = output(x, c->pre ? g->batch_c * g->n_batch : 0, keeps);
}

static pnb__gemm_args gemm_args_of(run *r, fixture *x, const gemm_shape *c)
{
    pnb__gemm_args g = c->g;
    g.a = P(r, x, c->a), g.b = P(r, x, c->b), g.c = P(r, x, c->c);
    g.bias = c->bias ? P(r, x, c->b_bias) : NULL;
    g.col_scale = c->scale ? P(r, x, c->b_scale) : NULL;
    g.residual = c->in_place ? g.c : c->residual ? P(r, x, c->b_residual) : NULL;
    g.pre = c->pre ? P(r, x, c->b_pre) : NULL;
    return g;
}

static void gemm_body(run *r, fixture *x)
{
    const gemm_shape *c = r->user;
    pnb__gemm_args g = gemm_args_of(r, x, c);
    pnb__packed packed = {.k = g.k, .n = g.n};
    if (c->packs && r->k.gemm_pack != NULL) {
        packed.bytes = r->k.gemm_pack_bytes(g.k, g.n, PNB__STORE_REAL);
        packed.data = work_alloc(packed.bytes);
        r->k.gemm_pack(r->ctx, &g, &packed);
        g.packed = &packed;
    }
    r->k.gemm(r->ctx, &g);
    if (packed.data != NULL)
        work_free(packed.data, packed.bytes);
}

static void gemm_shapes(shape *s)
{
    static const double alphas[] = {1, -0.5, 0.125};
    gemm_shape c = {.packs = false};
    draw_factors(s, &c);
    c.g.n_batch = flag(s, "batches") ? size_from(s, "n_batch", 0, 4, 9) : 1;
    c.g.alpha = alphas[one_of(s, "alpha", PNB_COUNT(alphas))];
    c.g.beta = flag(s, "beta");
    c.packs = c.g.n_batch == 1 && c.g.k > 0 && c.g.n > 0 && flag(s, "packs");
    if (c.g.beta == 0)
        draw_ending(s, &c);
    fixture x = fixture_of(s, 1e-6 * sqrt((double)c.g.k + 1) + 2e-6, 2e-6);
    add_arrays(&c, &x);
    compare_all(&x, gemm_body, &c);
}

/* ---- rounded factors ---- */

/* By a packed weight, of which columns from `first` on are taken; or both as they lie. */
static void bf16_body(run *r, fixture *x)
{
    const gemm_shape *c = r->user;
    pnb__gemm_args g = gemm_args_of(r, x, c), whole = g;
    size_t n_c = g.m * g.ldc;
    bool has_halves = r->k.halves_gain;
    size_t bytes = r->k.gemm_bf16_work(g.m, g.k, 1);
    pnb__packed packed = {.k = g.k, .n = c->n_packed, .bf16_parts = 1};
    packed.bytes = r->k.gemm_bf16_pack_bytes(g.k, c->n_packed, 1);
    packed.data = work_alloc(packed.bytes);
    whole.n = c->n_packed;
    r->k.gemm_bf16_pack(r->ctx, &whole, &packed);
    g.b = NULL, g.packed = &packed, g.packed_first = c->first;
    g.work = work_alloc(bytes);
    g.a_halves = has_halves && c->a_halves, g.c_halves = has_halves && c->c_halves;
    uint16_t *a = g.a_halves ? halves_of(g.a, g.m * g.lda) : NULL;
    uint16_t *out = g.c_halves ? halves_of(g.c, n_c) : NULL;
    float *keep = g.c;
    g.a = g.a_halves ? a : g.a;
    g.c = g.c_halves ? out : g.c;
    r->k.gemm_bf16(r->ctx, &g);
    if (g.c_halves)
        widen(r, out, n_c, keep);
    wait_for(&r->k, r->ctx);
    free(a);
    work_free(g.work, bytes);
    work_free(packed.data, packed.bytes);
}

static void gemm_bf16_shapes(shape *s)
{
    gemm_shape c = {.first = 0};
    draw_factors(s, &c);
    c.g.trans_a = false, c.g.lda = c.g.k + c.g.ldc - c.g.n;
    c.g.k = PNB_MAX(c.g.k, 1), c.g.lda = PNB_MAX(c.g.lda, c.g.k);
    c.g.n = PNB_MAX(c.g.n, 1), c.g.ldc = PNB_MAX(c.g.ldc, c.g.n);
    c.first = 32 * one_of(s, "first", 3); /* 32: the widest group of all tables */
    c.n_packed = c.first + c.g.n + size_from(s, "behind", 0, 40, 99);
    draw_ending(s, &c);
    c.a_halves = flag(s, "a_halves");
    c.c_halves = flag(s, "c_halves");
    if (c.c_halves)
        c.pre = c.residual = c.in_place = c.scale = false;
    double of_c = c.c_halves ? 0.01 : 0; /* bias and result are rounded */
    fixture x = fixture_of(s, 1e-6 * sqrt((double)c.g.k + 1) + 2e-6 + of_c, 2e-6 + of_c);
    c.g.ldb = (c.g.trans_b ? c.g.k : c.n_packed) + c.g.ldc - c.g.n; /* b is the whole weight */
    add_arrays(&c, &x);
    compare_all(&x, bf16_body, &c);
}

static void rounded_body(run *r, fixture *x)
{
    const gemm_shape *c = r->user;
    pnb__gemm_args g = gemm_args_of(r, x, c);
    size_t n_a = (g.trans_a ? g.k : g.m) * g.lda, n_b = (g.trans_b ? g.n : g.k) * g.ldb;
    size_t n_c = g.m * g.ldc;
    bool has_halves = r->k.halves_head_dim > 0;
    g.a_halves = has_halves && c->a_halves, g.b_halves = has_halves && c->b_halves;
    g.c_halves = has_halves && c->c_halves;
    uint16_t *a = g.a_halves ? halves_of(g.a, n_a) : NULL;
    uint16_t *b = g.b_halves ? halves_of(g.b, n_b) : NULL;
    uint16_t *out = g.c_halves ? halves_of(g.c, n_c) : NULL;
    uint16_t *pre = g.c_halves && g.pre != NULL ? halves_of(g.pre, n_c) : NULL;
    void *keep = g.c, *keep_pre = g.pre;
    g.a = g.a_halves ? a : g.a, g.b = g.b_halves ? b : g.b;
    g.c = g.c_halves ? out : g.c, g.pre = pre != NULL ? pre : g.pre;
    size_t bytes = r->k.gemm_rounded_work(&g);
    g.work = work_alloc(bytes);
    r->k.gemm_rounded(r->ctx, &g);
    if (g.c_halves)
        widen(r, out, n_c, keep);
    if (pre != NULL)
        widen(r, pre, n_c, keep_pre);
    wait_for(&r->k, r->ctx);
    free(a);
    free(b);
    work_free(g.work, bytes);
}

static void gemm_rounded_shapes(shape *s)
{
    gemm_shape c = {.first = 0};
    draw_factors(s, &c);
    c.g.k = PNB_MAX(c.g.k, 1);
    c.g.lda = PNB_MAX(c.g.lda, c.g.k), c.g.ldb = PNB_MAX(c.g.ldb, c.g.k);
    c.g.beta = flag(s, "beta");
    if (c.g.beta == 0)
        draw_ending(s, &c);
    c.a_halves = flag(s, "a_halves"), c.b_halves = flag(s, "b_halves");
    c.c_halves = c.g.beta == 0 && flag(s, "c_halves");
    if (c.c_halves)
        c.residual = c.in_place = c.scale = false;
    double of_c = c.c_halves ? 0.01 : 0; /* bias, pre and result are rounded */
    fixture x = fixture_of(s, 1e-6 * sqrt((double)c.g.k) + 2e-6 + of_c, 2e-6 + of_c);
    add_arrays(&c, &x);
    compare_all(&x, rounded_body, &c);
}

/* ---- bytes ---- */

static void i8_body(run *r, fixture *x)
{
    const gemm_shape *c = r->user;
    pnb__gemm_args g = gemm_args_of(r, x, c);
    size_t n_c = g.m * g.ldc;
    size_t bytes = r->k.gemm_i8_work(g.m, g.k);
    pnb__packed packed = {.k = g.k, .n = c->n_packed, .store = PNB__STORE_I8, .levels = c->levels};
    packed.bytes = r->k.gemm_i8_pack_bytes(g.k, c->n_packed);
    packed.data = work_alloc(packed.bytes);
    r->k.gemm_i8_pack(r->ctx, c->bytes, P(r, x, c->b_scale), &packed);
    g.b = NULL, g.packed = &packed, g.packed_first = c->first;
    g.work = work_alloc(bytes);
    g.a_halves = r->k.i8_halves && c->a_halves, g.c_halves = r->k.i8_halves && c->c_halves;
    uint16_t *a = g.a_halves ? halves_of(g.a, g.m * g.lda) : NULL;
    uint16_t *out = g.c_halves ? halves_of(g.c, n_c) : NULL;
    float *keep = g.c;
    g.a = g.a_halves ? a : g.a, g.c = g.c_halves ? out : g.c;
    r->k.gemm_i8(r->ctx, &g);
    if (g.c_halves)
        widen(r, out, n_c, keep);
    wait_for(&r->k, r->ctx);
    free(a);
    work_free(g.work, bytes);
    work_free(packed.data, packed.bytes);
}

/* Rows of a lie on their levels, of a step that floats and doubles have: on the way between two,
 * tables of either may round to the other. */
static void put_on_levels(shape *s, const gemm_shape *c, double *a)
{
    const double step = 0x1p-7;
    for (size_t i = 0; i < c->g.m && c->g.k > 1; i++) {
        double zero = (double)pnb__rng_below(&s->rng, (uint64_t)c->levels + 1);
        double *row = a + i * c->g.lda;
        for (size_t p = 2; p < c->g.k; p++)
            row[p] = step * (rint((row[p] + 1) / 2 * c->levels) - zero);
        row[0] = -step * zero;
        row[1] = step * (c->levels - zero);
    }
}

static void gemm_i8_shapes(shape *s)
{
    gemm_shape c = {.first = 0};
    draw_factors(s, &c);
    c.g.trans_a = false, c.g.trans_b = true;
    c.g.k = PNB_MAX(c.g.k, 1), c.g.n = PNB_MAX(c.g.n, 1);
    c.g.lda = c.g.k + size_from(s, "pad_a", 0, 5, 9), c.g.ldc = PNB_MAX(c.g.ldc, c.g.n);
    c.first = 32 * one_of(s, "first", 3); /* 32: the widest group of all tables */
    c.n_packed = c.first + c.g.n + size_from(s, "behind", 0, 40, 99);
    c.levels = flag(s, "8 bits") ? PNB__I8_LEVELS_8BIT : PNB__I8_LEVELS_7BIT;
    draw_ending(s, &c);
    c.scale = false;
    c.a_halves = flag(s, "a_halves"); /* which hold the levels */
    c.c_halves = flag(s, "c_halves");
    if (c.c_halves)
        c.pre = c.residual = c.in_place = false;
    double of_c = c.c_halves ? 0.01 : 0; /* the result is rounded */
    c.g.ldb = 0;                         /* no b in reals */
    fixture x = fixture_of(s, 1e-5 + of_c, 2e-6 + of_c);
    add_arrays(&c, &x);
    put_on_levels(s, &c, x.arrays[c.a].init);
    for (size_t i = 0; i < x.arrays[c.b_scale].n; i++)
        x.arrays[c.b_scale].init[i] =
            (double)(float)(1e-3 + 5e-3 * fabs(x.arrays[c.b_scale].init[i]));
    c.bytes = malloc(c.n_packed * c.g.k + 1);
    assert_non_null(c.bytes);
    for (size_t i = 0; i < c.n_packed * c.g.k; i++)
        c.bytes[i] = (signed char)((int)pnb__rng_below(&s->rng, 255) - 127);
    compare_all(&x, i8_body, &c);
    free(c.bytes);
}

/* ---- attention ---- */

typedef struct attention_shape {
    pnb__attention_args a;
    bool fused, backward; /* fused: q, k, v side by side in one array */
    size_t n_q, n_kv, n_out;
    int q, k, v, out, lse, d_out, dq, dk, dv;
} attention_shape;

static void draw_attention(shape *s, attention_shape *c)
{
    pnb__attention_args *a = &c->a;
    a->n_batch = size_from(s, "n_batch", 1, 3, 4);
    a->n_heads = size_from(s, "n_heads", 1, 3, 3);
    a->head_dim = size_from(s, "head_dim", 1, 90, 160);
    size_t large = a->head_dim > 128 ? 60 : 250; /* the widest take long on emulated threads */
    a->n_q = size_from(s, "n_q", 0, 60, large);
    a->n_kv = flag(s, "self") ? a->n_q : size_from(s, "n_kv", 0, 60, large);
    a->causal = flag(s, "causal");
    a->accumulate_q = flag(s, "add_q");
    a->accumulate_kv = flag(s, "add_kv");
    a->kv_len = flag(s, "limited") ? whole_numbers(s, a->n_batch, a->n_kv + 1) : NULL;
    a->scale = 1 / sqrt((double)a->head_dim);
    size_t width = a->n_heads * a->head_dim, pad = size_from(s, "pad", 0, 9, 9);
    c->fused = a->n_q == a->n_kv && flag(s, "fused");
    a->row_q = a->row_kv = (c->fused ? 3 * width : width) + pad;
    a->batch_q = a->n_q * a->row_q + pad;
    a->batch_kv = a->n_kv * a->row_kv + pad;
    a->row_out = width;
    a->batch_out = a->n_q * width;
    c->n_q = a->batch_q * a->n_batch, c->n_kv = a->batch_kv * a->n_batch;
    c->n_out = a->batch_out * a->n_batch;
}

static void add_attention(attention_shape *c, fixture *x)
{
    c->q = c->k = c->v = input(x, c->n_q, -1, 1);
    if (!c->fused) {
        c->k = input(x, c->n_kv, -1, 1);
        c->v = input(x, c->n_kv, -1, 1);
    }
    c->out = output(x, c->n_out, false);
    c->lse = output(x, c->a.n_batch * c->a.n_heads * c->a.n_q, false);
    if (!c->backward)
        return;
    c->d_out = input(x, c->n_out, -1, 1);
    c->dq = c->dk = c->dv = output(x, c->n_q, true); /* what lies between rows stays */
    if (!c->fused) {
        c->dk = output(x, c->n_kv, true);
        c->dv = output(x, c->n_kv, true);
    }
}

static void attend(run *r, pnb__attention_args *a, bool backward)
{
    size_t bytes = r->k.attention_work(r->ctx, a, backward);
    a->work = work_alloc(bytes);
    (backward ? r->k.attention_bwd : r->k.attention)(r->ctx, a);
    wait_for(&r->k, r->ctx);
    work_free(a->work, bytes);
}

static void attention_body(run *r, fixture *x)
{
    const attention_shape *c = r->user;
    pnb__attention_args a = c->a;
    size_t shift = c->fused ? a.n_heads * a.head_dim : 0;
    a.q = P(r, x, c->q);
    a.k = moved(r, P(r, x, c->k), shift);
    a.v = moved(r, P(r, x, c->v), 2 * shift);
    a.out = P(r, x, c->out);
    a.lse = P(r, x, c->lse);
    attend(r, &a, false);
    if (!c->backward)
        return;
    a.d_out = P(r, x, c->d_out);
    a.dq = P(r, x, c->dq);
    a.dk = moved(r, P(r, x, c->dk), shift);
    a.dv = moved(r, P(r, x, c->dv), 2 * shift);
    attend(r, &a, true);
}

static void attention_shapes(shape *s)
{
    attention_shape c = {.backward = true};
    draw_attention(s, &c);
    fixture x = fixture_of(s, 2e-5, 1e-5);
    add_attention(&c, &x);
    compare_all(&x, attention_body, &c);
}

/* Weights, scores and factors off by 2^-9 of their size: the more queries a sum has, the further.
 */
static double rounded_tolerance(const attention_shape *c)
{
    return 0.04 * fmax(1, sqrt((double)c->a.n_q / 64));
}

static void attention_rounded_shapes(shape *s)
{
    attention_shape c = {.a = {.rounds = true}, .backward = true};
    draw_attention(s, &c);
    fixture x = fixture_of(s, rounded_tolerance(&c), 1e-5);
    add_attention(&c, &x);
    compare_all(&x, attention_body, &c);
}

/* Where the table at hand has no halves, in reals. */
static void attention_halves_body(run *r, fixture *x)
{
    const attention_shape *c = r->user;
    pnb__attention_args a = c->a;
    size_t shift = c->fused ? a.n_heads * a.head_dim : 0;
    if (r->is_double || r->k.halves_head_dim < a.head_dim) {
        attention_body(r, x);
        return;
    }
    bool fused = c->fused;
    uint16_t *q = halves_of(P(r, x, c->q), c->n_q), *dq = halves_of(P(r, x, c->dq), c->n_q);
    uint16_t *k = fused ? NULL : halves_of(P(r, x, c->k), c->n_kv);
    uint16_t *v = fused ? NULL : halves_of(P(r, x, c->v), c->n_kv);
    uint16_t *dk = fused ? NULL : halves_of(P(r, x, c->dk), c->n_kv);
    uint16_t *dv = fused ? NULL : halves_of(P(r, x, c->dv), c->n_kv);
    uint16_t *out = halves_of(P(r, x, c->out), c->n_out);
    uint16_t *d_out = halves_of(P(r, x, c->d_out), c->n_out);
    a.q = q, a.k = fused ? q + shift : k, a.v = fused ? q + 2 * shift : v;
    a.dq = dq, a.dk = fused ? dq + shift : dk, a.dv = fused ? dq + 2 * shift : dv;
    a.out = out, a.d_out = d_out;
    a.lse = P(r, x, c->lse);
    a.rounds = a.halves = true;
    attend(r, &a, false);
    attend(r, &a, true);
    widen(r, out, c->n_out, P(r, x, c->out));
    widen(r, dq, c->n_q, P(r, x, c->dq));
    if (!fused) {
        widen(r, dk, c->n_kv, P(r, x, c->dk));
        widen(r, dv, c->n_kv, P(r, x, c->dv));
    }
    free(q);
    free(k);
    free(v);
    free(d_out);
}

static void attention_halves_shapes(shape *s)
{
    attention_shape c = {.backward = true};
    draw_attention(s, &c);
    c.a.accumulate_q = c.a.accumulate_kv = false;
    fixture x = fixture_of(s, rounded_tolerance(&c), 1e-2);
    add_attention(&c, &x);
    compare_all(&x, attention_halves_body, &c);
}

/* ---- conv2d ---- */

typedef struct conv2d_shape {
    pnb__conv2d_args a;
    bool packs, finishes, residual;
    int x, w, y, scale, shift, b_residual, dy, dx, dw;
} conv2d_shape;

static void run_conv2d(run *r, pnb__conv2d_args *a, pnb__conv2d_pass pass)
{
    size_t bytes = r->k.conv2d_work(r->ctx, a, pass);
    a->work = work_alloc(bytes);
    (pass == PNB__CONV2D      ? r->k.conv2d
     : pass == PNB__CONV2D_DX ? r->k.conv2d_dx
                              : r->k.conv2d_dw)(r->ctx, a);
    wait_for(&r->k, r->ctx);
    work_free(a->work, bytes);
}

static void conv2d_body(run *r, fixture *x)
{
    const conv2d_shape *c = r->user;
    pnb__conv2d_args a = c->a;
    size_t bytes = r->k.conv2d_pack_bytes(&a);
    void *packed = c->packs ? work_alloc(bytes) : NULL;
    a.x = P(r, x, c->x), a.w = P(r, x, c->w), a.y = P(r, x, c->y);
    a.scale = c->finishes ? P(r, x, c->scale) : NULL;
    a.shift = c->finishes ? P(r, x, c->shift) : NULL;
    a.residual = c->residual ? P(r, x, c->b_residual) : NULL;
    if (packed != NULL)
        r->k.conv2d_pack(r->ctx, &a, packed);
    a.packed = packed;
    run_conv2d(r, &a, PNB__CONV2D);
    if (packed != NULL)
        work_free(packed, bytes);
    a.dy = P(r, x, c->dy), a.dx = P(r, x, c->dx), a.dw = P(r, x, c->dw);
    run_conv2d(r, &a, PNB__CONV2D_DX);
    run_conv2d(r, &a, PNB__CONV2D_DW);
}

static void draw_conv2d(shape *s, conv2d_shape *c)
{
    pnb__conv2d_args *a = &c->a;
    a->n_batch = size_from(s, "n_batch", 0, 3, 5);
    a->kernel_h = size_from(s, "kernel_h", 1, 5, 8);
    a->kernel_w = flag(s, "square") ? a->kernel_h : size_from(s, "kernel_w", 1, 5, 8);
    a->stride = size_from(s, "stride", 1, 3, 4);
    a->pad = size_from(s, "pad", 0, 4, 4);
    size_t h = a->kernel_h - PNB_MIN(2 * a->pad, a->kernel_h - 1);
    size_t w = a->kernel_w - PNB_MIN(2 * a->pad, a->kernel_w - 1);
    a->height = size_from(s, "height", h, 10, 30);
    a->width = size_from(s, "width", w, 10, 30);
    a->channels = size_from(s, "channels", 1, 30, 100);
    a->out_channels = size_from(s, "outputs", 1, 30, 100);
    a->out_h = (a->height + 2 * a->pad - a->kernel_h) / a->stride + 1;
    a->out_w = (a->width + 2 * a->pad - a->kernel_w) / a->stride + 1;
    a->relu = flag(s, "relu");
    a->accumulate = flag(s, "accumulate");
    c->packs = flag(s, "packs");
    c->finishes = flag(s, "finishes");
    c->residual = flag(s, "residual");
}

static void conv2d_shapes(shape *s)
{
    conv2d_shape c = {.packs = false};
    draw_conv2d(s, &c);
    const pnb__conv2d_args *a = &c.a;
    bool transforms = a->kernel_h == 3 && a->kernel_w == 3 && a->stride == 1; /* Winograd */
    size_t n_x = a->n_batch * a->height * a->width * a->channels;
    size_t n_w = a->out_channels * a->channels * a->kernel_h * a->kernel_w;
    size_t n_y = a->n_batch * a->out_h * a->out_w * a->out_channels;
    size_t depth = a->kernel_h * a->kernel_w * PNB_MAX(a->channels, a->out_channels);
    double terms = (double)(depth + a->n_batch * a->out_h * a->out_w);
    fixture x = fixture_of(s, (transforms ? 1.5e-5 : 4e-6) * sqrt(terms), 2e-6);
    c.x = input(&x, n_x, -1, 1);
    c.w = input(&x, n_w, -1, 1);
    c.y = output(&x, n_y, false);
    c.scale = input(&x, a->out_channels, -1, 1);
    c.shift = input(&x, a->out_channels, -1, 1);
    c.b_residual = input(&x, n_y, -1, 1);
    c.dy = input(&x, n_y, -1, 1);
    c.dx = output(&x, n_x, a->accumulate);
    c.dw = output(&x, n_w, a->accumulate);
    compare_all(&x, conv2d_body, &c);
}

#endif
