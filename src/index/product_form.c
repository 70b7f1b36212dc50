/*   mean  the cosine                              [unit mean] . [unit mean of the query]
 *   csd   1 - csd/2, less the query's own part    mean . mean_q + (1 - |mean|^2 - tr) / 2
 *   vmf   log p(x), x a point                     kappa mean . x + log C(kappa)
 *
 * csd here does not take means for unit vectors, so that order and bounds hold for any rows. */
#include "index/product_form.h"

#include <math.h>

#include "index/exact/exact.h"
#include "penumbra/distributions.h"

static bool is_linear(const pnb_gaussians *gallery, pnb_measure measure)
{
    bool is_vmf = measure == PNB_MEASURE_VMF && gallery->kappa != NULL && !gallery->is_power;
    return measure == PNB_MEASURE_MEAN || measure == PNB_MEASURE_CSD || is_vmf;
}

pnb_status pnb__linear_check(const pnb_gaussians *gallery, const pnb_search_opts *opts,
                             const char *kind, pnb_error *err)
{
    pnb_status status = pnb__exact_check(gallery, opts, err);
    if (status == PNB_OK && !is_linear(gallery, opts->measure))
        status = pnb__fail(err, PNB_UNSUPPORTED,
                           "an index of kind %s ranks by inner products, and measure %s of these "
                           "rows is none: it serves csd, mean and, for rows with concentrations, "
                           "vmf; an exact search serves all",
                           kind, pnb_measure_name(opts->measure));
    return status;
}

pnb_status pnb__linear_check_queries(const pnb_gaussians *gallery, const pnb_gaussians *queries,
                                     const pnb_search_opts *opts, pnb_error *err)
{
    pnb_status status =
        pnb__measure_check(opts->measure, queries, gallery, &opts->measure_opts, err);
    if (status == PNB_OK && opts->measure == PNB_MEASURE_VMF && queries->kappa != NULL)
        status = pnb__fail(err, PNB_UNSUPPORTED,
                           "queries have concentrations, as the rows have: their likelihood is no "
                           "inner product; an exact search serves them");
    for (size_t i = 0; status == PNB_OK && i < queries->n; i++)
        for (size_t d = 0; d < queries->dim; d++)
            if (!isfinite(queries->mean[i * queries->dim + d]))
                return pnb__fail(err, PNB_NUMERIC, "query %zu holds values that are not finite", i);
    return status;
}

static double square(const float *x, size_t n)
{
    double sum = 0;
    for (size_t d = 0; d < n; d++)
        sum += (double)x[d] * (double)x[d];
    return sum;
}

static double trace(const pnb_gaussians *rows, size_t i)
{
    double sum = 0;
    for (size_t d = 0; rows->log_var != NULL && d < rows->dim; d++)
        sum += exp((double)rows->log_var[i * rows->dim + d]);
    return sum;
}

double pnb__linear_item(const pnb_gaussians *gallery, pnb_measure measure, size_t i, float *out,
                        bool *ok)
{
    const float *mean = gallery->mean + i * gallery->dim;
    double norm = square(mean, gallery->dim), scale = 1, term = 0;
    if (measure == PNB_MEASURE_MEAN)
        scale = pnb__exact_scale(sqrt(norm));
    else if (measure == PNB_MEASURE_CSD)
        term = 0.5 * (1 - norm - trace(gallery, i));
    else {
        scale = (double)gallery->kappa[i];
        term = pnb_vmf_log_norm_approx(gallery->dim, scale);
    }
    for (size_t d = 0; d < gallery->dim; d++) {
        out[d] = (float)(scale * (double)mean[d]);
        *ok = *ok && isfinite(out[d]);
    }
    *ok = *ok && isfinite((float)term);
    return term;
}

void pnb__linear_query(const pnb_gaussians *queries, pnb_measure measure, size_t i, float *out)
{
    const float *mean = queries->mean + i * queries->dim;
    double scale =
        measure == PNB_MEASURE_MEAN ? pnb__exact_scale(sqrt(square(mean, queries->dim))) : 1;
    for (size_t d = 0; d < queries->dim; d++)
        out[d] = (float)(scale * (double)mean[d]);
}
