/* Collects scored pairs so that their weighted sums estimate sums over all pairs without bias.
 *
 * A gallery of N rows gives each query N pairs, nearly all of them far from any decision. Kept are
 * every match (weight 1), the best-scoring other rows of each query (weight 1), and of the rest a
 * simple random sample, each weighted by how many it stands for (inverse inclusion probability,
 * Horvitz and Thompson 1952). So the pairs that probabilities are about are all there, and the tail
 * costs little. A sample depends on seed and query alone. */
#include "eval/match_pairs.h"

#include <math.h>
#include <string.h>

#include "eval/score_rows.h"
#include "index/heap.h"

typedef struct collect_job {
    const pnb_truth *truth;
    pnb__match_pairs *out;
    size_t n_top, n_random; /* other rows kept of a query */
    uint64_t seed;
    unsigned char *is_taken; /* [thread][n_items] */
    pnb__hit *top;           /* [thread][n_top] */
} collect_job;

static size_t n_matches_of(const pnb_truth *truth, size_t q)
{
    return truth->offset[q + 1] - truth->offset[q];
}

/* Pairs that are kept of a query. */
static size_t n_kept_of(const collect_job *job, size_t q)
{
    size_t n = n_matches_of(job->truth, q), n_others = job->truth->n_items - n;
    return n == 0 ? 0 : n + PNB_MIN(n_others, job->n_top + job->n_random);
}

typedef struct writer {
    const collect_job *job;
    const pnb__score_row *row;
    unsigned char *is_taken;
    size_t at;
} writer;

static void keep(writer *w, size_t item, int label, double weight)
{
    pnb__match_pairs *out = w->job->out;
    out->score[w->at] = pnb__scan_exact(w->row->run, w->row->query, item);
    out->label[w->at] = label;
    out->weight[w->at++] = weight;
    w->is_taken[item] = 1;
}

static void keep_top(writer *w)
{
    const collect_job *job = w->job;
    pnb__heap heap = {job->top + (size_t)w->row->thread * job->n_top, 0, job->n_top};
    if (job->n_top == 0)
        return;
    for (size_t j = 0; j < w->row->n_items; j++)
        if (!w->is_taken[j] && (heap.n < heap.capacity || w->row->score[j] > heap.hit[0].score))
            pnb__heap_push(&heap, (pnb__hit){w->row->score[j], (int64_t)j});
    for (size_t i = 0; i < heap.n; i++)
        keep(w, (size_t)heap.hit[i].index, 0, 1.0);
}

/* Selection sampling (Knuth, algorithm S): every subset of the wanted size is as likely. */
static void keep_random(writer *w, size_t n_left)
{
    size_t n_wanted = PNB_MIN(n_left, w->job->n_random);
    double weight = n_wanted == 0 ? 0.0 : (double)n_left / (double)n_wanted;
    pnb__rng rng;
    pnb__rng_init(&rng, w->job->seed, w->row->query);
    for (size_t j = 0; j < w->row->n_items && n_wanted > 0; j++) {
        if (w->is_taken[j])
            continue;
        if (n_wanted == n_left || pnb__rng_below(&rng, n_left) < n_wanted) {
            keep(w, j, 0, weight);
            n_wanted--;
        }
        n_left--;
    }
}

/* First hit and best match, in the order of search: score, then lower index. */
static void note_ranks(const collect_job *job, const pnb__score_row *row)
{
    const pnb_truth *truth = job->truth;
    const double *score = row->score;
    size_t begin = truth->offset[row->query], end = truth->offset[row->query + 1];
    size_t best = truth->item[begin], first = 0, rank = 1;
    pnb__match_pairs *out = job->out;
    for (size_t i = begin; i < end; i++)
        if (score[truth->item[i]] > score[best])
            best = truth->item[i];
    for (size_t j = 0; j < row->n_items; j++) {
        first = score[j] > score[first] ? j : first;
        rank += score[j] > score[best] || (score[j] == score[best] && j < best);
    }
    out->first[row->query] = pnb__scan_exact(row->run, row->query, first);
    out->best[row->query] = pnb__scan_exact(row->run, row->query, best);
    out->rank[row->query] = (double)rank;
    out->first_label[row->query] = rank == 1;
}

static pnb_status collect_row(void *user, const pnb__score_row *row, pnb_error *err)
{
    const collect_job *job = user;
    const pnb_truth *truth = job->truth;
    size_t n = n_matches_of(truth, row->query);
    writer w = {job, row, job->is_taken + (size_t)row->thread * row->n_items,
                job->out->offset[row->query]};
    (void)err;
    if (n == 0)
        return PNB_OK;
    memset(w.is_taken, 0, row->n_items);
    for (size_t i = 0; i < n; i++)
        keep(&w, truth->item[truth->offset[row->query] + i], 1, 1.0);
    keep_top(&w);
    keep_random(&w, row->n_items - (w.at - job->out->offset[row->query]));
    note_ranks(job, row);
    return PNB_OK;
}

void pnb__match_pairs_reset(pnb__match_pairs *pairs)
{
    pnb__free(pairs->offset);
    pnb__free(pairs->score);
    pnb__free(pairs->label);
    pnb__free(pairs->weight);
    pnb__free(pairs->first);
    pnb__free(pairs->best);
    pnb__free(pairs->rank);
    pnb__free(pairs->first_label);
    *pairs = (pnb__match_pairs){0};
}

static pnb_status alloc_pairs(collect_job *job, pnb_error *err)
{
    pnb__match_pairs *out = job->out;
    size_t n_queries = out->n_queries;
    out->offset = pnb__alloc_zero(n_queries + 1, sizeof(size_t));
    out->first = pnb__alloc_array(n_queries, sizeof(double));
    out->best = pnb__alloc_array(n_queries, sizeof(double));
    out->rank = pnb__alloc_array(n_queries, sizeof(double));
    out->first_label = pnb__alloc_zero(n_queries, sizeof(int));
    if (out->offset == NULL || out->first == NULL || out->best == NULL || out->rank == NULL ||
        out->first_label == NULL)
        return pnb__fail_nomem(err, n_queries * 40);
    for (size_t q = 0; q < n_queries; q++) {
        out->offset[q + 1] = out->offset[q] + n_kept_of(job, q);
        out->first[q] = out->best[q] = out->rank[q] = (double)NAN;
    }
    size_t n = out->offset[n_queries];
    out->score = pnb__alloc_array(n, sizeof(double));
    out->label = pnb__alloc_array(n, sizeof(int));
    out->weight = pnb__alloc_array(n, sizeof(double));
    if (out->score == NULL || out->label == NULL || out->weight == NULL)
        return pnb__fail_nomem(err, n * 20);
    return PNB_OK;
}

/* How many other rows of a query may stay: all when they fit, else half of the room for the best
 * and half for chance. */
static void plan(collect_job *job, const pnb__match_sample *sample)
{
    const pnb_truth *t = job->truth;
    size_t n_asking = 0, max = sample->max_pairs, room = max > t->n_pairs ? max - t->n_pairs : 0;
    for (size_t q = 0; q < t->n_queries; q++)
        n_asking += n_matches_of(t, q) > 0;
    size_t per_query = PNB_MAX((size_t)2, room / PNB_MAX(n_asking, (size_t)1));
    job->out->is_exact = per_query >= t->n_items;
    job->n_top = job->out->is_exact ? 0 : per_query / 2;
    job->n_random = job->out->is_exact ? t->n_items : per_query - job->n_top;
    if (!job->out->is_exact)
        job->n_top = PNB_MAX(job->n_top, PNB_MIN(sample->n_top, t->n_items));
}

static pnb_status check_sizes(const pnb_match_job *job, pnb_error *err)
{
    const pnb_truth *t = job->truth;
    if (job->queries->n != t->n_queries || job->gallery->n != t->n_items)
        return pnb__fail(err, PNB_SHAPE,
                         "the sets have %zu and %zu rows, the truth is about %zu queries and %zu "
                         "items",
                         job->queries->n, job->gallery->n, t->n_queries, t->n_items);
    if (t->n_queries == 0 || t->n_items == 0 || t->n_pairs == 0)
        return pnb__fail(err, PNB_ARG, "truth has %zu queries, %zu items, %zu pairs; none may be 0",
                         t->n_queries, t->n_items, t->n_pairs);
    return PNB_OK;
}

pnb_status pnb__match_pairs_collect(const pnb_ctx *ctx, const pnb_match_job *job,
                                    const pnb__match_sample *sample, pnb__match_pairs *out,
                                    pnb_error *err)
{
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    collect_job collect = {.truth = job->truth, .out = out, .seed = sample->seed};
    const pnb__score_job scores = {job->queries, job->gallery, &job->opts->search};
    pnb_status status;
    *out = (pnb__match_pairs){.n_queries = job->truth->n_queries, .n_items = job->truth->n_items};
    PNB_TRY(check_sizes(job, err));
    plan(&collect, sample);
    PNB_TRY(alloc_pairs(&collect, err));
    collect.is_taken = pnb__alloc_array(n_threads, out->n_items);
    collect.top = pnb__alloc_array(n_threads * PNB_MAX(collect.n_top, (size_t)1), sizeof(pnb__hit));
    if (collect.is_taken == NULL || collect.top == NULL)
        PNB_TRY(
            pnb__fail_nomem(err, n_threads * (out->n_items + collect.n_top * sizeof(pnb__hit))));
    status = pnb__score_rows(ctx, &scores, collect_row, &collect, err);
done:
    pnb__free(collect.is_taken);
    pnb__free(collect.top);
    if (status != PNB_OK)
        pnb__match_pairs_reset(out);
    return status;
}
