/* Selective prediction: what is answered wrongly when only certain queries are answered.
 *
 * Answers are given in order of rising uncertainty; E_i of the first i of N are wrong, m of all.
 *   risk(i/N) = E_i / i
 *   AURC  = (1/N) sum_i E_i / i                       Geifman and El-Yaniv 2017
 *   AUGRC = (1/N^2) sum_i (E_{i-1} + E_i)/2
 *         = m (N-m)(1 - AUROC)/N^2 + m^2/(2 N^2)      Traub et al. 2024
 * Equal uncertainties are answered in random order: every figure is the mean over their orders, so
 * none depends on the order of rows. docs/numerics.md#calibration */
#ifndef PENUMBRA_SELECTIVE_H
#define PENUMBRA_SELECTIVE_H

#include <stddef.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All in [0,1]; of the areas less is better. */
typedef struct pnb_selective {
    double error; /* share of wrong answers = risk at full coverage */
    double auroc; /* of uncertainty against error, 1/2 by chance; NaN when all or none are wrong */
    double aurc;  /* mean over n = 1..N of the risk of the n most certain answers */
    double augrc; /* area under coverage -> share of all queries answered wrongly; at most 1/2 */
} pnb_selective;

/* `correct` is 1 for a right answer; values between count as that share of one.
 * Shape   uncertainty, correct (n)
 * Errors  ARG (n = 0), NUMERIC (an uncertainty is not finite, `correct` outside [0,1]), NOMEM */
pnb_status pnb_selective_compute(const double *uncertainty, const double *correct, size_t n,
                                 pnb_selective *out, pnb_error *err);

/* The curve: risk of the ceil(n * i / n_points) most certain answers, i = 1..n_points. The last
 * point is (1, error).
 * Shape   uncertainty, correct (n) -> coverage, risk (n_points), the caller's
 * Errors  as above, and ARG (n_points 0) */
pnb_status pnb_risk_coverage(const double *uncertainty, const double *correct, size_t n,
                             size_t n_points, double *coverage, double *risk, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
