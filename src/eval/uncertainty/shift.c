/* Cut-offs and probabilities on other queries than they were fitted on.
 *
 * Split s shuffles the queries by stream s of the seed; the first m are fitted on, the others are
 * judged. With m queries drawn as the others the coverage, averaged over splits, is at least
 * 1 - alpha and at most 1 - alpha + 1/(m+1) where no scores tie (Vovk et al. 2005; Lei et al.
 * 2018): that is the control a shift is held against. */
#include "penumbra/shift.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/order.h"
#include "eval/sorted.h"
#include "penumbra/ece.h"

static pnb_status check(const pnb_shift_queries *q, pnb_error *err)
{
    if (q->n == 0 || q->n_gallery == 0)
        return pnb__fail(err, PNB_ARG, "%zu queries in %zu rows; at least one of each is needed",
                         q->n, q->n_gallery);
    for (size_t i = 0; i < q->n; i++)
        if (q->first_match[i] >= q->n_gallery)
            return pnb__fail(err, PNB_ARG, "query %zu has its first match at place %zu of %zu", i,
                             q->first_match[i], q->n_gallery);
    return PNB_OK;
}

static pnb_status check_splits(const pnb_shift_queries *q, size_t m, size_t n_splits,
                               pnb_error *err)
{
    if (m < 1 || m >= q->n || n_splits == 0 || q->n > UINT32_MAX)
        return pnb__fail(err, PNB_ARG,
                         "%zu splits of %zu queries with %zu to fit on: at least one split, one to "
                         "fit on and one to judge",
                         n_splits, q->n, m);
    return check(q, err);
}

static const double *row_of(const pnb_shift_queries *q, size_t i)
{
    return q->score + i * q->n_gallery;
}

static size_t list_of(const pnb_shift_queries *q, size_t i, pnb_conformal_kind kind, double cutoff)
{
    return pnb_conformal_list(kind, cutoff, row_of(q, i), q->n_gallery);
}

/* ---- lists ---- */

pnb_status pnb_shift_brought(const pnb_shift_queries *q, pnb_conformal_kind kind, double cutoff,
                             const pnb_bootstrap_opts *boot, pnb_shift_lists *out, pnb_error *err)
{
    pnb_bootstrap_opts o = boot == NULL ? pnb_bootstrap_opts_default() : *boot;
    double *holds = NULL, sum = 0.0;
    pnb_status status;
    *out = (pnb_shift_lists){.coverage = {0.0, (double)NAN, (double)NAN}};
    PNB_TRY(check(q, err));
    PNB_TRY(PNB_ALLOC(holds, q->n, err));
    for (size_t i = 0; i < q->n; i++) {
        size_t length = list_of(q, i, kind, cutoff);
        holds[i] = q->first_match[i] < length;
        sum += holds[i];
        out->mean_size += (double)length / (double)q->n;
    }
    out->coverage.value = sum / (double)q->n;
    o.cluster = q->cluster;
    if (o.n_resamples > 0)
        status = pnb_bootstrap_mean(holds, q->n, &o, &out->coverage, err);
done:
    pnb__free(holds);
    return status;
}

/* A shuffled list of the queries; the first m are fitted on. */
static void draw_split(uint32_t *order, size_t n, uint64_t seed, size_t split)
{
    pnb__rng rng;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    pnb__rng_init(&rng, seed, split);
    pnb__rng_shuffle(&rng, order, n);
}

/* The three coordinates of each query's first match: score, margin, rank. */
static pnb_status cutoff_of(const pnb_shift_queries *q, const uint32_t *order, size_t m,
                            pnb_conformal_kind kind, double alpha, double *room, double *out,
                            pnb_error *err)
{
    pnb_conformal fit = {0};
    double *score = room, *margin = room + m, *rank = room + 2 * m;
    for (size_t k = 0; k < m; k++) {
        const double *row = row_of(q, order[k]);
        size_t place = q->first_match[order[k]];
        score[k] = row[place];
        margin[k] = row[0] - row[place];
        rank[k] = (double)(place + 1);
    }
    pnb_status status = pnb_conformal_create(&fit, score, margin, rank, m, err);
    if (status == PNB_OK)
        status = pnb_conformal_cutoff(&fit, kind, alpha, out, err);
    pnb_conformal_reset(&fit);
    return status;
}

pnb_status pnb_shift_refitted(const pnb_shift_queries *q, pnb_conformal_kind kind, double alpha,
                              size_t m, size_t n_splits, uint64_t seed, pnb_shift_lists *out,
                              pnb_error *err)
{
    uint32_t *order = NULL;
    double *room = NULL, *coverage = NULL, size = 0.0, mean = 0.0;
    pnb_status status;
    PNB_TRY(check_splits(q, m, n_splits, err));
    PNB_TRY(PNB_ALLOC(order, q->n, err));
    PNB_TRY(PNB_ALLOC_ROWS(room, m, 3, err));
    PNB_TRY(PNB_ALLOC_ZERO(coverage, n_splits, err));
    double n_judged = (double)(q->n - m);
    for (size_t s = 0; s < n_splits; s++) {
        double cutoff;
        draw_split(order, q->n, seed, s);
        PNB_TRY(cutoff_of(q, order, m, kind, alpha, room, &cutoff, err));
        for (size_t k = m; k < q->n; k++) {
            size_t length = list_of(q, order[k], kind, cutoff);
            coverage[s] += (q->first_match[order[k]] < length) / n_judged;
            size += (double)length / n_judged / (double)n_splits;
        }
        mean += coverage[s] / (double)n_splits;
    }
    qsort(coverage, n_splits, sizeof *coverage, pnb__compare_doubles);
    *out = (pnb_shift_lists){.coverage = {mean, pnb__quantile(coverage, n_splits, 0.05),
                                          pnb__quantile(coverage, n_splits, 0.95)},
                             .mean_size = size};
done:
    pnb__free(order);
    pnb__free(room);
    pnb__free(coverage);
    return status;
}

/* ---- probabilities of first hits ---- */

/* Adds the figures of the queries order[0 .. n) to `out`. */
static pnb_status judge(const pnb_shift_queries *q, const uint32_t *order, size_t n,
                        const pnb_platt *fit, size_t n_bins, double *p, int *label,
                        pnb_shift_ece *out, pnb_error *err)
{
    pnb_weighted_ece *e = NULL;
    pnb_status status = PNB_ALLOC(e, 1, err);
    for (size_t k = 0; status == PNB_OK && k < n; k++) {
        size_t i = order == NULL ? k : order[k];
        p[k] = pnb_platt_apply(fit, row_of(q, i)[0]);
        label[k] = q->first_match[i] == 0;
    }
    const pnb_scored estimates = {.n = n, .score = p, .label = label};
    if (status == PNB_OK)
        status = pnb_weighted_ece_compute(&estimates, n_bins, e, err);
    if (status == PNB_OK) {
        out->ece += e->ece;
        out->brier += e->brier;
        out->p_mean += e->p_mean;
        out->rate += e->base_rate;
    }
    pnb__free(e);
    return status;
}

pnb_status pnb_shift_first_brought(const pnb_shift_queries *q, const pnb_platt *fit, size_t n_bins,
                                   pnb_shift_ece *out, pnb_error *err)
{
    double *p = NULL;
    int *label = NULL;
    pnb_shift_ece f = {.n_splits = 1};
    pnb_status status;
    PNB_TRY(check(q, err));
    PNB_TRY(PNB_ALLOC(p, q->n, err));
    PNB_TRY(PNB_ALLOC(label, q->n, err));
    PNB_TRY(judge(q, NULL, q->n, fit, n_bins, p, label, &f, err));
    *out = f;
done:
    pnb__free(p);
    pnb__free(label);
    return status;
}

/* Platt's fit to the first m; false where their first hits are all right, all wrong, or no a > 0
 * fits them. */
static bool fit_first(const pnb_shift_queries *q, const uint32_t *order, size_t m, double *score,
                      int *label, pnb_platt *out)
{
    for (size_t k = 0; k < m; k++) {
        score[k] = row_of(q, order[k])[0];
        label[k] = q->first_match[order[k]] == 0;
    }
    const pnb_scored data = {.n = m, .score = score, .label = label};
    return pnb_platt_fit(&data, true, out, NULL) == PNB_OK;
}

pnb_status pnb_shift_first_refitted(const pnb_shift_queries *q, size_t m, size_t n_splits,
                                    uint64_t seed, size_t n_bins, pnb_shift_ece *out,
                                    pnb_error *err)
{
    uint32_t *order = NULL;
    double *p = NULL;
    int *label = NULL;
    pnb_shift_ece f = {0};
    pnb_status status;
    PNB_TRY(check_splits(q, m, n_splits, err));
    PNB_TRY(PNB_ALLOC(order, q->n, err));
    PNB_TRY(PNB_ALLOC(p, q->n, err));
    PNB_TRY(PNB_ALLOC(label, q->n, err));
    for (size_t s = 0; s < n_splits; s++) {
        pnb_platt fit;
        draw_split(order, q->n, seed, s);
        if (!fit_first(q, order, m, p, label, &fit))
            continue;
        f.n_splits++;
        PNB_TRY(judge(q, order + m, q->n - m, &fit, n_bins, p, label, &f, err));
    }
    double share = f.n_splits > 0 ? 1.0 / (double)f.n_splits : (double)NAN;
    *out = (pnb_shift_ece){f.ece * share, f.brier * share, f.p_mean * share, f.rate * share,
                           f.n_splits};
done:
    pnb__free(order);
    pnb__free(p);
    pnb__free(label);
    return status;
}
