/* RSUM, the recalls of both directions added up, with its bootstrap.
 *
 * A query adds the number of cut-offs that its best match reaches, so RSUM is the mean of these
 * numbers over the pictures plus their mean over the captions. A resample draws clusters, a picture
 * with its captions, so that both sides change together; without clusters each side is drawn by
 * itself. Numbers come from stream r of the counter generator. Seeds count with their mean; two
 * models are compared on the same draws. Interval and p as in figures_bootstrap.c. */
#include <math.h>

#include <string.h>

#include "eval/resample/clusters.h"
#include "eval/resample/interval.h"
#include "penumbra/bootstrap.h"
#include "penumbra/figures.h"
#include "penumbra/rsum.h"

/* Per query of each direction: cut-offs reached, mean over seeds, second model minus first. */
typedef struct sums {
    double *value[2];
    size_t n[2];
} sums;

/* One seed beside the first, of n queries. */
static pnb_status check_seed(const pnb_query_values *v, size_t n, pnb_error *err)
{
    if (v->n != n || v->n == 0)
        return pnb__fail(err, PNB_ARG,
                         "%zu queries beside %zu; seeds and models are compared on the same "
                         "queries, at least one",
                         v->n, n);
    for (size_t q = 0; q < v->n; q++)
        if (v->best_rank[q] < 1)
            return pnb__fail(err, PNB_ARG,
                             "query %zu has rank %lld; queries without a match must be left out", q,
                             (long long)v->best_rank[q]);
    return PNB_OK;
}

static pnb_status check(const pnb_rsum_job *job, const pnb_bootstrap_opts *boot, pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (job->n_a == 0 || job->n_k == 0 || !(boot->level > 0.0 && boot->level < 1.0))
        return pnb__fail(err, PNB_ARG,
                         "%zu seeds, %zu cut-offs at level %g; at least 1 of each and a level "
                         "between 0 and 1 are needed",
                         job->n_a, job->n_k, boot->level);
    if ((job->a[0][0].cluster == NULL) != (job->a[1][0].cluster == NULL))
        return pnb__fail(err, PNB_ARG, "clusters are given for the queries of one side only");
    for (size_t k = 0; k < job->n_k; k++)
        if (job->k[k] == 0)
            return pnb__fail(err, PNB_ARG, "cut-off %zu of R@k is 0; it must be at least 1", k);
    for (size_t d = 0; d < 2; d++)
        for (size_t s = 0; status == PNB_OK && s < job->n_a + job->n_b; s++)
            status = check_seed(s < job->n_a ? &job->a[d][s] : &job->b[d][s - job->n_a],
                                job->a[d][0].n, err);
    return status;
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
        if (PNB_ALLOC_ZERO(out->value[d], n, err) != PNB_OK)
            return PNB_NOMEM;
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

/* ---- resampling ---- */

/* What the clusters add: sums and numbers of queries of each side. */
typedef struct drawn {
    pnb__clusters clusters; /* of the queries of side 0, then those of side 1 */
    double *sum[2], *count[2];
    size_t first[3]; /* clusters first[s] .. first[s+1] are drawn among themselves */
    size_t n_strata;
} drawn;

static pnb_status make_clusters(const pnb_rsum_job *job, const sums *s, drawn *d, pnb_error *err)
{
    size_t n = s->n[0] + s->n[1];
    int64_t *label = NULL;
    pnb_status status = PNB_OK;
    if (job->a[0][0].cluster != NULL) {
        if (PNB_ALLOC(label, n, err) != PNB_OK)
            return PNB_NOMEM;
        memcpy(label, job->a[0][0].cluster, s->n[0] * sizeof *label);
        memcpy(label + s->n[0], job->a[1][0].cluster, s->n[1] * sizeof *label);
    }
    status = pnb__clusters_init(&d->clusters, label, n, err);
    d->n_strata = label == NULL ? 2 : 1;
    d->first[1] = label == NULL ? s->n[0] : d->clusters.n;
    d->first[2] = d->clusters.n;
    pnb__free(label);
    return status;
}

static pnb_status drawn_init(const pnb_rsum_job *job, const sums *s, drawn *d, pnb_error *err)
{
    pnb_status status = make_clusters(job, s, d, err);
    if (status != PNB_OK)
        return status;
    for (size_t side = 0; side < 2; side++) {
        if (PNB_ALLOC_ZERO(d->sum[side], d->clusters.n, err) != PNB_OK ||
            PNB_ALLOC_ZERO(d->count[side], d->clusters.n, err) != PNB_OK)
            return PNB_NOMEM;
    }
    for (size_t k = 0; k < d->clusters.n; k++)
        for (size_t p = d->clusters.offset[k]; p < d->clusters.offset[k + 1]; p++) {
            size_t row = d->clusters.row[p], side = row >= s->n[0];
            d->sum[side][k] += s->value[side][row - side * s->n[0]];
            d->count[side][k] += 1.0;
        }
    return PNB_OK;
}

static void drawn_reset(drawn *d)
{
    for (size_t side = 0; side < 2; side++) {
        pnb__free(d->sum[side]);
        pnb__free(d->count[side]);
    }
    pnb__clusters_reset(&d->clusters);
}

typedef struct totals {
    double sum[2], count[2];
} totals;

static void add_cluster(const drawn *d, size_t k, totals *t)
{
    for (size_t side = 0; side < 2; side++) {
        t->sum[side] += d->sum[side][k];
        t->count[side] += d->count[side][k];
    }
}

static double total_of(const totals *t)
{
    return t->sum[0] / t->count[0] + t->sum[1] / t->count[1];
}

static double resample(const drawn *d, uint64_t seed, size_t r)
{
    totals t = {{0, 0}, {0, 0}};
    pnb__rng rng;
    pnb__rng_init(&rng, seed, r);
    for (size_t s = 0; s < d->n_strata; s++)
        for (size_t i = d->first[s]; i < d->first[s + 1]; i++)
            add_cluster(d, d->first[s] + pnb__rng_below(&rng, d->first[s + 1] - d->first[s]), &t);
    return total_of(&t);
}

static double without_group(const drawn *d, size_t group)
{
    size_t n_groups = pnb__clusters_groups(&d->clusters);
    totals t = {{0, 0}, {0, 0}};
    for (size_t k = 0; k < d->clusters.n; k++)
        if (k % n_groups != group)
            add_cluster(d, k, &t);
    return total_of(&t);
}

/* RSUM as the share of what it can be, exact at both ends: there Wilson's interval stands for it.
 */
static double share_of(const pnb_rsum_job *job, double rsum)
{
    double share = rsum / (2.0 * (double)job->n_k);
    return share > 1.0 - 1e-12 ? 1.0 : share < 1e-12 ? 0.0 : share;
}

static void settle(const pnb_rsum_job *job, double level, pnb__replicates *r, pnb_rsum *out)
{
    double most = 2.0 * (double)job->n_k;
    if (job->n_b > 0) {
        pnb__interval_settle(r, level, &out->low, &out->high);
        return;
    }
    r->value = share_of(job, r->value);
    for (size_t i = 0; i < r->n_resamples; i++)
        r->resample[i] = share_of(job, r->resample[i]);
    pnb__interval_settle(r, level, &out->low, &out->high);
    out->low *= most;
    out->high *= most;
}

static pnb_status resample_all(const pnb_rsum_job *job, const sums *s,
                               const pnb_bootstrap_opts *boot, pnb_rsum *out, pnb_error *err)
{
    drawn d = {.n_strata = 0};
    double *value = NULL;
    pnb_status status;
    PNB_TRY(drawn_init(job, s, &d, err));
    size_t n_groups = pnb__clusters_groups(&d.clusters);
    PNB_TRY(PNB_ALLOC(value, boot->n_resamples + n_groups, err));
    for (size_t r = 0; r < boot->n_resamples; r++)
        value[r] = resample(&d, boot->seed, r);
    for (size_t g = 0; g < n_groups; g++)
        value[boot->n_resamples + g] = without_group(&d, g);
    pnb__replicates r = {.value = out->value,
                         .resample = value,
                         .n_resamples = boot->n_resamples,
                         .jackknife = value + boot->n_resamples,
                         .n_jackknife = n_groups,
                         .n_clusters = d.clusters.n,
                         .n_strata = d.n_strata,
                         .agreement = job->n_b > 0 ? PNB__AGREE_POINT : PNB__AGREE_SHARE};
    settle(job, boot->level, &r, out);
    out->p = job->n_b > 0 ? pnb__interval_p(&r) : (double)NAN;
done:
    drawn_reset(&d);
    pnb__free(value);
    return status;
}

pnb_status pnb_rsum_bootstrap(const pnb_rsum_job *job, const pnb_bootstrap_opts *opts,
                              pnb_rsum *out, pnb_error *err)
{
    pnb_bootstrap_opts boot = opts == NULL ? pnb_bootstrap_opts_default() : *opts;
    sums s = {{NULL, NULL}, {0, 0}};
    pnb_rsum rsum = {.low = (double)NAN, .high = (double)NAN, .p = (double)NAN};
    pnb_status status;
    PNB_TRY(check(job, &boot, err));
    PNB_TRY(fill_sums(job, &s, err));
    for (size_t d = 0; d < 2; d++)
        for (size_t q = 0; q < s.n[d]; q++)
            rsum.value += s.value[d][q] / (double)s.n[d];
    if (boot.n_resamples > 0)
        PNB_TRY(resample_all(job, &s, &boot, &rsum, err));
    rsum.std = spread(job);
    *out = rsum;
done:
    pnb__free(s.value[0]);
    pnb__free(s.value[1]);
    return status;
}
