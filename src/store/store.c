/* Collections: opening, what they are.
 *
 * A folder with a catalog (catalog.h) and shards (store_shards.c), which store_create.c makes.
 * Reads go by a snapshot (store_snapshot.c), writing is in store_write.c, searching in
 * store_search.c. */
#include <string.h>

#include "store/store_internal.h"

pnb_status pnb__store_blame(const pnb_store *store, pnb_status status, pnb_error *err)
{
    if (status != PNB_OK)
        pnb__error_prefix(err, "collection %s", store->path);
    return status;
}

/* ---- opening ---- */

static pnb_status open_parts(pnb_store *store, pnb_error *err)
{
    const char *path = store->place.dir;
    store->calls = store->place.calls;
    store->path = pnb__strdup(path);
    store->shards_path = pnb__path_join(path, PNB__SHARDS);
    if (store->path == NULL || store->shards_path == NULL)
        return pnb__fail_nomem(err, 2 * strlen(path));
    return store->calls->open(&store->reader, &store->place, err);
}

pnb_status pnb__store_open_place(pnb_store **out, pnb__place *place, pnb_error *err)
{
    pnb_store *store = NULL;
    *out = NULL;
    if (PNB_ALLOC_ZERO(store, 1, err) != PNB_OK)
        return PNB_NOMEM;
    store->lock = -1;
    store->place = *place;
    *place = (pnb__place){0};
    pthread_mutex_init(&store->mutex, NULL);
    pnb_status status = open_parts(store, err);
    if (status == PNB_OK)
        *out = store;
    else
        pnb_store_close(store);
    return status;
}

pnb_status pnb__store_open_bare(pnb_store **out, const char *path, pnb_error *err)
{
    pnb__place place = {0};
    *out = NULL;
    pnb_status status = pnb__place_read(&place, path, err);
    if (status == PNB_OK)
        status = pnb__store_open_place(out, &place, err);
    pnb__place_reset(&place);
    return status;
}

pnb_status pnb_store_open(pnb_store **out, const char *path, pnb_error *err)
{
    pnb_store *store = NULL;
    pnb__snapshot *now = NULL;
    *out = NULL;
    pnb_status status = pnb__store_open_bare(&store, path, err);
    if (status != PNB_OK)
        return status;
    status = pnb__snapshot_take(store, &now, err);
    pnb__snapshot_drop(store, now);
    if (status == PNB_OK)
        *out = store;
    else
        pnb_store_close(store);
    return status;
}

void pnb_store_close(pnb_store *store)
{
    if (store == NULL)
        return;
    pnb_store_end(store);
    pnb__snapshot_drop(store, store->now);
    if (store->reader != NULL)
        store->calls->close(store->reader);
    pthread_mutex_destroy(&store->mutex);
    pnb__place_reset(&store->place);
    pnb__free(store->path);
    pnb__free(store->shards_path);
    pnb__free(store);
}

/* ---- what it is ---- */

static pnb_status describe_origin(pnb_store *store, pnb_store_about *out, pnb_error *err)
{
    pnb_embeddings *origin = NULL;
    char *dir = NULL;
    pthread_mutex_lock(&store->mutex);
    pnb_status status = pnb__store_get_model(store, store->reader, &dir, &out->info, err);
    if (status == PNB_OK)
        status = pnb__store_origin(store, store->reader, &origin, err);
    pthread_mutex_unlock(&store->mutex);
    if (dir != NULL)
        snprintf(out->model_dir, sizeof out->model_dir, "%s", dir);
    if (origin != NULL) {
        out->is_settled = true;
        out->family = origin->family;
        out->dim = origin->dim;
        out->info = origin->info;
    }
    pnb_embeddings_free(origin);
    pnb__free(dir);
    return status;
}

pnb_status pnb_store_describe(pnb_store *store, pnb_store_about *out, pnb_error *err)
{
    pnb__snapshot *now = NULL;
    pnb_store_about about = {0};
    pnb_status status;
    PNB_TRY(pnb__snapshot_take(store, &now, err));
    about.n_shards = now->n_shards;
    about.n_rows = now->n_rows - now->n_removed;
    about.n_removed = now->n_removed;
    PNB_TRY(describe_origin(store, &about, err));
    *out = about;
done:
    pnb__snapshot_drop(store, now);
    return status;
}
