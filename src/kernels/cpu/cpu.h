/* The instruction sets of src/kernels/cpu, one file each; x86 ones exist on x86-64 only. */
#ifndef PNB_KERNELS_CPU_CPU_H
#define PNB_KERNELS_CPU_CPU_H

#include "kernels/kernels.h"

void pnb__cpu_overwrite_f32_generic(pnb__kernels *k);
void pnb__cpu_overwrite_f32_avx2(pnb__kernels *k);
void pnb__cpu_overwrite_f32_avx512(pnb__kernels *k);
void pnb__cpu_overwrite_i8_generic(pnb__kernels *k);
void pnb__cpu_overwrite_i8_avx2(pnb__kernels *k);
void pnb__cpu_overwrite_i8_avx512(pnb__kernels *k); /* needs VNNI */

/* Products by OpenBLAS, the epilogue by plain loops: gemm slots where no tile code is faster. */
/* Around calls of OpenBLAS: it uses the calling thread only. What the first returns is handed to
 * the second. */
int pnb__blas_alone(void);
void pnb__blas_together(int before);

void pnb__cpu_gemm_blas_f32(const pnb_ctx *ctx, const pnb__gemm_args *g);
void pnb__cpu_gemm_blas_f64(const pnb_ctx *ctx, const pnb__gemm_args *g);

#define PNB__BF16_STEP 32 /* of k, in which something more is fetched */

/* Products of bfloat16 by the instruction of AVX-512 BF16; of both types on AMX's tiles; and by the
 * same code for tiles on any machine. */
void pnb__cpu_products_bf16(const pnb__bf16_args *g);
void pnb__cpu_dots_bf16(const pnb__bf16_dots_args *g);
void pnb__cpu_dots_bf16_plain(const pnb__bf16_dots_args *g);
/* Of bytes: needs VNNI; in plain C. */
void pnb__cpu_products_i8(const pnb__i8_args *g);
void pnb__cpu_products_i8_plain(const pnb__i8_args *g);
void pnb__cpu_overwrite_bf16_avx512(pnb__kernels *k);
void pnb__cpu_overwrite_tiles_amx(pnb__kernels *k);
void pnb__cpu_overwrite_tiles_emulated(pnb__kernels *k);
bool pnb__cpu_cholesky_f64(const pnb_ctx *ctx, size_t n, const void *a, void *l);
void pnb__cpu_tri_solve_f64(const pnb_ctx *ctx, size_t n, size_t m, bool transpose, const void *l,
                            const void *b, void *x);

#endif
