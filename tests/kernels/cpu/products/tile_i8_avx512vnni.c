/* The integer tile with VNNI: sums of products of bytes, exact for every number of rows, also where
 * bytes are at their ends; nothing is written behind the rows. */
#include "kernels/cpu/products/tile_i8.h"

#include "tests/kernels/harness.h"

#if defined(__x86_64__)
enum { ROWS = PNB__TILE_I8_AVX512_ROWS, COLS = 32, GROUPS = 70 };

/* Bytes of a tile, and the sums one by one. */
static void check_tile(bool wide, int rows, size_t groups, bool ends)
{
    static unsigned char a[4 * ROWS * GROUPS];
    static signed char b[4 * COLS * GROUPS];
    int32_t acc[(ROWS + 1) * COLS];
    pnb__rng rng;
    pnb__rng_init(&rng, (uint64_t)rows, groups);
    for (size_t i = 0; i < sizeof a; i++) {
        unsigned top = wide ? 255 : 127;
        a[i] = (unsigned char)(ends ? top : pnb__rng_below(&rng, top + 1));
    }
    for (size_t i = 0; i < sizeof b; i++)
        b[i] =
            (signed char)(ends ? (i % 8 < 4 ? -128 : 127) : (int)pnb__rng_below(&rng, 256) - 128);
    for (size_t i = 0; i < PNB_COUNT(acc); i++)
        acc[i] = -77;
    pnb__tiles_i8_avx512vnni[wide][rows - 1](a, b, groups, acc, NULL);
    for (int r = 0; r < ROWS + 1; r++)
        for (int c = 0; c < COLS; c++) {
            int32_t sum = 0;
            for (size_t p = 0; p < groups; p++) /* four bytes of each row, of each column */
                for (size_t k = 0; k < 4 && r < rows; k++)
                    sum += a[(p * ROWS + (size_t)r) * 4 + k] * b[(p * COLS + (size_t)c) * 4 + k];
            assert_int_equal(acc[r * COLS + c], r < rows ? sum : -77);
        }
}

static void test_sums(void **state)
{
    static const size_t groups[] = {0, 1, 2, GROUPS};
    (void)state;
    pnb_ctx *ctx = test_ctx(PNB_ISA_AVX512_VNNI, 1);
    if (ctx == NULL)
        skip(); /* only a CPU with VNNI can run it */
    for (int wide = 0; wide < 2; wide++)
        for (int rows = 1; rows <= ROWS; rows++)
            for (size_t g = 0; g < PNB_COUNT(groups); g++)
                for (int ends = 0; ends < 2; ends++)
                    check_tile(wide, rows, groups[g], ends);
    pnb_ctx_free(ctx);
}
#else
static void test_sums(void **state)
{
    (void)state;
    skip(); /* x86-64 only */
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
