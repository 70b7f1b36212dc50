/* Approximate indexes of a collection: a file a shard and kind, beside it.
 *
 * Shards never change, they are only joined or dropped; so an index is right as long as its shard
 * is there, whatever is added or removed: removed rows are left out while it is walked. Searches
 * open the files (store_search.c), the writer removes those whose shard is gone (store_shards.c).
 * Building takes minutes, so others may write meanwhile: only what puts the file into its place is
 * the writer. */
#include <string.h>

#include "sets/set_rows.h"
#include "sets/settle.h"
#include "store/store_internal.h"

bool pnb__shard_has_index_file(pnb_index_kind kind)
{
    return kind == PNB_INDEX_HNSW || kind == PNB_INDEX_IVF;
}

pnb_status pnb__shard_index_path(const pnb__shard *shard, pnb_index_kind kind, char **out,
                                 pnb_error *err)
{
    *out = pnb__format("%s.%s", shard->path, pnb_index_kind_name(kind));
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, 0);
}

enum { SAVE_WAIT_S = 60 };

static bool is_there(const pnb__catalog_state *state, const pnb__shard *shard)
{
    for (size_t i = 0; i < state->n_shards; i++)
        if (strcmp(state->shards[i].file, shard->file) == 0)
            return true;
    return false;
}

/* Unless the shard was joined with others while its index was built. */
static pnb_status save(pnb_store *store, const pnb__shard *shard, const pnb_ctx *ctx,
                       const pnb_index *index, const char *path, pnb_error *err)
{
    pnb__catalog_state state = {0};
    bool began = store->writer == NULL;
    pnb_status status = PNB_OK;
    if (began)
        PNB_TRY(pnb_store_begin(store, SAVE_WAIT_S, err));
    PNB_TRY(store->calls->state(store->writer, &state, err));
    if (is_there(&state, shard))
        status = pnb_index_save(index, ctx, path, err);
done:
    pnb__catalog_state_reset(&state);
    if (began)
        pnb_store_end(store);
    return status;
}

/* The job: rows of all shards that have no index yet are one to whoever watches. */
typedef struct building {
    pnb_store *store;
    const pnb_ctx *ctx;
    pnb_search_opts opts;
    pnb_watch to;
    size_t n_before, n; /* rows */
    pnb_store_built built;
    bool looks; /* at what is there already */
} building;

static bool step(void *user, size_t done, size_t total)
{
    const building *b = user;
    (void)total;
    return b->to.step == NULL || b->to.step(b->to.user, b->n_before + done, b->n);
}

static void count_built(building *b, const pnb_index *index, bool is_new, size_t n_rows)
{
    pnb_index_about about;
    pnb_index_describe(index, &about);
    b->built.least_recall = PNB_MIN(b->built.least_recall, about.recall);
    b->built.n_built += is_new;
    b->built.bytes += is_new ? about.bytes : 0;
    b->n_before += is_new ? n_rows : 0;
}

/* Opening an index that is there finds whether it is whole, and what it is worth. */
static pnb_status build_shard(building *b, const pnb__shard *shard, pnb_error *err)
{
    pnb_index *index = NULL;
    pnb_view view = {0};
    char *path = NULL;
    pnb_status status;
    PNB_TRY(pnb__shard_index_path(shard, b->opts.kind, &path, err));
    bool is_new = !pnb__path_is_file(path);
    if (!is_new && !b->looks)
        goto done;
    PNB_TRY(pnb__set_view(&view, shard->set, b->opts.measure, err));
    if (is_new) {
        PNB_TRY(pnb_index_create(&index, b->ctx, &view.rows, &b->opts, err));
        PNB_TRY(save(b->store, shard, b->ctx, index, path, err));
    } else
        PNB_TRY(pnb_index_open(&index, b->ctx, &view.rows, &b->opts, path, err));
    count_built(b, index, is_new, shard->set->n);
done:
    pnb_index_free(index);
    pnb_view_reset(&view);
    pnb__free(path);
    return status;
}

/* The measure that searches of these rows by queries of their own kind settle on. */
static pnb_status settle(const pnb__snapshot *now, pnb_search_opts *opts, pnb_error *err)
{
    pnb_embeddings one = *now->shards[0]->set;
    pnb_view view = {0};
    pnb_measure measure = opts->measure;
    pnb_status status;
    one.n = 1;
    PNB_TRY(pnb_view_init(&view, &one, err));
    PNB_TRY(pnb__measure_of_sets(&measure, &one, &one, err));
    status = pnb__measure_settle(&opts->measure, measure, &view.rows, &view.rows, err);
done:
    pnb_view_reset(&view);
    return status;
}

static pnb_status count_unbuilt(const pnb__snapshot *now, pnb_index_kind kind, size_t *n_rows,
                                pnb_error *err)
{
    *n_rows = 0;
    for (size_t i = 0; i < now->n_shards && pnb__shard_has_index_file(kind); i++) {
        char *path = NULL;
        pnb_status status = pnb__shard_index_path(now->shards[i], kind, &path, err);
        if (status != PNB_OK)
            return status;
        *n_rows += pnb__path_is_file(path) ? 0 : now->shards[i]->set->n;
        pnb__free(path);
    }
    return PNB_OK;
}

pnb_status pnb_store_build(pnb_store *store, const pnb_ctx *ctx, const pnb_search_opts *opts,
                           pnb_store_built *out, pnb_error *err)
{
    building b = {.store = store,
                  .ctx = ctx,
                  .opts = *opts,
                  .to = opts->watch,
                  .built = {.least_recall = 1},
                  .looks = out != NULL};
    pnb__snapshot *now = NULL;
    pnb_status status;
    if (!pnb__shard_has_index_file(opts->kind))
        return pnb__fail(err, PNB_ARG, "only hnsw and ivf are built beforehand");
    PNB_TRY(pnb__snapshot_take(store, &now, err));
    PNB_TRY(count_unbuilt(now, opts->kind, &b.n, err));
    b.built.n_shards = now->n_shards;
    b.opts.watch = (pnb_watch){step, &b};
    if (now->n_shards > 0)
        PNB_TRY(settle(now, &b.opts, err));
    for (size_t i = 0; i < now->n_shards; i++)
        PNB_TRY(build_shard(&b, now->shards[i], err));
    if (out != NULL)
        *out = b.built;
done:
    pnb__snapshot_drop(store, now);
    return status;
}

pnb_status pnb_store_count_unbuilt(pnb_store *store, pnb_index_kind kind, size_t *n_rows,
                                   pnb_error *err)
{
    pnb__snapshot *now = NULL;
    pnb_status status = pnb__snapshot_take(store, &now, err);
    if (status == PNB_OK)
        status = count_unbuilt(now, kind, n_rows, err);
    pnb__snapshot_drop(store, now);
    return status;
}
