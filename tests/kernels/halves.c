/* Rows in bfloat16 of every table: the bits of the rounding, zeros behind a row, and how long what
 * was taken is: never told shorter, and not much longer. And slots of values in bfloat16: GELU of
 * every one, and those that are no numbers. */
#include "tests/kernels/harness.h"

#include "kernels/bf16.h"

static double left_of(const float *x, size_t n)
{
    double lost = 0;
    for (size_t d = 0; d < n; d++) {
        double left = (double)x[d] - (double)pnb__flushed(pnb__bf16_widen(pnb__bf16_of(x[d])));
        lost += left * left;
    }
    return sqrt(lost);
}

static void check(int table, size_t rows, size_t width, size_t ld_to, double size)
{
    pnb__kernels k;
    pnb_ctx *ctx;
    if (!table_at(table, &k, 2, &ctx))
        return;
    float *x = calloc(rows * (width + 3) + 1, sizeof *x);
    uint16_t *to = malloc((rows * ld_to + 1) * sizeof *to);
    double *off = calloc(rows + 1, sizeof *off);
    pnb__rng rng;
    assert_true(x != NULL && to != NULL && off != NULL);
    pnb__rng_init(&rng, width, (uint64_t)table);
    for (size_t i = 0; i < rows * (width + 3); i++)
        x[i] = (float)(size * pnb__rng_normal(&rng));
    memset(to, 0xff, (rows * ld_to + 1) * sizeof *to);
    off[rows] = 7;
    const pnb__halve_args args = {.rows = rows,
                                  .width = width,
                                  .ld = width + 3,
                                  .ld_to = ld_to,
                                  .x = x,
                                  .to = to,
                                  .off = off};
    k.host.halve_rows(ctx, &args);
    assert_true(to[rows * ld_to] == 0xffff && off[rows] == 7);
    for (size_t i = 0; i < rows; i++) {
        double want = left_of(x + i * (width + 3), width), most = sqrt((double)width) * 0x1p-74;
        for (size_t d = 0; d < ld_to; d++)
            assert_int_equal(to[i * ld_to + d],
                             d < width ? pnb__bf16_of(x[i * (width + 3) + d]) : 0);
        if (!(off[i] >= want && off[i] <= 1.01 * want + most))
            fail_msg("%s: row %zu of %zu: %.9g is told as %.9g", k.name, i, width, want, off[i]);
    }
    free(x);
    free(to);
    free(off);
    pnb_ctx_free(ctx);
}

static void test_rows(void **state)
{
    (void)state;
    const double sizes[] = {1, 1e-3, 1e12, 1e-22, 1e-37, 1e-41}; /* squares and numbers vanish */
    for (int t = 0; t < N_TABLES; t++)
        for (size_t c = 0; c < PNB_COUNT(sizes) * 4; c++) {
            size_t width = (const size_t[]){1, 17, 64, 515}[c % 4];
            check(t, c % 5, width, width + c % 3, sizes[c / 4]);
        }
}

enum { N_HALVES = 1 << 16 };

/* GELU and its derivative: x Phi(x), Phi(x) + x phi(x). */
static double gelu(double x, bool slope)
{
    double share = 0.5 * erfc(-x / sqrt(2));
    return slope ? share + x * exp(-0.5 * x * x) / sqrt(2 * acos(-1)) : x * share;
}

static void check_gelu(const pnb__kernels *k, const pnb_ctx *ctx, bool slope)
{
    uint16_t *x = malloc(N_HALVES * sizeof *x), *y = malloc(N_HALVES * sizeof *y);
    assert_true(x != NULL && y != NULL);
    for (size_t i = 0; i < N_HALVES; i++) {
        x[i] = (uint16_t)i;
        y[i] = pnb__bf16_of(1);
    }
    if (slope)
        k->halves_unary_bwd(ctx, PNB__GELU, N_HALVES, x, y, y);
    else
        k->halves_unary(ctx, PNB__GELU, N_HALVES, x, y);
    wait_for(k, ctx);
    for (size_t i = 0; i < N_HALVES; i++) {
        double at = (double)pnb__bf16_widen(x[i]), got = (double)pnb__bf16_widen(y[i]);
        double want = gelu(at, slope),
               most = 0x1.01p-8 * fabs(want) + 4e-7 * fmin(fabs(at), 8) + 2e-7;
        if (isfinite(at) ? !(fabs(got - want) <= most) : isnan(at) && !isnan(got))
            fail_msg("%s of %.9g: got %.9g, want %.9g", slope ? "slope" : "GELU", at, got, want);
    }
    assert_true(slope || pnb__bf16_widen(y[0x7f80]) == INFINITY);
    free(x);
    free(y);
}

/* Of every number that there is. */
static void test_gelu(void **state)
{
    (void)state;
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (int slope = 0; slope < 2 && k.halves_of != NULL; slope++)
            check_gelu(&k, ctx, slope);
        pnb_ctx_free(ctx);
    }
}

/* NaN stays, what is too great becomes infinite, and a column with either says so; others do not.
 */
static void test_values_that_are_none(void **state)
{
    (void)state;
    const float values[8] = {NAN, INFINITY, -INFINITY, 3.4e38f, 3e38f, -0.0f, 1e-42f, 1};
    float *x = malloc(sizeof values), *sum = malloc(sizeof values);
    uint16_t *half = malloc(8 * sizeof *half);
    assert_true(x != NULL && sum != NULL && half != NULL);
    memcpy(x, values, sizeof values);
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        if (k.halves_of != NULL) {
            k.halves_of(ctx, 8, x, half);
            k.halves_sum(ctx, 1, 8, half, sum, false);
            wait_for(&k, ctx);
            for (size_t i = 1; i < 8; i++)
                assert_int_equal(half[i], pnb__bf16_of(values[i]));
            assert_true(isnan(pnb__bf16_widen(half[0]))); /* of its bits each device has its own */
            assert_true(isnan(sum[0]) && sum[1] == INFINITY && sum[2] == -INFINITY);
            assert_true(sum[3] == INFINITY && isfinite(sum[4]) && sum[5] == 0 && sum[7] == 1);
        }
        pnb_ctx_free(ctx);
    }
    free(x);
    free(sum);
    free(half);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_gelu),
                                       cmocka_unit_test(test_values_that_are_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
