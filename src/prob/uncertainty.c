/* Scalar uncertainties of one embedding.
 *
 *   trace     sum_d var_d                     ProLIP
 *   mean_var  (1/D) sum_d var_d               GroVE, PFE, PCME++
 *   geo_std   exp(mean_d log_var_d / 2)       PCME
 *   inv_kappa 1/kappa                         AsymVLM
 *   gg_var    mean_d alpha^2 G(3/b)/G(1/b)    ProbVLM
 *   epistemic mean_d of what was not learned  ProbVLM; aleatoric is gg_var less that
 *   cosine    1 - cos(image, its text)        deterministic baseline
 *
 * All sums in f64; which family has which is decided by the row's parameters. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/names.h"
#include "penumbra/distributions.h"

/* What each is a function of. */
enum { VARIANCES, KAPPA, SHAPE, PARTS, PARTNER };
static const int READS[] = {
#define X(name, text, of, sentence) of,
    PNB_UNCERTAINTY_LIST(X)
#undef X
};

PNB_DEFINE_NAME(pnb_uncertainty_name, pnb_uncertainty, PNB_NAMES(PNB_UNCERTAINTY_LIST), "unknown")
PNB_DEFINE_PARSE(pnb_uncertainty_parse, pnb_uncertainty, "uncertainty",
                 PNB_NAMES(PNB_UNCERTAINTY_LIST))

/* trace = sum v, mean_var = trace/D, geo_std = exp(sum l / 2D) of one row, l = log v. The geometric
 * mean never leaves the logarithm, so that D = 1024 small variances do not underflow. */
static double gaussian_row(pnb_uncertainty kind, const float *log_var, size_t dim)
{
    double sum = 0.0; /* over d, in f64 */
    if (kind == PNB_UNCERTAINTY_GEO_STD) {
        for (size_t d = 0; d < dim; d++)
            sum += log_var[d];
        return exp(0.5 * sum / (double)dim);
    }
    for (size_t d = 0; d < dim; d++)
        sum += exp((double)log_var[d]);
    return kind == PNB_UNCERTAINTY_MEAN_VAR ? sum / (double)dim : sum;
}

static bool is_function_of(pnb_uncertainty kind, int of)
{
    return (unsigned)kind < PNB_N_UNCERTAINTIES && READS[kind] == of;
}

/* Points have variance 0: they are certain, not an error. */
static pnb_status of_variances(pnb_uncertainty kind, const pnb_rows *x, double *out, pnb_error *err)
{
    for (size_t i = 0; i < x->n; i++) {
        out[i] = x->log_var == NULL ? 0.0 : gaussian_row(kind, x->log_var + i * x->dim, x->dim);
        if (!isfinite(out[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu: uncertainty %s is %g; the log-variances of this row are not "
                             "finite or beyond 700",
                             i, pnb_uncertainty_name(kind), out[i]);
    }
    return PNB_OK;
}

/* What is left of the whole is 0 at least: both are rounded to f32. */
static pnb_status of_parts(pnb_uncertainty kind, const pnb_rows *x, double *out, pnb_error *err)
{
    bool is_rest = kind == PNB_UNCERTAINTY_ALEATORIC;
    pnb_status status =
        is_rest ? pnb_uncertainty_gg_var(x->inv_alpha, x->beta, x->n, x->dim, out, err) : PNB_OK;
    for (size_t i = 0; i < x->n && status == PNB_OK; i++) {
        double sum = 0.0;
        for (size_t d = 0; d < x->dim; d++)
            sum += x->epistemic[i * x->dim + d];
        double part = sum / (double)x->dim;
        out[i] = is_rest ? fmax(out[i] - part, 0.0) : part;
        if (!(part >= 0.0) || !isfinite(part))
            status = pnb__fail(err, PNB_NUMERIC,
                               "row %zu: its epistemic variance is %g in the mean; values must be "
                               "finite and 0 or more",
                               i, part);
    }
    return status;
}

static const char *own_kinds(const pnb_rows *x)
{
    if (x->kappa != NULL)
        return "inv_kappa";
    if (x->beta == NULL || x->inv_alpha == NULL)
        return "trace, mean_var or geo_std";
    return x->epistemic != NULL ? "gg_var, aleatoric or epistemic" : "gg_var";
}

pnb_status pnb_uncertainty_rows(pnb_uncertainty kind, const pnb_rows *x, double *out,
                                pnb_error *err)
{
    if (x->dim == 0)
        return pnb__fail(err, PNB_SHAPE, "embeddings have width 0");
    bool is_generalised = x->beta != NULL && x->inv_alpha != NULL;
    if (kind == PNB_UNCERTAINTY_INV_KAPPA && x->kappa != NULL)
        return pnb_uncertainty_inv_kappa(x->kappa, x->n, out, err);
    if (kind == PNB_UNCERTAINTY_GG_VAR && is_generalised)
        return pnb_uncertainty_gg_var(x->inv_alpha, x->beta, x->n, x->dim, out, err);
    if (is_function_of(kind, PARTS) && is_generalised && x->epistemic != NULL)
        return of_parts(kind, x, out, err);
    /* a generalised Gaussian has log_var where a view made it from its moments */
    bool has_variances = x->kappa == NULL && (x->beta == NULL || x->log_var != NULL);
    if (is_function_of(kind, VARIANCES) && has_variances)
        return of_variances(kind, x, out, err);
    return pnb__fail(err, PNB_ARG, "embeddings of family %s have no uncertainty '%s'; use %s",
                     pnb_rows_family(x), pnb_uncertainty_name(kind), own_kinds(x));
}

/* FLT_MIN in place of 0: a uniform row is the most uncertain of all, and still a number. */
pnb_status pnb_uncertainty_inv_kappa(const float *kappa, size_t n, double *out, pnb_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!(kappa[i] >= 0.0f) || !isfinite(kappa[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "row %zu: kappa is %g, a finite value >= 0 is needed", i,
                             (double)kappa[i]);
        out[i] = 1.0 / fmax((double)kappa[i], (double)FLT_MIN);
    }
    return PNB_OK;
}

/* (1/D) sum_d alpha^2 G(3/b)/G(1/b), each term from its logarithm: gammas of small b overflow. */
pnb_status pnb_uncertainty_gg_var(const float *inv_alpha, const float *beta, size_t n, size_t dim,
                                  double *out, pnb_error *err)
{
    if (dim == 0)
        return pnb__fail(err, PNB_SHAPE, "embeddings have width 0");
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (size_t d = 0; d < dim; d++)
            sum += exp(pnb_gen_gaussian_log_var(inv_alpha[i * dim + d], beta[i * dim + d]));
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
