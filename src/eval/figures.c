/* All figures of one direction from per-query values, and their bootstrap over queries.
 *
 * Ranking happened before: each query brings its rank, precisions, an uncertainty and the
 * probability of its first hit. Orders by rank, uncertainty and confidence are found once; a
 * resample is a weight a query (weighted.h), so an interval costs O(resamples * n). Resample r
 * draws the same rows as pnb_bootstrap does, from stream r of the counter generator. Two models are
 * compared on equal weights (paired), several seeds of a model count with their mean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/sorted.h"
#include "eval/weighted.h"

enum { DEFAULT_MASS_BINS = 15, DEFAULT_BINS = 10 };
static const size_t DEFAULT_K[] = {1, 5, 10};

static const char *const NAMES[] = {
#define X(name, text, sentence) text,
    PNB_FIGURE_LIST(X)
#undef X
};
static const char *const SENTENCES[] = {
#define X(name, text, sentence) sentence,
    PNB_FIGURE_LIST(X)
#undef X
};

const char *pnb_figure_name(pnb_figure figure)
{
    return (unsigned)figure < PNB_N_FIGURES ? NAMES[figure] : "unknown";
}

const char *pnb_figure_sentence(pnb_figure figure)
{
    return (unsigned)figure < PNB_N_FIGURES ? SENTENCES[figure] : "unknown";
}

pnb_figure_opts pnb_figure_opts_default(void)
{
    return (pnb_figure_opts){.k = DEFAULT_K,
                             .n_k = PNB_COUNT(DEFAULT_K),
                             .n_bins = DEFAULT_BINS,
                             .n_mass_bins = DEFAULT_MASS_BINS};
}

/* ---- one sample, prepared ---- */

typedef struct sample {
    const pnb_query_values *v;
    size_t *by_rank, *by_uncertainty, *by_confidence; /* [n]; NULL where values are missing */
    double *correct;                                  /* [n] 1: the first hit is right */
} sample;

static void sample_reset(sample *s)
{
    pnb__free(s->by_rank);
    pnb__free(s->by_uncertainty);
    pnb__free(s->by_confidence);
    pnb__free(s->correct);
}

static pnb_status order_by(size_t **out, const double *values, size_t n, const char *what,
                           pnb_error *err)
{
    pnb__valued *sorted = NULL;
    pnb_status status = pnb__sorted(&sorted, values, n, what, err);
    if (status != PNB_OK)
        return status;
    *out = pnb__alloc_array(n, sizeof **out);
    for (size_t i = 0; *out != NULL && i < n; i++)
        (*out)[i] = sorted[i].place;
    pnb__free(sorted);
    return *out == NULL ? pnb__fail_nomem(err, n * sizeof **out) : PNB_OK;
}

static pnb_status check_values(const pnb_query_values *v, pnb_error *err)
{
    const double *const arrays[] = {v->r_precision, v->map_at_r};
    if (v->n == 0 || v->n > UINT32_MAX)
        return pnb__fail(err, PNB_ARG, "%zu queries; 1 to 2^32 - 1 are possible", v->n);
    for (size_t i = 0; i < v->n; i++)
        if (v->best_rank[i] < 1)
            return pnb__fail(err, PNB_ARG,
                             "query %zu has rank %lld; queries without a match must be left out", i,
                             (long long)v->best_rank[i]);
    for (size_t a = 0; a < PNB_COUNT(arrays); a++)
        for (size_t i = 0; arrays[a] != NULL && i < v->n; i++)
            if (!isfinite(arrays[a][i]))
                return pnb__fail(err, PNB_NUMERIC, "precision of query %zu is %g", i, arrays[a][i]);
    for (size_t i = 0; v->confidence != NULL && i < v->n; i++)
        if (!(v->confidence[i] >= 0.0 && v->confidence[i] <= 1.0))
            return pnb__fail(err, PNB_NUMERIC, "confidence %zu is %g; it must lie in [0,1]", i,
                             v->confidence[i]);
    return PNB_OK;
}

static pnb_status sample_init(sample *s, const pnb_query_values *v, pnb_error *err)
{
    pnb_status status;
    double *rank = NULL;
    *s = (sample){.v = v};
    PNB_TRY(check_values(v, err));
    rank = pnb__alloc_array(v->n, sizeof *rank);
    s->correct = pnb__alloc_array(v->n, sizeof *s->correct);
    if (rank == NULL || s->correct == NULL)
        PNB_TRY(pnb__fail_nomem(err, v->n * 2 * sizeof *rank));
    for (size_t i = 0; i < v->n; i++) {
        rank[i] = (double)v->best_rank[i];
        s->correct[i] = v->best_rank[i] == 1 ? 1.0 : 0.0;
    }
    PNB_TRY(order_by(&s->by_rank, rank, v->n, "rank", err));
    if (v->uncertainty != NULL)
        PNB_TRY(order_by(&s->by_uncertainty, v->uncertainty, v->n, "uncertainty", err));
    if (v->confidence != NULL)
        PNB_TRY(order_by(&s->by_confidence, v->confidence, v->n, "confidence", err));
done:
    pnb__free(rank);
    return status;
}

/* ---- figures of a weighted sample ---- */

/* The element that stands at place `at` of the resample sorted by rank. */
static double rank_at(const sample *s, const uint32_t *weight, size_t at)
{
    size_t i = 0;
    for (size_t seen = pnb__weight(weight, s->by_rank[0]); seen <= at && i + 1 < s->v->n;)
        seen += pnb__weight(weight, s->by_rank[++i]);
    return (double)s->v->best_rank[s->by_rank[i]];
}

static void rank_figures(const sample *s, const uint32_t *weight, const pnb_figure_opts *o,
                         pnb_figures *out)
{
    const pnb_query_values *v = s->v;
    double total = 0.0, mean = 0.0, precision = 0.0, map = 0.0, hits[PNB_MAX_RECALLS] = {0};
    for (size_t i = 0; i < v->n; i++) {
        double w = (double)pnb__weight(weight, i);
        total += w;
        mean += w * (double)v->best_rank[i];
        precision += v->r_precision != NULL ? w * v->r_precision[i] : 0.0;
        map += v->map_at_r != NULL ? w * v->map_at_r[i] : 0.0;
        for (size_t k = 0; k < o->n_k; k++)
            hits[k] += (size_t)v->best_rank[i] <= o->k[k] ? w : 0.0;
    }
    for (size_t k = 0; k < o->n_k; k++)
        out->recall[k] = hits[k] / total;
    out->value[PNB_FIGURE_MEAN_RANK] = mean / total;
    if (v->r_precision != NULL)
        out->value[PNB_FIGURE_R_PRECISION] = precision / total;
    if (v->map_at_r != NULL)
        out->value[PNB_FIGURE_MAP_AT_R] = map / total;
    double low = rank_at(s, weight, ((size_t)total - 1) / 2);
    double high = rank_at(s, weight, (size_t)total / 2);
    out->value[PNB_FIGURE_MEDIAN_RANK] = floor(0.5 * (low + high - 2.0)) + 1.0;
}

static pnb_status uncertainty_figures(const sample *s, const uint32_t *weight,
                                      const pnb_figure_opts *o, pnb_figures *out, pnb_error *err)
{
    const pnb__answers a = {s->by_uncertainty, s->v->uncertainty, s->correct, s->v->n};
    size_t n_bins = PNB_MIN(o->n_bins, s->v->n);
    pnb_selective selective = pnb__selective_weighted(&a, weight);
    out->value[PNB_FIGURE_AUROC] = selective.auroc;
    out->value[PNB_FIGURE_AURC] = selective.aurc;
    out->value[PNB_FIGURE_AUGRC] = selective.augrc;
    pnb_status status = pnb__calibration_weighted(&a, weight, PNB_BINS_EQUAL_COUNT, n_bins,
                                                  &out->value[PNB_FIGURE_SPEARMAN_S], err);
    if (status == PNB_OK)
        status = pnb__calibration_weighted(&a, weight, PNB_BINS_EQUAL_WIDTH, n_bins,
                                           &out->value[PNB_FIGURE_WIDTH_SPEARMAN_S], err);
    return status;
}

static void confidence_figures(const sample *s, const uint32_t *weight, const pnb_figure_opts *o,
                               pnb_figures *out)
{
    const pnb__forecasts f = {s->by_confidence, s->v->confidence, s->correct, s->v->n};
    double total = 0.0, nlpd = 0.0;
    for (size_t i = 0; i < s->v->n; i++) {
        double w = (double)pnb__weight(weight, i), p = s->v->confidence[i];
        p = fmin(fmax(p, PNB__CONFIDENCE_FLOOR), 1.0 - PNB__CONFIDENCE_FLOOR);
        nlpd -= w * (s->correct[i] > 0.5 ? log(p) : log1p(-p));
        total += w;
    }
    out->value[PNB_FIGURE_ECE] = pnb__ece_weighted(&f, weight, o->n_mass_bins);
    out->value[PNB_FIGURE_NLPD] = nlpd / total;
}

static pnb_status figures_of(const sample *s, const uint32_t *weight, const pnb_figure_opts *o,
                             pnb_figures *out, pnb_error *err)
{
    for (size_t k = 0; k < PNB_MAX_RECALLS; k++)
        out->recall[k] = (double)NAN;
    for (size_t f = 0; f < PNB_N_FIGURES; f++)
        out->value[f] = (double)NAN;
    rank_figures(s, weight, o, out);
    if (s->by_confidence != NULL)
        confidence_figures(s, weight, o, out);
    if (s->by_uncertainty != NULL)
        return uncertainty_figures(s, weight, o, out, err);
    return PNB_OK;
}

static pnb_status check_opts(const pnb_figure_opts *o, pnb_error *err)
{
    if (o->n_k == 0 || o->n_k > PNB_MAX_RECALLS)
        return pnb__fail(err, PNB_ARG, "%zu cut-offs k; 1 to %d are possible", o->n_k,
                         PNB_MAX_RECALLS);
    for (size_t i = 0; i < o->n_k; i++)
        if (o->k[i] == 0)
            return pnb__fail(err, PNB_ARG, "cut-off %zu of R@k is 0; it must be at least 1", i);
    if (o->n_bins == 0 || o->n_bins > PNB_MAX_BINS || o->n_mass_bins == 0 ||
        o->n_mass_bins > PNB_MAX_BINS)
        return pnb__fail(err, PNB_ARG, "%zu and %zu bins; 1 to %d are possible", o->n_bins,
                         o->n_mass_bins, PNB_MAX_BINS);
    return PNB_OK;
}

static pnb_figure_opts complete(const pnb_figure_opts *opts)
{
    pnb_figure_opts o = opts == NULL ? pnb_figure_opts_default() : *opts;
    if (o.k == NULL) {
        o.k = DEFAULT_K;
        o.n_k = PNB_COUNT(DEFAULT_K);
    }
    return o;
}

pnb_status pnb_figures_compute(const pnb_query_values *values, const pnb_figure_opts *opts,
                               pnb_figures *out, pnb_error *err)
{
    pnb_status status;
    sample s = {0};
    pnb_figure_opts o = complete(opts);
    pnb_figures figures;
    PNB_TRY(check_opts(&o, err));
    PNB_TRY(sample_init(&s, values, err));
    PNB_TRY(figures_of(&s, NULL, &o, &figures, err));
    *out = figures;
done:
    sample_reset(&s);
    return status;
}

/* ---- resampling ---- */

enum { N_VALUES = PNB_MAX_RECALLS + PNB_N_FIGURES };

/* A figure by number: recalls first. */
static double *value_of(pnb_figures *f, size_t i)
{
    return i < PNB_MAX_RECALLS ? &f->recall[i] : &f->value[i - PNB_MAX_RECALLS];
}

/* One or two models; the figure of a resample is that of the first, or second minus first. */
typedef struct boot_job {
    sample *sample; /* n_a of the first model, then n_b of the second */
    size_t n_a, n_b, n;
    pnb_figure_opts opts;
    pnb_bootstrap_opts boot;
    pnb_figures *resample; /* [n_resamples] */
    uint32_t **weight;     /* [thread][n] */
    pnb_error *error;      /* [thread] */
} boot_job;

/* Mean figures of n seeds on the same weights. */
static pnb_status mean_figures(const sample *seeds, size_t n, const uint32_t *weight,
                               const pnb_figure_opts *o, pnb_figures *out, pnb_error *err)
{
    for (size_t s = 0; s < n; s++) {
        pnb_figures one;
        pnb_status status = figures_of(&seeds[s], weight, o, &one, err);
        if (status != PNB_OK)
            return status;
        for (size_t i = 0; i < N_VALUES; i++)
            *value_of(out, i) = (s == 0 ? 0.0 : *value_of(out, i)) + *value_of(&one, i) / (double)n;
    }
    return PNB_OK;
}

static pnb_status figures_on(const boot_job *job, const uint32_t *weight, pnb_figures *out,
                             pnb_error *err)
{
    pnb_figures b;
    pnb_status status = mean_figures(job->sample, job->n_a, weight, &job->opts, out, err);
    if (status != PNB_OK || job->n_b == 0)
        return status;
    status = mean_figures(job->sample + job->n_a, job->n_b, weight, &job->opts, &b, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < N_VALUES; i++)
        *value_of(out, i) = *value_of(&b, i) - *value_of(out, i);
    return PNB_OK;
}

static void run_resamples(void *user, size_t begin, size_t end, int thread)
{
    const boot_job *job = user;
    uint32_t *weight = job->weight[thread];
    for (size_t r = begin; r < end; r++) {
        pnb__rng rng;
        pnb__rng_init(&rng, job->boot.seed, r);
        memset(weight, 0, job->n * sizeof *weight);
        for (size_t i = 0; i < job->n; i++)
            weight[pnb__rng_below(&rng, job->n)]++;
        if (figures_on(job, weight, &job->resample[r], &job->error[thread]) != PNB_OK)
            return;
    }
}

static pnb_status boot_init(boot_job *job, const pnb_figure_pair *pair, size_t n_threads,
                            pnb_error *err)
{
    size_t n_samples = job->n_a + job->n_b;
    const pnb_bootstrap_opts *o = &job->boot;
    pnb_status status = check_opts(&job->opts, err);
    if (status != PNB_OK)
        return status;
    if (o->n_resamples == 0 || !(o->level > 0.0 && o->level < 1.0) || job->n_a == 0)
        return pnb__fail(err, PNB_ARG,
                         "%zu resamples of %zu seeds at level %g; at least 1 of both and a level "
                         "between 0 and 1 are needed",
                         o->n_resamples, job->n_a, o->level);
    job->n = pair->a[0].n;
    job->sample = pnb__alloc_zero(n_samples, sizeof *job->sample);
    job->resample = pnb__alloc_array(o->n_resamples, sizeof *job->resample);
    job->weight = pnb__alloc_zero(n_threads, sizeof *job->weight);
    job->error = pnb__alloc_zero(n_threads, sizeof *job->error);
    if (job->sample == NULL || job->resample == NULL || job->weight == NULL || job->error == NULL)
        return pnb__fail_nomem(err, o->n_resamples * sizeof *job->resample);
    for (size_t i = 0; i < n_samples && status == PNB_OK; i++) {
        const pnb_query_values *v = i < job->n_a ? &pair->a[i] : &pair->b[i - job->n_a];
        if (v->n != job->n)
            return pnb__fail(err, PNB_ARG,
                             "%zu queries beside %zu; seeds and models are compared on the same "
                             "queries",
                             v->n, job->n);
        status = sample_init(&job->sample[i], v, err);
    }
    for (size_t t = 0; t < n_threads && status == PNB_OK; t++)
        if ((job->weight[t] = pnb__alloc_array(job->n, sizeof **job->weight)) == NULL)
            status = pnb__fail_nomem(err, job->n * sizeof **job->weight);
    return status;
}

static void boot_reset(boot_job *job, size_t n_threads)
{
    for (size_t i = 0; job->sample != NULL && i < job->n_a + job->n_b; i++)
        sample_reset(&job->sample[i]);
    for (size_t t = 0; job->weight != NULL && t < n_threads; t++)
        pnb__free(job->weight[t]);
    pnb__free(job->sample);
    pnb__free(job->resample);
    pnb__free(job->weight);
    pnb__free(job->error);
}

/* The resampled values of figure i that are numbers, ascending; returns how many. */
static size_t gather(const boot_job *job, size_t i, double *values)
{
    size_t n = 0;
    for (size_t r = 0; r < job->boot.n_resamples; r++) {
        double v = *value_of(&job->resample[r], i);
        if (!isnan(v))
            values[n++] = v;
    }
    qsort(values, n, sizeof *values, pnb__compare_doubles);
    return n;
}

static double two_sided(const double *values, size_t n)
{
    size_t below = 0, above = 0;
    for (size_t r = 0; r < n; r++) {
        below += values[r] <= 0.0;
        above += values[r] >= 0.0;
    }
    return fmin(1.0, 2.0 * (1.0 + (double)PNB_MIN(below, above)) / (double)(n + 1));
}

/* Intervals, and p where wanted, from the resamples. */
static pnb_status summarise(boot_job *job, pnb_figures *low, pnb_figures *high, pnb_figures *p,
                            pnb_error *err)
{
    double *values = pnb__alloc_array(job->boot.n_resamples, sizeof *values);
    if (values == NULL)
        return pnb__fail_nomem(err, job->boot.n_resamples * sizeof *values);
    for (size_t i = 0; i < N_VALUES; i++) {
        size_t n = gather(job, i, values);
        *value_of(low, i) = *value_of(high, i) = (double)NAN;
        if (p != NULL)
            *value_of(p, i) = n > 0 ? two_sided(values, n) : (double)NAN;
        if (n == 0)
            continue;
        *value_of(low, i) = pnb__quantile(values, n, 0.5 * (1.0 - job->boot.level));
        *value_of(high, i) = pnb__quantile(values, n, 0.5 * (1.0 + job->boot.level));
    }
    pnb__free(values);
    return PNB_OK;
}

static pnb_status bootstrap(const pnb_ctx *ctx, const pnb_figure_pair *pair,
                            const pnb_figure_opts *opts, const pnb_bootstrap_opts *boot,
                            pnb_figure_test *out, pnb_error *err)
{
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    boot_job job = {.n_a = pair->n_a, .n_b = pair->n_b, .opts = complete(opts)};
    pnb_figure_test test;
    pnb_status status;
    job.boot = boot == NULL ? pnb_bootstrap_opts_default() : *boot;
    PNB_TRY(boot_init(&job, pair, n_threads, err));
    PNB_TRY(figures_on(&job, NULL, &test.difference, err));
    pnb__parallel_for(ctx, job.boot.n_resamples, 1, run_resamples, &job);
    for (size_t t = 0; t < n_threads; t++)
        if (job.error[t].status != PNB_OK)
            PNB_TRY(pnb__fail(err, job.error[t].status, "%s", job.error[t].text));
    PNB_TRY(summarise(&job, &test.low, &test.high, &test.p, err));
    *out = test;
done:
    boot_reset(&job, n_threads);
    return status;
}

pnb_status pnb_figures_bootstrap(const pnb_ctx *ctx, const pnb_query_values *seeds, size_t n_seeds,
                                 const pnb_figure_opts *opts, const pnb_bootstrap_opts *boot,
                                 pnb_figure_intervals *out, pnb_error *err)
{
    const pnb_figure_pair pair = {.a = seeds, .n_a = n_seeds};
    pnb_figure_test test;
    pnb_status status = bootstrap(ctx, &pair, opts, boot, &test, err);
    if (status == PNB_OK)
        *out = (pnb_figure_intervals){test.difference, test.low, test.high};
    return status;
}

pnb_status pnb_figures_compare(const pnb_ctx *ctx, const pnb_figure_pair *pair,
                               const pnb_figure_opts *opts, const pnb_bootstrap_opts *boot,
                               pnb_figure_test *out, pnb_error *err)
{
    if (pair->n_b == 0)
        return pnb__fail(err, PNB_ARG, "a comparison needs a second model");
    return bootstrap(ctx, pair, opts, boot, out, err);
}
