/* Expected calibration error with its bias taken out, and its interval.
 *
 * ECE = E|P(right | p) - p|. Over bins the plug-in sum |c_b| (c_b: mean of right - p, over the rows
 * of bin b, times their share) counts noise as error: E|mu + noise| > |mu|. Here:
 *
 * - bins: of equal mass, n^(1/3) of them, equal forecasts together.
 * - v_b: the variance of c_b over clusters, at least that of independent outcomes whose rate is the
 *   bin's with one case of its mean forecast added.
 * - estimate: the t at which sum E|t m_b + N(0, v_b)| is the plug-in value, 0 if even t = 0 gives
 *   more. m are the shares of the error by bin: once those observed, each debiased by itself (the
 *   mu of E|N(mu, v_b)| = |c_b|), once the bins' masses; the mean of both t.
 * - interval: inversion of the plug-in's distribution, with resampled noise d_b for N(0, v_b). Low
 *   end: P(sum |t m_b + d_b| >= plug-in) = alpha/2 with the m observed. High end: P(<=) with the
 *   masses, which add the least noise and so allow the largest t.
 *
 * The folded normal: Leone, Nelson and Nottingham 1961. Inversion: Carpenter 1999. That the plug-in
 * is biased, and mass bins: Roelofs et al. 2022. How often the interval covers: numerics.md. */
#include <math.h>
#include <stdlib.h>

#include "eval/resample/clusters.h"
#include "eval/resample/interval.h"
#include "eval/resample/student.h"
#include "eval/sorted.h"
#include "penumbra/bootstrap.h"
#include "penumbra/ece.h"

enum { MAX_ECE_BINS = 32, MAX_NOISE = 2000, N_STEPS = 45 };
#define ROOT_2_OVER_PI 0.79788456080286535588

typedef struct ece_job {
    const double *confidence, *correct;
    size_t n, n_bins;
    pnb__clusters clusters;
    uint8_t *bin; /* [n] */
    double *gap;  /* [n] (correct - confidence)/n of clusters.row[i] */
    double c[MAX_ECE_BINS], v[MAX_ECE_BINS], mass[MAX_ECE_BINS];
    double extra[MAX_ECE_BINS]; /* of v, beyond what clusters show */
    double plug_in;
    double *noise; /* [n_noise][n_bins] */
    size_t n_noise;
} ece_job;

/* ---- bins ---- */

/* A bin ends where its share of the rows is full, at the end of a run of equal forecasts. */
static pnb_status assign_bins(ece_job *job, pnb_error *err)
{
    pnb__valued *sorted = NULL;
    size_t wanted = (size_t)lround(cbrt((double)job->n)), b = 0, edge = 1;
    pnb_status status = pnb__sorted(&sorted, job->confidence, job->n, "confidence", err);
    if (status != PNB_OK)
        return status;
    wanted = PNB_MIN(PNB_MAX(wanted, (size_t)1), (size_t)MAX_ECE_BINS);
    for (size_t i = 0; i < job->n; i++) {
        job->bin[sorted[i].place] = (uint8_t)b;
        size_t passed = (i + 1) * wanted / job->n;
        bool is_run_end = i + 1 == job->n || sorted[i + 1].value > sorted[i].value;
        if (i + 1 < job->n && is_run_end && passed >= edge && edge < wanted) {
            b++;
            edge = passed + 1;
        }
    }
    job->n_bins = b + 1;
    pnb__free(sorted);
    return PNB_OK;
}

/* Variance of c_b were outcomes independent: no more than the forecasts themselves promise. */
static void find_floors(const ece_job *job, double floor[MAX_ECE_BINS])
{
    double n[MAX_ECE_BINS] = {0}, right[MAX_ECE_BINS] = {0}, p[MAX_ECE_BINS] = {0};
    double own[MAX_ECE_BINS] = {0}, all = (double)job->n;
    for (size_t i = 0; i < job->n; i++) {
        size_t b = job->bin[i];
        n[b] += 1.0;
        right[b] += job->correct[i];
        p[b] += job->confidence[i];
        own[b] += job->confidence[i] * (1.0 - job->confidence[i]);
    }
    for (size_t b = 0; b < job->n_bins; b++) {
        double rate = (right[b] + p[b] / n[b]) / (n[b] + 1.0);
        floor[b] = fmin(own[b], n[b] * rate * (1.0 - rate)) / (all * all);
    }
}

/* Sum over clusters of the squares of what their outcomes add to c_b beyond the bin's mean gap. */
static void find_variances(const ece_job *job, double out[MAX_ECE_BINS])
{
    const pnb__clusters *c = &job->clusters;
    for (size_t b = 0; b < job->n_bins; b++)
        out[b] = 0.0;
    for (size_t k = 0; k < c->n; k++) {
        double sum[MAX_ECE_BINS] = {0};
        for (size_t p = c->offset[k]; p < c->offset[k + 1]; p++) {
            size_t b = job->bin[c->row[p]];
            sum[b] += job->gap[p] - job->c[b] / (job->mass[b] * (double)job->n);
        }
        for (size_t b = 0; b < job->n_bins; b++)
            out[b] += sum[b] * sum[b];
    }
}

static void find_gaps(ece_job *job)
{
    double floor[MAX_ECE_BINS], variance[MAX_ECE_BINS], g = (double)job->clusters.n;
    double all = (double)job->n;
    for (size_t i = 0; i < job->n; i++) {
        size_t row = job->clusters.row[i], b = job->bin[row];
        job->gap[i] = (job->correct[row] - job->confidence[row]) / all;
        job->c[b] += job->gap[i];
        job->mass[b] += 1.0 / all;
    }
    find_floors(job, floor);
    find_variances(job, variance);
    for (size_t b = 0; b < job->n_bins; b++) {
        double v = g > 1.0 ? variance[b] * g / (g - 1.0) : 0.0;
        job->v[b] = fmax(v, floor[b]);
        job->extra[b] = job->v[b] - v;
        job->plug_in += fabs(job->c[b]);
    }
}

/* ---- the estimate ---- */

/* E|N(mu, v)|. */
static double folded_mean(double mu, double v)
{
    double sd = sqrt(v), m = fabs(mu);
    if (sd == 0.0)
        return m;
    double z = m / sd;
    return sd * ROOT_2_OVER_PI * exp(-0.5 * z * z) + m * (1.0 - 2.0 * pnb__normal_cdf(-z));
}

/* mu >= 0 with E|N(mu, v)| = mean; 0 where v alone gives more. */
static double unfold(double mean, double v)
{
    double low = 0.0, high = mean;
    if (folded_mean(0.0, v) >= mean)
        return 0.0;
    for (int i = 0; i < N_STEPS; i++) {
        double middle = 0.5 * (low + high);
        if (folded_mean(middle, v) < mean)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

/* How the error may be spread over the bins; sums to 1. */
static void observed_pattern(const ece_job *job, double m[MAX_ECE_BINS])
{
    double total = 0.0;
    for (size_t b = 0; b < job->n_bins; b++) {
        m[b] = copysign(unfold(fabs(job->c[b]), job->v[b]), job->c[b]);
        total += fabs(m[b]);
    }
    for (size_t b = 0; b < job->n_bins; b++)
        m[b] = total > 0.0 ? m[b] / total : job->mass[b];
}

static double estimate_with(const ece_job *job, const double m[MAX_ECE_BINS])
{
    double low = 0.0, high = job->plug_in;
    for (int i = 0; i <= N_STEPS; i++) {
        double t = i == 0 ? 0.0 : 0.5 * (low + high), expected = 0.0;
        for (size_t b = 0; b < job->n_bins; b++)
            expected += folded_mean(t * m[b], job->v[b]);
        if (i == 0 && expected >= job->plug_in)
            return 0.0;
        if (expected < job->plug_in)
            low = t;
        else
            high = t;
    }
    return 0.5 * (low + high);
}

/* ---- the interval ---- */

/* Deviations of the bins' gaps in resamples, widened to v and for few clusters. */
static void draw_noise(ece_job *job, const pnb_bootstrap_opts *o)
{
    const pnb__clusters *c = &job->clusters;
    double reach = pnb__interval_reach(o->level, job->clusters.n, 1) /
                   pnb__normal_quantile(0.5 * (1.0 + o->level));
    for (size_t r = 0; r < job->n_noise; r++) {
        double *d = job->noise + r * job->n_bins;
        pnb__rng rng;
        pnb__rng_init(&rng, o->seed, r);
        for (size_t b = 0; b < job->n_bins; b++)
            d[b] = -job->c[b];
        for (size_t i = 0; i < c->n; i++) {
            size_t k = (size_t)pnb__rng_below(&rng, c->n);
            for (size_t p = c->offset[k]; p < c->offset[k + 1]; p++)
                d[job->bin[c->row[p]]] += job->gap[p];
        }
        for (size_t b = 0; b < job->n_bins; b++) {
            double extra = job->extra[b] > 0.0 ? sqrt(job->extra[b]) * pnb__rng_normal(&rng) : 0.0;
            d[b] = reach * (d[b] + extra);
        }
    }
}

/* Share of the noise with which a total error t in pattern m comes to at least the plug-in value.
 */
static double share_above(const ece_job *job, const double m[MAX_ECE_BINS], double t)
{
    size_t above = 0;
    for (size_t r = 0; r < job->n_noise; r++) {
        const double *d = job->noise + r * job->n_bins;
        double sum = 0.0;
        for (size_t b = 0; b < job->n_bins; b++)
            sum += fabs(t * m[b] + d[b]);
        above += sum >= job->plug_in;
    }
    return (double)above / (double)job->n_noise;
}

/* t in [0,1] from which on the share above is more than `share`. */
static double cross(const ece_job *job, const double m[MAX_ECE_BINS], double share)
{
    double low = 0.0, high = 1.0;
    if (share_above(job, m, 0.0) > share)
        return 0.0;
    for (int i = 0; i < N_STEPS; i++) {
        double middle = 0.5 * (low + high);
        if (share_above(job, m, middle) > share)
            high = middle;
        else
            low = middle;
    }
    return 0.5 * (low + high);
}

static pnb_status find_interval(ece_job *job, const pnb_bootstrap_opts *o,
                                const double m[MAX_ECE_BINS], pnb_interval *out, pnb_error *err)
{
    double tail = 0.5 * (1.0 - o->level);
    size_t total;
    pnb_status status = pnb__bootstrap_check(job->n, o, err);
    if (status != PNB_OK || job->clusters.n < 2)
        return status;
    job->n_noise = PNB_MIN(o->n_resamples, (size_t)MAX_NOISE);
    total = job->n_noise * job->n_bins;
    if (PNB_ALLOC(job->noise, total, err) != PNB_OK)
        return PNB_NOMEM;
    draw_noise(job, o);
    out->low = fmin(cross(job, m, tail), out->value);
    out->high = fmax(cross(job, job->mass, 1.0 - tail), out->value);
    return PNB_OK;
}

static pnb_status check(const double *confidence, const double *correct, size_t n, pnb_error *err)
{
    if (n == 0)
        return pnb__fail(err, PNB_ARG, "no forecasts; at least one is needed");
    for (size_t i = 0; i < n; i++)
        if (!(confidence[i] >= 0.0 && confidence[i] <= 1.0) ||
            !(correct[i] >= 0.0 && correct[i] <= 1.0))
            return pnb__fail(err, PNB_NUMERIC,
                             "confidence %zu is %g and its outcome %g; both must lie in [0,1]", i,
                             confidence[i], correct[i]);
    return PNB_OK;
}

pnb_status pnb_ece_debiased(const double *confidence, const double *correct, size_t n,
                            const pnb_bootstrap_opts *opts, pnb_interval *out, pnb_error *err)
{
    pnb_bootstrap_opts o = opts == NULL ? pnb_bootstrap_opts_default() : *opts;
    ece_job job = {.confidence = confidence, .correct = correct, .n = n};
    pnb_interval interval = {.low = (double)NAN, .high = (double)NAN};
    double m[MAX_ECE_BINS];
    pnb_status status;
    PNB_TRY(check(confidence, correct, n, err));
    PNB_TRY(pnb__clusters_init(&job.clusters, o.cluster, n, err));
    PNB_TRY(PNB_ALLOC(job.bin, n, err));
    PNB_TRY(PNB_ALLOC(job.gap, n, err));
    PNB_TRY(assign_bins(&job, err));
    find_gaps(&job);
    observed_pattern(&job, m);
    interval.value = 0.5 * (estimate_with(&job, m) + estimate_with(&job, job.mass));
    if (o.n_resamples > 0)
        PNB_TRY(find_interval(&job, &o, m, &interval, err));
    *out = interval;
done:
    pnb__clusters_reset(&job.clusters);
    pnb__free(job.bin);
    pnb__free(job.gap);
    pnb__free(job.noise);
    return status;
}
