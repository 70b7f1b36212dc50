/* Ranks of the positives of each query, by counting.
 *
 * All figures of a query follow from the ranks r_1 < r_2 < ... < r_R of its R positives:
 *   R@k = [r_1 <= k]   R-Precision = #{r_i <= R}/R   mAP@R = (1/R) sum_{r_i <= R} i/r_i
 * The positives are sorted by score; every item then adds one to the first positive it stands
 * before, and a running sum turns these counts into ranks. So nothing is sorted but the positives,
 * and a row of scores (scores.c) is all that is needed. Order: score, then lower index. Several
 * truths and folds are judged on the same row. Between two sets of embeddings no rows of scores are
 * needed: ranks_scan.c, ranks_tasks.c. */
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "eval/retrieval/ranks.h"
#include "eval/retrieval/scores.h"

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

void pnb__ranks_store(pnb_ranks *out, size_t q, const size_t *rank, size_t n, size_t n_outside)
{
    size_t r = n + n_outside;
    out->best_rank[q] = n > 0 ? (int64_t)rank[0] : 0;
    out->r_precision[q] = out->map_at_r[q] = (double)NAN;
    if (n == 0)
        return;
    double sum = 0.0;
    size_t i = 0;
    for (; i < n && rank[i] <= r; i++)
        sum += (double)(i + 1) / (double)rank[i];
    out->r_precision[q] = (double)i / (double)r;
    out->map_at_r[q] = sum / (double)r;
}

size_t pnb__ranks_outside(const pnb_truth *truth, size_t q)
{
    return truth->n_outside == NULL ? 0 : truth->n_outside[q];
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

/* One thread's space for the positives of one query. */
typedef struct scratch {
    pnb__hit *positive; /* [most] */
    size_t *rank;       /* [most] */
} scratch;

static bool in_fold(const pnb_rank_task *t, size_t q, size_t item)
{
    return t->query_fold == NULL || t->query_fold[q] == t->item_fold[item];
}

/* Positives of the query with their scores, best first; returns how many. */
static size_t gather_positives(const pnb_rank_task *t, size_t q, const double *score, scratch *s)
{
    const pnb_truth *truth = t->truth;
    size_t n = 0;
    for (size_t i = truth->offset[q]; i < truth->offset[q + 1]; i++) {
        size_t item = truth->item[i];
        if (!in_fold(t, q, item))
            continue;
        s->rank[n] = 0;
        s->positive[n++] = (pnb__hit){score[item], (int64_t)item};
    }
    pnb__hits_sort(s->positive, n);
    return n;
}

/* The item ranked first, and in s->rank[0..n) how many items stand directly before each positive.
 */
static int64_t count_before(const pnb_rank_task *t, size_t q, const double *score, const scratch *s,
                            size_t n)
{
    double worst = n > 0 ? s->positive[n - 1].score : (double)INFINITY;
    int64_t best = -1;
    for (size_t j = 0; j < t->truth->n_items; j++) {
        if (!in_fold(t, q, j))
            continue;
        if (best < 0 || score[j] > score[best])
            best = (int64_t)j;
        if (score[j] < worst)
            continue;
        size_t p = pnb__ranks_first_behind(s->positive, n, (pnb__hit){score[j], (int64_t)j});
        if (p < n)
            s->rank[p]++;
    }
    return best;
}

void pnb__ranks_store_task(pnb_ranks *out, const pnb_rank_task *t, size_t q, const size_t *rank,
                           size_t n)
{
    pnb__ranks_store(out, q, rank, n, n > 0 ? pnb__ranks_outside(t->truth, q) : 0);
    for (size_t k = 0; t->precision != NULL && k < t->n_precision; k++) {
        size_t within = 0;
        while (within < n && rank[within] <= t->precision_k[k])
            within++;
        t->precision[q * t->n_precision + k] = (double)within / (double)t->precision_k[k];
    }
}

static void rank_query(pnb_ranks *out, const pnb_rank_task *t, size_t q, const double *score,
                       scratch *s)
{
    if (t->query_fold != NULL && t->query_fold[q] < 0) {
        out->top1[q] = -1;
        out->top1_score[q] = (double)NAN;
        pnb__ranks_store_task(out, t, q, NULL, 0);
        return;
    }
    size_t n = gather_positives(t, q, score, s);
    out->top1[q] = count_before(t, q, score, s, n);
    out->top1_score[q] = out->top1[q] < 0 ? (double)NAN : score[out->top1[q]];
    for (size_t i = 0, before = 0; i < n; i++) {
        before += s->rank[i];
        s->rank[i] = before + 1;
    }
    pnb__ranks_store_task(out, t, q, s->rank, n);
}

static pnb_status alloc_scratch(scratch *s, size_t most, pnb_error *err)
{
    if (PNB_ALLOC(s->positive, most, err) != PNB_OK || PNB_ALLOC(s->rank, most, err) != PNB_OK)
        return PNB_NOMEM;
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

/* ---- tasks ---- */

typedef struct rank_job {
    const pnb_rank_task *task;
    pnb_ranks *out; /* [n_tasks] */
    size_t n_tasks;
    scratch *scratch; /* [thread] */
} rank_job;

static void visit_query(void *user, int thread, size_t query, const double *score)
{
    const rank_job *job = user;
    for (size_t t = 0; t < job->n_tasks; t++)
        rank_query(&job->out[t], &job->task[t], query, score, &job->scratch[thread]);
}

pnb_status pnb__ranks_check_tasks(const pnb_rank_task *tasks, size_t n_tasks, pnb_error *err)
{
    if (n_tasks == 0)
        return pnb__fail(err, PNB_ARG, "no ranking task; at least one truth is needed");
    for (size_t t = 0; t < n_tasks; t++) {
        const pnb_truth *truth = tasks[t].truth, *first = tasks[0].truth;
        pnb_status status = pnb__ranks_check_truth(truth, err);
        if (status != PNB_OK)
            return status;
        if (truth->n_queries != first->n_queries || truth->n_items != first->n_items)
            return pnb__fail(err, PNB_ARG,
                             "truth %zu is about %zu queries and %zu items, the first about %zu "
                             "and %zu; tasks of one pass share both sides",
                             t, truth->n_queries, truth->n_items, first->n_queries, first->n_items);
        if ((tasks[t].query_fold == NULL) != (tasks[t].item_fold == NULL))
            return pnb__fail(err, PNB_ARG, "task %zu has folds for one side only", t);
        for (size_t k = 0; tasks[t].precision != NULL && k < tasks[t].n_precision; k++)
            if (tasks[t].precision_k[k] == 0)
                return pnb__fail(err, PNB_ARG, "cut-off %zu of precision is 0", k);
    }
    return PNB_OK;
}

static pnb_status rank_tasks(const pnb_ctx *ctx, const pnb__scores *scores, rank_job *job,
                             pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t n_threads = pnb__scores_threads(ctx), most = 1;
    for (size_t t = 0; t < job->n_tasks; t++)
        job->out[t] = (pnb_ranks){0};
    PNB_TRY(pnb__ranks_check_tasks(job->task, job->n_tasks, err));
    for (size_t t = 0; t < job->n_tasks; t++)
        most = PNB_MAX(most, most_positives(job->task[t].truth));
    PNB_TRY(PNB_ALLOC_ZERO(job->scratch, n_threads, err));
    for (size_t i = 0; i < n_threads; i++)
        PNB_TRY(alloc_scratch(&job->scratch[i], most, err));
    for (size_t t = 0; t < job->n_tasks; t++)
        PNB_TRY(pnb__ranks_alloc(&job->out[t], job->task[t].truth, err));
    status = pnb__scores_visit(ctx, scores, visit_query, job, err);
done:
    for (size_t i = 0; job->scratch != NULL && i < n_threads; i++)
        free_scratch(&job->scratch[i]);
    pnb__free(job->scratch);
    for (size_t t = 0; status != PNB_OK && t < job->n_tasks; t++)
        pnb_ranks_reset(&job->out[t]);
    return status;
}

pnb_status pnb_ranks_from_rows(const pnb_ctx *ctx, pnb_score_row_fn fn, void *user,
                               const pnb_rank_task *tasks, size_t n_tasks, pnb_ranks *out,
                               pnb_error *err)
{
    size_t n_queries = n_tasks > 0 ? tasks[0].truth->n_queries : 0;
    size_t n_items = n_tasks > 0 ? tasks[0].truth->n_items : 0;
    pnb__scores scores = pnb__scores_rows(fn, user, n_queries, n_items);
    rank_job job = {.task = tasks, .out = out, .n_tasks = n_tasks};
    return rank_tasks(ctx, &scores, &job, err);
}

pnb_status pnb_ranks_from_scores(const double *scores, const pnb_truth *truth, pnb_ranks *out,
                                 pnb_error *err)
{
    pnb__scores rows = pnb__scores_matrix(scores, truth->n_queries, truth->n_items);
    const pnb_rank_task task = {.truth = truth};
    rank_job job = {.task = &task, .out = out, .n_tasks = 1};
    return rank_tasks(NULL, &rows, &job, err);
}

pnb_status pnb__ranks_score_all(const pnb_ctx *ctx, const pnb__both *sets,
                                const pnb_rank_task *tasks, size_t n_tasks, pnb_ranks *out,
                                pnb_error *err)
{
    pnb__scores scores = pnb__scores_sets(sets->a, sets->b, sets->opts);
    rank_job job = {.task = tasks, .out = out, .n_tasks = n_tasks};
    return rank_tasks(ctx, &scores, &job, err);
}

/* ---- from rankings ---- */

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
    PNB_TRY(PNB_ALLOC(position, n_items, err));
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
            qsort(s.rank, n, sizeof *s.rank, pnb__compare_sizes);
        out->top1[q] = row[0];
        out->top1_score[q] = (double)NAN;
        pnb__ranks_store(out, q, s.rank, n, pnb__ranks_outside(truth, q));
    }
done:
    free_scratch(&s);
    pnb__free(position);
    if (status != PNB_OK)
        pnb_ranks_reset(out);
    return status;
}
