/* A flat view of Gaussians: the plane of largest spread of their mixture.
 *
 * The covariance of samples drawn from all rows is that of the means plus the mean variances,
 *   C = (1/n) sum_i (mu_i - c)(mu_i - c)^T + diag(mean_i var_i)
 * so the axes are the PCA of infinitely many samples without drawing one. A projection A is linear,
 * so a Gaussian stays one: N(A(mu - c), A diag(var) A^T), whose 2 x 2 covariance gives the
 * confidence ellipses of a picture. Points have variance 0. One thread, so that the same sets give
 * the same picture on every machine. docs/numerics.md#pca
 *
 *     pnb_pca pca;
 *     if (pnb_pca_fit(&pca, sets, 2, &err) == PNB_OK)
 *         status = pnb_pca_project(&pca, sets[0], xy, cov, &err);
 *     pnb_pca_reset(&pca); */
#ifndef PENUMBRA_PCA_H
#define PENUMBRA_PCA_H

#include <stddef.h>

#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pnb_pca {
    size_t dim;            /* D, width of the sets */
    double *centre;        /* [dim] c, mean of the means */
    double *axis;          /* [2][dim], orthonormal, largest |coordinate| of each positive */
    double variance[2];    /* along the axes, the larger first */
    double total_variance; /* of everything: the trace of C */
} pnb_pca;

#define PNB_PCA_MAX_ROWS 4000 /* of each set are used for fitting, evenly spaced */

/* Axes of the mixture of all rows of the sets; each row weighs the same, so that of two sets of
 * different size the larger decides. Free with pnb_pca_reset; all zero on failure.
 * Memory  O(rows used * D): subspace iteration, at most 500 steps, without the D x D matrix
 * Errors  SHAPE (widths differ, fewer than 2 rows or dimensions), NUMERIC (not finite), NOMEM */
pnb_status pnb_pca_fit(pnb_pca *out, const pnb_gaussians *const *sets, size_t n_sets,
                       pnb_error *err);
void pnb_pca_reset(pnb_pca *pca); /* frees the arrays, all zero afterwards; NULL is fine */

/* Rows in the plane, of any set of that width: also one that was not among those fitted.
 * Shape   x (N,D) -> xy (N,2) projected means; cov (N,3) = (xx, xy, yy) of each projected Gaussian,
 *         may be NULL
 * Errors  SHAPE (the width is not that of the fit) */
pnb_status pnb_pca_project(const pnb_pca *pca, const pnb_gaussians *x, double *xy, double *cov,
                           pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
