/* Eigenvalues and eigenvectors of a symmetric matrix, for covariances. */
#ifndef PNB_PROB_EIGEN_H
#define PNB_PROB_EIGEN_H

#include <stdbool.h>
#include <stddef.h>

/* A = sum_i values[i] v_i v_i^T with orthonormal v_i, the largest value first. One thread, and a
 * fixed order of sums: the same bits on every machine that rounds as IEEE does.
 * Shape   a (n,n) symmetric, destroyed; values (n); vectors (n,n), row i is v_i; work (2n)
 * Range   finite. Errors of the values are a few units of the largest one's last place: a value
 *         below 1e-15 of it says "zero", and may be negative
 * False   when the iteration does not end, which finite numbers have not been seen to do
 * Source  Golub and Van Loan, Matrix Computations, 8.3 */
bool pnb__eigen_symmetric(size_t n, double *a, double *values, double *vectors, double *work);

#endif
