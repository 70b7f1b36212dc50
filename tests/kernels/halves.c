/* Rows in bfloat16 of every table: the bits of the rounding, zeros behind a row, and how long what
 * was taken is: never told shorter, and not much longer. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
