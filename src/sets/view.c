/* An embedding set seen as rows of distributions.
 *
 * The one place that knows both the families of sets and the parameters of rows, so that search and
 * evaluation never ask which model made a set. A generalised Gaussian enters Gaussian measures by
 * its first two moments, which is what csd and w2 of its samples converge to (csd exactly); the
 * log-variances for that are the only thing ever made here. */
#include "penumbra/view.h"

#include <math.h>

#include "base/base.h"
#include "penumbra/distributions.h"
#include "penumbra/embeddings.h"

static pnb_status match_moments(pnb_view *view, const pnb_embeddings *set, pnb_error *err)
{
    size_t n = set->n * set->dim; /* as many floats exist already: no overflow */
    view->owned = pnb__alloc_array(n, sizeof(float));
    if (view->owned == NULL)
        return pnb__fail_nomem(err, n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        double log_var = pnb_gen_gaussian_log_var(set->inv_alpha[i], set->beta[i]);
        if (!isfinite(log_var))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu, column %zu: inv_alpha %g and beta %g of a generalised "
                             "Gaussian; both must be finite and > 0",
                             i / set->dim, i % set->dim, (double)set->inv_alpha[i],
                             (double)set->beta[i]);
        view->owned[i] = (float)log_var;
    }
    view->rows.log_var = view->owned;
    view->rows.inv_alpha = set->inv_alpha;
    view->rows.beta = set->beta;
    view->rows.epistemic = set->epistemic;
    return PNB_OK;
}

pnb_status pnb_view_init(pnb_view *out, const struct pnb_embeddings *set, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *out = (pnb_view){.rows = {.n = set->n,
                               .dim = set->dim,
                               .n_embeddings = set->info.n_embeddings,
                               .mean = set->mean}};
    switch (set->family) {
    case PNB_POINT:
        break;
    case PNB_GAUSSIAN_DIAG:
        out->rows.log_var = set->log_var;
        break;
    case PNB_POWER_SPHERICAL:
    case PNB_VMF:
        out->rows.kappa = set->kappa;
        out->rows.is_power = set->family == PNB_POWER_SPHERICAL;
        break;
    case PNB_GEN_GAUSSIAN:
        status = match_moments(out, set, err);
        break;
    default:
        status = pnb__fail(err, PNB_UNSUPPORTED, "embeddings are of an unknown family, number %d",
                           (int)set->family);
    }
    if (status != PNB_OK)
        pnb_view_reset(out);
    return status;
}

void pnb_view_reset(pnb_view *view)
{
    if (view == NULL)
        return;
    pnb__free(view->owned);
    *view = (pnb_view){0};
}
