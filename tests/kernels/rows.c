/* Softmax, cross-entropy, L2 norm and pairwise distances. */
#include "tests/kernels/harness.h"

typedef struct rows_case {
    size_t rows, width;
    bool log, accumulate;
    double spread;
    int x, y, dy, dx, loss, lse, dloss, dlogits, unit, inv, dunit;
    int32_t *target;
} rows_case;

static void rows_body(run *r, fixture *x)
{
    const rows_case *c = r->user;
    size_t n = c->rows, w = c->width;
    void *in = P(r, x, c->x), *dy = P(r, x, c->dy), *y = P(r, x, c->y);
    r->k.softmax(r->ctx, n, w, c->log, in, y);
    r->k.softmax_bwd(r->ctx, n, w, c->log, y, dy, P(r, x, c->dx), c->accumulate);
    r->k.cross_entropy(r->ctx, n, w, in, c->target, P(r, x, c->loss), P(r, x, c->lse));
    r->k.cross_entropy_bwd(r->ctx, n, w, in, c->target, P(r, x, c->lse), P(r, x, c->dloss),
                           P(r, x, c->dlogits), c->accumulate);
    void *unit = P(r, x, c->unit), *inv = P(r, x, c->inv);
    r->k.l2_normalize(r->ctx, n, w, 1e-3, in, unit, inv);
    r->k.l2_normalize_bwd(r->ctx, n, w, 1e-3, unit, inv, dy, P(r, x, c->dunit), c->accumulate);
}

static void check_rows(rows_case c)
{
    fixture x;
    fixture_init(&x, c.rows + c.width, 2e-6 * (1 + c.spread), 5e-6);
    size_t n = c.rows * c.width;
    c.x = input(&x, n, -c.spread, c.spread);
    c.y = output(&x, n, false);
    c.dy = input(&x, n, -1, 1);
    c.dx = output(&x, n, c.accumulate);
    c.loss = output(&x, c.rows, false);
    c.lse = output(&x, c.rows, false);
    c.dloss = input(&x, c.rows, -1, 1);
    c.dlogits = output(&x, n, c.accumulate);
    c.unit = output(&x, n, false);
    c.inv = output(&x, c.rows, false);
    c.dunit = output(&x, n, c.accumulate);
    c.target = malloc((c.rows + 1) * sizeof *c.target);
    assert_non_null(c.target);
    for (size_t i = 0; i < c.rows; i++)
        c.target[i] = (int32_t)(i * 5 % c.width);
    compare_all(&x, rows_body, &c);
    free(c.target);
}

static void test_rows(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{0, 4},   {1, 1},    {3, 2},    {5, 17},
                                      {40, 33}, {7, 1000}, {129, 128}};
    static const double spreads[] = {1, 20, 88};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        for (size_t s = 0; s < PNB_COUNT(spreads); s++) {
            for (int log = 0; log < 2; log++) {
                rows_case c = {.rows = sizes[i][0], .width = sizes[i][1], .log = log};
                c.accumulate = s % 2;
                c.spread = spreads[s];
                check_rows(c);
            }
        }
    }
}

/* Norms on both sides of eps: below it the divisor is a constant. */
static void test_small_norms(void **state)
{
    (void)state;
    rows_case c = {.rows = 6, .width = 9, .spread = 1e-4};
    check_rows(c);
    c.spread = 1e-30;
    check_rows(c);
}

/* ---- pairwise distances ---- */

typedef struct distance_case {
    size_t m, n, width;
    bool accumulate;
    int x, y, d2, w, dx, dy;
} distance_case;

static void distance_body(run *r, fixture *x)
{
    const distance_case *c = r->user;
    const size_t mnw[3] = {c->m, c->n, c->width};
    const bool accumulate[2] = {c->accumulate, false};
    void *a = P(r, x, c->x), *b = P(r, x, c->y), *w = P(r, x, c->w);
    r->k.pairwise_sqdist(r->ctx, c->m, c->n, c->width, a, b, P(r, x, c->d2));
    r->k.pairwise_sqdist_bwd(r->ctx, mnw, a, b, w, P(r, x, c->dx), NULL, accumulate);
    r->k.pairwise_sqdist_bwd(r->ctx, mnw, a, b, w, NULL, P(r, x, c->dy), accumulate);
}

static void test_distances(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{0, 3, 4}, {3, 0, 4},    {1, 1, 1},
                                      {5, 7, 3}, {33, 20, 50}, {60, 70, 17}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        distance_case c = {sizes[i][0], sizes[i][1], sizes[i][2], i % 2, 0, 0, 0, 0, 0, 0};
        fixture x;
        fixture_init(&x, i, 2e-5, 2e-6);
        c.x = input(&x, c.m * c.width, -1, 1);
        c.y = input(&x, c.n * c.width, -1, 1);
        c.d2 = output(&x, c.m * c.n, false);
        c.w = input(&x, c.m * c.n, -1, 1);
        c.dx = output(&x, c.m * c.width, c.accumulate);
        c.dy = output(&x, c.n * c.width, false);
        compare_all(&x, distance_body, &c);
    }
}

static void test_equal_rows_are_at_zero(void **state)
{
    (void)state;
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        float x[3 * 37], d2[9];
        for (int i = 0; i < 3 * 37; i++)
            x[i] = (float)(i % 37) * 1e3f + 0.1f;
        k.pairwise_sqdist(ctx, 3, 3, 37, x, x, d2);
        wait_for(&k, ctx);
        for (int i = 0; i < 9; i++)
            assert_true(d2[i] == 0);
        pnb_ctx_free(ctx);
    }
}

/* ---- derivatives of the reference ---- */

enum { R = 3, W = 5 };

typedef struct problem {
    double *x, *y, *weight, out[R * W], aux[R], probe[R];
    int which; /* softmax, log-softmax, cross-entropy, L2, distances */
    int32_t target[R];
} problem;

static double problem_loss(void *user)
{
    problem *p = user;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    if (p->which < 2)
        k.softmax(NULL, R, W, p->which == 1, p->x, p->out);
    else if (p->which == 3)
        k.l2_normalize(NULL, R, W, 1e-12, p->x, p->out, p->aux);
    else if (p->which == 4)
        k.pairwise_sqdist(NULL, R, R, W, p->x, p->y, p->out);
    if (p->which != 2)
        return dot_values(p->out, p->weight, p->which == 4 ? R * R : R * W);
    k.cross_entropy(NULL, R, W, p->x, p->target, p->probe, p->aux);
    return dot_values(p->probe, p->weight, R);
}

static void problem_gradient(problem *p, double *dx, double *dy)
{
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    const size_t mnw[3] = {R, R, W};
    const bool none[2] = {false, false};
    problem_loss(p);
    if (p->which < 2)
        k.softmax_bwd(NULL, R, W, p->which == 1, p->out, p->weight, dx, false);
    else if (p->which == 2)
        k.cross_entropy_bwd(NULL, R, W, p->x, p->target, p->aux, p->weight, dx, false);
    else if (p->which == 3)
        k.l2_normalize_bwd(NULL, R, W, 1e-12, p->out, p->aux, p->weight, dx, false);
    else
        k.pairwise_sqdist_bwd(NULL, mnw, p->x, p->y, p->weight, dx, dy, none);
}

static void test_reference(void **state)
{
    (void)state;
    for (int which = 0; which < 5; which++) {
        problem p = {.x = random_values(R * W, 1, -1, 1), .y = random_values(R * W, 2, -1, 1)};
        p.weight = random_values(R * W, 3, -1, 1);
        p.which = which;
        p.target[1] = 4;
        double dx[R * W], dy[R * W];
        problem_gradient(&p, dx, dy);
        check_gradient(problem_loss, &p, p.x, dx, R * W, 1e-8);
        if (which == 4)
            check_gradient(problem_loss, &p, p.y, dy, R * W, 1e-8);
        free(p.x), free(p.y), free(p.weight);
    }
    double x[2] = {1, 3}, y[2], loss, lse;
    int32_t target = 0;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.softmax(NULL, 1, 2, false, x, y);
    assert_true(is_close(y[0], 1 / (1 + exp(2)), 1e-15, 0));
    k.cross_entropy(NULL, 1, 2, x, &target, &loss, &lse);
    assert_true(is_close(loss, log(1 + exp(2)), 1e-15, 0));
    k.l2_normalize(NULL, 1, 2, 1e-12, x, y, &lse);
    assert_true(is_close(y[1], 3 / sqrt(10), 1e-15, 0));
    k.pairwise_sqdist(NULL, 1, 1, 2, x, y, &loss);
    assert_true(is_close(loss, pow(1 - 1 / sqrt(10), 2) + pow(3 - 3 / sqrt(10), 2), 1e-14, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows), cmocka_unit_test(test_small_norms),
        cmocka_unit_test(test_distances), cmocka_unit_test(test_equal_rows_are_at_zero),
        cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
