/* Exact products of bytes at the ends of their range, over every row of a tile, and inner products
 * of a few rows of halves, on every table that has them. */
#include "tests/kernels/harness.h"

#include "kernels/bf16.h"

static void check_products(const pnb__kernels *k, size_t m, size_t n_panels, size_t groups)
{
    size_t tiles = (m + PNB__I8_TILE - 1) / PNB__I8_TILE, n = n_panels * PNB__I8_PANEL;
    size_t ldc = n + 3;
    unsigned char *a = malloc(tiles * PNB__I8_TILE * groups * 4 + 1);
    signed char *b = malloc(n * groups * 4);
    int32_t *c = calloc(m * ldc + 1, sizeof *c);
    pnb__rng rng;
    assert_true(a && b && c);
    pnb__rng_init(&rng, m, groups);
    for (size_t i = 0; i < tiles * PNB__I8_TILE * groups * 4; i++)
        a[i] = (unsigned char)(i % 5 == 0 ? 255 : pnb__rng_below(&rng, 256));
    for (size_t i = 0; i < n * groups * 4; i++)
        b[i] = (signed char)(i % 5 == 0 ? -127 : (int)pnb__rng_below(&rng, 255) - 127);
    c[m * ldc] = 77;
    const pnb__i8_args args = {
        .m = m, .n_panels = n_panels, .groups = groups, .ldc = ldc, .a = a, .b = b, .c = c};
    k->products_i8(&args);
    assert_int_equal(c[m * ldc], 77);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            int64_t sum = 0;
            for (size_t d = 0; d < 4 * groups; d++) {
                size_t at = ((i / PNB__I8_TILE * groups + d / 4) * PNB__I8_TILE + i % PNB__I8_TILE);
                size_t to =
                    ((j / PNB__I8_PANEL * groups + d / 4) * PNB__I8_PANEL + j % PNB__I8_PANEL);
                sum += a[at * 4 + d % 4] * b[to * 4 + d % 4];
            }
            assert_int_equal(c[i * ldc + j], sum);
        }
    free(a), free(b), free(c);
}

static void check_dots(const pnb__kernels *k, size_t m, size_t n, size_t depth)
{
    size_t ld = depth + 2;
    uint16_t *a = malloc(m * ld * sizeof *a), *b = malloc(n * ld * sizeof *b);
    float *c = calloc(m * (n + 1), sizeof *c);
    pnb__rng rng;
    assert_true(a && b && c);
    pnb__rng_init(&rng, m, n);
    for (size_t i = 0; i < m * ld; i++)
        a[i] = (uint16_t)((pnb__rng_u32(&rng) & 0x81ff) | 0x3e00);
    for (size_t i = 0; i < n * ld; i++)
        b[i] = (uint16_t)((pnb__rng_u32(&rng) & 0x81ff) | 0x3e00);
    const pnb__bf16_dots_args args = {
        .m = m, .n = n, .k = depth, .lda = ld, .ldb = ld, .ldc = n + 1, .a = a, .b = b, .c = c};
    k->dots_bf16(&args);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0, xx = 0, yy = 0;
            for (size_t d = 0; d < depth; d++) {
                double x = pnb__bf16_widen(a[i * ld + d]), y = pnb__bf16_widen(b[j * ld + d]);
                sum += x * y, xx += x * x, yy += y * y;
            }
            double bound = 2 * (double)depth * 0x1p-24 * sqrt(xx * yy);
            assert_true(fabs((double)c[i * (n + 1) + j] - sum) <= bound);
            assert_true(c[i * (n + 1) + n] == 0);
        }
    free(a), free(b), free(c);
}

static void test_products(void **state)
{
    (void)state;
    for (int t = 0; t < N_TABLES; t++) {
        pnb_ctx *ctx;
        pnb__kernels k;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        bool has = t == 5 || t == 7; /* AVX512_BF16 and emulated: AMX has faster ones */
        assert_int_equal(k.products_i8 != NULL, has);
        assert_int_equal(k.dots_bf16 != NULL, k.products_bf16 != NULL);
        for (size_t c = 0; has && c < 18; c++)
            check_products(&k, (const size_t[]){1, 7, 13, 14, 15, 29}[c % 6], 1 + c / 6, 1 + 5 * c);
        for (size_t m = 1; has && m < 10; m++)
            for (size_t n = 1; n < 8; n++)
                check_dots(&k, m, n, 2 * (m * n * 3 % 41 + 1));
        pnb_ctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
