/* Percentile bootstrap of means over rows, in strata that are drawn apart.
 *
 * Resample r draws from stream r of the counter generator, stratum after stratum, as many rows as
 * the stratum has; with one stratum these are the draws of pnb_bootstrap, so the interval of a
 * share is the one that figures.c gives. All columns of a row are drawn together. Rows without a
 * value are drawn too: they take no part in the mean of their column. Efron 1979. */
#include "eval/means.h"

#include <math.h>
#include <stdlib.h>

#include "eval/sorted.h"

typedef struct means_job {
    const pnb__means *means;
    pnb_bootstrap_opts boot;
    size_t *row;     /* [n] by stratum */
    size_t *begin;   /* [n_strata + 1] of each stratum in row */
    double *figure;  /* [n_resamples + 1][n_columns + 1], all rows as they are last */
    double *sum, *n; /* [thread][n_columns] */
    double *filled;  /* [thread][n_columns] strata with a value */
} means_job;

static size_t stratum_of(const pnb__means *m, size_t row)
{
    return m->stratum == NULL    ? 0
           : m->stratum[row] < 0 ? m->n_strata
                                 : PNB_MIN((size_t)m->stratum[row], m->n_strata);
}

/* Counting sort: rows keep their order within a stratum. */
static void sort_rows(means_job *job)
{
    const pnb__means *m = job->means;
    for (size_t s = 0; s <= m->n_strata; s++)
        job->begin[s] = 0;
    for (size_t i = 0; i < m->n; i++)
        if (stratum_of(m, i) < m->n_strata)
            job->begin[stratum_of(m, i) + 1]++;
    for (size_t s = 0; s < m->n_strata; s++)
        job->begin[s + 1] += job->begin[s];
    for (size_t i = 0; i < m->n; i++)
        if (stratum_of(m, i) < m->n_strata)
            job->row[job->begin[stratum_of(m, i)]++] = i;
    for (size_t s = m->n_strata; s > 0; s--)
        job->begin[s] = job->begin[s - 1];
    job->begin[0] = 0;
}

/* ---- one resample ---- */

typedef struct sums {
    double *sum, *n, *filled; /* [n_columns] */
} sums;

static void add_row(const pnb__means *m, size_t row, const sums *s)
{
    const double *value = m->value + row * m->n_columns;
    for (size_t c = 0; c < m->n_columns; c++)
        if (!isnan(value[c])) {
            s->sum[c] += value[c];
            s->n[c] += 1.0;
        }
}

/* Figures of one sample into out[n_columns + 1]; rng NULL: every row once. */
static void sample_figures(const means_job *job, pnb__rng *rng, const sums *s, double *out)
{
    const pnb__means *m = job->means;
    for (size_t c = 0; c <= m->n_columns; c++)
        out[c] = 0.0;
    for (size_t c = 0; c < m->n_columns; c++)
        s->filled[c] = 0.0;
    for (size_t t = 0; t < m->n_strata; t++) {
        const size_t *row = job->row + job->begin[t];
        size_t n = job->begin[t + 1] - job->begin[t];
        for (size_t c = 0; c < m->n_columns; c++)
            s->sum[c] = s->n[c] = 0.0;
        for (size_t i = 0; i < n; i++)
            add_row(m, row[rng == NULL ? i : (size_t)pnb__rng_below(rng, n)], s);
        for (size_t c = 0; c < m->n_columns; c++)
            if (s->n[c] > 0.0) {
                out[c] += s->sum[c] / s->n[c];
                s->filled[c] += 1.0;
            }
    }
    for (size_t c = 0; c < m->n_columns; c++) {
        out[c] /= s->filled[c]; /* NaN without any */
        out[m->n_columns] += out[c] / (double)m->n_columns;
    }
}

static void run_resamples(void *user, size_t begin, size_t end, int thread)
{
    const means_job *job = user;
    size_t n_columns = job->means->n_columns, at = (size_t)thread * n_columns;
    const sums s = {job->sum + at, job->n + at, job->filled + at};
    for (size_t r = begin; r < end; r++) {
        pnb__rng rng;
        pnb__rng_init(&rng, job->boot.seed, r);
        sample_figures(job, &rng, &s, job->figure + r * (n_columns + 1));
    }
}

/* ---- intervals ---- */

static pnb_status summarise(const means_job *job, pnb_interval *out, pnb_error *err)
{
    size_t n_figures = job->means->n_columns + 1, n_resamples = job->boot.n_resamples;
    double *value = pnb__alloc_array(n_resamples, sizeof *value);
    if (value == NULL)
        return pnb__fail_nomem(err, n_resamples * sizeof *value);
    for (size_t f = 0; f < n_figures; f++) {
        size_t n = 0;
        for (size_t r = 0; r < n_resamples; r++)
            if (!isnan(job->figure[r * n_figures + f]))
                value[n++] = job->figure[r * n_figures + f];
        out[f] = (pnb_interval){job->figure[n_resamples * n_figures + f], NAN, NAN};
        if (n == 0)
            continue;
        qsort(value, n, sizeof *value, pnb__compare_doubles);
        out[f].low = pnb__quantile(value, n, 0.5 * (1.0 - job->boot.level));
        out[f].high = pnb__quantile(value, n, 0.5 * (1.0 + job->boot.level));
    }
    pnb__free(value);
    return PNB_OK;
}

static pnb_status prepare(means_job *job, size_t n_threads, pnb_error *err)
{
    const pnb__means *m = job->means;
    size_t n_figures = (job->boot.n_resamples + 1) * (m->n_columns + 1);
    job->row = pnb__alloc_array(PNB_MAX(m->n, 1), sizeof *job->row);
    job->begin = pnb__alloc_array(m->n_strata + 1, sizeof *job->begin);
    job->figure = pnb__alloc_array(n_figures, sizeof *job->figure);
    job->sum = pnb__alloc_array(n_threads, m->n_columns * sizeof *job->sum);
    job->n = pnb__alloc_array(n_threads, m->n_columns * sizeof *job->n);
    job->filled = pnb__alloc_array(n_threads, m->n_columns * sizeof *job->filled);
    if (job->row == NULL || job->begin == NULL || job->figure == NULL || job->sum == NULL ||
        job->n == NULL || job->filled == NULL)
        return pnb__fail_nomem(err, m->n * sizeof *job->row + n_figures * sizeof *job->figure);
    sort_rows(job);
    return PNB_OK;
}

pnb_status pnb__means_bootstrap(const pnb_ctx *ctx, const pnb__means *means,
                                const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err)
{
    means_job job = {.means = means, .boot = opts == NULL ? pnb_bootstrap_opts_default() : *opts};
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    pnb_status status;
    PNB_TRY(pnb__bootstrap_check(means->n, &job.boot, err));
    PNB_TRY(prepare(&job, n_threads, err));
    const sums s = {job.sum, job.n, job.filled};
    sample_figures(&job, NULL, &s, job.figure + job.boot.n_resamples * (means->n_columns + 1));
    pnb__parallel_for(ctx, job.boot.n_resamples, 1, run_resamples, &job);
    status = summarise(&job, out, err);
done:
    pnb__free(job.row);
    pnb__free(job.begin);
    pnb__free(job.figure);
    pnb__free(job.sum);
    pnb__free(job.n);
    pnb__free(job.filled);
    return status;
}
