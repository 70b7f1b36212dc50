/* Bootstrap of one figure: clusters of rows drawn with replacement, n_resamples times.
 *
 * Resample r draws from stream r of the counter generator, so intervals do not depend on order or
 * threads. Quantiles interpolate linearly between order statistics (type 7, NumPy's default).
 * Resamples whose figure is NaN (a class that was not drawn) are left out. Efron 1979; what is made
 * of the resampled values is in resample/interval.c. */
#include <math.h>
#include <stdlib.h>

#include "eval/resample/clusters.h"
#include "eval/resample/interval.h"
#include "eval/sorted.h"
#include "penumbra/bootstrap.h"

pnb_bootstrap_opts pnb_bootstrap_opts_default(void)
{
    return (pnb_bootstrap_opts){.n_resamples = 1000, .level = 0.95, .seed = 0};
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

/* ---- one statistic of rows ---- */

typedef struct rows_job {
    pnb_statistic_fn statistic;
    void *user;
    pnb__clusters clusters;
    uint32_t *weight; /* [rows] */
    size_t *row;      /* [capacity] rows of a sample, each as often as it was drawn */
    size_t capacity;
} rows_job;

static pnb_status value_of_weights(rows_job *job, double *out, pnb_error *err)
{
    size_t total = 0, n = 0;
    for (size_t i = 0; i < job->clusters.n_rows; i++)
        total += job->weight[i];
    if (total > job->capacity) {
        pnb__free(job->row);
        job->row = pnb__alloc_array(total, sizeof *job->row);
        job->capacity = job->row == NULL ? 0 : total;
        if (job->row == NULL)
            return pnb__fail_nomem(err, total * sizeof *job->row);
    }
    for (size_t i = 0; i < job->clusters.n_rows; i++)
        for (uint32_t w = 0; w < job->weight[i]; w++)
            job->row[n++] = i;
    *out = total == 0 ? (double)NAN : job->statistic(job->user, job->row, n);
    return PNB_OK;
}

static pnb_status run_rows(rows_job *job, const pnb_bootstrap_opts *o, pnb__agreement agreement,
                           pnb_interval *out, pnb_error *err)
{
    size_t n_groups = pnb__clusters_groups(&job->clusters);
    double *value = NULL, point;
    pnb_status status = PNB_OK;
    PNB_TRY(PNB_ALLOC(value, o->n_resamples + n_groups, err));
    double *jackknife = value + o->n_resamples;
    for (size_t i = 0; i < job->clusters.n_rows; i++)
        job->weight[i] = 1;
    PNB_TRY(value_of_weights(job, &point, err));
    for (size_t r = 0; r < o->n_resamples; r++) {
        pnb__clusters_draw(&job->clusters, o->seed, r, job->weight);
        PNB_TRY(value_of_weights(job, &value[r], err));
    }
    for (size_t g = 0; g < n_groups; g++) {
        pnb__clusters_leave_out(&job->clusters, g, job->weight);
        PNB_TRY(value_of_weights(job, &jackknife[g], err));
    }
    pnb__replicates r = {point,           value, o->n_resamples, jackknife, n_groups,
                         job->clusters.n, 1,     agreement};
    pnb_interval interval = {.value = point};
    pnb__interval_settle(&r, o->level, &interval.low, &interval.high);
    if (r.n_resamples == 0)
        PNB_TRY(pnb__fail(err, PNB_NUMERIC, "the figure of all %zu resamples is not a number",
                          o->n_resamples));
    *out = interval;
done:
    pnb__free(value);
    return status;
}

static pnb_status bootstrap(rows_job *job, size_t n, const pnb_bootstrap_opts *opts,
                            pnb__agreement agreement, pnb_interval *out, pnb_error *err)
{
    pnb_bootstrap_opts o = opts == NULL ? pnb_bootstrap_opts_default() : *opts;
    pnb_status status = pnb__bootstrap_check(n, &o, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(pnb__clusters_init(&job->clusters, o.cluster, n, err));
    PNB_TRY(PNB_ALLOC(job->weight, n, err));
    status = run_rows(job, &o, agreement, out, err);
done:
    pnb__clusters_reset(&job->clusters);
    pnb__free(job->weight);
    pnb__free(job->row);
    return status;
}

pnb_status pnb_bootstrap(pnb_statistic_fn statistic, void *user, size_t n,
                         const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err)
{
    rows_job job = {.statistic = statistic, .user = user};
    return bootstrap(&job, n, opts, PNB__AGREE_POINT, out, err);
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
    rows_job job = {.statistic = mean_of_rows, .user = (void *)(uintptr_t)values};
    bool is_share = true;
    for (size_t i = 0; i < n; i++)
        is_share = is_share && values[i] >= 0.0 && values[i] <= 1.0;
    return bootstrap(&job, n, opts, is_share ? PNB__AGREE_SHARE : PNB__AGREE_POINT, out, err);
}
