/* Collects scored pairs so that their weighted sums estimate sums over all pairs without bias.
 *
 * A gallery of N rows gives each query N pairs, nearly all of them far from any decision. Kept are
 * the first hits of each query (weight 1), its matches beyond them (weight 1), and of the rest a
 * simple random sample, each weighted by how many it stands for (inverse inclusion probability,
 * Horvitz and Thompson 1952). So the pairs that probabilities are about are all there, and the tail
 * costs little. Hits and ranks come from search and ranking, the others are scored pair by pair. A
 * sample depends on seed and query alone. */
#include "eval/calibration/match_pairs.h"

#include <math.h>
#include <string.h>

#include "penumbra/retrieval.h"

typedef struct collect_job {
    const pnb_match_job *job;
    const pnb_truth *truth;
    pnb__match_pairs *out;
    pnb_hits hits;            /* the first hits of every query */
    pnb_ranks ranks;          /* where the first hits are not all */
    size_t n_first, n_random; /* kept of a query */
    uint64_t seed;
    unsigned char *is_taken; /* [thread][n_items] */
} collect_job;

static size_t n_matches_of(const pnb_truth *truth, size_t q)
{
    return truth->offset[q + 1] - truth->offset[q];
}

static bool is_match(const pnb_truth *truth, size_t q, size_t item)
{
    size_t low = truth->offset[q], high = truth->offset[q + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (truth->item[middle] == item)
            return true;
        if (truth->item[middle] < item)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static double pair_score(const pnb_match_job *job, size_t q, size_t item)
{
    const pnb_search_opts *o = &job->opts->search;
    bool is_swapped = o->reverse && !pnb_measure_is_symmetric(o->measure);
    double value =
        is_swapped
            ? pnb_measure_pair(o->measure, job->gallery, item, job->queries, q, &o->measure_opts)
            : pnb_measure_pair(o->measure, job->queries, q, job->gallery, item, &o->measure_opts);
    return pnb_measure_score(o->measure, value);
}

/* Pairs that are kept of a query: first hits, further matches, and some of the rest. */
static size_t n_kept_of(const collect_job *c, size_t q)
{
    size_t n = c->hits.k, n_items = c->truth->n_items;
    if (n_matches_of(c->truth, q) == 0)
        return 0;
    n += n_matches_of(c->truth, q);
    for (size_t j = 0; j < c->hits.k; j++)
        n -= is_match(c->truth, q, (size_t)c->hits.index[q * c->hits.k + j]);
    return n + PNB_MIN(n_items - n, c->n_random);
}

typedef struct writer {
    const collect_job *collect;
    size_t query;
    unsigned char *is_taken;
    size_t at;
} writer;

typedef struct pair {
    size_t item;
    double score, weight;
    int label;
} pair;

static void keep(writer *w, pair p)
{
    pnb__match_pairs *out = w->collect->out;
    out->score[w->at] = p.score;
    out->label[w->at] = p.label;
    out->weight[w->at++] = p.weight;
    w->is_taken[p.item] = 1;
    if (p.label == 1)
        out->best[w->query] = fmax(out->best[w->query], p.score); /* NaN before the first */
}

static void keep_first_hits(writer *w)
{
    const collect_job *c = w->collect;
    pnb__match_pairs *out = c->out;
    size_t k = c->hits.k;
    out->first[w->query] = c->hits.score[w->query * k];
    for (size_t j = 0; j < k; j++) {
        size_t item = (size_t)c->hits.index[w->query * k + j];
        int label = is_match(c->truth, w->query, item);
        if (label == 1 && isnan(out->rank[w->query]))
            out->rank[w->query] = (double)(j + 1);
        keep(w, (pair){item, c->hits.score[w->query * k + j], 1.0, label});
    }
    out->first_label[w->query] = out->rank[w->query] == 1.0;
    if (isnan(out->rank[w->query]))
        out->rank[w->query] = (double)c->ranks.best_rank[w->query];
}

static void keep_matches(writer *w)
{
    const pnb_truth *truth = w->collect->truth;
    for (size_t i = truth->offset[w->query]; i < truth->offset[w->query + 1]; i++)
        if (!w->is_taken[truth->item[i]])
            keep(w, (pair){truth->item[i], pair_score(w->collect->job, w->query, truth->item[i]),
                           1.0, 1});
}

/* Selection sampling (Knuth, algorithm S): every subset of the wanted size is as likely. */
static void keep_random(writer *w)
{
    const collect_job *c = w->collect;
    size_t n_left = c->truth->n_items - (w->at - c->out->offset[w->query]);
    size_t n_wanted = PNB_MIN(n_left, c->n_random);
    double weight = n_wanted == 0 ? 0.0 : (double)n_left / (double)n_wanted;
    pnb__rng rng;
    pnb__rng_init(&rng, c->seed, w->query);
    for (size_t j = 0; j < c->truth->n_items && n_wanted > 0; j++) {
        if (w->is_taken[j])
            continue;
        if (n_wanted == n_left || pnb__rng_below(&rng, n_left) < n_wanted) {
            keep(w, (pair){j, pair_score(c->job, w->query, j), weight, 0});
            n_wanted--;
        }
        n_left--;
    }
}

static void collect_queries(void *user, size_t begin, size_t end, int thread)
{
    const collect_job *c = user;
    size_t n_items = c->truth->n_items;
    unsigned char *is_taken = c->is_taken + (size_t)thread * n_items;
    for (size_t q = begin; q < end; q++) {
        writer w = {c, q, is_taken, c->out->offset[q]};
        if (n_matches_of(c->truth, q) == 0)
            continue;
        memset(is_taken, 0, n_items);
        keep_first_hits(&w);
        keep_matches(&w);
        keep_random(&w);
    }
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

static pnb_status alloc_pairs(collect_job *c, pnb_error *err)
{
    pnb__match_pairs *out = c->out;
    size_t n_queries = out->n_queries;
    if (PNB_ALLOC_ZERO(out->offset, n_queries + 1, err) != PNB_OK ||
        PNB_ALLOC(out->first, n_queries, err) != PNB_OK ||
        PNB_ALLOC(out->best, n_queries, err) != PNB_OK ||
        PNB_ALLOC(out->rank, n_queries, err) != PNB_OK ||
        PNB_ALLOC_ZERO(out->first_label, n_queries, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t q = 0; q < n_queries; q++) {
        out->offset[q + 1] = out->offset[q] + n_kept_of(c, q);
        out->first[q] = out->best[q] = out->rank[q] = (double)NAN;
    }
    size_t n = out->offset[n_queries];
    if (PNB_ALLOC(out->score, n, err) != PNB_OK || PNB_ALLOC(out->label, n, err) != PNB_OK ||
        PNB_ALLOC(out->weight, n, err) != PNB_OK)
        return PNB_NOMEM;
    return PNB_OK;
}

/* How many rows of a query may stay: all when they fit, else half of the room for first hits and
 * half for chance; its matches come on top. */
static void plan(collect_job *c, const pnb__match_sample *sample)
{
    const pnb_truth *t = c->truth;
    size_t n_asking = 0;
    for (size_t q = 0; q < t->n_queries; q++)
        n_asking += n_matches_of(t, q) > 0;
    size_t per_query = PNB_MAX((size_t)2, sample->max_pairs / PNB_MAX(n_asking, (size_t)1));
    c->out->is_exact = per_query >= t->n_items;
    c->n_first = c->out->is_exact ? t->n_items
                                  : PNB_MIN(t->n_items, PNB_MAX(per_query / 2, sample->n_first));
    c->n_random = c->out->is_exact ? 0 : per_query - per_query / 2;
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
    collect_job c = {.job = job, .truth = job->truth, .out = out, .seed = sample->seed};
    pnb_search_opts search = job->opts->search;
    pnb_status status;
    *out = (pnb__match_pairs){.n_queries = job->truth->n_queries, .n_items = job->truth->n_items};
    PNB_TRY(check_sizes(job, err));
    plan(&c, sample);
    search.k = c.n_first;
    PNB_TRY(pnb_search(ctx, job->queries, job->gallery, &search, &c.hits, err));
    if (!out->is_exact)
        PNB_TRY(
            pnb_ranks_compute(ctx, job->queries, job->gallery, job->truth, &search, &c.ranks, err));
    PNB_TRY(alloc_pairs(&c, err));
    c.is_taken = pnb__alloc_array(n_threads, out->n_items);
    if (c.is_taken == NULL)
        PNB_TRY(pnb__fail_nomem(err, n_threads * out->n_items));
    pnb__parallel_for(ctx, out->n_queries, 16, collect_queries, &c);
done:
    pnb_hits_reset(&c.hits);
    pnb_ranks_reset(&c.ranks);
    pnb__free(c.is_taken);
    if (status != PNB_OK)
        pnb__match_pairs_reset(out);
    return status;
}
