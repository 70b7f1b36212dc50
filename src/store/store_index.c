/* Approximate indexes of a collection: a file a shard and kind, beside it.
 *
 * Shards never change, they are only joined or dropped; so an index is right as long as its shard
 * is there, whatever is added or removed: removed rows are left out while it is walked. Searches
 * open the files (store_search.c), the writer removes those whose shard is gone (store_shards.c).
 */
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

static pnb_status build_shard(const pnb__shard *shard, const pnb_ctx *ctx,
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
    PNB_TRY(pnb_index_save(index, ctx, path, err));
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

pnb_status pnb_store_build(pnb_store *store, const pnb_ctx *ctx, const pnb_search_opts *opts,
                           pnb_store_built *out, pnb_error *err)
{
    pnb_store_built built = {.least_recall = 1};
    pnb_search_opts o = *opts;
    pnb__snapshot *now = NULL;
    bool began;
    pnb_status status;
    if (!pnb__shard_has_index_file(o.kind))
        return pnb__fail(err, PNB_ARG, "only hnsw and ivf are built beforehand");
    status = pnb__store_need_writer(store, &began, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(pnb__snapshot_take(store, &now, err));
    built.n_shards = now->n_shards;
    if (now->n_shards > 0)
        PNB_TRY(settle(now, &o, err));
    for (size_t i = 0; i < now->n_shards; i++)
        PNB_TRY(build_shard(now->shards[i], ctx, &o, &built, err));
    if (out != NULL)
        *out = built;
done:
    pnb__snapshot_drop(store, now);
    if (began)
        pnb_store_end(store);
    return status;
}
