/* Bootstrap of means over rows, in strata that are drawn apart.
 *
 * Rows of a cluster are summed once. Resample r draws from stream r of the counter generator,
 * stratum after stratum, as many clusters as the stratum has; with one stratum these are the draws
 * of pnb_bootstrap, so the interval of a share is the one that figures_bootstrap.c gives. All
 * columns of a row are drawn together. Rows without a value are drawn too: they take no part in the
 * mean of their column. Efron 1979; the interval is that of resample/interval.c. */
#include "eval/resample/means_bootstrap.h"

#include <math.h>
#include <stdlib.h>

#include "eval/resample/clusters.h"
#include "eval/resample/interval.h"
#include "eval/sorted.h"

/* Clusters that hold rows of a stratum; its part of `sum` and `count` stands by cluster. */
typedef struct means_job {
    const pnb__means *means;
    pnb_bootstrap_opts boot;
    pnb__clusters clusters;
    double *sum, *count; /* [n_clusters][n_columns] over the rows of a cluster */
    size_t *begin;       /* [n_strata + 1] of each stratum in member */
    size_t *member;      /* clusters by stratum */
    size_t n_groups;     /* of the jackknife */
    double *figure;      /* [n_resamples + n_groups + 1][n_columns + 1], the sample itself last */
    double *scratch;     /* [thread][3][n_columns] */
} means_job;

pnb_status pnb__means_init(pnb__means *means, size_t n, size_t n_columns, size_t n_strata,
                           pnb_error *err)
{
    size_t row_bytes = n_columns * sizeof(double) + sizeof(int64_t) + sizeof(int32_t);
    char *memory = pnb__alloc_array(PNB_MAX(n, 1), row_bytes);
    if (memory == NULL)
        return pnb__fail_nomem(err, n * row_bytes);
    *means = (pnb__means){.value = (double *)(void *)memory,
                          .n = n,
                          .n_columns = n_columns,
                          .n_strata = n_strata,
                          .memory = memory};
    means->cluster = (int64_t *)(void *)(means->value + n * n_columns);
    means->stratum = (int32_t *)(void *)(means->cluster + n);
    return PNB_OK;
}

void pnb__means_reset(pnb__means *means)
{
    pnb__free(means->memory);
    *means = (pnb__means){0};
}

static size_t stratum_of(const pnb__means *m, size_t row)
{
    return m->stratum == NULL    ? 0
           : m->stratum[row] < 0 ? m->n_strata
                                 : PNB_MIN((size_t)m->stratum[row], m->n_strata);
}

static void sum_rows(const means_job *job)
{
    const pnb__means *m = job->means;
    const pnb__clusters *c = &job->clusters;
    for (size_t k = 0; k < c->n; k++)
        for (size_t p = c->offset[k]; p < c->offset[k + 1]; p++)
            for (size_t col = 0; col < m->n_columns; col++) {
                double v = m->value[c->row[p] * m->n_columns + col];
                job->sum[k * m->n_columns + col] += isnan(v) ? 0.0 : v;
                job->count[k * m->n_columns + col] += isnan(v) ? 0.0 : 1.0;
            }
}

/* Counting sort of the clusters by the stratum of their first row, which is that of all. */
static void sort_clusters(const means_job *job)
{
    const pnb__means *m = job->means;
    const pnb__clusters *c = &job->clusters;
    size_t at = 0;
    for (size_t s = 0; s < m->n_strata; s++) {
        job->begin[s] = at;
        for (size_t k = 0; k < c->n; k++)
            if (stratum_of(m, c->row[c->offset[k]]) == s)
                job->member[at++] = k;
    }
    job->begin[m->n_strata] = at;
}

/* ---- one sample ---- */

enum { ALL = -1 }; /* no group left out */

static void add_cluster(const means_job *job, size_t k, double *sum, double *count)
{
    size_t n = job->means->n_columns;
    for (size_t c = 0; c < n; c++) {
        sum[c] += job->sum[k * n + c];
        count[c] += job->count[k * n + c];
    }
}

/* Figures of a resample (rng), or of all clusters but those of group `out_group`. */
static void sample_figures(const means_job *job, pnb__rng *rng, int out_group, int thread,
                           double *out)
{
    size_t n_columns = job->means->n_columns;
    double *sum = job->scratch + (size_t)thread * 3 * n_columns, *count = sum + n_columns;
    double *filled = count + n_columns;
    for (size_t c = 0; c < n_columns; c++)
        out[c] = filled[c] = 0.0;
    out[n_columns] = 0.0;
    for (size_t s = 0; s < job->means->n_strata; s++) {
        const size_t *member = job->member + job->begin[s];
        size_t n = job->begin[s + 1] - job->begin[s];
        for (size_t c = 0; c < n_columns; c++)
            sum[c] = count[c] = 0.0;
        for (size_t i = 0; i < n; i++)
            if (rng != NULL)
                add_cluster(job, member[pnb__rng_below(rng, n)], sum, count);
            else if (out_group == ALL || (job->begin[s] + i) % job->n_groups != (size_t)out_group)
                add_cluster(job, member[i], sum, count);
        for (size_t c = 0; c < n_columns; c++)
            if (count[c] > 0.0) {
                out[c] += sum[c] / count[c];
                filled[c] += 1.0;
            }
    }
    for (size_t c = 0; c < n_columns; c++) {
        out[c] /= filled[c]; /* NaN without any */
        out[n_columns] += out[c] / (double)n_columns;
    }
}

static void run_samples(void *user, size_t begin, size_t end, int thread)
{
    const means_job *job = user;
    for (size_t r = begin; r < end; r++) {
        double *out = job->figure + r * (job->means->n_columns + 1);
        pnb__rng rng;
        pnb__rng_init(&rng, job->boot.seed, r);
        if (r < job->boot.n_resamples)
            sample_figures(job, &rng, ALL, thread, out);
        else
            sample_figures(job, NULL, (int)(r - job->boot.n_resamples), thread, out);
    }
}

/* ---- intervals ---- */

static size_t n_strata_used(const means_job *job)
{
    size_t n = 0;
    for (size_t s = 0; s < job->means->n_strata; s++)
        n += job->begin[s + 1] > job->begin[s];
    return n;
}

static pnb_status summarise(const means_job *job, pnb_interval *out, double *p, pnb_error *err)
{
    size_t n_figures = job->means->n_columns + 1, n_resamples = job->boot.n_resamples;
    size_t n = n_resamples + job->n_groups;
    double *value = pnb__alloc_array(n, sizeof *value);
    if (value == NULL)
        return pnb__fail_nomem(err, n * sizeof *value);
    for (size_t f = 0; f < n_figures; f++) {
        for (size_t r = 0; r < n; r++)
            value[r] = job->figure[r * n_figures + f];
        pnb__replicates r = {.value = job->figure[n * n_figures + f],
                             .resample = value,
                             .n_resamples = n_resamples,
                             .jackknife = value + n_resamples,
                             .n_jackknife = job->n_groups,
                             .n_clusters = job->begin[job->means->n_strata],
                             .n_strata = n_strata_used(job),
                             .agreement =
                                 job->means->is_difference ? PNB__AGREE_POINT : PNB__AGREE_SHARE};
        out[f].value = r.value;
        pnb__interval_settle(&r, job->boot.level, &out[f].low, &out[f].high);
        if (p != NULL)
            p[f] = pnb__interval_p(&r);
    }
    pnb__free(value);
    return PNB_OK;
}

/* A label for each cluster of each stratum: those of the caller may be any numbers. */
static pnb_status label_within(const pnb__means *m, int64_t *label, pnb_error *err)
{
    pnb__clusters whole;
    pnb_status status = pnb__clusters_init(&whole, m->cluster, m->n, err);
    for (size_t k = 0; status == PNB_OK && k < whole.n; k++)
        for (size_t p = whole.offset[k]; p < whole.offset[k + 1]; p++)
            label[whole.row[p]] = (int64_t)(k * (m->n_strata + 1) + stratum_of(m, whole.row[p]));
    pnb__clusters_reset(&whole);
    return status;
}

static pnb_status make_clusters(means_job *job, pnb_error *err)
{
    const pnb__means *m = job->means;
    int64_t *label = pnb__alloc_array(m->n, sizeof *label);
    if (label == NULL)
        return pnb__fail_nomem(err, m->n * sizeof *label);
    pnb_status status = label_within(m, label, err);
    if (status == PNB_OK)
        status = pnb__clusters_init(&job->clusters, label, m->n, err);
    pnb__free(label);
    return status;
}

static pnb_status prepare(means_job *job, size_t n_threads, pnb_error *err)
{
    const pnb__means *m = job->means;
    pnb_status status = make_clusters(job, err);
    if (status != PNB_OK)
        return status;
    job->n_groups = pnb__clusters_groups(&job->clusters);
    size_t n_cells = job->clusters.n * m->n_columns;
    size_t n_figures = (job->boot.n_resamples + job->n_groups + 1) * (m->n_columns + 1);
    if (PNB_ALLOC(job->begin, m->n_strata + 1, err) != PNB_OK ||
        PNB_ALLOC(job->member, job->clusters.n, err) != PNB_OK ||
        PNB_ALLOC_ZERO(job->sum, n_cells, err) != PNB_OK ||
        PNB_ALLOC_ZERO(job->count, n_cells, err) != PNB_OK ||
        PNB_ALLOC(job->figure, n_figures, err) != PNB_OK ||
        PNB_ALLOC_ROWS(job->scratch, n_threads, 3 * m->n_columns, err) != PNB_OK)
        return PNB_NOMEM;
    sum_rows(job);
    sort_clusters(job);
    return PNB_OK;
}

pnb_status pnb__means_bootstrap(const pnb_ctx *ctx, const pnb__means *means,
                                const pnb_bootstrap_opts *opts, pnb_interval *out, double *p,
                                pnb_error *err)
{
    means_job job = {.means = means, .boot = opts == NULL ? pnb_bootstrap_opts_default() : *opts};
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    pnb_status status;
    bool values_only = job.boot.n_resamples == 0;
    job.boot.n_resamples += values_only; /* one that nobody sees */
    PNB_TRY(pnb__bootstrap_check(means->n, &job.boot, err));
    PNB_TRY(prepare(&job, n_threads, err));
    size_t n = job.boot.n_resamples + job.n_groups;
    sample_figures(&job, NULL, ALL, 0, job.figure + n * (means->n_columns + 1));
    pnb__parallel_for(ctx, n, 1, run_samples, &job);
    status = summarise(&job, out, p, err);
    for (size_t f = 0; values_only && f <= means->n_columns; f++) {
        out[f].low = out[f].high = (double)NAN;
        if (p != NULL)
            p[f] = (double)NAN;
    }
done:
    pnb__clusters_reset(&job.clusters);
    pnb__free(job.begin);
    pnb__free(job.member);
    pnb__free(job.sum);
    pnb__free(job.count);
    pnb__free(job.figure);
    pnb__free(job.scratch);
    return status;
}
