/* Writing to a collection: who may, adding a batch, removing rows.
 *
 * An addition is one shard and one transaction: the shard is on the disk under its name before the
 * catalog names it, so that a writer killed at any moment leaves all of a batch or nothing, and at
 * most a file that the next writer removes. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "sets/embeddings.h"
#include "sets/set_rows.h"
#include "sets/settle.h"
#include "store/store_internal.h"

/* ---- the one writer ---- */

void pnb__store_pause(void)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    nanosleep(&pause, NULL);
}

static pnb_status take_lock(pnb_store *store, double wait_s, pnb_error *err)
{
    double until = pnb__now_s() + wait_s;
    char *path = pnb__path_join(store->path, PNB__WRITER_LOCK);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(store->path));
    pnb_error inner = PNB_ERROR_INIT;
    pnb_status status = pnb__lock_open(&store->lock, path, &inner);
    while (status == PNB_BUSY && pnb__now_s() < until) {
        pnb__store_pause();
        pnb_error_reset(&inner);
        status = pnb__lock_open(&store->lock, path, &inner);
    }
    if (status == PNB_BUSY)
        pnb__fail(err, status,
                  "collection %s: another program is writing to it, and one writes at a time; try "
                  "again when it has ended",
                  store->path);
    else if (status != PNB_OK)
        pnb__fail(err, status, "%s", inner.text);
    pnb__free(path);
    return status;
}

/* The lock in the folder keeps programs of this machine apart; where others can write to the same
 * database it has one of its own. */
static pnb_status claim(pnb_store *store, double wait_s, pnb_error *err)
{
    double until = pnb__now_s() + wait_s;
    pnb_error inner = PNB_ERROR_INIT;
    if (store->calls->claim == NULL)
        return PNB_OK;
    pnb_status status = store->calls->claim(store->writer, &inner);
    while (status == PNB_BUSY && pnb__now_s() < until) {
        pnb__store_pause();
        pnb_error_reset(&inner);
        status = store->calls->claim(store->writer, &inner);
    }
    return status == PNB_OK ? status : pnb__fail(err, status, "%s", inner.text);
}

static pnb_status remove_leftovers(pnb_store *store, pnb_error *err)
{
    pnb__catalog_state state = {0};
    size_t n;
    pnb_status status = store->calls->state(store->writer, &state, err);
    if (status == PNB_OK)
        status = pnb__shards_leftovers(store, &state, true, &n, err);
    pnb__catalog_state_reset(&state);
    return status;
}

pnb_status pnb_store_begin(pnb_store *store, double wait_s, pnb_error *err)
{
    pnb_status status;
    if (store->writer != NULL)
        return pnb__fail(err, PNB_BUSY, "collection %s: this store is its writer already",
                         store->path);
    PNB_TRY(take_lock(store, wait_s, err));
    PNB_TRY(store->calls->open(&store->writer, &store->place, err));
    PNB_TRY(claim(store, wait_s, err));
    status = remove_leftovers(store, err);
done:
    if (status != PNB_OK)
        pnb_store_end(store);
    return status;
}

void pnb_store_end(pnb_store *store)
{
    if (store->writer != NULL)
        store->calls->close(store->writer);
    pnb__lock_close(store->lock);
    store->writer = NULL;
    store->lock = -1;
}

pnb_status pnb__store_need_writer(pnb_store *store, bool *began, pnb_error *err)
{
    *began = store->writer == NULL;
    return *began ? pnb_store_begin(store, 0, err) : PNB_OK;
}

/* ---- what is new in a batch ---- */

/* What stands for a row whose input is not at hand; `hash` is a fresh one. */
static void hash_row(pnb__sha256 hash, const pnb_embeddings *set, size_t row, char hex[65])
{
    if (set->ids != NULL && set->ids[row] != NULL)
        pnb__sha256_update(&hash, set->ids[row], strlen(set->ids[row]) + 1);
    for (int i = 0; i < PNB__N_EMBEDDING_ARRAYS; i++) {
        if (!pnb__embedding_has_array(set, i))
            continue;
        size_t width = pnb__embedding_count(set, i) / set->n;
        pnb__sha256_update(&hash, pnb__embedding_values(set, i) + row * width,
                           width * sizeof(float));
    }
    pnb__sha256_hex(&hash, hex);
}

/* Rows of a batch that are not there yet. */
typedef struct news {
    const pnb_store_batch *batch;
    char (*sha256)[65]; /* [n of the batch] */
    size_t *row;        /* [n] places in the batch */
    size_t n;
    double *uncertainty; /* [n of the batch] */
} news;

static bool is_hash(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static pnb_status find_hashes(news *found, pnb_error *err)
{
    const pnb_store_batch *batch = found->batch;
    pnb__sha256 fresh;
    pnb_status status = PNB_ALLOC(found->sha256, batch->set->n, err);
    pnb__sha256_init(&fresh);
    for (size_t i = 0; status == PNB_OK && i < batch->set->n; i++) {
        if (batch->sha256 == NULL)
            hash_row(fresh, batch->set, i, found->sha256[i]);
        else if (!is_hash(batch->sha256[i]))
            status =
                pnb__fail(err, PNB_ARG, "row %zu: \"%.64s\" is no SHA-256", i, batch->sha256[i]);
        else
            memcpy(found->sha256[i], batch->sha256[i], 65);
    }
    return status;
}

/* True where an earlier row of the batch has the hash of row i, which is entered otherwise. */
static pnb_status is_twice(news *found, pnb__key_map *seen, size_t i, bool *twice, pnb_error *err)
{
    uint64_t hash = pnb__hash_bytes(found->sha256[i], 64, 0);
    size_t step = 0, place;
    while ((place = pnb__key_map_next(seen, hash, &step)) != PNB__NO_KEY &&
           memcmp(found->sha256[place], found->sha256[i], 64) != 0) {
    }
    *twice = place != PNB__NO_KEY;
    return *twice ? PNB_OK : pnb__key_map_add(seen, hash, i, err);
}

static pnb_status find_news(pnb_store *store, news *found, pnb_error *err)
{
    size_t n = found->batch->set->n;
    pnb__key_map seen = {0};
    bool is_there, *known = NULL;
    pnb_status status;
    PNB_TRY(find_hashes(found, err));
    PNB_TRY(PNB_ALLOC(found->row, n, err));
    PNB_TRY(PNB_ALLOC_ZERO(known, n, err));
    PNB_TRY(store->calls->knows(store->writer, (const char(*)[65])found->sha256, n, known, err));
    PNB_TRY(pnb__key_map_reserve(&seen, n, err));
    for (size_t i = 0; i < n; i++) {
        PNB_TRY(is_twice(found, &seen, i, &is_there, err));
        if (!is_there && !known[i])
            found->row[found->n++] = i;
    }
    status = pnb__row_uncertainty(found->batch->set, pnb__own_uncertainty(found->batch->set),
                                  &found->uncertainty, err);
done:
    pnb__key_map_reset(&seen);
    pnb__free(known);
    return status;
}

/* ---- adding ---- */

static pnb_status join_tags(const pnb_store_batch *batch, char **out, pnb_error *err)
{
    pnb__buf text = {0};
    *out = NULL;
    for (size_t i = 0; i < batch->n_tags; i++) {
        const char *tag = batch->tags[i];
        bool is_tag = tag[0] != '\0' && strlen(tag) <= 200 && pnb__utf8_valid(tag, strlen(tag));
        for (const char *p = tag; *p != '\0'; p++)
            is_tag = is_tag && (unsigned char)*p >= ' ';
        if (!is_tag) {
            pnb__buf_reset(&text);
            return pnb__fail(err, PNB_ARG,
                             "\"%.60s\" is no tag: wanted are 1 to 200 bytes of UTF-8 without "
                             "control characters",
                             tag);
        }
        pnb__buf_printf(&text, "%s%s", i > 0 ? "\n" : "", tag);
    }
    if (text.failed)
        return pnb__fail_nomem(err, text.size);
    *out = text.data;
    return PNB_OK;
}

static const char *name_at(char *const *names, size_t row)
{
    return names != NULL ? names[row] : NULL;
}

static pnb_status put_thumbnail(pnb_store *store, const pnb_store_batch *batch, size_t at,
                                int64_t number, pnb_error *err)
{
    bool has = batch->thumbnails != NULL && batch->thumbnails[at].bytes != NULL;
    if (!has || store->calls->put_thumbnail == NULL)
        return PNB_OK;
    return store->calls->put_thumbnail(store->writer, number, &batch->thumbnails[at], err);
}

/* What the new rows are called, and which of them a later one of the batch takes the place of. */
typedef struct new_names {
    const char **id;   /* [n] */
    char (*own)[17];   /* [n] of those that bring none: the beginning of their hash */
    bool *is_shadowed; /* [n] */
} new_names;

static void reset_names(new_names *names)
{
    pnb__free(names->id);
    pnb__free(names->own);
    pnb__free(names->is_shadowed);
}

static pnb_status mark_shadowed(new_names *names, size_t n, pnb_error *err)
{
    pnb__key_map seen = {0};
    pnb_status status = pnb__key_map_reserve(&seen, n, err);
    for (size_t i = n; i-- > 0 && status == PNB_OK;) {
        uint64_t hash = pnb__hash_bytes(names->id[i], strlen(names->id[i]), 0);
        size_t step = 0, place;
        while ((place = pnb__key_map_next(&seen, hash, &step)) != PNB__NO_KEY &&
               strcmp(names->id[place], names->id[i]) != 0) {
        }
        names->is_shadowed[i] = place != PNB__NO_KEY;
        if (place == PNB__NO_KEY)
            status = pnb__key_map_add(&seen, hash, i, err);
    }
    pnb__key_map_reset(&seen);
    return status;
}

static pnb_status find_names(new_names *names, const news *found, pnb_error *err)
{
    char *const *ids = found->batch->set->ids;
    pnb_status status;
    PNB_TRY(PNB_ALLOC(names->id, found->n, err));
    PNB_TRY(PNB_ALLOC(names->own, found->n, err));
    PNB_TRY(PNB_ALLOC(names->is_shadowed, found->n, err));
    for (size_t i = 0; i < found->n; i++) {
        const char *id = name_at(ids, found->row[i]);
        snprintf(names->own[i], sizeof names->own[i], "%.16s", found->sha256[found->row[i]]);
        names->id[i] = id != NULL ? id : names->own[i];
    }
    status = mark_shadowed(names, found->n, err);
done:
    return status;
}

/* A row of a batch as the catalog has it: what a picture is called may stand among its further
 * fields only. */
static pnb_status put_row(pnb_store *store, const news *found, size_t at, pnb_store_row *row,
                          pnb_error *err)
{
    const pnb_store_batch *batch = found->batch;
    const pnb_embeddings *set = batch->set;
    char *text = NULL;
    pnb_status status;
    row->added = (int64_t)time(NULL);
    row->time = batch->time != NULL ? batch->time[at] : row->added;
    row->path = name_at(set->paths, at);
    row->text = name_at(set->texts, at);
    row->extra = name_at(set->extras, at);
    row->uncertainty = found->uncertainty[at];
    memcpy(row->sha256, found->sha256[at], sizeof row->sha256);
    if (row->text == NULL) {
        PNB_TRY(pnb__extra_text(&text, row->extra, "caption", err));
        row->text = text;
    }
    PNB_TRY(store->calls->add_row(store->writer, row, err));
    status = put_thumbnail(store, batch, at, row->number, err);
done:
    pnb__free(text);
    return status;
}

/* The rows of a batch; those of an id that is there take its place. */
static pnb_status put_rows(pnb_store *store, const news *found, const char *tags, int64_t first,
                           size_t *n_replaced, pnb_error *err)
{
    new_names names = {0};
    pnb_status status;
    PNB_TRY(find_names(&names, found, err));
    PNB_TRY(store->calls->remove_ids(store->writer, names.id, found->n, n_replaced, err));
    for (size_t i = 0; i < found->n; i++) {
        pnb_store_row row = {.number = first + (int64_t)i, .id = names.id[i], .tags = tags};
        *n_replaced += names.is_shadowed[i];
        PNB_TRY(names.is_shadowed[i] ? store->calls->add_removed(store->writer, row.number, err)
                                     : put_row(store, found, found->row[i], &row, err));
    }
done:
    reset_names(&names);
    return status;
}

/* A shard that is written: its rows, and the copy of them where not all of a batch are new. */
typedef struct written {
    pnb__shard_entry entry;
    const pnb_embeddings *set;
    pnb_embeddings *part;
} written;

static pnb_status commit_batch(pnb_store *store, const news *found, const written *shard,
                               const char *tags, pnb_store_added *added, pnb_error *err)
{
    int64_t first = shard->entry.first;
    bool is_first;
    pnb_status status;
    PNB_TRY(pnb__store_check_origin(store, found->batch->set, &is_first, err));
    PNB_TRY(store->calls->begin(store->writer, err));
    if (is_first)
        PNB_TRY(pnb__store_put_origin(store, found->batch->set, err));
    PNB_TRY(store->calls->add_shard(store->writer, &shard->entry, err));
    if (store->calls->put_set != NULL)
        PNB_TRY(store->calls->put_set(store->writer, first, shard->set, err));
    PNB_TRY(put_rows(store, found, tags, first, &added->n_replaced, err));
    status = store->calls->commit(store->writer, err);
done:
    store->calls->rollback(store->writer);
    return status;
}

static pnb_status write_rows(pnb_store *store, const news *found, written *shard, pnb_error *err)
{
    const pnb_embeddings *set = found->batch->set;
    pnb__catalog_state state = {0};
    pnb_status status;
    PNB_TRY(store->calls->state(store->writer, &state, err));
    if (found->n < set->n)
        PNB_TRY(pnb_embeddings_select(&shard->part, set, found->row, found->n, err));
    shard->set = shard->part != NULL ? shard->part : set;
    shard->entry = (pnb__shard_entry){.first = state.next, .n = found->n};
    status = pnb__shard_write(store, shard->set, shard->entry.first, &shard->entry.file, err);
done:
    pnb__catalog_state_reset(&state);
    return status;
}

static pnb_status add_news(pnb_store *store, const news *found, const char *tags,
                           pnb_store_added *added, pnb_error *err)
{
    written shard = {0};
    size_t n;
    pnb__catalog_state state = {0};
    pnb_status status = write_rows(store, found, &shard, err);
    if (status == PNB_OK)
        status = commit_batch(store, found, &shard, tags, added, err);
    /* a file that no transaction names is in nobody's way, and the next writer's to remove */
    if (status != PNB_OK && store->calls->state(store->writer, &state, NULL) == PNB_OK)
        (void)pnb__shards_leftovers(store, &state, true, &n, NULL);
    pnb__catalog_state_reset(&state);
    pnb__free(shard.entry.file);
    pnb_embeddings_free(shard.part);
    added->n_added = found->n;
    if (status == PNB_OK)
        (void)pnb__shards_join(store, NULL); /* the rows are there: fewer files are only faster */
    return status;
}

pnb_status pnb_store_add(pnb_store *store, const pnb_store_batch *batch, pnb_store_added *out,
                         pnb_error *err)
{
    news found = {.batch = batch};
    pnb_store_added added = {0};
    char *tags = NULL;
    bool began, is_first;
    pnb_status status = pnb__store_need_writer(store, &began, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(join_tags(batch, &tags, err));
    PNB_TRY(pnb__store_check_origin(store, batch->set, &is_first, err));
    PNB_TRY(find_news(store, &found, err));
    if (found.n > 0)
        PNB_TRY(add_news(store, &found, tags, &added, err));
    added.n_known = batch->set->n - found.n;
    if (out != NULL)
        *out = added;
done:
    if (began)
        pnb_store_end(store);
    pnb__free(tags);
    pnb__free(found.sha256);
    pnb__free(found.row);
    pnb__free(found.uncertainty);
    return status;
}

pnb_status pnb_store_has(pnb_store *store, const char *sha256, bool *out, pnb_error *err)
{
    pthread_mutex_lock(&store->mutex);
    char hash[1][65] = {{0}};
    snprintf(hash[0], sizeof hash[0], "%s", sha256);
    *out = false;
    pnb_status status = store->calls->knows(store->reader, (const char(*)[65])hash, 1, out, err);
    pthread_mutex_unlock(&store->mutex);
    return status;
}

/* ---- removing ---- */

/* Shards all of whose rows are gone. */
static pnb_status drop_empty_shards(pnb_store *store, pnb_error *err)
{
    pnb__catalog_state state = {0};
    pnb_status status = store->calls->state(store->writer, &state, err);
    for (size_t i = 0, at = 0; status == PNB_OK && i < state.n_shards; i++) {
        int64_t first = state.shards[i].first, end = first + (int64_t)state.shards[i].n;
        size_t from;
        while (at < state.n_removed && state.removed[at] < first)
            at++;
        for (from = at; at < state.n_removed && state.removed[at] < end;)
            at++;
        if (at - from < state.shards[i].n)
            continue;
        status = store->calls->drop_shard(store->writer, first, err);
        if (status == PNB_OK)
            status = store->calls->forget(store->writer, first, end, err);
    }
    pnb__catalog_state_reset(&state);
    return status;
}

pnb_status pnb_store_remove(pnb_store *store, const char *const *ids, size_t n, size_t *n_removed,
                            pnb_error *err)
{
    size_t n_gone = 0;
    bool began;
    pnb_status status = pnb__store_need_writer(store, &began, err);
    if (status != PNB_OK)
        return status;
    PNB_TRY(store->calls->begin(store->writer, err));
    PNB_TRY(store->calls->remove_ids(store->writer, ids, n, &n_gone, err));
    PNB_TRY(drop_empty_shards(store, err));
    PNB_TRY(store->calls->commit(store->writer, err));
    (void)remove_leftovers(store, NULL);
    if (n_removed != NULL)
        *n_removed = n_gone;
done:
    store->calls->rollback(store->writer);
    if (began)
        pnb_store_end(store);
    return status;
}
