/* Searching a collection: each shard by an index of its own, their lists joined.
 *
 * Scores are those of the pairs, so the best k of all shards are among the best k of each, and the
 * order is that of one set with all rows: ties go to the row that came first. Rows that were
 * removed or do not pass the filter are left out while a shard is walked (index_kind.h), so k come
 * back where k pass. */
#include <math.h>
#include <string.h>

#include "index/hits.h"
#include "index/index.h"
#include "sets/set_rows.h"
#include "sets/settle.h"
#include "store/store_internal.h"

typedef struct search_run {
    pnb_store *store;
    const pnb_ctx *ctx;
    pnb__snapshot *now;
    const pnb_embeddings *queries;
    pnb_view view; /* of the queries */
    pnb_search_opts search;
    unsigned char **pass; /* [shard][row] those that the filter lets through; NULL: all live ones */
    pnb__hit *best;       /* [query][k] */
    size_t *n_best;       /* [query] */
    pnb__hit *joined;     /* [2 k] */
    size_t n_unsure;      /* the most of a shard */
} search_run;

pnb_store_search_opts pnb_store_search_opts_default(void)
{
    pnb_store_search_opts opts = {.search = pnb_search_opts_default()};
    opts.search.measure = PNB__MEASURE_AUTO;
    return opts;
}

void pnb_store_hits_reset(pnb_store_hits *hits)
{
    if (hits == NULL)
        return;
    pnb__free(hits->number);
    pnb__free(hits->score);
    *hits = (pnb_store_hits){0};
}

/* ---- filters ---- */

static pnb_status take_passing(void *user, int64_t number, pnb_error *err)
{
    search_run *run = user;
    size_t place = 0, at = 0;
    const pnb__shard *shard = pnb__snapshot_find(run->now, number, &place);
    if (shard == NULL)
        return PNB_OK; /* came after the snapshot */
    while (run->now->shards[at] != shard)
        at++;
    if (run->pass[at] == NULL && PNB_ALLOC_ZERO(run->pass[at], shard->set->n, err) != PNB_OK)
        return PNB_NOMEM;
    const unsigned char *live = run->now->live[at];
    run->pass[at][place] = live == NULL || live[place] != 0;
    return PNB_OK;
}

static pnb_status apply_filter(search_run *run, const pnb_store_filter *filter, pnb_error *err)
{
    const pnb__page page = {.filter = filter};
    pnb_store *store = run->store;
    pnb_status status = PNB_ALLOC_ZERO(run->pass, PNB_MAX(run->now->n_shards, (size_t)1), err);
    if (status != PNB_OK)
        return status;
    pthread_mutex_lock(&store->mutex);
    status = store->calls->numbers(store->reader, &page, take_passing, run, err);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

/* Rows of a shard to look at, NULL for all; false: none. */
static bool rows_to_search(const search_run *run, size_t shard, const unsigned char **only)
{
    *only = run->pass != NULL ? run->pass[shard] : run->now->live[shard];
    return run->pass == NULL || *only != NULL;
}

/* ---- indexes ---- */

static bool is_same_search(const pnb_search_opts *a, const pnb_search_opts *b)
{
    const pnb_measure_opts *x = &a->measure_opts, *y = &b->measure_opts;
    return a->measure == b->measure && a->reverse == b->reverse && a->kind == b->kind &&
           a->recall == b->recall && x->inclusion_eps == y->inclusion_eps &&
           x->match_a == y->match_a && x->match_b == y->match_b &&
           x->match_factor == y->match_factor && x->n_samples == y->n_samples && x->seed == y->seed;
}

/* How a shard is searched: graphs and cells are made by pnb_store_build, and a shard that has none,
 * a new one say, is searched exactly. `path` is the file, NULL where there is none to open. */
static pnb_status settle_kind(const search_run *run, const pnb__shard *shard, pnb_search_opts *opts,
                              char **path, pnb_error *err)
{
    pnb_status status = PNB_OK;
    *opts = run->search;
    *path = NULL;
    if (!pnb__shard_has_index_file(opts->kind))
        return PNB_OK;
    status = pnb__shard_index_path(shard, opts->kind, path, err);
    if (status == PNB_OK && !pnb__path_is_file(*path)) {
        pnb__free(*path);
        *path = NULL;
        opts->kind = PNB_INDEX_EXACT;
    }
    return status;
}

static pnb_status make_index(const search_run *run, const pnb__shard *shard,
                             const pnb_search_opts *opts, const char *path, pnb__prepared *to,
                             pnb_error *err)
{
    pnb_status status = pnb__set_view(&to->view, shard->set, opts->measure, err);
    if (status == PNB_OK)
        status = path != NULL
                     ? pnb_index_open(&to->index, run->ctx, &to->view.rows, opts, path, err)
                     : pnb_index_create(&to->index, run->ctx, &to->view.rows, opts, err);
    if (status != PNB_OK)
        pnb_view_reset(&to->view);
    to->opts = *opts;
    return status;
}

/* The shard's own index of that kind where it is, or becomes, of this search; else one for this
 * search alone, *own, that the caller frees. */
static pnb_status find_index(const search_run *run, pnb__shard *shard, pnb__prepared *own,
                             const pnb_index **out, pnb_error *err)
{
    pnb_search_opts opts;
    char *path = NULL;
    pnb_status status = settle_kind(run, shard, &opts, &path, err);
    if (status != PNB_OK)
        return status;
    pthread_mutex_lock(&run->store->mutex);
    pnb__prepared *kept = &shard->prepared[opts.kind];
    if (kept->index == NULL)
        status = make_index(run, shard, &opts, path, kept, err);
    bool is_shared = status == PNB_OK && is_same_search(&kept->opts, &opts);
    pthread_mutex_unlock(&run->store->mutex);
    if (status == PNB_OK && !is_shared)
        status = make_index(run, shard, &opts, path, own, err);
    *out = is_shared ? kept->index : own->index;
    pnb__free(path);
    return status;
}

/* ---- joining ---- */

static void join_query(search_run *run, size_t q, const pnb_hits *hits, int64_t first)
{
    size_t k = run->search.k, a = 0, b = 0, n = 0;
    pnb__hit *best = run->best + q * k;
    while (n < k) {
        bool has_old = a < run->n_best[q];
        bool has_new = b < hits->k && hits->index[q * hits->k + b] >= 0;
        if (!has_old && !has_new)
            break;
        pnb__hit old = has_old ? best[a] : (pnb__hit){0, 0}, new = {0};
        if (has_new)
            new = (pnb__hit){hits->score[q * hits->k + b], first + hits->index[q * hits->k + b]};
        bool takes_new = has_new && (!has_old || pnb__hit_before(new, old));
        run->joined[n++] = takes_new ? new : old;
        a += !takes_new;
        b += takes_new;
    }
    memcpy(best, run->joined, n * sizeof *best);
    run->n_best[q] = n;
}

static pnb_status search_shard(search_run *run, size_t at, pnb_error *err)
{
    pnb__shard *shard = run->now->shards[at];
    pnb__prepared own = {0};
    const pnb_index *index = NULL;
    pnb_hits hits = {0};
    pnb__among among = {&run->view.rows, PNB_MIN(run->search.k, shard->set->n), NULL};
    pnb_status status = PNB_OK;
    if (!rows_to_search(run, at, &among.only))
        return PNB_OK;
    PNB_TRY(find_index(run, shard, &own, &index, err));
    PNB_TRY(pnb__index_search(index, run->ctx, &among, &hits, err));
    run->n_unsure = PNB_MAX(run->n_unsure, hits.n_unsure);
    for (size_t q = 0; q < hits.n_queries; q++)
        join_query(run, q, &hits, shard->first);
done:
    pnb__prepared_reset(&own);
    pnb_hits_reset(&hits);
    return status;
}

/* ---- the search ---- */

static pnb_status settle(search_run *run, pnb_error *err)
{
    const pnb_embeddings *rows = run->now->shards[0]->set;
    pnb_embeddings first = *rows; /* one row tells the family */
    pnb_view view = {0}, of_queries = {0};
    pnb_measure measure = run->search.measure;
    pnb_status status;
    first.n = 1;
    PNB_TRY(pnb_embeddings_check_mix(run->queries, rows, err));
    PNB_TRY(pnb_view_init(&view, &first, err));
    PNB_TRY(pnb_view_init(&of_queries, run->queries, err));
    PNB_TRY(pnb__measure_of_sets(&measure, run->queries, rows, err));
    PNB_TRY(pnb__measure_settle(&run->search.measure, measure, &of_queries.rows, &view.rows, err));
    status = pnb__set_view(&run->view, run->queries, run->search.measure, err);
done:
    pnb_view_reset(&view);
    pnb_view_reset(&of_queries);
    return status;
}

static pnb_status alloc_run(search_run *run, pnb_store_hits *out, pnb_error *err)
{
    size_t k = run->search.k, n = out->n_queries, n_best;
    pnb_status status;
    if (k == 0)
        return pnb__fail(err, PNB_ARG, "k is 0; ask for at least one hit a query");
    if (pnb__mul_overflows(n, k, &n_best))
        return pnb__fail_nomem(err, SIZE_MAX);
    PNB_TRY(PNB_ALLOC(out->number, n_best, err));
    PNB_TRY(PNB_ALLOC(out->score, n_best, err));
    PNB_TRY(PNB_ALLOC(run->best, n_best, err));
    PNB_TRY(PNB_ALLOC_ZERO(run->n_best, n, err));
    status = PNB_ALLOC(run->joined, k, err);
done:
    return status;
}

static void put_hits(const search_run *run, pnb_store_hits *out)
{
    size_t k = out->k;
    for (size_t q = 0; q < out->n_queries; q++)
        for (size_t i = 0; i < k; i++) {
            bool is_hit = i < run->n_best[q];
            out->number[q * k + i] = is_hit ? run->best[q * k + i].index : -1;
            out->score[q * k + i] = is_hit ? run->best[q * k + i].score : -(double)INFINITY;
        }
    out->measure = run->search.measure;
    out->n_unsure = run->n_unsure;
}

static void reset_run(search_run *run)
{
    for (size_t i = 0; run->pass != NULL && i < run->now->n_shards; i++)
        pnb__free(run->pass[i]);
    pnb__free(run->pass);
    pnb__free(run->best);
    pnb__free(run->n_best);
    pnb__free(run->joined);
    pnb_view_reset(&run->view);
    pnb__snapshot_drop(run->store, run->now);
}

pnb_status pnb_store_search(pnb_store *store, const pnb_ctx *ctx, const pnb_embeddings *queries,
                            const pnb_store_search_opts *opts, pnb_store_hits *out, pnb_error *err)
{
    const pnb_store_search_opts o = opts != NULL ? *opts : pnb_store_search_opts_default();
    search_run run = {.store = store, .ctx = ctx, .queries = queries, .search = o.search};
    pnb_status status;
    *out = (pnb_store_hits){.n_queries = queries->n, .k = o.search.k};
    PNB_TRY(pnb__snapshot_take(store, &run.now, err));
    PNB_TRY(alloc_run(&run, out, err));
    if (run.now->n_shards > 0) {
        PNB_TRY(settle(&run, err));
        if (o.filter != NULL)
            PNB_TRY(apply_filter(&run, o.filter, err));
    }
    for (size_t i = 0; i < run.now->n_shards; i++)
        PNB_TRY(search_shard(&run, i, err));
    put_hits(&run, out);
done:
    reset_run(&run);
    if (status != PNB_OK)
        pnb_store_hits_reset(out);
    return status;
}
