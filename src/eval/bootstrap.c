/* Percentile bootstrap: the figure of n rows drawn with replacement, n_resamples times.
 *
 * Resample r draws from stream r of the counter generator, so intervals do not depend on order or
 * threads. Quantiles interpolate linearly between order statistics (type 7, NumPy's default).
 * Resamples whose figure is NaN (a class that was not drawn) are left out. Efron 1979. */
#include <math.h>
#include <stdlib.h>

#include "eval/sorted.h"
#include "penumbra/eval.h"

pnb_bootstrap_opts pnb_bootstrap_opts_default(void)
{
    return (pnb_bootstrap_opts){.n_resamples = 1000, .level = 0.95, .seed = 0};
}

int pnb__compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double pnb__quantile(const double *sorted, size_t n, double p)
{
    double at = p * (double)(n - 1);
    size_t i = (size_t)at;
    if (i + 1 >= n)
        return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

pnb_status pnb__bootstrap_check(size_t n, const pnb_bootstrap_opts *o, pnb_error *err)
{
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "no rows to resample; at least one is needed");
    if (o->n_resamples == 0 || !(o->level > 0.0 && o->level < 1.0))
        return pnb__fail(err, PNB_ARG,
                         "%zu resamples at level %g; at least 1 and a level between 0 and 1 are "
                         "needed",
                         o->n_resamples, o->level);
    return PNB_OK;
}

pnb_status pnb_bootstrap(pnb_statistic_fn statistic, void *user, size_t n,
                         const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err)
{
    pnb_bootstrap_opts o = opts == NULL ? pnb_bootstrap_opts_default() : *opts;
    pnb_status status = pnb__bootstrap_check(n, &o, err);
    if (status != PNB_OK)
        return status;
    size_t *row = pnb__alloc_array(n, sizeof *row), n_values = 0;
    double *value = pnb__alloc_array(o.n_resamples, sizeof *value);
    if (row == NULL || value == NULL)
        PNB_TRY(pnb__fail_nomem(err, n * sizeof *row + o.n_resamples * sizeof *value));
    for (size_t i = 0; i < n; i++)
        row[i] = i;
    pnb_interval interval = {.value = statistic(user, row, n)};
    for (size_t r = 0; r < o.n_resamples; r++) {
        pnb__rng rng;
        pnb__rng_init(&rng, o.seed, r);
        for (size_t i = 0; i < n; i++)
            row[i] = (size_t)pnb__rng_below(&rng, n);
        double v = statistic(user, row, n);
        if (!isnan(v))
            value[n_values++] = v;
    }
    if (n_values == 0)
        PNB_TRY(pnb__fail(err, PNB_NUMERIC, "the figure of all %zu resamples is not a number",
                          o.n_resamples));
    qsort(value, n_values, sizeof *value, pnb__compare_doubles);
    interval.low = pnb__quantile(value, n_values, 0.5 * (1.0 - o.level));
    interval.high = pnb__quantile(value, n_values, 0.5 * (1.0 + o.level));
    *out = interval;
done:
    pnb__free(row);
    pnb__free(value);
    return status;
}

static double mean_of_rows(void *user, const size_t *row, size_t n)
{
    const double *values = user;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += values[row[i]];
    return sum / (double)n;
}

pnb_status pnb_bootstrap_mean(const double *values, size_t n, const pnb_bootstrap_opts *opts,
                              pnb_interval *out, pnb_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return pnb__fail(err, PNB_NUMERIC, "value %zu is %g, a finite value is needed", i,
                             values[i]);
    return pnb_bootstrap(mean_of_rows, (void *)(uintptr_t)values, n, opts, out, err);
}
