/* The gemm slot for floats on OpenBLAS.
 * The loops around the library's product (blocks, epilogue) are in gemm_blas.inc, which is compiled
 * once a type; this file only names the type and the function. */
#include <cblas.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/ref/scalar.h"

typedef float real;
#define CBLAS_GEMM cblas_sgemm

#include "kernels/cpu/products/gemm_blas.inc"

void pnb__cpu_gemm_blas_f32(const pnb_ctx *ctx, const pnb__gemm_args *g)
{
    gemm_blas(ctx, g);
}
