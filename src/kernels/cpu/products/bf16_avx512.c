/* gemm_bf16 and attention in bfloat16 with AVX-512 BF16: the products are products_bf16.c's, what
 * is around them runs on vectors of 16. Only where ctx->isa is AVX512_BF16 or more. A file of its
 * own beside f32_avx512.c, whose gemm_bf16 is that of machines without it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/halves_avx512.h"

#include "kernels/cpu/loops/math.inc"

#include "kernels/cpu/products/gemm_finish.inc"

#define BF16_ROW_MULTIPLE 2
#include "kernels/cpu/products/gemm_bf16_factors.inc"

#define BF16_ROWS 14
#define BF16_STRIP_BYTES ((size_t)384 << 10)

/* sums = those of a stretch after the other, each of all its products of parts. */
static void sum_parts(const bf16_job *job, pnb__bf16_args args, float *sums)
{
    float one[BF16_ROWS * PNB__BF16_PANEL];
    size_t depth = args.k, n = args.m * args.ldc;
    pnb__bf16_term terms[BF16_PAIRS];
    args.terms = terms;
    args.c = one;
    for (size_t p = 0; p < depth; p += BF16_STRETCH) {
        args.k = PNB_MIN(depth - p, BF16_STRETCH);
        args.n_terms = bf16_terms_of(job, p, terms);
        pnb__cpu_products_bf16(&args);
        for (size_t i = 0; i < n; i++)
            sums[i] = p == 0 ? one[i] : sums[i] + one[i];
    }
}

/* A panel after the other: sums, then the epilogue. */
static void bf16_row_of_tiles(const bf16_job *job, const bf16_tiles *at)
{
    const pnb__gemm_args *g = job->g;
    float sums[BF16_ROWS * PNB__BF16_PANEL];
    for (size_t p = at->panels[0]; p < at->panels[1]; p++) {
        size_t j = p * PNB__BF16_PANEL;
        pnb__bf16_args args = bf16_args_of(job, at, p);
        args.c = sums;
        if (g->packed->bf16_parts > 1)
            sum_parts(job, args, sums);
        else {
            gemm_later_rows(g, at->i, j, at->later);
            args.later = at->later; /* several products of parts would fetch it again and again */
            pnb__cpu_products_bf16(&args);
        }
        for (size_t r = 0; r < at->rows; r++)
            gemm_finish_row(g, at->i + r, j, PNB_MIN(g->n - j, (size_t)PNB__BF16_PANEL),
                            sums + r * PNB__BF16_PANEL, (at->i + r) * g->ldc + j);
    }
}

#include "kernels/cpu/products/gemm_bf16.inc"

/* ---- attention ---- */

#define ATTEND_ROWS (2 * BF16_ROWS)
#define ATTEND_BELOW(ctx) ((void)(ctx), PNB_ISA_AVX512_VNNI)
#define ATTEND_TARGET

/* Vectors need nothing between products. */
typedef char attend_unit;
#define attend_begin(u, rows) ((void)(u), (void)(rows))
#define attend_end(u) ((void)(u))
#define attend_multiply(u, args) ((void)(u), pnb__cpu_products_bf16(args))

#include "kernels/cpu/loops/attention_bf16.inc"

/* ---- the product in bytes ---- */

#define TILE_COLS (2 * VL)
#define tiles_i8 pnb__tiles_i8_avx512vnni
#include "kernels/cpu/products/gemm_i8.inc"

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
    k->halves_gain = k->i8_halves = true;
    k->attention_work = attention_work;
    k->attention = attention;
    k->gemm_i8_pack_bytes = gemm_i8_pack_bytes;
    k->gemm_i8_pack = gemm_i8_pack;
    k->gemm_i8_work = gemm_i8_work;
    k->gemm_i8 = gemm_i8;
    k->products_bf16 = pnb__cpu_products_bf16;
    k->dots_bf16 = pnb__cpu_dots_bf16;
    k->products_i8 = pnb__cpu_products_i8; /* such a machine has VNNI */
}
