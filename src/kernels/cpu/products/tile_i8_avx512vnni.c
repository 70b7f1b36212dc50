/* The integer tile with AVX-512 VNNI: one instruction multiplies four bytes with four bytes in each
 * of sixteen lanes and adds the products, in 32 bits throughout. 28 sums, 2 vectors of b, 1 of a:
 * 31 of 32 registers. A file of its own, because only CPUs with VNNI may run what is compiled here.
 */
#include "kernels/cpu/products/tile_i8.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define VL 16
#define I8_ROWS PNB__TILE_I8_AVX512_ROWS

typedef __m512i vi;

static inline vi vi_load(const signed char *p)
{
    return _mm512_loadu_si512(p);
}
static inline void vi_store(int32_t *p, vi x)
{
    _mm512_storeu_si512(p, x);
}
static inline vi vi_spread(int32_t x)
{
    return _mm512_set1_epi32(x);
}
static inline vi vi_dot(vi sum, vi a, vi b, bool wide)
{
    (void)wide; /* sums never leave 32 bits */
    return _mm512_dpbusd_epi32(sum, a, b);
}

#include "kernels/cpu/products/tile_i8.inc"

const pnb__tile_i8_fn pnb__tiles_i8_avx512vnni[2][I8_ROWS] = TILE_I8_TABLE;
