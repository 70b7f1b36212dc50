/* Inclusion against the difference of the two Kullback-Leibler divergences: which tells more often
 * what lies in what (ProLIP Figure 3 and appendix A.6, where the difference is called DKL).
 *
 * In one dimension, and wherever all variances of a row are equal, H > 0 and D < 0 are the same:
 * both say which Gaussian is narrower, whatever their means are. They part where a row is narrower
 * in some dimensions and wider in others, because D weighs a dimension by 1/variance and H by the
 * logarithm and a bounded term. Appendix A.6 says that the test "always returns negative values"
 * for two that do not include each other; by Eq. 4, which is followed, H(a in b) = -H(b in a), so
 * one direction is positive there too. Shares alone cannot show the difference; areas do. */
#include <math.h>

#include "base/base.h"
#include "penumbra/hierarchy.h"
#include "penumbra/statistics.h"

static pnb_status check(const pnb_gaussians *a, const pnb_gaussians *b, pnb_error *err)
{
    if (a->n == 0)
        return pnb__fail(err, PNB_ARG, "no rows to compare; at least one is needed");
    if (a->n != b->n || a->dim != b->dim)
        return pnb__fail(err, PNB_SHAPE, "%zu rows of width %zu and %zu of width %zu", a->n, a->dim,
                         b->n, b->dim);
    if (a->log_var == NULL || b->log_var == NULL)
        return pnb__fail(err, PNB_ARG, "a side has no variances, which a divergence needs");
    return PNB_OK;
}

/* One dimension of D; sinh r - r does not cancel where the variances are close. */
static double one_difference(double mean_a, double l_a, double mean_b, double l_b)
{
    double r = l_a - l_b, delta = mean_a - mean_b, shape;
    if (fabs(r) < 0.1)
        shape =
            r * r * r / 6.0 * (1.0 + r * r / 20.0 * (1.0 + r * r / 42.0 * (1.0 + r * r / 72.0)));
    else
        shape = sinh(r) - r;
    return shape + 0.5 * delta * delta * (exp(-l_b) - exp(-l_a));
}

static pnb_status difference_rows(const pnb_gaussians *a, const pnb_gaussians *b, double *out,
                                  pnb_error *err)
{
    for (size_t i = 0; i < a->n; i++) {
        out[i] = 0.0;
        for (size_t k = i * a->dim; k < (i + 1) * a->dim; k++)
            out[i] += one_difference((double)a->mean[k], (double)a->log_var[k], (double)b->mean[k],
                                     (double)b->log_var[k]);
        if (!isfinite(out[i]))
            return pnb__fail(err, PNB_NUMERIC, "row %zu: the difference of divergences is %g", i,
                             out[i]);
    }
    return PNB_OK;
}

/* P(|X - n/2| >= |k - n/2|) of X ~ Binomial(n, 1/2). */
static double sign_test(size_t k, size_t n)
{
    size_t less = PNB_MIN(k, n - k);
    double sum = 0.0;
    if (2 * less == n)
        return 1.0;
    for (size_t i = 0; i <= less; i++)
        sum += exp(lgamma((double)n + 1) - lgamma((double)i + 1) - lgamma((double)(n - i) + 1) -
                   (double)n * log(2.0));
    return fmin(1.0, 2.0 * sum);
}

static void count(const double *h, const double *d, size_t n, pnb_inclusion_contest *out)
{
    size_t n_h = 0, n_kl = 0, n_both = 0;
    *out = (pnb_inclusion_contest){.n = n, .h_auroc = (double)NAN, .kl_auroc = (double)NAN};
    for (size_t i = 0; i < n; i++) {
        n_h += h[i] > 0.0;
        n_kl += d[i] < 0.0;
        n_both += h[i] > 0.0 && d[i] < 0.0;
        out->h_mean += h[i] / (double)n;
        out->kl_mean += d[i] / (double)n;
    }
    out->by_h = (double)n_h / (double)n;
    out->by_kl = (double)n_kl / (double)n;
    out->both = (double)n_both / (double)n;
    out->only_h = (double)(n_h - n_both) / (double)n;
    out->only_kl = (double)(n_kl - n_both) / (double)n;
    out->p = sign_test(n_h - n_both, n_h + n_kl - 2 * n_both);
}

/* The first n values are of included pairs, the others of strangers; sign -1 turns D round. */
static pnb_status area(const double *values, double sign, size_t n, double *out, pnb_error *err)
{
    double *score = NULL;
    int *label = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(score, 2 * n, err));
    PNB_TRY(PNB_ALLOC(label, 2 * n, err));
    for (size_t i = 0; i < 2 * n; i++) {
        score[i] = sign * values[i];
        label[i] = i < n;
    }
    status = pnb_auroc(score, label, 2 * n, out, err);
done:
    pnb__free(score);
    pnb__free(label);
    return status;
}

pnb_status pnb_inclusion_against_kl(const pnb_gaussians *a, const pnb_gaussians *b,
                                    const pnb_gaussians *strangers, bool published, double *h,
                                    double *d, pnb_inclusion_contest *out, pnb_error *err)
{
    pnb_measure measure = published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    pnb_inclusion_contest found;
    double *both = NULL;
    size_t n = a->n;
    pnb_status status;
    PNB_TRY(check(a, b, err));
    if (strangers != NULL)
        PNB_TRY(check(a, strangers, err));
    PNB_TRY(PNB_ALLOC_ROWS(both, n, 4, err));
    double *of_h = both, *of_kl = both + 2 * n; /* each: n included pairs, n strangers */
    PNB_TRY(pnb_measure_rows(measure, a, b, NULL, of_h, err));
    PNB_TRY(difference_rows(a, b, of_kl, err));
    count(of_h, of_kl, n, &found);
    if (strangers != NULL) {
        PNB_TRY(pnb_measure_rows(measure, a, strangers, NULL, of_h + n, err));
        PNB_TRY(difference_rows(a, strangers, of_kl + n, err));
        PNB_TRY(area(of_h, 1.0, n, &found.h_auroc, err));
        PNB_TRY(area(of_kl, -1.0, n, &found.kl_auroc, err));
    }
    for (size_t i = 0; i < n; i++) {
        if (h != NULL)
            h[i] = of_h[i];
        if (d != NULL)
            d[i] = of_kl[i];
    }
    *out = found;
done:
    pnb__free(both);
    return status;
}
