/* The integer tile: sums of products of bytes, kept in registers.
 *   acc (rows x 2*VL) = a (rows x k) b (k x 2*VL),  k in groups of four
 * a: for each group, four bytes of each of the tile's rows, I8_ROWS of them
 * apart whatever `rows` is; b: for each group, four signed bytes of each of 2*VL columns. acc has
 * rows 2*VL apart. Sums are exact: |sum| <= k * 255 * 127. */
#ifndef PNB_KERNELS_CPU_TILE_I8_H
#define PNB_KERNELS_CPU_TILE_I8_H

#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "kernels/cpu/products/ahead.h"

#define PNB__TILE_I8_STEP 8 /* groups of a step */

typedef void (*pnb__tile_i8_fn)(const unsigned char *a, const signed char *b, size_t groups,
                                int32_t *acc, pnb__tile_later *later);

/* [a has values above 127][rows - 1]; in tile_i8_avx512vnni.c. */
#define PNB__TILE_I8_AVX512_ROWS 14
extern const pnb__tile_i8_fn pnb__tiles_i8_avx512vnni[2][PNB__TILE_I8_AVX512_ROWS];

#endif
