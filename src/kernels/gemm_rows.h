/* gemm of plain row-major matrices: what its arguments are where rows stand side by side. */
#ifndef PNB_KERNELS_GEMM_ROWS_H
#define PNB_KERNELS_GEMM_ROWS_H

#include "kernels/kernels.h"

/* c = op(a) op(b): op(a) is (m,k), op(b) (k,n), c (m,n); a transposed matrix is stored as (k,m) or
 * (n,k). One product; of several, one behind the other, n_batch is the caller's to set, as are a,
 * b, c, alpha and beta. */
static inline pnb__gemm_args pnb__gemm_rows(size_t m, size_t n, size_t k, bool trans_a,
                                            bool trans_b)
{
    return (pnb__gemm_args){.trans_a = trans_a,
                            .trans_b = trans_b,
                            .m = m,
                            .n = n,
                            .k = k,
                            .lda = trans_a ? m : k,
                            .ldb = trans_b ? k : n,
                            .ldc = n,
                            .n_batch = 1,
                            .batch_a = m * k,
                            .batch_b = k * n,
                            .batch_c = m * n,
                            .alpha = 1,
                            .act = PNB__IDENTITY};
}

#endif
