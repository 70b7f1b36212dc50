/* An embedding set seen as rows of Gaussians.
 *
 * Families without a Gaussian form are refused here, in one place, so that search and evaluation
 * never ask which model made a set. Nothing is copied. */
#include "base/base.h"
#include "penumbra/embeddings.h"
#include "penumbra/search.h"

pnb_status pnb_gaussians_view(pnb_gaussians *out, const struct pnb_embeddings *set, pnb_error *err)
{
    if (set->family != PNB_POINT && set->family != PNB_GAUSSIAN_DIAG)
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "embeddings are of family %s; this measure takes point or gaussian_diag",
                         pnb_family_name(set->family));
    *out = (pnb_gaussians){.n = set->n,
                           .dim = set->dim,
                           .mean = set->mean,
                           .log_var = set->family == PNB_GAUSSIAN_DIAG ? set->log_var : NULL};
    return PNB_OK;
}
