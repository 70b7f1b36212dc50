/* Families beside the Gaussian: densities on the unit sphere, the generalised Gaussian, and samples
 * of every family.
 *
 * von Mises-Fisher     p(x) = C_d(kappa) exp(kappa mu.x)
 * power spherical      p(x) = C(d, kappa) (1 + mu.x)^kappa
 * generalised Gaussian p(x) = beta / (2 alpha Gamma(1/beta)) exp(-(|x - mean| / alpha)^beta)
 *
 * Formulas, sources and errors: docs/numerics.md#families. */
#ifndef PENUMBRA_DISTRIBUTIONS_H
#define PENUMBRA_DISTRIBUTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- log normalisers ----
 * In nats, finite for every dim >= 2 and kappa from 0 to beyond 1e6; NaN for dim < 2 and for a
 * kappa that is negative or not finite. `slope` is the derivative by kappa. */

/* log C_d(kappa), exact.  Error  below 1e-12 of the value (or of 1, where that is larger)
 * Source  log I_nu by Debye's uniform expansion, DLMF 10.41 */
double pnb_vmf_log_norm(size_t dim, double kappa);
/* -I_{d/2}(kappa) / I_{d/2-1}(kappa): minus the length of the mean of a sample. */
double pnb_vmf_log_norm_slope(size_t dim, double kappa);

/* F_d(kappa), the closed form that AsymVLM trains with: log C_d(kappa) up to a constant that
 * depends on d alone; what remains drifts by at most 0.14 over all kappa.
 * Source  AsymVLM section 4.2, Scott et al. 2021 */
double pnb_vmf_log_norm_approx(size_t dim, double kappa);
double pnb_vmf_log_norm_approx_slope(size_t dim, double kappa);

/* log C(d, kappa) of the power spherical, exact.  Source  De Cao and Aziz 2020 */
double pnb_power_spherical_log_norm(size_t dim, double kappa);
double pnb_power_spherical_log_norm_slope(size_t dim, double kappa);

/* ---- mean cosines ----
 * Of samples to the mean; the same number tells how wide members of different families are. NaN
 * outside: dim below 2, kappa negative or not finite, a cosine or share outside (0,1). */

/* A(kappa), in [0,1), and the kappa at which it is `cosine`.
 * Error   1e-10 of the value of kappa where A is a double apart from 0 and 1 */
double pnb_vmf_mean_cosine(size_t dim, double kappa);
double pnb_vmf_kappa_at(size_t dim, double cosine);
double pnb_power_spherical_mean_cosine(size_t dim, double kappa);
double pnb_power_spherical_kappa_at(size_t dim, double cosine);
/* The cosine that a share of von Mises-Fisher samples exceeds: the region of that probability is
 * the cap from it on.   Error  1e-5 of the share */
double pnb_vmf_cosine_quantile(size_t dim, double kappa, double share);

/* ---- gamma functions ---- for x, a > 0 and b >= 0; NaN outside */
double pnb_digamma(double x);                      /* d/dx log Gamma(x) */
double pnb_log_gamma_ratio(double a, double b);    /* log(Gamma(a+b) / Gamma(a)), no cancellation */
double pnb_digamma_difference(double a, double b); /* digamma(a+b) - digamma(a), likewise */

/* log of alpha^2 Gamma(3/beta) / Gamma(1/beta), the variance of one dimension; inv_alpha = 1/alpha.
 * NaN unless both are > 0.  Source  ProbVLM */
double pnb_gen_gaussian_log_var(double inv_alpha, double beta);

/* ---- samples ---- */
typedef struct pnb_sample_opts {
    size_t n_samples; /* J. 1 */
    uint64_t seed;    /* 0 */
    unsigned side;    /* 0 or 1: two sets of one seed are independent when they differ in it */
} pnb_sample_opts;
pnb_sample_opts pnb_sample_opts_default(void);

/* J samples of every row of any family; opts may be NULL. Sample j of row i is a function of (seed,
 * side, i, j) alone, the same that avg_l2 and match_prob use. On the sphere samples are unit
 * vectors; a generalised Gaussian is drawn from itself, not from the Gaussian of its moments.
 * Shape   rows (N,D) -> out (N,J,D)      Range  log_var up to 1400, kappa 0 to beyond 1e6
 * Errors  SHAPE (dim 0, on the sphere 1), ARG (side), NUMERIC (a parameter outside its range, a
 *         zero mean on the sphere: the text names the row)
 * Source  Wood 1994 (vmf), De Cao and Aziz 2020 (power spherical), Marsaglia and Tsang 2000 */
pnb_status pnb_sample_rows(const pnb_rows *rows, const pnb_sample_opts *opts, double *out,
                           pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
