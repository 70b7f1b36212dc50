/* Settles the measure between two sets and the scalar uncertainty of their rows by their families:
 * Gaussians are compared by csd, directions by the likelihood of their family, what went through an
 * adapter by what that says; a row of points has no uncertainty of its own. Which measure fits
 * which family is prob's (pnb_measure_check_fit). */
#include "sets/settle.h"

#include <string.h>

#include "base/base.h"
#include "prob/measure.h"

pnb_status pnb__measure_parse(pnb_measure *out, const char *name, pnb_error *err)
{
    if (strcmp(name, "auto") != 0)
        return pnb_measure_parse(out, name, err);
    *out = PNB__MEASURE_AUTO;
    return PNB_OK;
}

pnb_status pnb__measure_of_sets(pnb_measure *asked, const pnb_embeddings *a,
                                const pnb_embeddings *b, pnb_error *err)
{
    const char *of_a = a->info.measure, *of_b = b->info.measure;
    const char *word = of_a[0] != '\0' ? of_a : of_b;
    bool is_torn = of_a[0] != '\0' && of_b[0] != '\0' && strcmp(of_a, of_b) != 0;
    if (*asked != PNB__MEASURE_AUTO || word[0] == '\0' || is_torn)
        return PNB_OK;
    return pnb_measure_parse(asked, word, err);
}

pnb_status pnb__measure_settle(pnb_measure *out, pnb_measure asked, const pnb_rows *a,
                               const pnb_rows *b, pnb_error *err)
{
    const pnb_rows *sphere = a->kappa != NULL ? a : b->kappa != NULL ? b : NULL;
    pnb_measure measure = asked;
    if (asked == PNB__MEASURE_AUTO)
        measure = a->n_embeddings > 1 ? PNB_MEASURE_MAX_COSINE
                  : sphere == NULL    ? PNB_MEASURE_CSD
                  : sphere->is_power  ? PNB_MEASURE_POWER_SPHERICAL
                                      : PNB_MEASURE_VMF;
    pnb_status status = pnb_measure_check_fit(measure, a, b, err);
    if (status == PNB_OK)
        *out = measure;
    return status;
}

bool pnb__is_taken_as_points(pnb_measure measure, const pnb_embeddings *set,
                             const pnb_embeddings *other)
{
    bool has_spread = set->kappa == NULL && set->family != PNB_POINT;
    return pnb__measure_is_spherical(measure) && has_spread && other->kappa != NULL;
}

pnb_uncertainty pnb__own_uncertainty(const pnb_embeddings *set)
{
    if (set->kappa != NULL)
        return PNB_UNCERTAINTY_INV_KAPPA;
    return set->inv_alpha != NULL ? PNB_UNCERTAINTY_GG_VAR : PNB_UNCERTAINTY_TRACE;
}

pnb_uncertainty pnb__uncertainty_settle(pnb_uncertainty asked, const pnb_embeddings *images,
                                        const pnb_embeddings *texts)
{
    const pnb_embeddings *set = texts->family != PNB_POINT ? texts : images;
    if (asked == PNB__UNCERTAINTY_AUTO)
        return set->family == PNB_POINT ? PNB_UNCERTAINTY_COSINE : pnb__own_uncertainty(set);
    bool is_of_variances = asked == PNB_UNCERTAINTY_TRACE || asked == PNB_UNCERTAINTY_MEAN_VAR ||
                           asked == PNB_UNCERTAINTY_GEO_STD || asked == PNB_UNCERTAINTY_GG_VAR;
    return is_of_variances && pnb__own_uncertainty(set) != PNB_UNCERTAINTY_TRACE
               ? pnb__own_uncertainty(set)
               : asked;
}

pnb_status pnb__row_uncertainty(const pnb_embeddings *set, pnb_uncertainty kind, double **out,
                                pnb_error *err)
{
    const pnb_rows rows = {.n = set->n,
                           .dim = set->dim,
                           .mean = set->mean,
                           .log_var = set->log_var,
                           .kappa = set->kappa,
                           .inv_alpha = set->inv_alpha,
                           .beta = set->beta,
                           .epistemic = set->epistemic};
    double *u = pnb__alloc_zero(set->n, sizeof *u);
    pnb_status status = PNB_OK;
    if (u == NULL)
        return pnb__fail_nomem(err, set->n * sizeof *u);
    bool is_of_variances = kind == PNB_UNCERTAINTY_TRACE || kind == PNB_UNCERTAINTY_MEAN_VAR ||
                           kind == PNB_UNCERTAINTY_GEO_STD || kind == PNB__UNCERTAINTY_AUTO;
    pnb_uncertainty own = pnb__own_uncertainty(set);
    if (is_of_variances && (kind == PNB__UNCERTAINTY_AUTO || own != PNB_UNCERTAINTY_TRACE))
        kind = own;
    if (set->family != PNB_POINT || kind == PNB_UNCERTAINTY_COSINE)
        status = pnb_uncertainty_rows(kind, &rows, u, err);
    if (status == PNB_OK)
        *out = u;
    else
        pnb__free(u);
    return status;
}
