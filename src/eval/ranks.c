/* Ranks of the positives of each query, by counting.
 *
 * All figures of a query follow from the ranks r_1 < r_2 < ... < r_R of its R positives:
 *   R@k = [r_1 <= k]   R-Precision = #{r_i <= R}/R   mAP@R = (1/R) sum_{r_i <= R} i/r_i
 * The positives are sorted by score; every item then adds one to the first positive it stands
 * before, and a running sum turns these counts into ranks. So nothing is sorted but the positives.
 * Order: score, then lower index. Ranks of embeddings, whose scores are nowhere all in memory, are
 * in ranks_scan.c. */
#include <math.h>
#include <stdlib.h>

#include "eval/ranks.h"

void pnb_ranks_reset(pnb_ranks *ranks)
{
    if (ranks == NULL)
        return;
    pnb__free(ranks->best_rank);
    pnb__free(ranks->top1);
    pnb__free(ranks->top1_score);
    pnb__free(ranks->r_precision);
    pnb__free(ranks->map_at_r);
    *ranks = (pnb_ranks){0};
}

pnb_status pnb__ranks_alloc(pnb_ranks *out, const pnb_truth *truth, pnb_error *err)
{
    size_t n = truth->n_queries;
    *out = (pnb_ranks){.n_queries = n, .n_items = truth->n_items};
    out->best_rank = pnb__alloc_zero(n, sizeof(int64_t));
    out->top1 = pnb__alloc_zero(n, sizeof(int64_t));
    out->top1_score = pnb__alloc_array(n, sizeof(double));
    out->r_precision = pnb__alloc_array(n, sizeof(double));
    out->map_at_r = pnb__alloc_array(n, sizeof(double));
    if (out->best_rank == NULL || out->top1 == NULL || out->top1_score == NULL ||
        out->r_precision == NULL || out->map_at_r == NULL) {
        pnb_ranks_reset(out);
        return pnb__fail_nomem(err, n * 40);
    }
    return PNB_OK;
}

static size_t most_positives(const pnb_truth *truth)
{
    size_t most = 1;
    for (size_t q = 0; q < truth->n_queries; q++)
        most = PNB_MAX(most, truth->offset[q + 1] - truth->offset[q]);
    return most;
}

void pnb__ranks_store(pnb_ranks *out, size_t q, const size_t *rank, size_t n)
{
    out->best_rank[q] = n > 0 ? (int64_t)rank[0] : 0;
    out->r_precision[q] = out->map_at_r[q] = (double)NAN;
    if (n == 0)
        return;
    double sum = 0.0;
    size_t i = 0;
    for (; i < n && rank[i] <= n; i++)
        sum += (double)(i + 1) / (double)rank[i];
    out->r_precision[q] = (double)i / (double)n;
    out->map_at_r[q] = sum / (double)n;
}

size_t pnb__ranks_first_behind(const pnb__hit *positive, size_t n, pnb__hit hit)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pnb__hit_before(hit, positive[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

typedef struct scratch {
    pnb__hit *positive; /* [most] */
    size_t *rank;       /* [most] */
} scratch;

static void rank_query(pnb_ranks *out, const pnb_truth *truth, size_t q, const double *score,
                       const scratch *s)
{
    const size_t *item = truth->item + truth->offset[q];
    size_t n = truth->offset[q + 1] - truth->offset[q], best = 0;
    for (size_t i = 0; i < n; i++) {
        s->positive[i] = (pnb__hit){score[item[i]], (int64_t)item[i]};
        s->rank[i] = 0;
    }
    pnb__hits_sort(s->positive, n);
    double worst = n > 0 ? s->positive[n - 1].score : (double)INFINITY;
    for (size_t j = 0; j < truth->n_items; j++) {
        if (score[j] > score[best])
            best = j;
        if (score[j] < worst)
            continue;
        size_t p = pnb__ranks_first_behind(s->positive, n, (pnb__hit){score[j], (int64_t)j});
        if (p < n)
            s->rank[p]++;
    }
    for (size_t i = 0, before = 0; i < n; i++) {
        before += s->rank[i];
        s->rank[i] = before + 1;
    }
    out->top1[q] = (int64_t)best;
    out->top1_score[q] = score[best];
    pnb__ranks_store(out, q, s->rank, n);
}

static pnb_status alloc_scratch(scratch *s, size_t most, pnb_error *err)
{
    s->positive = pnb__alloc_array(most, sizeof *s->positive);
    s->rank = pnb__alloc_array(most, sizeof *s->rank);
    if (s->positive == NULL || s->rank == NULL)
        return pnb__fail_nomem(err, most * (sizeof *s->positive + sizeof *s->rank));
    return PNB_OK;
}

static void free_scratch(scratch *s)
{
    pnb__free(s->positive);
    pnb__free(s->rank);
}

pnb_status pnb__ranks_check_truth(const pnb_truth *truth, pnb_error *err)
{
    if (truth->n_queries == 0 || truth->n_items == 0 || truth->n_pairs == 0)
        return pnb__fail(err, PNB_ARG, "truth has %zu queries, %zu items, %zu pairs; none may be 0",
                         truth->n_queries, truth->n_items, truth->n_pairs);
    return PNB_OK;
}

pnb_status pnb_ranks_from_scores(const double *scores, const pnb_truth *truth, pnb_ranks *out,
                                 pnb_error *err)
{
    pnb_status status = PNB_OK;
    scratch s = {0};
    *out = (pnb_ranks){0};
    PNB_TRY(pnb__ranks_check_truth(truth, err));
    for (size_t i = 0; i < truth->n_queries * truth->n_items; i++)
        if (isnan(scores[i]))
            PNB_TRY(pnb__fail(err, PNB_NUMERIC, "score of query %zu and item %zu is not a number",
                              i / truth->n_items, i % truth->n_items));
    PNB_TRY(alloc_scratch(&s, most_positives(truth), err));
    PNB_TRY(pnb__ranks_alloc(out, truth, err));
    for (size_t q = 0; q < truth->n_queries; q++)
        rank_query(out, truth, q, scores + q * truth->n_items, &s);
done:
    free_scratch(&s);
    return status;
}

/* ---- from rankings ---- */

static int compare_sizes(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* position[item] = rank from 1; false when the row is not a permutation. */
static bool invert(const int64_t *row, size_t n, size_t *position)
{
    for (size_t j = 0; j < n; j++)
        position[j] = 0;
    for (size_t j = 0; j < n; j++) {
        if (row[j] < 0 || (size_t)row[j] >= n || position[row[j]] != 0)
            return false;
        position[row[j]] = j + 1;
    }
    return true;
}

pnb_status pnb_ranks_from_ranking(const int64_t *ranking, const pnb_truth *truth, pnb_ranks *out,
                                  pnb_error *err)
{
    pnb_status status = PNB_OK;
    scratch s = {0};
    size_t n_items = truth->n_items, *position = NULL;
    *out = (pnb_ranks){0};
    PNB_TRY(pnb__ranks_check_truth(truth, err));
    PNB_TRY(alloc_scratch(&s, most_positives(truth), err));
    position = pnb__alloc_array(n_items, sizeof *position);
    if (position == NULL)
        PNB_TRY(pnb__fail_nomem(err, n_items * sizeof *position));
    PNB_TRY(pnb__ranks_alloc(out, truth, err));
    for (size_t q = 0; q < truth->n_queries; q++) {
        const int64_t *row = ranking + q * n_items;
        size_t begin = truth->offset[q], n = truth->offset[q + 1] - begin;
        if (!invert(row, n_items, position))
            PNB_TRY(
                pnb__fail(err, PNB_ARG, "ranking of query %zu does not list each item once", q));
        for (size_t i = 0; i < n; i++)
            s.rank[i] = position[truth->item[begin + i]];
        if (n > 1)
            qsort(s.rank, n, sizeof *s.rank, compare_sizes);
        out->top1[q] = row[0];
        out->top1_score[q] = (double)NAN;
        pnb__ranks_store(out, q, s.rank, n);
    }
done:
    free_scratch(&s);
    pnb__free(position);
    if (status != PNB_OK)
        pnb_ranks_reset(out);
    return status;
}
