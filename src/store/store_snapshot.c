/* What a read of a collection sees: its shards, mapped, and which of their rows are gone.
 *
 * A snapshot is made when the catalog's generation has moved on, out of the shards that are open
 * already and those that are new; whoever still holds the older one goes on with it. Nothing is
 * read of a row, only of those that were removed. A writer may join shards and take the parts away
 * between the list and the opening: then the list is read again. */
#include "store/store_internal.h"

#include <string.h>

#include "base/grow.h"

enum { MOST_TRIES = 8 };

/* ---- shards ---- */

void pnb__prepared_reset(pnb__prepared *prepared)
{
    pnb_index_free(prepared->index);
    pnb_view_reset(&prepared->view);
    prepared->index = NULL;
}

static void free_shard(pnb__shard *shard)
{
    if (shard == NULL)
        return;
    for (size_t i = 0; i < PNB_N_INDEX_KINDS; i++)
        pnb__prepared_reset(&shard->prepared[i]);
    pnb_embeddings_free(shard->set);
    pnb__free(shard->path);
    pnb__free(shard);
}

pnb_status pnb__shard_open_set(const char *path, bool check_numbers, pnb_embeddings **out,
                               pnb_error *err)
{
    const pnb_embeddings_load_opts opts = {
        .allow_non_finite = !check_numbers, .allow_missing_ids = true, .map = true};
    return pnb_embeddings_load_with(out, path, &opts, err);
}

static pnb_status open_shard(pnb_store *store, const pnb__shard_entry *entry, pnb__shard **out,
                             pnb_error *err)
{
    pnb__shard *shard = NULL;
    pnb_status status;
    PNB_TRY(pnb__shard_fetch(store, store->reader, entry, err));
    PNB_TRY(PNB_ALLOC_ZERO(shard, 1, err));
    shard->first = entry->first;
    shard->path = pnb__path_join(store->shards_path, entry->file);
    if (shard->path == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(store->shards_path)));
    shard->file = shard->path + strlen(shard->path) - strlen(entry->file);
    PNB_TRY(pnb__shard_open_set(shard->path, false, &shard->set, err));
    if (shard->set->n != entry->n)
        status = pnb__fail(err, PNB_FORMAT, "%s has %zu rows, %zu are known", shard->path,
                           shard->set->n, entry->n);
    if (status == PNB_OK) {
        *out = shard;
        shard = NULL;
    }
done:
    free_shard(shard);
    return status;
}

/* ---- snapshots ---- */

static void free_snapshot(pnb__snapshot *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n_shards; i++) {
        if (--s->shards[i]->n_users == 0)
            free_shard(s->shards[i]);
        if (s->live != NULL)
            pnb__free(s->live[i]);
    }
    pnb__free(s->shards);
    pnb__free(s->live);
    pnb__free(s);
}

/* The open shard of an entry, where the snapshot before has it. */
static pnb__shard *find_open(const pnb__snapshot *before, const pnb__shard_entry *entry)
{
    size_t place = 0;
    pnb__shard *shard = before != NULL ? pnb__snapshot_find(before, entry->first, &place) : NULL;
    bool is_it = shard != NULL && shard->first == entry->first && shard->set->n == entry->n &&
                 strcmp(shard->file, entry->file) == 0;
    return is_it ? shard : NULL;
}

static pnb_status add_shard(pnb_store *store, pnb__snapshot *s, const pnb__shard_entry *entry,
                            pnb_error *err)
{
    pnb__shard *shard = find_open(store->now, entry);
    pnb_status status = shard != NULL ? PNB_OK : open_shard(store, entry, &shard, err);
    if (status != PNB_OK)
        return status;
    shard->n_users++;
    status = PNB_PUSH(s->shards, s->n_shards, err, shard);
    if (status != PNB_OK && --shard->n_users == 0)
        free_shard(shard);
    else if (status == PNB_OK)
        s->n_rows += entry->n;
    return status;
}

static pnb_status mark_removed(pnb__snapshot *s, const pnb__catalog_state *state, pnb_error *err)
{
    pnb_status status = PNB_ALLOC_ZERO(s->live, PNB_MAX(s->n_shards, (size_t)1), err);
    for (size_t i = 0, at = 0; status == PNB_OK && i < state->n_removed; i++) {
        int64_t number = state->removed[i];
        while (at < s->n_shards && number >= s->shards[at]->first + (int64_t)s->shards[at]->set->n)
            at++;
        if (at == s->n_shards || number < s->shards[at]->first)
            continue;
        if (s->live[at] == NULL) {
            status = PNB_ALLOC(s->live[at], s->shards[at]->set->n, err);
            if (status != PNB_OK)
                break;
            memset(s->live[at], 1, s->shards[at]->set->n);
        }
        s->live[at][number - s->shards[at]->first] = 0;
        s->n_removed++;
    }
    return status;
}

static pnb_status make(pnb_store *store, pnb__snapshot **out, pnb_error *err)
{
    pnb__catalog_state state = {0};
    pnb__snapshot *s = NULL;
    pnb_status status;
    PNB_TRY(store->calls->state(store->reader, &state, err));
    PNB_TRY(PNB_ALLOC_ZERO(s, 1, err));
    s->generation = state.generation;
    for (size_t i = 0; i < state.n_shards; i++)
        PNB_TRY(add_shard(store, s, &state.shards[i], err));
    PNB_TRY(mark_removed(s, &state, err));
    *out = s;
    s = NULL;
done:
    free_snapshot(s);
    pnb__catalog_state_reset(&state);
    return status;
}

/* Under the mutex. */
static pnb_status renew(pnb_store *store, pnb_error *err)
{
    pnb__snapshot *made = NULL;
    pnb_error inner = PNB_ERROR_INIT;
    pnb_status status = PNB_NOT_FOUND;
    for (int i = 0; i < MOST_TRIES && status == PNB_NOT_FOUND; i++) {
        pnb_error_reset(&inner);
        status = make(store, &made, &inner);
    }
    if (status == PNB_NOMEM)
        return pnb__fail(err, status, "%s", inner.text);
    if (status != PNB_OK)
        return pnb__fail(err, status,
                         "%s; `penumbra collection verify %s` finds what is damaged, with "
                         "--repair it takes it out",
                         inner.text, store->path);
    made->n_users = 1;
    pnb__snapshot *before = store->now;
    store->now = made;
    if (before != NULL && --before->n_users == 0)
        free_snapshot(before);
    return PNB_OK;
}

pnb_status pnb__snapshot_take(pnb_store *store, pnb__snapshot **out, pnb_error *err)
{
    int64_t generation = 0;
    pnb_status status;
    *out = NULL;
    pthread_mutex_lock(&store->mutex);
    PNB_TRY(store->calls->generation(store->reader, &generation, err));
    if (store->now == NULL || store->now->generation != generation)
        PNB_TRY(renew(store, err));
    store->now->n_users++;
    *out = store->now;
done:
    pthread_mutex_unlock(&store->mutex);
    return status;
}

void pnb__snapshot_drop(pnb_store *store, pnb__snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    pthread_mutex_lock(&store->mutex);
    if (--snapshot->n_users == 0)
        free_snapshot(snapshot);
    pthread_mutex_unlock(&store->mutex);
}

pnb__shard *pnb__snapshot_find(const pnb__snapshot *snapshot, int64_t number, size_t *place)
{
    size_t low = 0, high = snapshot->n_shards;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (snapshot->shards[middle]->first <= number)
            low = middle + 1;
        else
            high = middle;
    }
    pnb__shard *shard = low > 0 ? snapshot->shards[low - 1] : NULL;
    if (shard == NULL || number >= shard->first + (int64_t)shard->set->n)
        return NULL;
    *place = (size_t)(number - shard->first);
    return shard;
}
