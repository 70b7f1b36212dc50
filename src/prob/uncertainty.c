/* Scalar uncertainties of one embedding.
 *
 *   trace     sum_d var_d                     ProLIP
 *   mean_var  (1/D) sum_d var_d               GroVE, PFE, PCME++
 *   geo_std   exp(mean_d log_var_d / 2)       PCME
 *   inv_kappa 1/kappa                         AsymVLM
 *   gg_var    mean_d alpha^2 G(3/b)/G(1/b)    ProbVLM
 *   cosine    1 - cos(image, its text)        deterministic baseline
 *
 * All sums in f64. Gamma functions through lgamma_r: lgamma writes a global. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "penumbra/prob.h"

static const char *const NAMES[] = {
#define X(name, text, sentence) text,
    PNB_UNCERTAINTY_LIST(X)
#undef X
};

const char *pnb_uncertainty_name(pnb_uncertainty kind)
{
    return (unsigned)kind < PNB_N_UNCERTAINTIES ? NAMES[kind] : "unknown";
}

pnb_status pnb_uncertainty_parse(pnb_uncertainty *out, const char *name, pnb_error *err)
{
    for (size_t i = 0; i < PNB_COUNT(NAMES); i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            *out = (pnb_uncertainty)i;
            return PNB_OK;
        }
    }
    return pnb__fail(err, PNB_NOT_FOUND,
                     "uncertainty '%s' is unknown; known are trace, mean_var, geo_std, inv_kappa, "
                     "gg_var, cosine",
                     name);
}

static double gaussian_row(pnb_uncertainty kind, const float *log_var, size_t dim)
{
    double sum = 0.0;
    if (kind == PNB_UNCERTAINTY_GEO_STD) {
        for (size_t d = 0; d < dim; d++)
            sum += log_var[d];
        return exp(0.5 * sum / (double)dim);
    }
    for (size_t d = 0; d < dim; d++)
        sum += exp((double)log_var[d]);
    return kind == PNB_UNCERTAINTY_MEAN_VAR ? sum / (double)dim : sum;
}

pnb_status pnb_uncertainty_rows(pnb_uncertainty kind, const pnb_gaussians *x, double *out,
                                pnb_error *err)
{
    if (kind != PNB_UNCERTAINTY_TRACE && kind != PNB_UNCERTAINTY_MEAN_VAR &&
        kind != PNB_UNCERTAINTY_GEO_STD)
        return pnb__fail(err, PNB_ARG,
                         "uncertainty '%s' is not one of a diagonal Gaussian; use trace, mean_var "
                         "or geo_std",
                         pnb_uncertainty_name(kind));
    if (x->dim == 0)
        return pnb__fail(err, PNB_SHAPE, "embeddings have width 0");
    for (size_t i = 0; i < x->n; i++) {
        out[i] = x->log_var == NULL ? 0.0 : gaussian_row(kind, x->log_var + i * x->dim, x->dim);
        if (!isfinite(out[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu: uncertainty %s is %g; the log-variances of this row are not "
                             "finite or beyond 700",
                             i, NAMES[kind], out[i]);
    }
    return PNB_OK;
}

pnb_status pnb_uncertainty_inv_kappa(const float *kappa, size_t n, double *out, pnb_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!(kappa[i] > 0.0f) || !isfinite(kappa[i]))
            return pnb__fail(err, PNB_NUMERIC, "row %zu: kappa is %g, a finite value > 0 is needed",
                             i, (double)kappa[i]);
        out[i] = 1.0 / (double)kappa[i];
    }
    return PNB_OK;
}

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

pnb_status pnb_uncertainty_gg_var(const float *inv_alpha, const float *beta, size_t n, size_t dim,
                                  double *out, pnb_error *err)
{
    if (dim == 0)
        return pnb__fail(err, PNB_SHAPE, "embeddings have width 0");
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t d = 0; d < dim; d++) {
            double ia = inv_alpha[i * dim + d], b = beta[i * dim + d];
            /* In logs: Gamma(3/b) overflows from b = 0.0175 on, the variance itself much later. */
            double log_var = -2.0 * log(ia) + log_gamma(3.0 / b) - log_gamma(1.0 / b);
            sum += ia > 0.0 && b > 0.0 ? exp(log_var) : (double)NAN;
        }
        out[i] = sum / (double)dim;
        if (!isfinite(out[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu: variance of the generalised Gaussian is %g; inv_alpha and "
                             "beta must be finite and > 0",
                             i, out[i]);
    }
    return PNB_OK;
}

pnb_status pnb_uncertainty_cosine(const pnb_gaussians *a, const pnb_gaussians *b, double *out,
                                  pnb_error *err)
{
    pnb_status status = pnb_measure_rows(PNB_MEASURE_MEAN, a, b, NULL, out, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < a->n; i++)
        out[i] = 1.0 - out[i];
    return PNB_OK;
}
