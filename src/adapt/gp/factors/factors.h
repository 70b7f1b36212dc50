/* Factors of the covariances S_d = C_d C_d^T of whitened inducing values, for many outputs at once.
 *
 * Outputs that share inducing points share B (M,N) too, and then |C_d^T b_n|^2 of all outputs and
 * points is a few large products. A factor is lower triangular: it is kept as columns of WIDTH,
 * and block j as what stands in and below the rows of its own diagonal,
 *   block j: (M - j WIDTH, F, w_j), row-major, F factors beside each other
 * so that most of the zeros of a square are neither kept nor multiplied. Zeros above the diagonal
 * inside of a block are kept, and stay zeros: their slopes are 0.
 * Shape letters: F factors (outputs, or 1 that all share), M inducing points, N points. */
#ifndef PNB_ADAPT_GP_FACTORS_FACTORS_H
#define PNB_ADAPT_GP_FACTORS_FACTORS_H

#include "kernels/kernels.h"

/* Narrow blocks multiply fewer zeros, wide ones lose less at their ends; files of before were 64
 * wide. */
enum { PNB__FACTOR_WIDTH = 32, PNB__FACTOR_WIDTH_BEFORE = 64 };

/* Numbers in F factors, and the place of C_f[row][column] among them; column <= row. */
size_t pnb__factors_size(size_t m, size_t n_factors);
size_t pnb__factors_at(size_t m, size_t n_factors, size_t factor, size_t row, size_t column);

/* The same in blocks of PNB__FACTOR_WIDTH_BEFORE, and the numbers of one such list in the order of
 * today: `size` bytes each. */
size_t pnb__factors_size_before(size_t m, size_t n_factors);
void pnb__factors_from_before(size_t m, size_t n_factors, size_t size, const void *from, void *to);

/* Room for products. The factors are the caller's, in `real`: floats are enough for thousands of
 * factors, as each row of a product is a sum of at most M. For one batch at a time. */
typedef struct pnb__factors {
    const pnb_ctx *ctx;
    pnb__kernels kernels; /* of `real`, host */
    pnb__real real;
    size_t m, n_factors, n_max; /* n_max: most points of a batch */
    void *b, *db;               /* (M,N) in real */
    void *t;                    /* block j: (N, F, w_j), C^T b */
} pnb__factors;

/* Errors  NOMEM */
pnb_status pnb__factors_init(pnb__factors *f, const pnb_ctx *ctx, pnb__real real, size_t m,
                             size_t n_factors, size_t n_max, pnb_error *err);
void pnb__factors_reset(pnb__factors *f);

/* All factors become c (M,M), whose upper triangle is not read; one of them as (M,M). */
void pnb__factors_fill(const pnb__factors *f, const double *c, void *data);
void pnb__factors_read(const pnb__factors *f, const void *data, size_t factor, double *c);

/* added[f][n] = |C_f^T b_n|^2.  Shape  b (M,N), added (F,N) */
void pnb__factors_forward(pnb__factors *f, const void *data, const double *b, size_t n,
                          double *added);
/* sum over factors of 1/2 (|C|^2 - M) - sum_m log |C[m][m]|: the divergence of N(0, S) from
 * N(0, I).  Infinite where a diagonal is 0 */
double pnb__factors_divergence(const pnb__factors *f, const void *data);
/* After forward of the same b: writes the slopes of sum added * slope + weight * divergence by the
 * factors into out->grad, adds those by b to out->db.  Shape  slope (F,N), db (M,N) */
typedef struct pnb__factors_grad {
    void *grad; /* NULL: not wanted */
    double *db;
    double *divergence; /* pnb__factors_divergence, on the way of grad; NULL: not wanted */
} pnb__factors_grad;
void pnb__factors_backward(pnb__factors *f, const void *data, const double *slope, double weight,
                           size_t n, const pnb__factors_grad *out);
/* out (M,M) = sum over factors of C C^T.  Errors  NOMEM */
pnb_status pnb__factors_gram(const pnb__factors *f, const void *data, double *out, pnb_error *err);

#endif
