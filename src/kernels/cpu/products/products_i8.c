/* Exact products of rows of bytes: by the integer tile of AVX-512 VNNI, four times the rate of
 * floats. The same in plain C, and inner products of a few rows of bfloat16, stand beside the
 * emulated tile unit, so that what is made of them is tested on every machine. What the rows stand
 * for is the caller's. */
#include <string.h>

#include "kernels/bf16.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/products/tile_i8.h"

_Static_assert(PNB__I8_TILE == PNB__TILE_I8_AVX512_ROWS, "rows lie as the tile reads them");

typedef void (*tile_fn)(const unsigned char *a, const signed char *b, size_t groups, size_t rows,
                        int32_t *acc);

static inline void multiply(const pnb__i8_args *g, tile_fn tile)
{
    for (size_t i = 0; i < g->m; i += PNB__I8_TILE) {
        size_t rows = PNB_MIN(g->m - i, (size_t)PNB__I8_TILE);
        for (size_t p = 0; p < g->n_panels; p++) {
            int32_t acc[PNB__I8_TILE * PNB__I8_PANEL];
            tile(g->a + i * g->groups * 4, g->b + p * g->groups * 4 * PNB__I8_PANEL, g->groups,
                 rows, acc);
            for (size_t r = 0; r < rows; r++)
                memcpy(g->c + (i + r) * g->ldc + p * PNB__I8_PANEL, acc + r * PNB__I8_PANEL,
                       PNB__I8_PANEL * sizeof *acc);
        }
    }
}

static void plain_tile(const unsigned char *a, const signed char *b, size_t groups, size_t rows,
                       int32_t *acc)
{
    memset(acc, 0, rows * PNB__I8_PANEL * sizeof *acc);
    for (size_t p = 0; p < groups; p++)
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < PNB__I8_PANEL; c++)
                for (size_t d = 0; d < 4; d++)
                    acc[r * PNB__I8_PANEL + c] +=
                        a[(p * PNB__I8_TILE + r) * 4 + d] * b[(p * PNB__I8_PANEL + c) * 4 + d];
}

void pnb__cpu_products_i8_plain(const pnb__i8_args *g)
{
    multiply(g, plain_tile);
}

void pnb__cpu_dots_bf16_plain(const pnb__bf16_dots_args *g)
{
    for (size_t i = 0; i < g->m; i++)
        for (size_t j = 0; j < g->n; j++) {
            float sum = 0;
            for (size_t d = 0; d < g->k; d++)
                sum = pnb__bf16_fma(g->a[i * g->lda + d], g->b[j * g->ldb + d], sum);
            g->c[i * g->ldc + j] = sum;
        }
}

#if defined(__x86_64__)
static void vnni_tile(const unsigned char *a, const signed char *b, size_t groups, size_t rows,
                      int32_t *acc)
{
    pnb__tiles_i8_avx512vnni[1][rows - 1](a, b, groups, acc, NULL);
}

void pnb__cpu_products_i8(const pnb__i8_args *g)
{
    multiply(g, vnni_tile);
}
#else
void pnb__cpu_products_i8(const pnb__i8_args *g)
{
    multiply(g, plain_tile);
}
#endif
