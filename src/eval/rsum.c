/* RSUM, the recalls of both directions added up, with its bootstrap.
 *
 * A query adds the number of cut-offs that its best match reaches, so RSUM is the mean of these
 * numbers over the pictures plus their mean over the captions. A resample draws both sides, each
 * with replacement, from stream r of the counter generator. Seeds count with their mean; two models
 * are compared on the same draws. p as in figures.c. */
#include <math.h>
#include <stdlib.h>

#include "eval/sorted.h"
#include "penumbra/metrics.h"

/* Per query of each direction: cut-offs reached, mean over seeds, second model minus first. */
typedef struct sums {
    double *value[2];
    size_t n[2];
} sums;

static pnb_status check(const pnb_rsum_job *job, const pnb_bootstrap_opts *boot, pnb_error *err)
{
    if (job->n_a == 0 || job->n_k == 0 || boot->n_resamples == 0 ||
        !(boot->level > 0.0 && boot->level < 1.0))
        return pnb__fail(
            err, PNB_ARG,
            "%zu seeds, %zu cut-offs, %zu resamples at level %g; at least 1 of each and "
            "a level between 0 and 1 are needed",
            job->n_a, job->n_k, boot->n_resamples, boot->level);
    for (size_t d = 0; d < 2; d++)
        for (size_t s = 0; s < job->n_a + job->n_b; s++) {
            const pnb_query_values *v = s < job->n_a ? &job->a[d][s] : &job->b[d][s - job->n_a];
            if (v->n != job->a[d][0].n || v->n == 0)
                return pnb__fail(
                    err, PNB_ARG,
                    "%zu queries beside %zu; seeds and models are compared on the same "
                    "queries, at least one",
                    v->n, job->a[d][0].n);
        }
    return PNB_OK;
}

static double reached(const pnb_rsum_job *job, int64_t rank)
{
    double n = 0.0;
    for (size_t k = 0; k < job->n_k; k++)
        n += (size_t)rank <= job->k[k];
    return n;
}

/* RSUM of one seed. */
static double rsum_of(const pnb_rsum_job *job, const pnb_query_values *const side[2], size_t seed)
{
    double sum = 0.0;
    for (size_t d = 0; d < 2; d++) {
        const pnb_query_values *v = &side[d][seed];
        double total = 0.0;
        for (size_t q = 0; q < v->n; q++)
            total += reached(job, v->best_rank[q]);
        sum += total / (double)v->n;
    }
    return sum;
}

static double spread(const pnb_rsum_job *job)
{
    double mean = 0.0, squares = 0.0;
    if (job->n_a < 2)
        return (double)NAN;
    for (size_t s = 0; s < job->n_a; s++)
        mean += rsum_of(job, job->a, s) / (double)job->n_a;
    for (size_t s = 0; s < job->n_a; s++) {
        double d = rsum_of(job, job->a, s) - mean;
        squares += d * d;
    }
    return sqrt(squares / (double)(job->n_a - 1));
}

static pnb_status fill_sums(const pnb_rsum_job *job, sums *out, pnb_error *err)
{
    for (size_t d = 0; d < 2; d++) {
        size_t n = out->n[d] = job->a[d][0].n;
        out->value[d] = pnb__alloc_zero(n, sizeof(double));
        if (out->value[d] == NULL)
            return pnb__fail_nomem(err, n * sizeof(double));
        double sign = job->n_b > 0 ? -1.0 : 1.0;
        for (size_t s = 0; s < job->n_a; s++)
            for (size_t q = 0; q < n; q++)
                out->value[d][q] +=
                    sign * reached(job, job->a[d][s].best_rank[q]) / (double)job->n_a;
        for (size_t s = 0; s < job->n_b; s++)
            for (size_t q = 0; q < n; q++)
                out->value[d][q] += reached(job, job->b[d][s].best_rank[q]) / (double)job->n_b;
    }
    return PNB_OK;
}

static double resample(const sums *s, uint64_t seed, size_t r)
{
    double sum = 0.0;
    pnb__rng rng;
    pnb__rng_init(&rng, seed, r);
    for (size_t d = 0; d < 2; d++) {
        double total = 0.0;
        for (size_t i = 0; i < s->n[d]; i++)
            total += s->value[d][pnb__rng_below(&rng, s->n[d])];
        sum += total / (double)s->n[d];
    }
    return sum;
}

static void summarise(double *value, const pnb_bootstrap_opts *boot, pnb_rsum *out)
{
    size_t n = boot->n_resamples, below = 0, above = 0;
    for (size_t r = 0; r < n; r++) {
        below += value[r] <= 0.0;
        above += value[r] >= 0.0;
    }
    qsort(value, n, sizeof *value, pnb__compare_doubles);
    out->low = pnb__quantile(value, n, 0.5 * (1.0 - boot->level));
    out->high = pnb__quantile(value, n, 0.5 * (1.0 + boot->level));
    out->p = fmin(1.0, 2.0 * (1.0 + (double)PNB_MIN(below, above)) / (double)(n + 1));
}

pnb_status pnb_rsum_bootstrap(const pnb_rsum_job *job, const pnb_bootstrap_opts *opts,
                              pnb_rsum *out, pnb_error *err)
{
    pnb_bootstrap_opts boot = opts == NULL ? pnb_bootstrap_opts_default() : *opts;
    sums s = {{NULL, NULL}, {0, 0}};
    double *value = NULL;
    pnb_rsum rsum = {.std = (double)NAN};
    pnb_status status;
    PNB_TRY(check(job, &boot, err));
    PNB_TRY(fill_sums(job, &s, err));
    value = pnb__alloc_array(boot.n_resamples, sizeof *value);
    if (value == NULL)
        PNB_TRY(pnb__fail_nomem(err, boot.n_resamples * sizeof *value));
    for (size_t d = 0; d < 2; d++)
        for (size_t q = 0; q < s.n[d]; q++)
            rsum.value += s.value[d][q] / (double)s.n[d];
    for (size_t r = 0; r < boot.n_resamples; r++)
        value[r] = resample(&s, boot.seed, r);
    summarise(value, &boot, &rsum);
    rsum.std = spread(job);
    *out = rsum;
done:
    pnb__free(value);
    pnb__free(s.value[0]);
    pnb__free(s.value[1]);
    return status;
}
