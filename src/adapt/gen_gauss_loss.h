/* ProbVLM's likelihood of generalised Gaussians in a graph. */
#ifndef PNB_ADAPT_GEN_GAUSS_LOSS_H
#define PNB_ADAPT_GEN_GAUSS_LOSS_H

#include "tensor/graph.h"

/* X(NAME, name, sentence) */
#define PNB__GEN_GAUSS_LIST(X)                                                                     \
    X(RELEASED, "released", "residual |m - z| / alpha * beta, as ProbVLM's code has it")           \
    X(TRUE, "true", "residual (|m - z| / alpha)^beta: the likelihood")
typedef enum pnb__gen_gauss_form {
#define PNB__GEN_GAUSS_ENUM(NAME, name, sentence) PNB__GEN_GAUSS_##NAME,
    PNB__GEN_GAUSS_LIST(PNB__GEN_GAUSS_ENUM)
#undef PNB__GEN_GAUSS_ENUM
        PNB__N_GEN_GAUSS_FORMS
} pnb__gen_gauss_form;

/* Heads of one side, (B,D): mean, 1/alpha >= 0, beta >= 0. */
typedef struct pnb__gen_gauss {
    pnb__tensor *mean, *inv_alpha, *beta;
} pnb__gen_gauss;

/* Mean over all elements of
 *   clamp(residual, 1e-4, 1e3) - log(1/alpha + eps) + log Gamma(1/(beta + eps)) - log(beta + eps)
 * with eps = 1e-4 wherever 1/alpha and beta stand. Outside the clamp there is no gradient.
 * Source  ProbVLM Eq. (5); docs/numerics.md#probvlm */
pnb__tensor *pnb__gen_gauss_nll(pnb__gen_gauss_form form, pnb__gen_gauss p, pnb__tensor *target);
/* t1 * mean |m - z| + t2 * the above.  Source  ProbVLM Eq. (6): T1 = 1, T2 = 0.05 */
pnb__tensor *pnb__gen_gauss_loss(pnb__gen_gauss_form form, pnb__gen_gauss p, pnb__tensor *target,
                                 double t1, double t2);

#endif
