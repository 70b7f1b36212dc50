/* The code for a tile unit on AMX (Intel's manual, volume 1, chapter 18).
 *
 * The instructions are written out: GCC 12's intrinsics do not tell the compiler that a
 * configuration or a tile is read from memory, and stores to it may then be dropped or moved behind
 * (`ldtilecfg` here names all 64 bytes as read, the others all memory). The state is released after
 * every use, so that the system has no tiles to save for a thread that does something else; signals
 * find it as any other register. Only where ctx->isa is AMX: base/processor.c has asked the system.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/halves_avx512.h"

#include "kernels/cpu/loops/math.inc"

#include "kernels/cpu/products/gemm_finish.inc"

/* What LDTILECFG reads. */
typedef struct unit {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} unit;
_Static_assert(sizeof(unit) == 64, "the configuration of tiles is 64 bytes");

#define UNIT unit
#define UNIT_BELOW(ctx) ((void)(ctx), PNB_ISA_AVX512_VNNI)
#define UNIT_TARGET __attribute__((target("amx-tile,amx-int8,amx-bf16")))
/* Tiles are the processor's own: `u` holds nothing of them. */
#define TILE_ASM(u, ...)                                                                           \
    do {                                                                                           \
        (void)(u);                                                                                 \
        __asm__ volatile(__VA_ARGS__);                                                             \
    } while (0)
#define unit_zero(u, t) TILE_ASM(u, "tilezero %%tmm" #t ::: "memory")
#define unit_load(u, t, from, step)                                                                \
    TILE_ASM(u, "tileloadd (%0,%1,1), %%tmm" #t ::"r"((const void *)(from)), "r"((size_t)(step))   \
             : "memory")
#define unit_store(u, t, to, step)                                                                 \
    TILE_ASM(u, "tilestored %%tmm" #t ", (%0,%1,1)" ::"r"((void *)(to)), "r"((size_t)(step))       \
             : "memory")
#define unit_dpbf16ps(u, c, a, b)                                                                  \
    TILE_ASM(u, "tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")
#define unit_dpbusd(u, c, a, b)                                                                    \
    TILE_ASM(u, "tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::: "memory")
#define unit_release(u) TILE_ASM(u, "tilerelease" ::: "memory")

/* Palette 1: eight tiles of up to 16 rows of 64 bytes. A tile of no rows must not be named. */
UNIT_TARGET static void unit_configure(unit *u, size_t first, size_t second)
{
    const size_t rows[8] = {first, first, second, second, first, second, 16, 16};
    *u = (unit){.palette = 1};
    for (size_t t = 0; t < 8; t++) {
        u->rows[t] = (uint8_t)rows[t];
        u->row_bytes[t] = rows[t] > 0 ? 64 : 0;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(*u));
}

#include "kernels/cpu/products/tile_unit.inc"

void pnb__cpu_overwrite_tiles_amx(pnb__kernels *k)
{
    overwrite_products(k);
    k->products_i8 = NULL; /* tiles of bfloat16 are as fast as bytes in vectors */
    k->name = "cpu-amx";
}
