/* Products of rows in bfloat16 with AVX-512 BF16: one instruction multiplies two pairs in each of
 * sixteen lanes and adds them to a sum in floats, twice the rate of floats.
 *
 * b is packed in panels of 32 rows: for each pair of columns, the 32 rows' pairs beside each other
 * (pnb__bf16_pack). 14 rows of a against a panel keep 28 sums in registers. Sums are of one chain a
 * lane, so a product does not depend on where its rows stand. A file of its own with the target
 * named at its functions: only CPUs that have the instructions may run it. */
#include "base/loop.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/products/ahead.h"
#include "kernels/cpu/products/row_pointers.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define ROWS 14
#define PANEL PNB__BF16_PANEL

/* Two neighbouring numbers of a row in every lane. */
TARGET static inline __m512bh spread(const uint16_t *pair)
{
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return (__m512bh)_mm512_set1_epi32(both);
}

TARGET static inline __m512bh load(const uint16_t *p)
{
    return (__m512bh)_mm512_loadu_si512(p);
}

/* rows x 32 products; `rows` is a constant where this is called. */
TARGET PNB__INLINE void tile(const pnb__bf16_args *g, size_t i, size_t panel, const int rows)
{
    const size_t lda = g->lda;
    __m512 sum[ROWS][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    for (size_t t = 0; t < pnb__bf16_n_terms(g); t++) {
        const uint16_t *b = pnb__bf16_columns(g, panel, t), *a[PNB__ROW_POINTERS(ROWS)];
#pragma GCC unroll 5
        for (int p = 0; p < PNB__ROW_POINTERS(rows); p++)
            a[p] = pnb__bf16_rows(g, i, t) + 3 * (size_t)p * lda;
        for (size_t d = 0; d < g->k;) {
            if (g->later != NULL)
                tile_later_step(g->later, d / PNB__BF16_STEP, (size_t)rows);
            size_t until = PNB_MIN(d + PNB__BF16_STEP, g->k);
            for (; d < until; d += 2, b += 2 * PANEL) {
                __m512bh low = load(b), high = load(b + PANEL);
#pragma GCC unroll 14
                for (int r = 0; r < rows; r++) {
                    __m512bh x = spread(a[r / 3] + (size_t)(r % 3) * lda);
                    sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, low);
                    sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, high);
                }
#pragma GCC unroll 5
                for (int p = 0; p < PNB__ROW_POINTERS(rows); p++) {
                    a[p] += 2;
                    PNB__KEEP_IN_REGISTER(a[p]);
                }
            }
        }
    }
    float *out = g->c + i * g->ldc + panel * PANEL;
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_ps(out + (size_t)r * g->ldc, sum[r][0]);
        _mm512_storeu_ps(out + (size_t)r * g->ldc + 16, sum[r][1]);
    }
}

#define ROWS_LIST(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

#define TILE_CASE(rows)                                                                            \
    case rows:                                                                                     \
        tile(g, i, panel, rows);                                                                   \
        break;

TARGET void pnb__cpu_products_bf16(const pnb__bf16_args *g)
{
    for (size_t panel = 0; panel < g->n_panels; panel++) {
        size_t i = 0;
        for (; i + ROWS <= g->m; i += ROWS)
            tile(g, i, panel, ROWS);
        switch (g->m - i) {
            ROWS_LIST(TILE_CASE)
        default:
            break;
        }
    }
}

/* ---- few rows with few ---- */

#define DOT_ROWS 7
#define DOT_COLS 3

/* rows x cols sums in registers, a vector of columns at a time: constants where this is called. */
TARGET PNB__INLINE void dots(const pnb__bf16_dots_args *g, size_t i, size_t j, const int rows,
                             const int cols)
{
    const uint16_t *a = g->a + i * g->lda, *b = g->b + j * g->ldb;
    __m512 sum[DOT_ROWS][DOT_COLS];
#pragma GCC unroll 21
    for (int n = 0; n < rows * cols; n++)
        sum[n / cols][n % cols] = _mm512_setzero_ps();
    for (size_t d = 0; d < g->k; d += 32) {
        __mmask32 here = g->k - d >= 32 ? 0xffffffffu : (1u << (g->k - d)) - 1u;
        __m512bh y[DOT_COLS];
#pragma GCC unroll 3
        for (int c = 0; c < cols; c++)
            y[c] = (__m512bh)_mm512_maskz_loadu_epi16(here, b + (size_t)c * g->ldb + d);
#pragma GCC unroll 7
        for (int r = 0; r < rows; r++) {
            __m512bh x = (__m512bh)_mm512_maskz_loadu_epi16(here, a + (size_t)r * g->lda + d);
#pragma GCC unroll 3
            for (int c = 0; c < cols; c++)
                sum[r][c] = _mm512_dpbf16_ps(sum[r][c], x, y[c]);
        }
    }
#pragma GCC unroll 7
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int c = 0; c < cols; c++)
            g->c[(i + (size_t)r) * g->ldc + j + (size_t)c] = _mm512_reduce_add_ps(sum[r][c]);
}

#define DOTS_CASES(rows)                                                                           \
    case 10 * (rows) + 1:                                                                          \
        dots(g, i, j, rows, 1);                                                                    \
        break;                                                                                     \
    case 10 * (rows) + 2:                                                                          \
        dots(g, i, j, rows, 2);                                                                    \
        break;                                                                                     \
    case 10 * (rows) + 3:                                                                          \
        dots(g, i, j, rows, 3);                                                                    \
        break;

TARGET void pnb__cpu_dots_bf16(const pnb__bf16_dots_args *g)
{
    for (size_t i = 0; i < g->m; i += DOT_ROWS)
        for (size_t j = 0; j < g->n; j += DOT_COLS)
            switch (10 * PNB_MIN(g->m - i, (size_t)DOT_ROWS) +
                    PNB_MIN(g->n - j, (size_t)DOT_COLS)) {
                DOTS_CASES(1)
                DOTS_CASES(2)
                DOTS_CASES(3)
                DOTS_CASES(4)
                DOTS_CASES(5)
                DOTS_CASES(6)
                DOTS_CASES(7)
            default:
                break;
            }
}

#else

void pnb__cpu_products_bf16(const pnb__bf16_args *g)
{
    (void)g;
}

void pnb__cpu_dots_bf16(const pnb__bf16_dots_args *g)
{
    (void)g;
}

#endif
