/* gemm_bf16 with AVX-512 BF16: the products are products_bf16.c's, the epilogue runs on vectors of
 * 16. Only where ctx->isa is AVX512_BF16 or more.
 * A file of its own beside f32_avx512.c, whose gemm_bf16 is that of machines without it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd_avx512.h"

#include "kernels/cpu/loops/math.inc"

#include "kernels/cpu/products/gemm_finish.inc"

#define BF16_ROWS 14
#define BF16_PANELS 1
#define bf16_products pnb__cpu_products_bf16
#include "kernels/cpu/products/gemm_bf16.inc"

void pnb__cpu_overwrite_bf16_avx512(pnb__kernels *k)
{
    k->gemm_bf16_pack_bytes = gemm_bf16_pack_bytes;
    k->gemm_bf16_pack = gemm_bf16_pack;
    k->gemm_bf16_work = gemm_bf16_work;
    k->gemm_bf16 = gemm_bf16;
    k->gemm_rounded_work = gemm_rounded_work;
    k->gemm_rounded = gemm_rounded;
    k->gemm_bf16_group = PNB__BF16_PANEL;
    k->bf16_parts = BF16_MOST_PARTS; /* at twice the rate of floats three or six do not gain */
    k->products_bf16 = pnb__cpu_products_bf16;
    k->dots_bf16 = pnb__cpu_dots_bf16;
    k->products_i8 = pnb__cpu_products_i8; /* such a machine has VNNI */
}
