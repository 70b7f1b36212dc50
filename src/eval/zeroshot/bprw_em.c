/* EM for the mixing weights of fixed diagonal Gaussians under a symmetric Dirichlet prior (ProLIP,
 * appendix A.5; released as estimate_mixing_proportions).
 *
 *   log N(x; mu, v) = -1/2 sum_d [ (x - mu)^2 / v + log v ]     (without (D/2) log 2 pi)
 *
 * Components never change, so every likelihood is computed once, divided by the largest of its
 * point; a step is then products and sums. Where such a sum becomes tiny, because the component
 * that is near has almost no weight, that point is done again by log-sum-exp, so nothing is lost to
 * underflow. Which points a class gets is bprw.c's business. */
#include <math.h>

#include "base/base.h"
#include "penumbra/classify.h"

#define TINY 1e-200

pnb_em_opts pnb_em_opts_default(void)
{
    return (pnb_em_opts){.alpha = 5.0,
                         .eps = 0.02,
                         .var_scale = 1.0,
                         .prior = PNB_EM_INVERSE,
                         .tolerance = 1e-12,
                         .max_steps = 1000};
}

/* ---- checks and first weights ---- */

static pnb_status check(const pnb_em_data *x, const pnb_em_opts *o, pnb_error *err)
{
    if (x->n_components == 0 || x->dim == 0)
        return pnb__fail(err, PNB_SHAPE, "%zu components of width %zu; at least 1 and 1 are needed",
                         x->n_components, x->dim);
    if (!(o->alpha > 0.0) || !isfinite(o->alpha))
        return pnb__fail(err, PNB_ARG, "alpha is %g; it must be above 0", o->alpha);
    if (!(o->eps >= 0.0) || !isfinite(o->eps) || !(o->var_scale > 0.0) || !isfinite(o->var_scale))
        return pnb__fail(err, PNB_ARG,
                         "eps %g and scale %g of the variances; eps >= 0 and scale > "
                         "0 are wanted",
                         o->eps, o->var_scale);
    for (size_t i = 0; i < x->n_points * x->dim; i++)
        if (!isfinite(x->points[i]))
            return pnb__fail(err, PNB_NUMERIC, "point %zu has a value that is not finite",
                             i / x->dim);
    return PNB_OK;
}

static double power_of(pnb_em_prior prior, double v)
{
    switch (prior) {
    case PNB_EM_INVERSE_SQ:
        return v * v;
    case PNB_EM_INVERSE_5:
        return v * v * v * v * v;
    case PNB_EM_INVERSE:
    case PNB_EM_UNIFORM:
        break;
    }
    return v;
}

static void first_weights(const pnb_em_data *x, pnb_em_prior prior, double *weight)
{
    double total = 0.0;
    for (size_t n = 0; n < x->n_components; n++) {
        double sum = 0.0;
        for (size_t d = 0; d < x->dim; d++)
            sum += power_of(prior, x->var[n * x->dim + d]);
        weight[n] = prior == PNB_EM_UNIFORM ? 1.0 : (double)x->dim / sum;
        total += weight[n];
    }
    bool usable = isfinite(total) && total > 0.0;
    for (size_t n = 0; n < x->n_components; n++)
        weight[n] = usable ? weight[n] / total : 1.0 / (double)x->n_components;
}

/* ---- likelihoods ---- */

/* Variances as used into var, their logarithms summed into log_sum. */
static pnb_status prepare(const pnb_em_data *x, const pnb_em_opts *o, double *var, double *log_sum,
                          pnb_error *err)
{
    for (size_t n = 0; n < x->n_components; n++) {
        log_sum[n] = 0.0;
        for (size_t d = 0; d < x->dim; d++) {
            size_t at = n * x->dim + d;
            var[at] = x->var[at] * o->var_scale + o->eps;
            if (o->scale_twice)
                var[at] *= o->var_scale;
            if (!(var[at] > 0.0) || !isfinite(var[at]) || !isfinite(x->mean[at]))
                return pnb__fail(err, PNB_NUMERIC,
                                 "component %zu has mean %g and variance %g in dimension %zu", n,
                                 x->mean[at], var[at], d);
            log_sum[n] += log(var[at]);
            var[at] = 1.0 / var[at];
        }
    }
    return PNB_OK;
}

/* out[p][n] = log likelihood - largest of the point; `inverse` are 1/var. */
static void likelihoods(const pnb_em_data *x, const double *inverse, const double *log_sum,
                        double *out)
{
    for (size_t p = 0; p < x->n_points; p++) {
        const double *point = x->points + p * x->dim;
        double *row = out + p * x->n_components, largest = -INFINITY;
        for (size_t n = 0; n < x->n_components; n++) {
            const double *mean = x->mean + n * x->dim, *w = inverse + n * x->dim;
            double sum = log_sum[n];
            for (size_t d = 0; d < x->dim; d++)
                sum += (point[d] - mean[d]) * (point[d] - mean[d]) * w[d];
            row[n] = -0.5 * sum;
            largest = fmax(largest, row[n]);
        }
        for (size_t n = 0; n < x->n_components; n++)
            row[n] -= largest;
    }
}

/* ---- steps ---- */

/* Adds the responsibilities of one point by log-sum-exp. */
static void add_by_logs(const double *log_l, const double *weight, size_t n, double *count)
{
    double largest = -INFINITY, sum = 0.0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, log_l[i] + log(weight[i]));
    for (size_t i = 0; i < n; i++)
        sum += exp(log_l[i] + log(weight[i]) - largest);
    for (size_t i = 0; i < n; i++)
        count[i] += exp(log_l[i] + log(weight[i]) - largest) / sum;
}

static void add_point(const double *l, const double *log_l, const double *weight, size_t n,
                      double *count)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += weight[i] * l[i];
    if (!(sum > TINY)) {
        add_by_logs(log_l, weight, n, count);
        return;
    }
    for (size_t i = 0; i < n; i++)
        count[i] += weight[i] * l[i] / sum;
}

/* The next weights into `next`; false when the prior would leave nothing. */
static bool step(const pnb_em_data *x, const double *l, const double *log_l, const double *weight,
                 double alpha, double *next)
{
    size_t n = x->n_components;
    double total = 0.0;
    for (size_t i = 0; i < n; i++)
        next[i] = 0.0;
    for (size_t p = 0; p < x->n_points; p++)
        add_point(l + p * n, log_l + p * n, weight, n, next);
    for (size_t i = 0; i < n; i++) {
        next[i] = weight[i] > 0.0 ? fmax(0.0, next[i] + alpha - 1.0) : 0.0;
        total += next[i];
    }
    if (!(total > 0.0))
        return false;
    for (size_t i = 0; i < n; i++)
        next[i] /= total;
    return true;
}

/* Steps until they are short; returns how many were made, max_steps + 1 when that was not enough.
 */
static size_t iterate(const pnb_em_data *x, const pnb_em_opts *o, const double *l,
                      const double *log_l, double *weight, double *next)
{
    for (size_t s = 0; s < o->max_steps; s++) {
        double square = 0.0;
        if (!step(x, l, log_l, weight, o->alpha, next))
            return s;
        for (size_t n = 0; n < x->n_components; n++)
            square += (next[n] - weight[n]) * (next[n] - weight[n]);
        bool is_short = sqrt(square) < o->tolerance;
        for (size_t n = 0; n < x->n_components && !(is_short && o->one_step_old); n++)
            weight[n] = next[n];
        if (is_short)
            return s + 1;
    }
    return o->max_steps + 1;
}

pnb_status pnb_em_mixing_weights(const pnb_em_data *x, const pnb_em_opts *opts, double *weight,
                                 size_t *n_steps, pnb_error *err)
{
    pnb_em_opts o = opts != NULL ? *opts : pnb_em_opts_default();
    size_t n = x->n_components, n_made = 0;
    double *var = NULL, *log_l = NULL, *l = NULL;
    pnb_status status = check(x, &o, err);
    if (status != PNB_OK)
        return status;
    /* then log_sum, then the next weights */
    PNB_TRY(PNB_ALLOC_ROWS(var, n, (x->dim + 2), err));
    PNB_TRY(PNB_ALLOC_ROWS(log_l, PNB_MAX(x->n_points, 1), n, err));
    PNB_TRY(PNB_ALLOC_ROWS(l, PNB_MAX(x->n_points, 1), n, err));
    double *log_sum = var + n * x->dim, *next = log_sum + n;
    PNB_TRY(prepare(x, &o, var, log_sum, err));
    likelihoods(x, var, log_sum, log_l);
    for (size_t i = 0; i < x->n_points * n; i++)
        l[i] = exp(log_l[i]);
    first_weights(x, o.prior, weight);
    if (x->n_points > 0)
        n_made = iterate(x, &o, l, log_l, weight, next);
    if (n_steps != NULL)
        *n_steps = n_made;
done:
    pnb__free(var);
    pnb__free(log_l);
    pnb__free(l);
    return status;
}
