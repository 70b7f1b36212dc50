/* All figures of one direction from per-query values, and their bootstrap over clusters of queries.
 *
 * Ranking happened before: each query brings its rank, precisions, an uncertainty and the
 * probability of its first hit. Orders by rank and uncertainty are found once; a resample is a
 * weight a query (weighted.h), so an interval costs O(resamples * n). Resample r draws the same
 * clusters as pnb_bootstrap does, from stream r of the counter generator. Two models are compared
 * on equal weights (paired), several seeds of a model count with their mean. S, R2 and the plug-in
 * ECE are figures of the sample alone; the debiased ECE has a method of its own
 * (calibration_error.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "eval/resample/clusters.h"
#include "eval/resample/interval.h"
#include "eval/sorted.h"
#include "eval/weighted.h"
#include "penumbra/ece.h"
#include "penumbra/figures.h"
#include "penumbra/retrieval.h"
#include "penumbra/uncertainty_calibration.h"

enum { DEFAULT_MASS_BINS = 15, DEFAULT_BINS = 10 };
static const size_t DEFAULT_K[] = {1, 5, 10};

PNB_DEFINE_NAME(pnb_figure_name, pnb_figure, PNB_NAMES(PNB_FIGURE_LIST), "unknown")
PNB_DEFINE_NAME(pnb_figure_sentence, pnb_figure, PNB_SENTENCES(PNB_FIGURE_LIST), "unknown")

bool pnb_figure_is_sorted(pnb_figure figure)
{
    return figure >= PNB_FIGURE_SPEARMAN_S && figure <= PNB_FIGURE_AUGRC;
}

bool pnb_figure_has_interval(pnb_figure figure)
{
    return (figure < PNB_FIGURE_SPEARMAN_S || figure > PNB_FIGURE_WIDTH_MINUS_S_R2) &&
           figure != PNB_FIGURE_ECE;
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
    double *loss; /* [n] -log of the probability of what happened; NULL without confidence */
} sample;

static void sample_reset(sample *s)
{
    pnb__free(s->by_rank);
    pnb__free(s->by_uncertainty);
    pnb__free(s->by_confidence);
    pnb__free(s->correct);
    pnb__free(s->loss);
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

static pnb_status add_loss(sample *s, pnb_error *err)
{
    size_t n = s->v->n;
    if (PNB_ALLOC(s->loss, n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        double p = s->v->confidence[i];
        p = fmin(fmax(p, PNB__CONFIDENCE_FLOOR), 1.0 - PNB__CONFIDENCE_FLOOR);
        s->loss[i] = s->correct[i] > 0.5 ? -log(p) : -log1p(-p);
    }
    return PNB_OK;
}

static pnb_status sample_init(sample *s, const pnb_query_values *v, pnb_error *err)
{
    pnb_status status;
    double *rank = NULL;
    *s = (sample){.v = v};
    PNB_TRY(check_values(v, err));
    PNB_TRY(PNB_ALLOC(rank, v->n, err));
    PNB_TRY(PNB_ALLOC(s->correct, v->n, err));
    for (size_t i = 0; i < v->n; i++) {
        rank[i] = (double)v->best_rank[i];
        s->correct[i] = v->best_rank[i] == 1 ? 1.0 : 0.0;
    }
    PNB_TRY(order_by(&s->by_rank, rank, v->n, "rank", err));
    if (v->uncertainty != NULL)
        PNB_TRY(order_by(&s->by_uncertainty, v->uncertainty, v->n, "uncertainty", err));
    if (v->confidence != NULL)
        PNB_TRY(order_by(&s->by_confidence, v->confidence, v->n, "confidence", err));
    if (v->confidence != NULL)
        status = add_loss(s, err);
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

static void uncertainty_figures(const sample *s, const uint32_t *weight, pnb_figures *out)
{
    const pnb__answers a = {s->by_uncertainty, s->v->uncertainty, s->correct, s->v->n};
    pnb_selective selective = pnb__selective_weighted(&a, weight);
    out->value[PNB_FIGURE_QUERY_SPEARMAN] = pnb__query_spearman_weighted(&a, weight);
    out->value[PNB_FIGURE_AUROC] = selective.auroc;
    out->value[PNB_FIGURE_AURC] = selective.aurc;
    out->value[PNB_FIGURE_AUGRC] = selective.augrc;
}

static void confidence_figures(const sample *s, const uint32_t *weight, pnb_figures *out)
{
    double total = 0.0, nlpd = 0.0;
    for (size_t i = 0; i < s->v->n; i++) {
        double w = (double)pnb__weight(weight, i);
        nlpd += w * s->loss[i];
        total += w;
    }
    out->value[PNB_FIGURE_NLPD] = nlpd / total;
}

/* What resamples are made of; the rest stays NaN. */
static void figures_of(const sample *s, const uint32_t *weight, const pnb_figure_opts *o,
                       pnb_figures *out)
{
    for (size_t k = 0; k < PNB_MAX_RECALLS; k++)
        out->recall[k] = (double)NAN;
    for (size_t f = 0; f < PNB_N_FIGURES; f++)
        out->value[f] = (double)NAN;
    rank_figures(s, weight, o, out);
    if (s->v->confidence != NULL)
        confidence_figures(s, weight, out);
    if (s->by_uncertainty != NULL)
        uncertainty_figures(s, weight, out);
}

/* ---- figures of the sample alone ---- */

static pnb_status bin_figures(const sample *s, pnb_binning binning, size_t n_bins, double out[3],
                              pnb_error *err)
{
    pnb_uncertainty_calibration c;
    pnb_status status = pnb_uncertainty_calibration_compute(
        s->v->uncertainty, s->correct, s->v->n, binning, PNB_MIN(n_bins, s->v->n), &c, err);
    if (status == PNB_OK) {
        out[0] = c.s;
        out[1] = c.r2;
        out[2] = c.minus_s_r2;
    }
    return status;
}

static pnb_status all_figures(const sample *s, const pnb_figure_opts *o, pnb_figures *out,
                              pnb_error *err)
{
    const pnb_bootstrap_opts none = {.n_resamples = 0, .level = 0.95, .cluster = s->v->cluster};
    pnb_status status = PNB_OK;
    figures_of(s, NULL, o, out);
    if (s->by_uncertainty != NULL) {
        PNB_TRY(bin_figures(s, PNB_BINS_EQUAL_COUNT, o->n_bins, &out->value[PNB_FIGURE_SPEARMAN_S],
                            err));
        PNB_TRY(bin_figures(s, PNB_BINS_EQUAL_WIDTH, o->n_bins,
                            &out->value[PNB_FIGURE_WIDTH_SPEARMAN_S], err));
    }
    if (s->by_confidence != NULL) {
        const pnb__ece_cases f = {s->by_confidence, s->v->confidence, s->correct, s->v->n};
        pnb_interval debiased;
        PNB_TRY(pnb_ece_debiased(s->v->confidence, s->correct, s->v->n, &none, &debiased, err));
        out->value[PNB_FIGURE_ECE] = pnb__ece_mass(&f, o->n_mass_bins);
        out->value[PNB_FIGURE_ECE_DEBIASED] = debiased.value;
    }
done:
    return status;
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
    PNB_TRY(all_figures(&s, &o, &figures, err));
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
    size_t n_a, n_b, n, n_groups;
    pnb_figure_opts opts;
    pnb_bootstrap_opts boot;
    pnb__clusters clusters;
    pnb_figures *resample; /* [n_resamples + n_groups] draws, then the jackknife */
    uint32_t **weight;     /* [thread][n] */
} boot_job;

static void add_mean(pnb_figures *sum, pnb_figures *one, size_t n, bool is_first)
{
    for (size_t i = 0; i < N_VALUES; i++)
        *value_of(sum, i) = (is_first ? 0.0 : *value_of(sum, i)) + *value_of(one, i) / (double)n;
}

static void subtract(pnb_figures *out, pnb_figures *b)
{
    for (size_t i = 0; i < N_VALUES; i++)
        *value_of(out, i) = *value_of(b, i) - *value_of(out, i);
}

/* Mean figures of n seeds on the same weights. */
static void mean_figures(const sample *seeds, size_t n, const uint32_t *weight,
                         const pnb_figure_opts *o, pnb_figures *out)
{
    for (size_t s = 0; s < n; s++) {
        pnb_figures one;
        figures_of(&seeds[s], weight, o, &one);
        add_mean(out, &one, n, s == 0);
    }
}

static void figures_on(const boot_job *job, const uint32_t *weight, pnb_figures *out)
{
    pnb_figures b;
    mean_figures(job->sample, job->n_a, weight, &job->opts, out);
    if (job->n_b == 0)
        return;
    mean_figures(job->sample + job->n_a, job->n_b, weight, &job->opts, &b);
    subtract(out, &b);
}

/* Every figure of the sample itself: mean over seeds, second model minus first. */
static pnb_status point_figures(const boot_job *job, pnb_figures *out, pnb_error *err)
{
    pnb_figures b;
    for (size_t i = 0; i < job->n_a + job->n_b; i++) {
        pnb_figures one;
        pnb_status status = all_figures(&job->sample[i], &job->opts, &one, err);
        if (status != PNB_OK)
            return status;
        if (i < job->n_a)
            add_mean(out, &one, job->n_a, i == 0);
        else
            add_mean(&b, &one, job->n_b, i == job->n_a);
    }
    if (job->n_b > 0)
        subtract(out, &b);
    return PNB_OK;
}

static void run_resamples(void *user, size_t begin, size_t end, int thread)
{
    const boot_job *job = user;
    uint32_t *weight = job->weight[thread];
    for (size_t r = begin; r < end; r++) {
        if (r < job->boot.n_resamples)
            pnb__clusters_draw(&job->clusters, job->boot.seed, r, weight);
        else
            pnb__clusters_leave_out(&job->clusters, r - job->boot.n_resamples, weight);
        figures_on(job, weight, &job->resample[r]);
    }
}

static pnb_status check_boot(const boot_job *job, pnb_error *err)
{
    pnb_status status = check_opts(&job->opts, err);
    if (status == PNB_OK && (!(job->boot.level > 0.0 && job->boot.level < 1.0) || job->n_a == 0))
        status = pnb__fail(err, PNB_ARG,
                           "%zu seeds at level %g; at least 1 and a level between 0 and 1 are "
                           "needed",
                           job->n_a, job->boot.level);
    return status;
}

static pnb_status boot_init(boot_job *job, const pnb_figure_pair *pair, size_t n_threads,
                            pnb_error *err)
{
    size_t n_samples = job->n_a + job->n_b;
    pnb_status status = check_boot(job, err);
    if (status != PNB_OK)
        return status;
    job->n = pair->a[0].n;
    PNB_TRY(pnb__clusters_init(&job->clusters, pair->a[0].cluster, job->n, err));
    job->n_groups = job->boot.n_resamples > 0 ? pnb__clusters_groups(&job->clusters) : 0;
    size_t n_runs = job->boot.n_resamples + job->n_groups;
    PNB_TRY(PNB_ALLOC_ZERO(job->sample, n_samples, err));
    PNB_TRY(PNB_ALLOC(job->resample, PNB_MAX(n_runs, 1), err));
    PNB_TRY(PNB_ALLOC_ZERO(job->weight, n_threads, err));
    for (size_t i = 0; i < n_samples && status == PNB_OK; i++) {
        const pnb_query_values *v = i < job->n_a ? &pair->a[i] : &pair->b[i - job->n_a];
        if (v->n != job->n)
            PNB_TRY(pnb__fail(err, PNB_ARG,
                              "%zu queries beside %zu; seeds and models are compared on the same "
                              "queries",
                              v->n, job->n));
        status = sample_init(&job->sample[i], v, err);
    }
    for (size_t t = 0; t < n_threads && status == PNB_OK; t++)
        if ((job->weight[t] = pnb__alloc_array(job->n, sizeof **job->weight)) == NULL)
            status = pnb__fail_nomem(err, job->n * sizeof **job->weight);
done:
    return status;
}

static void boot_reset(boot_job *job, size_t n_threads)
{
    for (size_t i = 0; job->sample != NULL && i < job->n_a + job->n_b; i++)
        sample_reset(&job->sample[i]);
    for (size_t t = 0; job->weight != NULL && t < n_threads; t++)
        pnb__free(job->weight[t]);
    pnb__clusters_reset(&job->clusters);
    pnb__free(job->sample);
    pnb__free(job->resample);
    pnb__free(job->weight);
}

/* What an interval is when all resamples agree; differences may well be none. */
static pnb__agreement agreement_of(const boot_job *job, size_t i)
{
    size_t f = i - PNB_MAX_RECALLS;
    if (job->n_b > 0 || (i >= PNB_MAX_RECALLS && f == PNB_FIGURE_MEDIAN_RANK))
        return PNB__AGREE_POINT;
    bool is_share = i < PNB_MAX_RECALLS || f == PNB_FIGURE_R_PRECISION || f == PNB_FIGURE_MAP_AT_R;
    return is_share ? PNB__AGREE_SHARE : PNB__AGREE_NONE;
}

/* Intervals and p from the resamples; NaN where a figure has none. */
static pnb_status summarise(boot_job *job, pnb_figure_test *t, pnb_error *err)
{
    size_t n_runs = job->boot.n_resamples + job->n_groups;
    double *values = pnb__alloc_array(PNB_MAX(n_runs, 1), sizeof *values);
    if (values == NULL)
        return pnb__fail_nomem(err, n_runs * sizeof *values);
    for (size_t i = 0; i < N_VALUES; i++) {
        *value_of(&t->low, i) = *value_of(&t->high, i) = *value_of(&t->p, i) = (double)NAN;
        if (i >= PNB_MAX_RECALLS && !pnb_figure_has_interval((pnb_figure)(i - PNB_MAX_RECALLS)))
            continue;
        for (size_t r = 0; r < n_runs; r++)
            values[r] = *value_of(&job->resample[r], i);
        pnb__replicates r = {.value = *value_of(&t->difference, i),
                             .resample = values,
                             .n_resamples = job->boot.n_resamples,
                             .jackknife = values + job->boot.n_resamples,
                             .n_jackknife = job->n_groups,
                             .n_clusters = job->clusters.n,
                             .n_strata = 1,
                             .agreement = agreement_of(job, i)};
        pnb__interval_settle(&r, job->boot.level, value_of(&t->low, i), value_of(&t->high, i));
        *value_of(&t->p, i) = pnb__interval_p(&r);
    }
    pnb__free(values);
    return PNB_OK;
}

/* The interval of the debiased ECE: its method is not a bootstrap of the figure. Several seeds: the
 * means of their limits, which are wide enough however alike the seeds are. */
static pnb_status add_debiased(const boot_job *job, pnb_figure_test *t, pnb_error *err)
{
    double low = 0.0, high = 0.0;
    for (size_t s = 0; s < job->n_a; s++) {
        const sample *one = &job->sample[s];
        pnb_bootstrap_opts o = job->boot;
        pnb_interval interval;
        o.cluster = one->v->cluster;
        if (one->v->confidence == NULL)
            return PNB_OK;
        pnb_status status =
            pnb_ece_debiased(one->v->confidence, one->correct, one->v->n, &o, &interval, err);
        if (status != PNB_OK)
            return status;
        low += interval.low / (double)job->n_a;
        high += interval.high / (double)job->n_a;
    }
    t->low.value[PNB_FIGURE_ECE_DEBIASED] = low;
    t->high.value[PNB_FIGURE_ECE_DEBIASED] = high;
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
    PNB_TRY(point_figures(&job, &test.difference, err));
    pnb__parallel_for(ctx, job.boot.n_resamples + job.n_groups, 1, run_resamples, &job);
    PNB_TRY(summarise(&job, &test, err));
    if (job.n_b == 0 && job.boot.n_resamples > 0)
        PNB_TRY(add_debiased(&job, &test, err));
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
