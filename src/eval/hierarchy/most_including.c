/* Which caption includes a picture most.
 *
 * The released evaluation ranks captions by the one-sided integral log int p1^2 p2 (1 the picture,
 * 2 the caption), not by the test H = inc(1,2) - inc(2,1). That matters: H grows with the caption's
 * width and even with its distance, so its winner is the widest caption whatever the picture shows,
 * while the integral falls with distance. Exact and published form as in prob/inclusion.c, here
 * with w = v1 + 2 v2 and S1, S1' what a picture has by itself (the evaluation has eps = 0):
 *   exact      S1  - 1/2 sum log w - sum delta^2/w
 *   published  S1' - 1/2 sum l2 - 1/2 sum log w - sum delta^2/w
 * Four dimensions share a division, over the product of their w; sum log w is that of these
 * products, whose exponents are put aside: a pair takes a few logarithms, not one a dimension.
 * Captions are unpacked a tile at a time, pictures are the parallel unit. */
#include "eval/hierarchy/most_including.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/names.h"
#include "penumbra/search.h"

#define TILE 128
#define LOG_2PI 1.8378770664093454836
#define LOG_2 0.69314718055994530942
#define MOST_LOG_VAR 170.0 /* the product of four w and a mantissa stays a normal number */

enum { LANES = 8, RUN = 4 };

PNB_DEFINE_NAME(pnb_including_name, pnb_including, PNB_NAMES(PNB_INCLUDING_LIST), "unknown")

typedef struct including_job {
    const pnb_gaussians *images, *texts;
    bool published;
    size_t first, n; /* captions of the tile */
    double *mean2;   /* [TILE][dim] */
    double *twice;   /* [TILE][dim] 2 v2 */
    double *own;     /* [TILE] what a score has from the caption alone */
    double *scratch; /* [thread][2][dim] mean and variance of a picture */
    int64_t *index;
    double *value;
} including_job;

static void fill_tile(including_job *job, size_t first)
{
    size_t dim = job->texts->dim;
    job->first = first;
    job->n = PNB_MIN((size_t)TILE, job->texts->n - first);
    for (size_t j = 0; j < job->n; j++) {
        const float *mean = job->texts->mean + (first + j) * dim;
        const float *log_var = job->texts->log_var + (first + j) * dim;
        double sum = 0.0;
        for (size_t d = 0; d < dim; d++) {
            job->mean2[j * dim + d] = (double)mean[d];
            job->twice[j * dim + d] = 2.0 * exp((double)log_var[d]);
            sum += fabs((double)log_var[d]) <= MOST_LOG_VAR ? (double)log_var[d] : (double)NAN;
        }
        job->own[j] = job->published || isnan(sum) ? -0.5 * sum : 0.0;
    }
}

/* Leaves the mantissas of the products; returns what their exponents were in all. Normal and
 * positive numbers only. */
static int64_t take_exponents(double product[LANES])
{
    int64_t bits[LANES], sum = 0;
    memcpy(bits, product, sizeof bits);
    for (int l = 0; l < LANES; l++) {
        sum += (bits[l] >> 52) - 1023;
        bits[l] = (bits[l] & (((int64_t)1 << 52) - 1)) | (int64_t)1023 << 52;
    }
    memcpy(product, bits, sizeof bits);
    return sum;
}

/* -1/2 sum log w - sum delta^2/w */
static double pair_terms(const double *mean1, const double *var1, const double *mean2,
                         const double *twice, size_t dim)
{
    double square[LANES] = {0}, product[LANES], logs = 0.0, squares = 0.0;
    int64_t exponent = 0;
    size_t d = 0;
    for (int l = 0; l < LANES; l++)
        product[l] = 1.0;
    for (; d + (size_t)LANES * RUN <= dim; d += (size_t)LANES * RUN) {
#pragma omp simd
        for (size_t l = 0; l < LANES; l++) {
            double q[RUN], w[RUN];
            for (size_t r = 0; r < RUN; r++) {
                size_t i = d + r * LANES + l;
                q[r] = (mean1[i] - mean2[i]) * (mean1[i] - mean2[i]);
                w[r] = var1[i] + twice[i];
            }
            double w01 = w[0] * w[1], w23 = w[2] * w[3], all = w01 * w23;
            double q01 = q[0] * w[1] + q[1] * w[0], q23 = q[2] * w[3] + q[3] * w[2];
            square[l] += (q01 * w23 + q23 * w01) / all;
            product[l] *= all;
        }
        exponent += take_exponents(product);
    }
    for (; d < dim; d++) {
        double delta = mean1[d] - mean2[d], w = var1[d] + twice[d];
        squares += delta * delta / w;
        logs += log(w);
    }
    for (size_t l = 0; l < LANES; l++) {
        squares += square[l];
        logs += log(product[l]);
    }
    return -0.5 * (logs + LOG_2 * (double)exponent) - squares;
}

/* pnb__range_fn over pictures */
static void rank_range(void *user, size_t begin, size_t end, int thread)
{
    including_job *job = user;
    size_t dim = job->images->dim;
    double *mean = job->scratch + (size_t)thread * 2 * dim, *var = mean + dim;
    for (size_t i = begin; i < end; i++) {
        double own = 0.0;
        for (size_t d = 0; d < dim; d++) {
            double log_var = (double)job->images->log_var[i * dim + d];
            if (!(fabs(log_var) <= MOST_LOG_VAR))
                log_var = (double)NAN;
            mean[d] = (double)job->images->mean[i * dim + d];
            var[d] = exp(log_var);
            own += job->published ? -1.5 * log_var + 0.5 * LOG_2 : -0.5 * log_var - LOG_2PI;
        }
        for (size_t j = 0; j < job->n; j++) {
            double value = own + job->own[j] +
                           pair_terms(mean, var, job->mean2 + j * dim, job->twice + j * dim, dim);
            /* not "value > best": a value that is no number must win, to be found out below */
            if (job->index[i] >= 0 && !(isfinite(job->value[i]) && !(value <= job->value[i])))
                continue;
            job->index[i] = (int64_t)(job->first + j);
            job->value[i] = value;
        }
    }
}

static pnb_status rank_by_integral(including_job *job, const pnb_ctx *ctx, pnb_error *err)
{
    size_t n = job->images->n;
    for (size_t i = 0; i < n; i++)
        job->index[i] = -1;
    for (size_t first = 0; first < job->texts->n; first += TILE) {
        fill_tile(job, first);
        pnb__parallel_for(ctx, n, 1, rank_range, job);
    }
    for (size_t i = 0; i < n; i++)
        if (!isfinite(job->value[i]))
            return pnb__fail(err, PNB_NUMERIC,
                             "the inclusion of picture %zu in caption %lld is %g; the embeddings "
                             "hold values that are not finite or variances beyond e^+-170",
                             i, (long long)job->index[i], job->value[i]);
    return PNB_OK;
}

static pnb_status rank_by_h(const pnb_ctx *ctx, const pnb_gaussians *images,
                            const pnb_gaussians *texts, int64_t *index, double *value,
                            pnb_error *err)
{
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_hits hits = {0};
    opts.measure = PNB_MEASURE_INCLUSION;
    opts.k = 1;
    pnb_status status = pnb_search(ctx, images, texts, &opts, &hits, err);
    if (status == PNB_OK) {
        memcpy(index, hits.index, images->n * sizeof *index);
        memcpy(value, hits.score, images->n * sizeof *value);
    }
    pnb_hits_reset(&hits);
    return status;
}

pnb_status pnb__most_including(const pnb_ctx *ctx, const pnb_gaussians *images,
                               const pnb_gaussians *texts, pnb_including by, int64_t *index,
                               double *value, pnb_error *err)
{
    size_t dim = texts->dim, n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    including_job job = {.images = images,
                         .texts = texts,
                         .published = by == PNB_INCLUDING_BY_PUBLISHED,
                         .index = index,
                         .value = value};
    pnb_status status = PNB_OK;
    if (by == PNB_INCLUDING_BY_H)
        return rank_by_h(ctx, images, texts, index, value, err);
    job.mean2 = pnb__alloc_array(dim, TILE * sizeof(double));
    job.twice = pnb__alloc_array(dim, TILE * sizeof(double));
    job.own = pnb__alloc_array(TILE, sizeof(double));
    job.scratch = pnb__alloc_array(n_threads * dim, 2 * sizeof(double));
    if (job.mean2 == NULL || job.twice == NULL || job.own == NULL || job.scratch == NULL)
        status = pnb__fail_nomem(err, 2 * dim * TILE * sizeof(double));
    else
        status = rank_by_integral(&job, ctx, err);
    pnb__free(job.mean2);
    pnb__free(job.twice);
    pnb__free(job.own);
    pnb__free(job.scratch);
    return status;
}
