/* An embedding set of any family (embeddings.h) as rows that measures, search, ranking and samples
 * take (prob.h, search.h, retrieval.h, distributions.h). */
#ifndef PENUMBRA_VIEW_H
#define PENUMBRA_VIEW_H

#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pnb_embeddings; /* embeddings.h */

typedef struct pnb_view {
    pnb_rows rows; /* arrays of the set, read in place */
    float *owned;  /* (n, dim) log-variances made for a gen_gaussian; NULL otherwise */
} pnb_view;

/* Views the set: nothing is copied, the set must outlive the view. What fits which family:
 *
 * - point: Gaussian measures that need no variance, mean, avg_l2, match_prob, and as vectors the
 *   likelihoods on the sphere;
 * - gaussian_diag: Gaussian measures, mean, avg_l2, match_prob;
 * - vmf: vmf, vmf_exact, mean, avg_l2, match_prob;
 * - power_spherical: power_spherical, mean, avg_l2, match_prob;
 * - gen_gaussian: as gaussian_diag, with the mean and variance of each dimension, alpha^2
 *   Gamma(3/beta)/Gamma(1/beta); avg_l2 and match_prob sample its own density.
 *
 * Memory  none but for gen_gaussian, n*dim floats (its log-variances, rounded to f32); give back
 * with pnb_view_reset
 * Errors  NUMERIC (inv_alpha or beta outside their range: the text names row
 * and column), NOMEM */
pnb_status pnb_view_init(pnb_view *out, const struct pnb_embeddings *set, pnb_error *err);
void pnb_view_reset(pnb_view *view); /* all zero afterwards; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
