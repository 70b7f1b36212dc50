/* AsymVLM's objective in a graph: likelihood of images under the texts' densities on the sphere. */
#ifndef PNB_ADAPT_SPHERE_LOSS_H
#define PNB_ADAPT_SPHERE_LOSS_H

#include "tensor/graph.h"

/* X(NAME, name, sentence): the density of a text, up to a constant in the width */
#define PNB__SPHERE_DENSITY_LIST(X)                                                                \
    X(VMF, "vmf", "von Mises-Fisher with the approximate normaliser of AsymVLM's section 4.2")     \
    X(VMF_EXACT, "vmf_exact", "von Mises-Fisher with its exact normaliser")                        \
    X(POWER_SPHERICAL, "ps", "power spherical, exact")
typedef enum pnb__sphere_density {
#define PNB__SPHERE_DENSITY_ENUM(NAME, name, sentence) PNB__SPHERE_##NAME,
    PNB__SPHERE_DENSITY_LIST(PNB__SPHERE_DENSITY_ENUM)
#undef PNB__SPHERE_DENSITY_ENUM
        PNB__N_SPHERE_DENSITIES
} pnb__sphere_density;

/* eta (B,D) = kappa mu, one row a text. */
typedef struct pnb__directions {
    pnb__tensor *mu;    /* (B,D) unit rows */
    pnb__tensor *kappa; /* (B) lengths */
} pnb__directions;
pnb__directions pnb__directions_of(pnb__tensor *eta);

/* L[i][t] = log p(image i | text t): rows images, columns texts. Times `scale` (), or NULL: 1.
 *   vmf   kappa_t mu_t.x_i + F_D(kappa_t)
 *   ps    kappa_t log(1 + mu_t.x_i) + G_D(kappa_t)
 * Shape   images (A,D) unit rows, texts of (B,D) -> (A,B)
 * An image opposite to a text has no likelihood under ps: a number that is not finite.
 * Errors  running: NUMERIC where the normaliser has no value for a kappa
 * Source  AsymVLM section 4.2; docs/numerics.md#families */
pnb__tensor *pnb__sphere_log_lik(pnb__sphere_density density, pnb__tensor *images,
                                 pnb__directions texts, pnb__tensor *scale);

/* Mean of both cross entropies of scale * L, matches on the diagonal: ().  L (B,B); scale () is
 * raw, not exponentiated, or NULL: 1; `matches` int32 (B) holds 0, 1, 2, ... Source  AsymVLM
 * section 4.3 */
pnb__tensor *pnb__symmetric_info_nce(pnb__tensor *log_lik, pnb__tensor *scale,
                                     pnb__tensor *matches);
/* SigLIP's loss over the same matrix: sum over all pairs of -log s(sign * (scale * (L - centre) +
 * bias)), over B: ().  signs (B,B) is 1 on the diagonal, else -1; centre () or a constant.
 * AsymVLM's repository has no such loss; SPEC section 5 defines it. */
pnb__tensor *pnb__pairwise_sigmoid(pnb__tensor *log_lik, pnb__tensor *scale, pnb__tensor *bias,
                                   pnb__tensor *centre, pnb__tensor *signs);

#endif
