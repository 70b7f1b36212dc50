/* The gemm slot for doubles on OpenBLAS; see gemm_blas.inc. */
#include <cblas.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/ref/scalar.h"

typedef double real;
#define CBLAS_GEMM cblas_dgemm

#include "kernels/cpu/gemm_blas.inc"

void pnb__cpu_gemm_blas_f64(const pnb_ctx *ctx, const pnb__gemm_args *g)
{
    gemm_blas(ctx, g);
}
