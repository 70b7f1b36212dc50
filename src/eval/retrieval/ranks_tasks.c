/* Ranks under several truths and in folds, from embeddings: no pair is scored that need not be.
 *
 * A rank does not depend on the truth that asks for it. So the positives of all truths are ranked
 * together, in one pass of bounds (ranks_scan.c), and each truth picks its own among them. A fold
 * is a search of its own between the rows of the fold, which keep their order and so their ties:
 * five folds cost a fifth of all pairs. Ranks are those of the f64 scores of every pair. Only the
 * Monte-Carlo measures draw by the number of a row: there folds are judged on rows of scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "eval/retrieval/ranks.h"
#include "prob/measure.h"

/* ---- who is told the ranks ---- */

typedef struct judge {
    const pnb_rank_task *task;
    pnb_ranks *const *out; /* [n_tasks] */
    size_t n_tasks;
    const size_t *query, *item; /* rows of the task behind those of the search; NULL: the same */
    size_t *rank;               /* [n_items of a search] */
} judge;

static bool is_positive(const pnb_truth *t, size_t query, size_t item)
{
    size_t first = t->offset[query], n = t->offset[query + 1] - first;
    return n > 0 && bsearch(&item, t->item + first, n, sizeof item, pnb__compare_sizes) != NULL;
}

static void pick_ranks(void *user, size_t query, const pnb__hit *positive, const size_t *rank,
                       size_t n)
{
    const judge *j = user;
    size_t q = j->query == NULL ? query : j->query[query];
    for (size_t t = 0; t < j->n_tasks; t++) {
        size_t n_own = 0;
        for (size_t i = 0; i < n; i++) {
            size_t item = (size_t)positive[i].index;
            if (is_positive(j->task[t].truth, q, j->item == NULL ? item : j->item[item]))
                j->rank[n_own++] = rank[i];
        }
        pnb__ranks_store_task(j->out[t], &j->task[t], q, j->rank, n_own);
    }
}

/* Ranks between two sets under `both->forward`, and the first item of each query. */
static pnb_status rank_all(const pnb_ctx *ctx, const pnb__both *both, judge *j, pnb_error *err)
{
    const pnb__ranked ranked = {pick_ranks, j};
    pnb_ranks first;
    if (PNB_ALLOC(j->rank, both->b->n, err) != PNB_OK)
        return PNB_NOMEM;
    pnb_status status = pnb__ranks_tell(ctx, both, &ranked, &first, err);
    for (size_t t = 0; status == PNB_OK && t < j->n_tasks; t++)
        for (size_t query = 0; query < both->a->n; query++) {
            size_t q = j->query == NULL ? query : j->query[query];
            int64_t top = first.top1[query];
            j->out[t]->top1[q] = j->item == NULL ? top : (int64_t)j->item[top];
            j->out[t]->top1_score[q] = first.top1_score[query];
        }
    pnb_ranks_reset(&first);
    pnb__free(j->rank);
    return status;
}

/* ---- several truths ---- */

static pnb_status join_truths(const pnb_rank_task *tasks, size_t n_tasks, pnb_truth **out,
                              pnb_error *err)
{
    size_t n_pairs = 0, n = 0;
    for (size_t t = 0; t < n_tasks; t++)
        n_pairs += tasks[t].truth->n_pairs;
    int64_t *pairs = pnb__alloc_array(n_pairs, 2 * sizeof *pairs);
    if (pairs == NULL)
        return pnb__fail_nomem(err, n_pairs * 2 * sizeof *pairs);
    for (size_t t = 0; t < n_tasks; t++) {
        const pnb_truth *truth = tasks[t].truth;
        for (size_t q = 0; q < truth->n_queries; q++)
            for (size_t p = truth->offset[q]; p < truth->offset[q + 1]; p++) {
                pairs[2 * n] = (int64_t)q;
                pairs[2 * n++ + 1] = (int64_t)truth->item[p];
            }
    }
    const pnb_truth *one = tasks[0].truth;
    pnb_status status =
        pnb_truth_create_pairs(out, one->n_queries, one->n_items, pairs, n_pairs, err);
    pnb__free(pairs);
    return status;
}

static pnb_status rank_whole(const pnb_ctx *ctx, const pnb__both *sets, judge *j, pnb_error *err)
{
    pnb__both both = *sets;
    pnb_truth *joined = NULL;
    if (j->n_tasks == 0)
        return PNB_OK;
    pnb_status status = join_truths(j->task, j->n_tasks, &joined, err);
    both.forward = joined;
    if (status == PNB_OK)
        status = rank_all(ctx, &both, j, err);
    pnb_truth_free(joined);
    return status;
}

/* ---- one fold ---- */

/* Rows of one side in the order of their folds, those of one fold together. */
static pnb_status sort_folds(const int32_t *fold, size_t n, pnb__labelled **out, pnb_error *err)
{
    if (PNB_ALLOC(*out, n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++)
        (*out)[i] = (pnb__labelled){fold[i], i};
    qsort(*out, n, sizeof **out, pnb__by_label);
    return PNB_OK;
}

/* Rows of a set, copied one behind the other. */
typedef struct gathered {
    pnb_rows rows;
    size_t *row; /* [rows.n] where each came from */
    float *memory;
} gathered;

static const float *gather(float **at, const float *from, const gathered *g, size_t width)
{
    float *to = *at;
    if (from == NULL)
        return NULL;
    for (size_t i = 0; i < g->rows.n; i++)
        memcpy(to + i * width, from + g->row[i] * width, width * sizeof *to);
    *at += g->rows.n * width;
    return to;
}

static pnb_status gather_rows(gathered *g, const pnb_rows *set, const pnb__labelled *of, size_t n,
                              pnb_error *err)
{
    const float *const wide[] = {set->mean, set->log_var, set->inv_alpha, set->beta};
    size_t width = set->kappa != NULL;
    for (size_t i = 0; i < PNB_COUNT(wide); i++)
        width += wide[i] != NULL ? set->dim : 0;
    *g = (gathered){.rows = *set};
    g->rows.n = n;
    if (PNB_ALLOC(g->row, n, err) != PNB_OK ||
        PNB_ALLOC_ROWS(g->memory, n, PNB_MAX(width, (size_t)1), err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++)
        g->row[i] = of[i].place;
    float *at = g->memory;
    g->rows.mean = gather(&at, set->mean, g, set->dim);
    g->rows.log_var = gather(&at, set->log_var, g, set->dim);
    g->rows.inv_alpha = gather(&at, set->inv_alpha, g, set->dim);
    g->rows.beta = gather(&at, set->beta, g, set->dim);
    g->rows.kappa = gather(&at, set->kappa, g, 1);
    return PNB_OK;
}

static void gathered_reset(gathered *g)
{
    pnb__free(g->row);
    pnb__free(g->memory);
}

/* The pairs of the truth inside the fold, by places in the fold. Without any the first query gets
 * the first item, so that there is something to rank; pick_ranks drops it again. */
static pnb_status fold_truth(const pnb_truth *truth, const gathered *queries, const gathered *items,
                             pnb_truth **out, pnb_error *err)
{
    size_t most = 1, n = 0;
    for (size_t i = 0; i < queries->rows.n; i++)
        most += truth->offset[queries->row[i] + 1] - truth->offset[queries->row[i]];
    int64_t *pairs = pnb__alloc_array(most, 2 * sizeof *pairs);
    if (pairs == NULL)
        return pnb__fail_nomem(err, most * 2 * sizeof *pairs);
    for (size_t i = 0; i < queries->rows.n; i++) {
        size_t q = queries->row[i];
        for (size_t p = truth->offset[q]; p < truth->offset[q + 1]; p++) {
            const size_t *found = bsearch(&truth->item[p], items->row, items->rows.n,
                                          sizeof *items->row, pnb__compare_sizes);
            if (found == NULL)
                continue;
            pairs[2 * n] = (int64_t)i;
            pairs[2 * n++ + 1] = found - items->row;
        }
    }
    if (n == 0)
        pairs[0] = pairs[1] = 0;
    pnb_status status =
        pnb_truth_create_pairs(out, queries->rows.n, items->rows.n, pairs, PNB_MAX(n, 1), err);
    pnb__free(pairs);
    return status;
}

/* Part of one side: rows begin .. end of the sorted ones. */
typedef struct span {
    const pnb__labelled *row;
    size_t n;
} span;

static void store_nothing(const pnb_rank_task *task, const span *queries, pnb_ranks *out)
{
    for (size_t i = 0; i < queries->n; i++) {
        size_t q = queries->row[i].place;
        out->top1[q] = -1;
        out->top1_score[q] = (double)NAN;
        pnb__ranks_store_task(out, task, q, NULL, 0);
    }
}

static pnb_status rank_fold(const pnb_ctx *ctx, const pnb__both *sets, judge *j, const span side[2],
                            pnb_error *err)
{
    gathered queries = {.row = NULL}, items = {.row = NULL};
    pnb_truth *truth = NULL;
    pnb_status status;
    PNB_TRY(gather_rows(&queries, sets->a, side[0].row, side[0].n, err));
    PNB_TRY(gather_rows(&items, sets->b, side[1].row, side[1].n, err));
    PNB_TRY(fold_truth(j->task->truth, &queries, &items, &truth, err));
    j->query = queries.row;
    j->item = items.row;
    const pnb__both both = {
        .a = &queries.rows, .b = &items.rows, .forward = truth, .opts = sets->opts};
    status = rank_all(ctx, &both, j, err);
done:
    pnb_truth_free(truth);
    gathered_reset(&queries);
    gathered_reset(&items);
    return status;
}

/* The rows of the fold that stands at `at`. */
static span span_at(const pnb__labelled *rows, size_t n, size_t at, int64_t fold)
{
    span s = {rows + at, 0};
    while (at + s.n < n && rows[at + s.n].label == fold)
        s.n++;
    return s;
}

static pnb_status rank_folds(const pnb_ctx *ctx, const pnb__both *sets, const pnb_rank_task *task,
                             pnb_ranks *out, pnb_error *err)
{
    pnb__labelled *queries = NULL, *items = NULL;
    size_t n = sets->a->n, n_items = sets->b->n, at = 0;
    pnb_measure measure =
        sets->opts == NULL ? pnb_search_opts_default().measure : sets->opts->measure;
    pnb_status status;
    if (pnb__measure_is_sampled(measure)) {
        pnb_ranks_reset(out);
        return pnb__ranks_score_all(ctx, sets, task, 1, out, err);
    }
    PNB_TRY(sort_folds(task->query_fold, n, &queries, err));
    PNB_TRY(sort_folds(task->item_fold, n_items, &items, err));
    for (size_t q = 0; q < n;) {
        int64_t fold = queries[q].label;
        while (at < n_items && items[at].label < fold)
            at++;
        const span side[] = {span_at(queries, n, q, fold), span_at(items, n_items, at, fold)};
        judge j = {.task = task, .out = &out, .n_tasks = 1};
        if (fold < 0 || side[1].n == 0)
            store_nothing(task, &side[0], out);
        else
            PNB_TRY(rank_fold(ctx, sets, &j, side, err));
        q += side[0].n;
    }
done:
    pnb__free(queries);
    pnb__free(items);
    return status;
}

/* ---- all tasks ---- */

static pnb_status check_sets(const pnb__both *sets, const pnb_rank_task *tasks, size_t n_tasks,
                             pnb_error *err)
{
    for (size_t t = 0; t < n_tasks; t++)
        if (sets->a->n != tasks[t].truth->n_queries || sets->b->n != tasks[t].truth->n_items)
            return pnb__fail(err, PNB_SHAPE,
                             "the sets have %zu and %zu rows, the truth is about %zu queries and "
                             "%zu items",
                             sets->a->n, sets->b->n, tasks[t].truth->n_queries,
                             tasks[t].truth->n_items);
    return pnb__ranks_check_tasks(tasks, n_tasks, err);
}

/* Those without folds, in one array. */
static pnb_status pick_whole(const pnb_rank_task *tasks, size_t n_tasks, pnb_ranks *out, judge *j,
                             pnb_error *err)
{
    pnb_rank_task *whole = pnb__alloc_array(n_tasks, sizeof *whole);
    pnb_ranks **of = pnb__alloc_array(n_tasks, sizeof *of);
    *j = (judge){.task = whole, .out = of};
    if (whole == NULL || of == NULL)
        return pnb__fail_nomem(err, n_tasks * sizeof *whole);
    for (size_t t = 0; t < n_tasks; t++)
        if (tasks[t].query_fold == NULL) {
            whole[j->n_tasks] = tasks[t];
            of[j->n_tasks++] = &out[t];
        }
    return PNB_OK;
}

pnb_status pnb_ranks_compute_tasks(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                   const pnb_gaussians *gallery, const pnb_rank_task *tasks,
                                   size_t n_tasks, const pnb_search_opts *opts, pnb_ranks *out,
                                   pnb_error *err)
{
    const pnb__both sets = {.a = queries, .b = gallery, .opts = opts};
    judge whole = {.task = NULL};
    pnb_status status;
    for (size_t t = 0; t < n_tasks; t++)
        out[t] = (pnb_ranks){0};
    PNB_TRY(check_sets(&sets, tasks, n_tasks, err));
    for (size_t t = 0; t < n_tasks; t++)
        PNB_TRY(pnb__ranks_alloc(&out[t], tasks[t].truth, err));
    PNB_TRY(pick_whole(tasks, n_tasks, out, &whole, err));
    PNB_TRY(rank_whole(ctx, &sets, &whole, err));
    for (size_t t = 0; t < n_tasks; t++)
        if (tasks[t].query_fold != NULL)
            PNB_TRY(rank_folds(ctx, &sets, &tasks[t], &out[t], err));
done:
    pnb__free((void *)(uintptr_t)whole.task);
    pnb__free((void *)(uintptr_t)whole.out);
    for (size_t t = 0; status != PNB_OK && t < n_tasks; t++)
        pnb_ranks_reset(&out[t]);
    return status;
}
