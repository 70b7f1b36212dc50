/* Collections: making, opening, what they are.
 *
 * A folder with a catalog (catalog.h) and shards (store_shards.c). Reads go by a snapshot
 * (store_snapshot.c), writing is in store_write.c, searching in store_search.c. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_internal.h"

#define SHARDS "shards"

pnb_status pnb__store_blame(const pnb_store *store, pnb_status status, pnb_error *err)
{
    if (status != PNB_OK)
        pnb__error_prefix(err, "collection %s", store->path);
    return status;
}

/* ---- making ---- */

static bool is_empty_dir(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return false;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n == 0;
}

static pnb_status open_place(pnb_store **out, pnb__place *place, pnb_error *err);

/* `place` goes to the store that is opened for it. */
static pnb_status put_model(pnb__place *place, const pnb_store_model *model, pnb_error *err)
{
    pnb_store *store = NULL;
    char *text = NULL;
    pnb_status status;
    PNB_TRY(pnb__store_model_text(model, &text, err));
    PNB_TRY(open_place(&store, place, err));
    PNB_TRY(pnb_store_begin(store, 0, err));
    PNB_TRY(store->calls->begin(store->writer, err));
    PNB_TRY(store->calls->put_fact(store->writer, "model", text, err));
    status = store->calls->commit(store->writer, err);
done:
    pnb_store_close(store);
    pnb__free(text);
    return status;
}

/* A database that cannot be joined because another one is there is nobody's fault but the name's.
 */
static pnb_status join(const pnb__place *place, pnb_error *err)
{
    void *connection = NULL;
    pnb_status status = place->calls->open(&connection, place, err);
    if (status == PNB_OK)
        place->calls->close(connection);
    return status;
}

pnb_status pnb_store_create(const char *path, const pnb_store_model *model, pnb_error *err)
{
    return pnb_store_create_at(path, NULL, model, err);
}

bool pnb_store_is_at(const char *path)
{
    return pnb__path_has_file(path, PNB__PLACE_FILE) || pnb__path_has_file(path, "collection.db");
}

pnb_status pnb_store_create_at(const char *path, const pnb_store_place *said,
                               const pnb_store_model *model, pnb_error *err)
{
    pnb__place place = {0};
    char *shards = NULL;
    struct stat info;
    bool joins = said != NULL && said->join;
    pnb_status status;
    PNB_TRY(pnb__place_init(&place, path, said, err));
    if (joins && place.calls->get_set == NULL)
        PNB_TRY(pnb__fail(err, PNB_ARG,
                          "%s has one folder a collection: its shards are nowhere "
                          "else",
                          place.calls->name));
    if (joins && model != NULL)
        PNB_TRY(pnb__fail(err, PNB_ARG, "a collection that is there already has its model"));
    if (lstat(path, &info) == 0 && !is_empty_dir(path))
        PNB_TRY(pnb__fail(err, PNB_EXISTS,
                          "%s is there already; a collection is made in a folder "
                          "of its own",
                          path));
    shards = pnb__path_join(path, SHARDS);
    if (shards == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(path) + sizeof SHARDS));
    PNB_TRY(pnb__make_dirs(shards, err));
    status = joins ? join(&place, err) : place.calls->create(&place, err);
    if (status != PNB_OK) { /* what was made for nothing goes: folders that are empty */
        (void)rmdir(shards);
        (void)rmdir(path);
        goto done;
    }
    PNB_TRY(pnb__place_write(&place, err));
    if (model != NULL && (model->dir != NULL || model->info != NULL))
        status = put_model(&place, model, err);
done:
    pnb__free(shards);
    pnb__place_reset(&place);
    return status;
}

/* ---- opening ---- */

static pnb_status open_parts(pnb_store *store, pnb_error *err)
{
    const char *path = store->place.dir;
    store->calls = store->place.calls;
    store->path = pnb__strdup(path);
    store->shards_path = pnb__path_join(path, SHARDS);
    if (store->path == NULL || store->shards_path == NULL)
        return pnb__fail_nomem(err, 2 * strlen(path));
    return store->calls->open(&store->reader, &store->place, err);
}

static pnb_status open_place(pnb_store **out, pnb__place *place, pnb_error *err)
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
        status = open_place(out, &place, err);
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
