/* The other direction of retrieval out of the pass of the first.
 *
 * score(q, x) = value(q, x) + t_q: for a query the pass leaves t_q out, for an item that ranks the
 * queries it has to be added, as a float with bounds around it. A few units of rounding are all
 * that costs, so one matrix product serves both directions. What bounds leave open is settled by
 * the same f64 scores, which are the same bits both ways. */
#include "eval/retrieval/ranks_back.h"

#include <math.h>
#include <string.h>

#include "peers/peers.h"

#define MAGNITUDE_MOST 1e3    /* of a score's parts: beyond, floats tell too little apart */
#define UNIT 5.9604644775e-08 /* 2^-24 */

static size_t n_positives(const pnb_truth *truth, size_t item)
{
    return truth->offset[item + 1] - truth->offset[item];
}

/* Largest size of a value of the pass. */
static double magnitude(const pnb__exact_run *run)
{
    const pnb__exact_side *q = &run->queries, *x = &run->scan->gallery;
    double product = run->scan->form->is_unit ? 1.0 : q->most_norm * x->most_norm;
    return x->most_term + 3.0 * product;
}

bool pnb__back_fits(const pnb__exact_run *run, const pnb_truth *truth)
{
    if (run->way != PNB__EXACT_PRODUCT || magnitude(run) > MAGNITUDE_MOST ||
        run->queries.most_term > MAGNITUDE_MOST)
        return false;
    for (size_t i = 0; i < truth->n_queries; i++)
        if (n_positives(truth, i) > PNB__RANKS_FEW)
            return false;
    return true;
}

/* ---- limits ---- */

static void set_item(pnb__back *back, size_t item)
{
    const pnb__exact_run *run = back->run;
    const pnb__hit *positive = back->positive + back->truth->offset[item];
    size_t n = back->truth->n_queries, n_own = n_positives(back->truth, item);
    double margin = 64.0 * 0x1p-53 * (magnitude(run) + run->queries.most_term) +
                    0x1p-52 * (double)run->queries.rows.dim;
    for (size_t l = 0; l < back->n_levels; l++) {
        bool has = l < n_own;
        double score = has ? positive[l].score : 0.0;
        back->sure[l * n + item] = has ? nextafterf((float)(score + margin), INFINITY) : INFINITY;
        back->maybe[l * n + item] = has ? nextafterf((float)(score - margin), -INFINITY) : INFINITY;
    }
}

static void prepare_items(void *user, size_t begin, size_t end, int thread)
{
    pnb__back *back = user;
    const pnb_truth *truth = back->truth;
    pnb__exact_work work;
    if (pnb__exact_work_init(&work, back->run, &back->error[thread]) != PNB_OK)
        return;
    for (size_t item = begin; item < end; item++) {
        size_t first = truth->offset[item];
        for (size_t i = first; i < truth->offset[item + 1]; i++) {
            size_t query = truth->item[i];
            back->positive[i] =
                (pnb__hit){pnb__exact_pair(back->run, &work, query, item), (int64_t)query};
        }
        pnb__hits_sort(back->positive + first, n_positives(truth, item));
        set_item(back, item);
    }
    pnb__exact_work_reset(&work);
}

static void set_terms(pnb__back *back)
{
    double most = magnitude(back->run);
    for (size_t q = 0; q < back->truth->n_items; q++) {
        double term = pnb__bound_term(back->run, q), slack = 8.0 * UNIT * (fabs(term) + most);
        back->term_low[q] = (float)(term - slack);
        back->term_high[q] = (float)(term + slack);
    }
}

static pnb_status alloc_back(pnb__back *back, size_t n_threads, pnb_error *err)
{
    size_t n = back->truth->n_queries, n_queries = back->truth->n_items;
    size_t n_limits = back->n_levels * n, n_tops = back->n_groups * n;
    if (PNB_ALLOC(back->positive, back->truth->n_pairs, err) != PNB_OK ||
        PNB_ALLOC(back->sure, n_limits, err) != PNB_OK ||
        PNB_ALLOC(back->maybe, n_limits, err) != PNB_OK ||
        PNB_ALLOC(back->term_low, n_queries, err) != PNB_OK ||
        PNB_ALLOC(back->term_high, n_queries, err) != PNB_OK ||
        PNB_ALLOC_ZERO(back->count, back->n_groups * n_limits, err) != PNB_OK ||
        PNB_ALLOC(back->top, n_tops, err) != PNB_OK ||
        PNB_ALLOC(back->top_limit, n_tops, err) != PNB_OK ||
        PNB_ALLOC_ZERO(back->error, n_threads, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_OK;
}

pnb_status pnb__back_init(pnb__back *back, const pnb_ctx *ctx, size_t n_groups, pnb_error *err)
{
    pnb_status status = PNB_OK;
    const pnb_truth *truth = back->truth;
    size_t n_threads = ctx == NULL ? 1 : (size_t)ctx->n_threads;
    back->n_groups = n_groups;
    back->n_levels = 1;
    for (size_t i = 0; i < truth->n_queries; i++)
        back->n_levels = PNB_MAX(back->n_levels, n_positives(truth, i));
    PNB_TRY(alloc_back(back, n_threads, err));
    for (size_t i = 0; i < n_groups * truth->n_queries; i++) {
        back->top[i] = (pnb__hit){-(double)INFINITY, INT64_MAX};
        back->top_limit[i] = -INFINITY;
    }
    set_terms(back);
    pnb__parallel_for(ctx, truth->n_queries, 16, prepare_items, back);
    for (size_t t = 0; t < n_threads && status == PNB_OK; t++)
        if (back->error[t].status != PNB_OK)
            status = pnb__fail(err, back->error[t].status, "%s", back->error[t].text);
done:
    return status;
}

void pnb__back_reset(pnb__back *back)
{
    pnb__free(back->positive);
    pnb__free(back->sure);
    pnb__free(back->maybe);
    pnb__free(back->term_low);
    pnb__free(back->term_high);
    pnb__free(back->count);
    pnb__free(back->top);
    pnb__free(back->top_limit);
    pnb__free(back->error);
    *back = (pnb__back){0};
}

/* ---- counting ---- */

/* Queries of the block that surely stand before a positive; *open where one may. */
static uint32_t count_sure(const pnb__back *back, const pnb__back_block *b, float sure, float maybe,
                           int *open)
{
    const float *low = b->low, *high = b->high;
    const float *term_low = back->term_low + b->query, *term_high = back->term_high + b->query;
    uint32_t count = 0;
    int may = 0;
#pragma omp simd reduction(+ : count) reduction(| : may)
    for (size_t j = 0; j < b->n; j++) {
        int is_before = low[j] + term_low[j] > sure;
        count += (uint32_t)is_before;
        may |= (high[j] + term_high[j] >= maybe) & !is_before;
    }
    *open |= may;
    return count;
}

static int may_be_top(const pnb__back *back, const pnb__back_block *b, float limit)
{
    const float *high = b->high, *term = back->term_high + b->query;
    int open = 0;
#pragma omp simd reduction(| : open)
    for (size_t j = 0; j < b->n; j++)
        open |= high[j] + term[j] >= limit;
    return open;
}

/* A pair of which the bounds may leave something open: then it is scored in f64. */
static void settle(pnb__back *back, pnb__exact_work *work, const pnb__back_block *b, size_t j)
{
    size_t n = back->truth->n_queries, query = b->query + j, n_open = 0;
    size_t n_own = n_positives(back->truth, b->item), slot = b->group * n + b->item;
    float low = b->low[j] + back->term_low[query], high = b->high[j] + back->term_high[query];
    bool is_open[PNB__RANKS_FEW];
    for (size_t l = 0; l < n_own; l++) {
        is_open[l] = high >= back->maybe[l * n + b->item] && !(low > back->sure[l * n + b->item]);
        n_open += is_open[l];
    }
    if (n_open == 0 && !(high >= back->top_limit[slot]))
        return;
    pnb__hit hit = {pnb__exact_pair(back->run, work, query, b->item), (int64_t)query};
    const pnb__hit *positive = back->positive + back->truth->offset[b->item];
    uint32_t *count = back->count + b->group * back->n_levels * n + b->item;
    for (size_t l = 0; l < n_own; l++)
        if (is_open[l])
            count[l * n] += pnb__hit_before(hit, positive[l]);
    if (pnb__hit_before(hit, back->top[slot])) {
        back->top[slot] = hit;
        back->top_limit[slot] = nextafterf(
            (float)(hit.score - 1e-9 * (magnitude(back->run) + fabs(hit.score))), -INFINITY);
    }
}

void pnb__back_count(pnb__back *back, pnb__exact_work *work, const pnb__back_block *b)
{
    size_t n = back->truth->n_queries, n_own = n_positives(back->truth, b->item);
    uint32_t *count = back->count + b->group * back->n_levels * n + b->item;
    int open = may_be_top(back, b, back->top_limit[b->group * n + b->item]);
    for (size_t l = 0; l < n_own; l++)
        count[l * n] +=
            count_sure(back, b, back->sure[l * n + b->item], back->maybe[l * n + b->item], &open);
    for (size_t j = 0; open && j < b->n; j++)
        settle(back, work, b, j);
}

/* Groups add up to the first. */
static void join_groups(pnb__back *back)
{
    size_t n = back->truth->n_queries;
    for (size_t g = 1; g < back->n_groups; g++)
        for (size_t i = 0; i < n; i++) {
            for (size_t l = 0; l < back->n_levels; l++)
                back->count[l * n + i] += back->count[(g * back->n_levels + l) * n + i];
            if (pnb__hit_before(back->top[g * n + i], back->top[i]))
                back->top[i] = back->top[g * n + i];
        }
}

/* What every rank counted among its queries, in the first group of all. Counts below 2^53 are exact
 * as doubles. */
static pnb_status join_ranks(pnb__back *back, pnb_peers *ranks, pnb_error *err)
{
    size_t n = back->truth->n_queries, n_counts = back->n_levels * n;
    size_t n_ranks = pnb_peers_count(ranks), *from = NULL;
    double *sum = NULL;
    pnb__hit *tops = NULL;
    pnb_status status = PNB_OK;
    if (ranks == NULL)
        return PNB_OK;
    PNB_TRY(PNB_ALLOC(sum, n_counts, err));
    PNB_TRY(PNB_ALLOC_ROWS(tops, n_ranks, n, err));
    PNB_TRY(PNB_ALLOC(from, n_ranks + 1, err));
    for (size_t i = 0; i < n_counts; i++)
        sum[i] = back->count[i];
    PNB_TRY(pnb__peers_sum(ranks, sum, n_counts, true, NULL, err));
    for (size_t i = 0; i < n_counts; i++)
        back->count[i] = (uint32_t)sum[i];
    for (size_t p = 0; p <= n_ranks; p++)
        from[p] = p * n * sizeof *tops;
    memcpy(tops + pnb_peers_rank(ranks) * n, back->top, n * sizeof *tops);
    PNB_TRY(pnb__peers_gather(ranks, tops, from, err));
    for (size_t i = 0; i < n_ranks * n; i++)
        if (pnb__hit_before(tops[i], back->top[i % n]))
            back->top[i % n] = tops[i];
done:
    pnb__free(sum);
    pnb__free(tops);
    pnb__free(from);
    return status;
}

pnb_status pnb__back_finish(pnb__back *back, pnb_peers *ranks, pnb_error *err)
{
    size_t n = back->truth->n_queries, rank[PNB__RANKS_FEW];
    join_groups(back);
    pnb_status status = join_ranks(back, ranks, err);
    for (size_t item = 0; item < n && status == PNB_OK; item++) {
        size_t n_own = n_positives(back->truth, item);
        for (size_t l = 0; l < n_own; l++)
            rank[l] = 1 + back->count[l * n + item];
        back->out->top1[item] = back->top[item].index;
        back->out->top1_score[item] = back->top[item].score;
        pnb__ranks_store(back->out, item, rank, n_own, pnb__ranks_outside(back->truth, item));
    }
    return status;
}
