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

/* Rows of all shards that have no index yet, as one job to whoever watches. */
typedef struct watched {
    pnb_watch to;
    size_t n_before, n;
} watched;

static bool step(void *user, size_t done, size_t total)
{
    const watched *w = user;
    (void)total;
    return w->to.step == NULL || w->to.step(w->to.user, w->n_before + done, w->n);
}

static pnb_status build_shard(pnb_store *store, const pnb__shard *shard, const pnb_ctx *ctx,
                              const pnb_search_opts *opts, pnb_store_built *out, pnb_error *err)
{
    pnb_index_about about;
    pnb_index *index = NULL;
    pnb_view view = {0};
    char *path = NULL;
    pnb_status status;
    PNB_TRY(pnb__shard_index_path(shard, opts->kind, &path, err));
    if (pnb__path_is_file(path))
        goto done;
    PNB_TRY(pnb__set_view(&view, shard->set, opts->measure, err));
    PNB_TRY(pnb_index_create(&index, ctx, &view.rows, opts, err));
    PNB_TRY(save(store, shard, ctx, index, path, err));
    pnb_index_describe(index, &about);
    out->n_built++;
    out->bytes += about.bytes;
    out->least_recall = PNB_MIN(out->least_recall, about.recall);
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
    pnb_store_built built = {.least_recall = 1};
    pnb_search_opts o = *opts;
    watched w = {.to = opts->watch};
    pnb__snapshot *now = NULL;
    pnb_status status;
    if (!pnb__shard_has_index_file(o.kind))
        return pnb__fail(err, PNB_ARG, "only hnsw and ivf are built beforehand");
    PNB_TRY(pnb__snapshot_take(store, &now, err));
    PNB_TRY(count_unbuilt(now, o.kind, &w.n, err));
    built.n_shards = now->n_shards;
    o.watch = (pnb_watch){step, &w};
    if (now->n_shards > 0)
        PNB_TRY(settle(now, &o, err));
    for (size_t i = 0; i < now->n_shards; i++) {
        size_t n_built = built.n_built;
        PNB_TRY(build_shard(store, now->shards[i], ctx, &o, &built, err));
        w.n_before += built.n_built > n_built ? now->shards[i]->set->n : 0;
    }
    if (out != NULL)
        *out = built;
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
