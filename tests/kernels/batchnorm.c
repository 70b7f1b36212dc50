/* The batchnorm slots against the f64 reference, and that against the formulas and differences. */
#include "tests/kernels/harness.h"

typedef struct norm_case {
    pnb__batchnorm_args args;
    bool residual, adds_residual;
    int x, w, b, b_residual, running_mean, running_var, mean, rstd, y, dy, dx, dw, db, d_residual;
    int scale, shift;
} norm_case;

static void norm_body(run *r, fixture *x)
{
    const norm_case *c = r->user;
    pnb__batchnorm_args a = c->args;
    size_t bytes = r->k.batchnorm_work(r->ctx, a.rows, a.width);
    a.x = P(r, x, c->x), a.w = P(r, x, c->w), a.b = P(r, x, c->b);
    a.running_mean = P(r, x, c->running_mean), a.running_var = P(r, x, c->running_var);
    a.mean = P(r, x, c->mean), a.rstd = P(r, x, c->rstd), a.y = P(r, x, c->y);
    a.residual = c->residual ? P(r, x, c->b_residual) : NULL;
    a.work = work_alloc(bytes);
    r->k.batchnorm_moments(r->ctx, &a);
    r->k.batchnorm(r->ctx, &a);
    a.dy = P(r, x, c->dy), a.dx = P(r, x, c->dx), a.dw = P(r, x, c->dw), a.db = P(r, x, c->db);
    a.d_residual = !c->residual ? NULL : c->adds_residual ? P(r, x, c->d_residual) : a.dy;
    r->k.batchnorm_bwd(r->ctx, &a);
    a.scale = P(r, x, c->scale), a.shift = P(r, x, c->shift);
    r->k.batchnorm_fold(r->ctx, &a);
    work_free(a.work, bytes);
}

static void check_norm(norm_case c, double low, double high)
{
    pnb__batchnorm_args *a = &c.args;
    size_t n = a->rows * a->width;
    fixture x;
    /* over few rows dx is a small difference of large numbers: two rows have only one direction */
    double tol = a->rows < 8 ? 2e-3 : 2e-5;
    fixture_init(&x, n + a->width, tol, tol);
    a->eps = 1e-5;
    a->momentum = 0.1;
    c.x = input(&x, n, low, high);
    c.w = input(&x, a->width, 0.5, 1.5);
    c.b = input(&x, a->width, -1, 1);
    c.b_residual = input(&x, n, -1, 1);
    c.running_mean = output(&x, a->width, true);
    c.running_var = output(&x, a->width, true);
    for (size_t i = 0; i < a->width; i++)
        x.arrays[c.running_var].init[i] = 0.5 + (double)(i % 7);
    c.mean = output(&x, a->width, false);
    c.rstd = output(&x, a->width, false);
    c.y = output(&x, n, false);
    c.dy = output(&x, n, true);
    c.dx = output(&x, n, a->accumulate_x);
    c.dw = output(&x, a->width, a->accumulate_w);
    c.db = output(&x, a->width, a->accumulate_b);
    c.d_residual = output(&x, n, true);
    c.scale = output(&x, a->width, false);
    c.shift = output(&x, a->width, false);
    compare_all(&x, norm_body, &c);
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{2, 1},   {3, 5},    {2, 16},  {7, 33},
                                      {40, 64}, {700, 17}, {300, 3}, {37, 2048}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        for (int frozen = 0; frozen < 2; frozen++) {
            norm_case c = {.args = {.rows = sizes[i][0], .width = sizes[i][1], .frozen = frozen}};
            check_norm(c, -2, 2);
            c.args.accumulate_x = c.args.accumulate_w = true;
            check_norm(c, -2, 2);
            c.args.accumulate_b = true;
            c.args.accumulate_w = false;
            check_norm(c, -2, 2);
        }
}

/* Under ReLU a value at the border may fall on either side in floats: a few rows, none of them. */
static void test_relu_and_residual(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++) {
        norm_case c = {.args = {.rows = 23, .width = 37, .relu = bits & 1, .frozen = bits & 8},
                       .residual = bits & 2,
                       .adds_residual = bits & 4};
        c.args.accumulate_residual = bits & 4;
        check_norm(c, -2, 2);
    }
}

/* Means far larger than deviations: what E[x^2] - E[x]^2 would lose. */
static void test_far_from_zero(void **state)
{
    (void)state;
    norm_case c = {.args = {.rows = 600, .width = 9}};
    pnb__kernels k;
    double *x = random_values(600 * 9, 3, 4000, 4001), mean[9], rstd[9], want = 0;
    c.args.x = x, c.args.mean = mean, c.args.rstd = rstd;
    pnb__kernels_ref_f64(&k);
    for (int t = 1; t < N_TABLES; t++) {
        pnb_ctx *ctx;
        float f[600 * 9], f_mean[9], f_rstd[9];
        if (!table_at(t, &k, 2, &ctx))
            continue;
        for (size_t i = 0; i < 600 * 9; i++)
            x[i] = (double)(f[i] = (float)x[i]);
        pnb__batchnorm_args a = {.rows = 600, .width = 9, .x = f, .mean = f_mean, .rstd = f_rstd};
        size_t bytes = k.batchnorm_work(ctx, 600, 9);
        a.work = work_alloc(bytes);
        k.batchnorm_moments(ctx, &a);
        work_free(a.work, bytes);
        pnb__kernels_ref_f64(&k);
        k.batchnorm_moments(NULL, &c.args);
        for (int i = 0; i < 9; i++) {
            want = rstd[i];
            assert_true(is_close((double)f_rstd[i], want, 0, 1e-3));
            assert_true(is_close((double)f_mean[i], mean[i], 0, 1e-6));
        }
        pnb_ctx_free(ctx);
    }
    assert_true(want > 3 && want < 4); /* a range of 1 has deviation 12^-1/2 */
    free(x);
}

/* Two channels worked out by hand: biased variance in y, unbiased one in the buffer. */
static void test_by_hand(void **state)
{
    (void)state;
    double x[8] = {1, 10, 2, 10, 3, 30, 6, 30}, w[2] = {2, 1}, b[2] = {0.5, -1}, y[8];
    double mean[2], rstd[2], running_mean[2] = {1, 0}, running_var[2] = {1, 2};
    pnb__batchnorm_args a = {.rows = 4,
                             .width = 2,
                             .eps = 0.5,
                             .momentum = 0.25,
                             .x = x,
                             .w = w,
                             .b = b,
                             .running_mean = running_mean,
                             .running_var = running_var,
                             .mean = mean,
                             .rstd = rstd,
                             .y = y};
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.batchnorm_moments(NULL, &a);
    k.batchnorm(NULL, &a);
    assert_true(mean[0] == 3 && mean[1] == 20); /* squares 14 and 400 */
    assert_true(is_close(rstd[0], 0.5, 1e-15, 0) && is_close(rstd[1], 1 / sqrt(100.5), 1e-15, 0));
    assert_true(is_close(running_mean[0], 1.5, 1e-15, 0) && is_close(running_mean[1], 5, 1e-15, 0));
    assert_true(is_close(running_var[0], 0.75 + 0.25 * 14 / 3, 1e-15, 0));
    assert_true(is_close(running_var[1], 1.5 + 0.25 * 400 / 3, 1e-14, 0));
    assert_true(is_close(y[0], (1 - 3) * 0.5 * 2 + 0.5, 1e-15, 0));
    assert_true(is_close(y[7], 10 / sqrt(100.5) - 1, 1e-15, 0));
}

typedef struct norm_loss {
    pnb__batchnorm_args a;
    double *x, *w, *b, *residual, *weights, *y;
    size_t n;
} norm_loss;

static double loss_of(void *user)
{
    norm_loss *l = user;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.batchnorm_moments(NULL, &l->a);
    k.batchnorm(NULL, &l->a);
    return dot_values(l->y, l->weights, l->n);
}

static void check_differences(bool frozen, bool relu)
{
    enum { ROWS = 5, WIDTH = 3, N = ROWS * WIDTH };
    double running_mean[WIDTH] = {0.1, -0.2, 0.3}, running_var[WIDTH] = {0.5, 1, 2};
    double mean[WIDTH], rstd[WIDTH], dx[N], dw[WIDTH], db[WIDTH], y[N], dy[N];
    norm_loss l = {.x = random_values(N, 1, -1, 1),
                   .w = random_values(WIDTH, 2, 0.5, 1),
                   .b = random_values(WIDTH, 3, -1, 1),
                   .residual = random_values(N, 4, -1, 1),
                   .weights = random_values(N, 5, -1, 1),
                   .y = y,
                   .n = N};
    l.a = (pnb__batchnorm_args){.rows = ROWS,
                                .width = WIDTH,
                                .eps = 1e-5,
                                .frozen = frozen,
                                .relu = relu,
                                .x = l.x,
                                .w = l.w,
                                .b = l.b,
                                .residual = l.residual,
                                .mean = mean,
                                .rstd = rstd,
                                .y = y,
                                .running_mean = frozen ? running_mean : NULL,
                                .running_var = frozen ? running_var : NULL};
    loss_of(&l);
    memcpy(dy, l.weights, sizeof dy);
    pnb__batchnorm_args bwd = l.a;
    bwd.dy = bwd.d_residual = dy, bwd.dx = dx, bwd.dw = dw, bwd.db = db;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.batchnorm_bwd(NULL, &bwd);
    check_gradient(loss_of, &l, l.x, dx, N, 1e-6);
    check_gradient(loss_of, &l, l.w, dw, WIDTH, 1e-6);
    check_gradient(loss_of, &l, l.b, db, WIDTH, 1e-6);
    check_gradient(loss_of, &l, l.residual, dy, N, 1e-6);
    free(l.x), free(l.w), free(l.b), free(l.residual), free(l.weights);
}

static void test_differences(void **state)
{
    (void)state;
    for (int bits = 0; bits < 4; bits++)
        check_differences(bits & 1, bits & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes), cmocka_unit_test(test_relu_and_residual),
        cmocka_unit_test(test_far_from_zero), cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
