/* Overwrites reference slots with the fast ones this machine can run.
 * Which instruction sets exist was asked once, when the context was made; here the set only picks
 * one of the tables that f32_<isa>.c compiled. Slots a table leaves alone stay with ref. */
#include "kernels/cpu/cpu.h"

void pnb__kernels_cpu_f32(pnb__kernels *k, pnb_isa isa, bool rows_alone)
{
#if defined(__x86_64__)
    if (isa >= PNB_ISA_AVX2) {
        if (isa == PNB_ISA_AVX2)
            pnb__cpu_overwrite_f32_avx2(k);
        else
            pnb__cpu_overwrite_f32_avx512(k);
        if (isa >= PNB_ISA_AVX512_VNNI)
            pnb__cpu_overwrite_i8_avx512(k);
        else
            pnb__cpu_overwrite_i8_avx2(k);
        if (isa >= PNB_ISA_AVX512_BF16)
            pnb__cpu_overwrite_bf16_avx512(k);
        if (isa >= PNB_ISA_AMX)
            pnb__cpu_overwrite_tiles_amx(k);
        return;
    }
#endif
    (void)isa;
    pnb__cpu_overwrite_f32_generic(k);
    pnb__cpu_overwrite_i8_generic(k);
    if (rows_alone)
        return; /* the tiles of this folder sum alike whatever the rows; BLAS chooses by size */
    k->gemm = pnb__cpu_gemm_blas_f32; /* packs for itself in every call */
    k->gemm_pack_bytes = NULL;
    k->gemm_pack = NULL;
    k->gemm_group = 0;
}

void pnb__kernels_emulate_tiles(pnb__kernels *k)
{
    pnb__cpu_overwrite_tiles_emulated(k);
}

/* In double the matrix product and the solves of Gaussian processes are worth more than plain C;
 * gradients are tested on this table, but nothing of a network runs on it. */
void pnb__kernels_cpu_f64(pnb__kernels *k, pnb_isa isa)
{
    (void)isa;
    k->name = "cpu-f64";
    k->gemm = pnb__cpu_gemm_blas_f64;
    k->cholesky = pnb__cpu_cholesky_f64;
    k->tri_solve = pnb__cpu_tri_solve_f64;
}
