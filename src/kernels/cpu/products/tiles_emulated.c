/* The code for a tile unit on the emulated one (tile_emulated.h): a column of its own that runs on
 * every machine, so that every test of kernels and models sees that code.
 * What it leaves to the table below it is everything but the products. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/products/tile_emulated.h"
#include "kernels/cpu/simd_generic.h"

#include "kernels/cpu/loops/math.inc"

#include "kernels/cpu/products/gemm_finish.inc"

typedef struct unit {
    pnb__tile tile[PNB__N_TILES];
} unit;

#define UNIT unit
#define UNIT_BELOW(ctx) ((ctx) ? PNB_MIN((ctx)->isa, PNB_ISA_AVX512_VNNI) : PNB_ISA_GENERIC)
#define UNIT_TARGET
#define unit_zero(u, t) pnb__tile_zero(&(u)->tile[t])
#define unit_load(u, t, from, step) pnb__tile_load(&(u)->tile[t], from, step)
#define unit_store(u, t, to, step) pnb__tile_store(&(u)->tile[t], to, step)
#define unit_dpbf16ps(u, c, a, b) pnb__tile_dpbf16ps(&(u)->tile[c], &(u)->tile[a], &(u)->tile[b])
#define unit_dpbusd(u, c, a, b) pnb__tile_dpbusd(&(u)->tile[c], &(u)->tile[a], &(u)->tile[b])
#define unit_release(u) memset(u, 0xFF, sizeof *(u)) /* nobody may count on what was there */

/* LDTILECFG: all tiles are zero after it. */
static void unit_configure(unit *u, size_t first, size_t second)
{
    const size_t rows[PNB__N_TILES] = {first, first,  second,         second,
                                       first, second, PNB__TILE_ROWS, PNB__TILE_ROWS};
    memset(u, 0, sizeof *u);
    for (size_t t = 0; t < PNB__N_TILES; t++) {
        u->tile[t].rows = rows[t];
        u->tile[t].row_bytes = PNB__TILE_BYTES;
    }
}

#include "kernels/cpu/products/tile_unit.inc"

void pnb__cpu_overwrite_tiles_emulated(pnb__kernels *k)
{
    overwrite_products(k);
    k->dots_bf16 = pnb__cpu_dots_bf16_plain;
    k->products_i8 = pnb__cpu_products_i8_plain;
    k->name = "cpu-tiles-emulated";
}
