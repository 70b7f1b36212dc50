/* Random calls of the slots of layers, solvers and optimisers: see shape.h. */
#ifndef PNB_TESTS_KERNELS_SHAPES_LAYERS_H
#define PNB_TESTS_KERNELS_SHAPES_LAYERS_H

#include "tests/kernels/shapes/shape.h"

/* ---- normalisation ---- */

typedef struct layernorm_shape {
    pnb__layernorm_args a;
    bool affine, in_place, wants_x, halves;
} layernorm_shape;

static void layernorm_body(run *r, fixture *x)
{
    enum { X, W, B, Y, MEAN, RSTD, DY, DX, DW, DB };
    const layernorm_shape *c = r->user;
    pnb__layernorm_args a = c->a;
    size_t bytes = r->k.layernorm_work(r->ctx, a.rows, a.width), n = a.rows * a.width;
    a.x = P(r, x, X), a.y = P(r, x, Y);
    a.w = c->affine ? P(r, x, W) : NULL, a.b = c->affine ? P(r, x, B) : NULL;
    r->k.layernorm(r->ctx, &a); /* mean and rstd not asked for */
    a.mean = P(r, x, MEAN), a.rstd = P(r, x, RSTD);
    r->k.layernorm(r->ctx, &a);
    a.halves = c->halves && r->k.halves_head_dim > 0;
    uint16_t *dy = a.halves ? halves_of(P(r, x, DY), n) : NULL;
    a.dy = dy != NULL ? dy : P(r, x, DY), a.dx = c->wants_x ? P(r, x, DX) : NULL;
    a.dw = c->affine ? P(r, x, DW) : NULL, a.db = c->affine ? P(r, x, DB) : NULL;
    a.work = work_alloc(bytes);
    r->k.layernorm_bwd(r->ctx, &a);
    wait_for(&r->k, r->ctx);
    work_free(a.work, bytes);
    free(dy);
    if (a.halves) {
        uint16_t *halves = halves_of(a.x, n);
        a.y = halves;
        r->k.layernorm(r->ctx, &a);
        widen(r, halves, n, P(r, x, Y));
    }
    if (c->in_place) {
        r->k.axpy(r->ctx, n, 1, a.x, P(r, x, Y));
        a.x = a.y = P(r, x, Y), a.mean = a.rstd = NULL, a.halves = false;
        r->k.layernorm(r->ctx, &a);
    }
}

/* A few values that nearly agree make a difference of large numbers of their gradient: where there
 * are only few, they are equal or far apart. */
static void set_apart(fixture *x, int which, size_t n_together)
{
    const size_t few = 16;
    if (n_together < few)
        make_coarse(x, which, 0.25);
}

static void layernorm_shapes(shape *s)
{
    layernorm_shape c = {.a = {.rows = size_from(s, "rows", 0, 90, 900), .eps = 1e-5}};
    pnb__layernorm_args *a = &c.a;
    a->width = size_from(s, "width", 1, 400, 3000);
    a->accumulate_x = flag(s, "add_x");
    a->accumulate_w = flag(s, "add_w");
    c.affine = flag(s, "affine");
    c.halves = flag(s, "halves");
    c.in_place = !c.halves && flag(s, "in_place");
    c.wants_x = flag(s, "wants_x");
    size_t n = a->rows * a->width, n_w = c.affine ? a->width : 0;
    double tol = (a->width < 16 ? 5e-4 : 1e-5) * sqrt(1 + (double)a->rows / 200);
    fixture x = fixture_of(s, tol, c.halves ? 0x1p-8 : 5e-6);
    set_apart(&x, input(&x, n, -1, 1), a->width);
    input(&x, a->width, -2, 2);
    input(&x, a->width, -1, 1);
    output(&x, n, false);
    output(&x, a->rows, false);
    output(&x, a->rows, false);
    int dy = input(&x, n, -1, 1);
    if (c.halves)
        make_coarse(&x, dy, 0x1p-7); /* as halves have it */
    output(&x, c.wants_x ? n : 0, a->accumulate_x);
    output(&x, n_w, a->accumulate_w);
    output(&x, n_w, a->accumulate_w);
    compare_all(&x, layernorm_body, &c);
}

typedef struct batchnorm_shape {
    pnb__batchnorm_args a;
    bool residual, adds_residual, keeps_running;
} batchnorm_shape;

enum {
    N_X,
    N_W,
    N_B,
    N_RESIDUAL,
    N_MEANS,
    N_VARS,
    N_MEAN,
    N_RSTD,
    N_Y,
    N_DY,
    N_DX,
    N_DW,
    N_DB,
    N_D_RESIDUAL,
    N_SCALE,
    N_SHIFT
};

static void batchnorm_body(run *r, fixture *x)
{
    const batchnorm_shape *c = r->user;
    pnb__batchnorm_args a = c->a;
    size_t bytes = r->k.batchnorm_work(r->ctx, a.rows, a.width);
    bool has_running = a.frozen || c->keeps_running;
    a.x = P(r, x, N_X), a.w = P(r, x, N_W), a.b = P(r, x, N_B), a.y = P(r, x, N_Y);
    a.running_mean = has_running ? P(r, x, N_MEANS) : NULL;
    a.running_var = has_running ? P(r, x, N_VARS) : NULL;
    a.mean = P(r, x, N_MEAN), a.rstd = P(r, x, N_RSTD);
    a.residual = c->residual ? P(r, x, N_RESIDUAL) : NULL;
    a.work = work_alloc(bytes);
    r->k.batchnorm_moments(r->ctx, &a);
    r->k.batchnorm(r->ctx, &a);
    a.dy = P(r, x, N_DY), a.dx = P(r, x, N_DX), a.dw = P(r, x, N_DW), a.db = P(r, x, N_DB);
    a.d_residual = !c->residual ? NULL : c->adds_residual ? P(r, x, N_D_RESIDUAL) : a.dy;
    r->k.batchnorm_bwd(r->ctx, &a);
    a.running_mean = P(r, x, N_MEANS), a.running_var = P(r, x, N_VARS);
    a.scale = P(r, x, N_SCALE), a.shift = P(r, x, N_SHIFT);
    r->k.batchnorm_fold(r->ctx, &a);
    wait_for(&r->k, r->ctx);
    work_free(a.work, bytes);
}

/* Under ReLU a value at the border may fall on either side in floats: w is small, so that the
 * residual, or b, decides. */
static void keep_from_border(fixture *x, bool has_residual)
{
    for (size_t i = 0; i < x->arrays[N_W].n; i++)
        x->arrays[N_W].init[i] = (double)(float)(x->arrays[N_W].init[i] / 16);
    make_signs(x, has_residual ? N_RESIDUAL : N_B, has_residual ? 2 : 0.6, 3);
}

static void draw_batchnorm(shape *s, batchnorm_shape *c)
{
    pnb__batchnorm_args *a = &c->a;
    a->eps = 1e-5, a->momentum = 0.1;
    a->frozen = flag(s, "frozen");
    a->rows = size_from(s, "rows", 2, 200, 1500);
    a->width = size_from(s, "width", 1, 100, 500);
    a->relu = flag(s, "relu");
    c->residual = flag(s, "residual");
    c->adds_residual = c->residual && flag(s, "adds_residual");
    c->keeps_running = flag(s, "keeps_running");
    a->accumulate_x = flag(s, "add_x");
    a->accumulate_w = flag(s, "add_w");
    a->accumulate_b = flag(s, "add_b");
    a->accumulate_residual = c->adds_residual && flag(s, "add_residual");
}

static void batchnorm_shapes(shape *s)
{
    batchnorm_shape c = {.residual = false};
    draw_batchnorm(s, &c);
    const pnb__batchnorm_args *a = &c.a;
    size_t n = a->rows * a->width, w = a->width;
    double tol = a->rows < 16 ? 2e-3 : 2e-5 * sqrt(1 + (double)a->rows / 700);
    fixture x = fixture_of(s, tol, tol);
    set_apart(&x, input(&x, n, -2, 2), a->rows);
    input(&x, w, 0.5, 1.5);
    input(&x, w, -1, 1);
    input(&x, n, -1, 1);
    output(&x, w, true);
    output(&x, w, true);
    for (size_t i = 0; i < w; i++)
        x.arrays[N_VARS].init[i] = 0.5 + (double)(i % 7);
    output(&x, w, false);
    output(&x, w, false);
    output(&x, n, false);
    output(&x, n, true);
    output(&x, n, a->accumulate_x);
    output(&x, w, a->accumulate_w);
    output(&x, w, a->accumulate_b);
    output(&x, n, !c.adds_residual || a->accumulate_residual);
    output(&x, w, false);
    output(&x, w, false);
    if (a->relu)
        keep_from_border(&x, c.residual);
    compare_all(&x, batchnorm_body, &c);
}

/* ---- pictures ---- */

typedef struct patch_shape {
    size_t bchw[4], patch;
    bool accumulate;
} patch_shape;

static void patch_body(run *r, fixture *x)
{
    const patch_shape *c = r->user;
    r->k.patchify(r->ctx, c->bchw, c->patch, P(r, x, 0), P(r, x, 1));
    r->k.patchify_bwd(r->ctx, c->bchw, c->patch, P(r, x, 2), P(r, x, 3), c->accumulate);
}

static void patch_shapes(shape *s)
{
    patch_shape c = {.patch = size_from(s, "patch", 1, 17, 33),
                     .accumulate = flag(s, "accumulate")};
    size_t n = 1, n_out = c.patch * c.patch;
    c.bchw[0] = size_from(s, "batch", 0, 4, 9);
    c.bchw[1] = size_from(s, "channels", 1, 4, 5);
    c.bchw[2] = size_from(s, "height", c.patch, 40, 150);
    c.bchw[3] = size_from(s, "width", c.patch, 40, 150);
    for (int d = 0; d < 4; d++) {
        n *= c.bchw[d];
        n_out *= d < 2 ? c.bchw[d] : c.bchw[d] / c.patch;
    }
    fixture x = fixture_of(s, 0, 1e-7);
    input(&x, n, -1, 1);
    output(&x, n_out, false);
    input(&x, n_out, -1, 1);
    output(&x, n, c.accumulate);
    compare_all(&x, patch_body, &c);
}

/* The least length over which a kernel of that reach fits. */
static size_t least_length(size_t reach, size_t pad)
{
    return reach - PNB_MIN(2 * pad, reach - 1);
}

static size_t n_pooled(const pnb__pool_args *a)
{
    return a->n_batch * a->out_h * a->out_w * a->channels;
}

static void pool_body(run *r, fixture *x)
{
    pnb__pool_args a = *(const pnb__pool_args *)r->user;
    a.x = P(r, x, 0), a.y = P(r, x, 1), a.dy = P(r, x, 2), a.dx = P(r, x, 3);
    r->k.max_pool(r->ctx, &a); /* as inference asks it */
    a.which = malloc(n_pooled(&a) + 1);
    assert_non_null(a.which);
    r->k.max_pool(r->ctx, &a);
    r->k.max_pool_bwd(r->ctx, &a);
    wait_for(&r->k, r->ctx);
    free(a.which);
}

static void pool_shapes(shape *s)
{
    pnb__pool_args a = {.n_batch = size_from(s, "n_batch", 0, 4, 6)};
    a.kernel = size_from(s, "kernel", 1, 6, 8);
    a.stride = size_from(s, "stride", 1, 4, 4);
    a.pad = (size_t)pnb__rng_below(&s->rng, a.kernel / 2 + 1); /* no window lies outside */
    note(s, "pad", (double)a.pad);
    a.height = size_from(s, "height", least_length(a.kernel, a.pad), 20, 60);
    a.width = size_from(s, "width", least_length(a.kernel, a.pad), 20, 60);
    a.channels = size_from(s, "channels", 1, 40, 130);
    a.out_h = (a.height + 2 * a.pad - a.kernel) / a.stride + 1;
    a.out_w = (a.width + 2 * a.pad - a.kernel) / a.stride + 1;
    a.accumulate = flag(s, "accumulate");
    size_t n = a.n_batch * a.height * a.width * a.channels;
    fixture x = fixture_of(s, 4e-6, 1e-6);
    int in = input(&x, n, -1, 1);
    if (flag(s, "equals"))
        make_coarse(&x, in, 0.25);
    output(&x, n_pooled(&a), false);
    input(&x, n_pooled(&a), -1, 1);
    output(&x, n, a.accumulate);
    compare_all(&x, pool_body, &a);
}

/* ---- GRU ---- */

typedef struct gru_shape {
    pnb__gru_args a;
    bool is_first; /* no state yet, one row of gh for all */
} gru_shape;

static void gru_body(run *r, fixture *x)
{
    enum { GX, GH, H, D_OUT, D_NEXT, GATES, OUT, NEXT, DGX, DGH, DH };
    const gru_shape *c = r->user;
    pnb__gru_args a = c->a;
    a.gx = P(r, x, GX), a.gh = P(r, x, GH), a.h = c->is_first ? NULL : P(r, x, H);
    a.gates = P(r, x, GATES), a.out = P(r, x, OUT), a.h_next = P(r, x, NEXT);
    r->k.gru(r->ctx, &a);
    a.d_out = P(r, x, D_OUT), a.d_next = P(r, x, D_NEXT);
    a.dgx = P(r, x, DGX), a.dgh = P(r, x, DGH), a.dh = P(r, x, DH);
    r->k.gru_bwd(r->ctx, &a);
}

static void gru_shapes(shape *s)
{
    gru_shape c = {.a = {.rows = size_from(s, "rows", 0, 30, 200)}};
    pnb__gru_args *a = &c.a;
    a->width = size_from(s, "width", 1, 100, 1500);
    a->n_next = (size_t)pnb__rng_below(&s->rng, a->rows + 1);
    note(s, "n_next", (double)a->n_next);
    bool indexed = flag(s, "indexed");
    size_t spread = indexed ? 2 : 1, n_all = spread * a->rows;
    int32_t *at = indexed ? whole_numbers(s, a->rows, 1) : NULL;
    for (size_t i = 0; i < a->rows && indexed; i++) /* from the last row to the first, by twos */
        at[i] = (int32_t)(n_all - 1 - 2 * i);
    a->at = a->out_at = at;
    c.is_first = flag(s, "first");
    a->ld_gh = c.is_first ? 0 : a->width * (3 + one_of(s, "apart", 2));
    a->ld_dgh = a->width * 3;
    a->d_out_ends = flag(s, "ends");
    a->accumulate_gx = flag(s, "add_gx");
    a->accumulate_gh = flag(s, "add_gh");
    a->accumulate_h = flag(s, "add_h");
    size_t n = a->rows * a->width, all = n_all * a->width, next = a->n_next * a->width;
    fixture x = fixture_of(s, 1e-6, 1e-6);
    input(&x, 3 * all, -3, 3);
    input(&x, 4 * n + 3 * a->width, -3, 3);
    input(&x, n, -1, 1);
    input(&x, all, -1, 1);
    input(&x, next, -1, 1);
    output(&x, 4 * n, false);
    output(&x, all, indexed); /* rows that no sequence writes stay */
    output(&x, next, false);
    output(&x, 3 * all, a->accumulate_gx || indexed);
    output(&x, 3 * n, a->accumulate_gh);
    output(&x, n, a->accumulate_h);
    compare_all(&x, gru_body, &c);
}

/* ---- solvers ---- */

typedef struct solve_shape {
    size_t n, m;
    bool transpose, is_bad;
} solve_shape;

static void solve_body(run *r, fixture *x)
{
    enum { A, ROOM, RIGHT, OUT, IN_PLACE, DONE };
    const solve_shape *c = r->user;
    bool done = r->k.cholesky(r->ctx, c->n, P(r, x, A), P(r, x, ROOM));
    put_real(r, P(r, x, DONE), 0, done);
    if (c->is_bad)
        return;
    r->k.tri_solve(r->ctx, c->n, c->m, c->transpose, P(r, x, ROOM), P(r, x, RIGHT), P(r, x, OUT));
    r->k.tri_solve(r->ctx, c->n, c->m, !c->transpose, P(r, x, ROOM), P(r, x, IN_PLACE),
                   P(r, x, IN_PLACE));
}

static void solve_shapes(shape *s)
{
    solve_shape c = {.n = size_from(s, "n", 0, 90, 300)};
    c.m = size_from(s, "m", 0, 50, 150);
    c.transpose = flag(s, "transpose");
    c.is_bad = c.n > 0 && one_of(s, "bad", 4) == 0;
    double size = fmin(0.1, 3 / (double)(c.n + 1));
    fixture x = fixture_of(s, 1e-5, 1e-5);
    int a = input(&x, c.n * c.n, -size, size);
    for (size_t i = 0; i < c.n; i++)
        x.arrays[a].init[i * c.n + i] = 4;
    if (c.is_bad) {
        size_t at = (size_t)pnb__rng_below(&s->rng, c.n);
        x.arrays[a].init[at * c.n + at] = -1;
    }
    int l = output(&x, c.n * c.n, false);
    input(&x, c.n * c.m, -1, 1);
    int out = output(&x, c.n * c.m, false);
    output(&x, c.n * c.m, true);
    output(&x, 1, false);
    if (c.is_bad) /* left as they are, or half done */
        x.arrays[l].is_output = x.arrays[out].is_output = false;
    compare_all(&x, solve_body, &c);
}

/* ---- optimisers ---- */

enum { MOST_PARAMS = 40, STEPS = 3 };

typedef struct optim_shape {
    pnb__optim_args list[MOST_PARAMS];
    size_t n_list, n_all;
    int which; /* sgd, adam, adamw, adamp, sgdp */
} optim_shape;

static void optim_body(run *r, fixture *x)
{
    enum { PARAM, M, V, GRAD };
    optim_shape c = *(const optim_shape *)r->user;
    void (*const slots[])(const pnb_ctx *, const pnb__optim_args *,
                          size_t) = {r->k.sgd, r->k.adam, r->k.adamw, r->k.adamp, r->k.sgdp};
    r->k.mem_zero(r->ctx, P(r, x, M), c.n_all * real_size(r), NULL);
    r->k.mem_zero(r->ctx, P(r, x, V), c.n_all * real_size(r), NULL);
    for (size_t step = 1, at; step <= STEPS; step++) {
        at = 0;
        for (size_t i = 0; i < c.n_list; i++) {
            pnb__optim_args *a = &c.list[i];
            a->param = moved(r, P(r, x, PARAM), at);
            a->m = moved(r, P(r, x, M), at);
            a->v = moved(r, P(r, x, V), at);
            a->grad = moved(r, P(r, x, GRAD), (step - 1) * c.n_all + at);
            a->step = (int64_t)step;
            at += a->n;
        }
        slots[c.which](r->ctx, c.list, c.n_list);
    }
}

static void draw_param(shape *s, optim_shape *c, pnb__optim_args *a)
{
    static const double deltas[] = {0.1, 0.6, 100}; /* seldom, sometimes, always projected */
    *a = (pnb__optim_args){.grad_scale = 0.5, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-6};
    a->weight_decay = 0.1, a->momentum = 0.9, a->dampening = 0.1, a->wd_ratio = 0.1;
    a->rows = size_from(s, "rows", 0, 25, 300);
    a->cols = size_from(s, "cols", 1, 90, 1000);
    a->n = a->rows * a->cols;
    a->delta = deltas[one_of(s, "delta", PNB_COUNT(deltas))];
    a->project = flag(s, "project");
    a->nesterov = (c->which == 0 || c->which > 2) && flag(s, "nesterov");
    c->n_all += a->n;
}

static void optim_shapes(shape *s)
{
    static optim_shape c; /* of the host alone */
    memset(&c, 0, sizeof c);
    c.which = (int)one_of(s, "which", 5);
    c.n_list = size_from(s, "list", 0, 8, MOST_PARAMS);
    for (size_t i = 0; i < c.n_list; i++)
        draw_param(s, &c, &c.list[i]);
    fixture x = fixture_of(s, 2e-6, 2e-5);
    output(&x, c.n_all, true);
    output(&x, c.n_all, true);
    output(&x, c.n_all, true);
    input(&x, c.n_all * STEPS, 0.5, 1); /* no cancellation in the moments */
    compare_all(&x, optim_body, &c);
}

#endif
