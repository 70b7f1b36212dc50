/* Files of shards: ordinary embedding sets without an ids file, for the catalog has the names.
 *
 * A shard is written whole (temporary file, fsync, rename) before the transaction that names it,
 * and taken away after the transaction that does not any more. So what an interrupted writer leaves
 * is a file that nothing names. Many small additions would make many small files: shards at the end
 * are joined while the last is at least half as large as the one before it, which writes a row
 * about log2(rows) times, up to MOST_JOINED_ROWS together.
 *
 * Where the catalog keeps embeddings too, files are copies: one that is not there is fetched. Other
 * machines give names as well, so there a name has a part that no two files share. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sets/embeddings.h"
#include "store/store_internal.h"

enum { MOST_JOINED_ROWS = 32768 };

static const char *unique_word(const pnb_store *store, char word[24])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t parts[] = {now.tv_sec, now.tv_nsec, getpid(), (int64_t)(uintptr_t)store};
    snprintf(word, 24, "-%016llx", (unsigned long long)pnb__hash_bytes(parts, sizeof parts, 0));
    return word;
}

pnb_status pnb__shard_write(const pnb_store *store, const pnb_embeddings *set, int64_t first,
                            char **file, pnb_error *err)
{
    pnb__out_file out = {0};
    char *path = NULL, word[24];
    const char *unique = store->calls->get_set != NULL ? unique_word(store, word) : "";
    char *name = pnb__format("%012lld-%zu%s.safetensors", (long long)first, set->n, unique);
    pnb_status status = name != NULL ? PNB_OK : pnb__fail_nomem(err, 64);
    PNB_TRY(status);
    path = pnb__path_join(store->shards_path, name);
    if (path == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(store->shards_path)));
    PNB_TRY(pnb__out_open(&out, path, err));
    PNB_TRY(pnb__embeddings_stream(set, &out, err));
    *file = name;
    name = NULL;
done:
    pnb__free(path);
    pnb__free(name);
    return status;
}

/* ---- copies ---- */

/* An empty set of the collection's kind. */
static pnb_status make_like(pnb_store *store, void *connection, size_t n, pnb_embeddings **out,
                            pnb_error *err)
{
    pnb_embeddings *origin = NULL, *set = NULL;
    pnb_status status;
    PNB_TRY(pnb__store_origin(store, connection, &origin, err));
    if (origin == NULL)
        PNB_TRY(pnb__fail(err, PNB_FORMAT, "collection %s has rows, and does not tell of what kind",
                          store->path));
    PNB_TRY(pnb_embeddings_create(&set, origin->family, n, origin->dim, err));
    if (origin->has_epistemic)
        PNB_TRY(pnb_embeddings_add_epistemic(set, err));
    set->info = origin->info;
    *out = set;
    set = NULL;
done:
    pnb_embeddings_free(set);
    pnb_embeddings_free(origin);
    return status;
}

pnb_status pnb__shard_fetch(pnb_store *store, void *connection, const pnb__shard_entry *entry,
                            pnb_error *err)
{
    pnb__out_file out = {0};
    pnb_embeddings *set = NULL;
    char *path = NULL;
    pnb_status status = PNB_OK;
    if (store->calls->get_set == NULL || pnb__path_has_file(store->shards_path, entry->file))
        return PNB_OK;
    PNB_TRY(make_like(store, connection, entry->n, &set, err));
    PNB_TRY(store->calls->get_set(connection, entry->first, set, err));
    path = pnb__path_join(store->shards_path, entry->file);
    if (path == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(entry->file)));
    PNB_TRY(pnb__out_open(&out, path, err));
    status = pnb__embeddings_stream(set, &out, err);
done:
    pnb__free(path);
    pnb_embeddings_free(set);
    return status;
}

/* ---- what nothing names ---- */

static bool is_named(const pnb__catalog_state *state, const char *name)
{
    /* NAME.safetensors, or an index of it: NAME.safetensors.hnsw */
    size_t n = (size_t)(strstr(name, ".safetensors") - name) + strlen(".safetensors");
    bool is_whole =
        name[n] == '\0' || strcmp(name + n, ".hnsw") == 0 || strcmp(name + n, ".ivf") == 0;
    for (size_t i = 0; is_whole && i < state->n_shards; i++)
        if (strncmp(state->shards[i].file, name, n) == 0 && state->shards[i].file[n] == '\0')
            return true;
    return false;
}

static pnb_status remove_file(const pnb_store *store, const char *name, pnb_error *err)
{
    char *path = pnb__path_join(store->shards_path, name);
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(name));
    pnb_status status = PNB_OK;
    if (pnb__disk_step_fails() || (unlink(path) != 0 && errno != ENOENT))
        status = pnb__fail_errno(err, "cannot remove", path);
    pnb__free(path);
    return status;
}

pnb_status pnb__shards_leftovers(const pnb_store *store, const pnb__catalog_state *state,
                                 bool remove, size_t *n, pnb_error *err)
{
    DIR *dir = opendir(store->shards_path);
    pnb_status status = PNB_OK;
    *n = 0;
    if (dir == NULL)
        return pnb__fail_errno(err, "cannot read the folder", store->shards_path);
    for (const struct dirent *e; status == PNB_OK && (e = readdir(dir)) != NULL;) {
        if (strstr(e->d_name, ".safetensors") == NULL || is_named(state, e->d_name))
            continue;
        ++*n;
        if (remove)
            status = remove_file(store, e->d_name, err);
    }
    closedir(dir);
    return status;
}

/* ---- joining ---- */

static bool are_joined(const pnb__shard_entry *a, const pnb__shard_entry *b)
{
    return a->first + (int64_t)a->n == b->first && b->n >= a->n / 2 &&
           a->n + b->n <= MOST_JOINED_ROWS;
}

/* The first of the shards at the end that become one; the last where none do. */
static size_t first_to_join(const pnb__catalog_state *state)
{
    size_t at = state->n_shards - 1;
    pnb__shard_entry tail = state->shards[at];
    while (at > 0 && are_joined(&state->shards[at - 1], &tail)) {
        at--;
        tail.first = state->shards[at].first;
        tail.n += state->shards[at].n;
    }
    return at;
}

/* Rows of shards from place `at` on as one set in memory. */
static pnb_status read_tail(pnb_store *store, const pnb__catalog_state *state, size_t at,
                            pnb_embeddings **out, pnb_error *err)
{
    size_t n = state->n_shards - at;
    pnb_embeddings **parts = NULL;
    char *path = NULL;
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ZERO(parts, n, err));
    for (size_t i = 0; i < n; i++) {
        PNB_TRY(pnb__shard_fetch(store, store->writer, &state->shards[at + i], err));
        path = pnb__path_join(store->shards_path, state->shards[at + i].file);
        if (path == NULL)
            PNB_TRY(pnb__fail_nomem(err, 0));
        PNB_TRY(pnb__shard_open_set(path, false, &parts[i], err));
        pnb__free(path);
        path = NULL;
    }
    status = pnb_embeddings_concat(out, (const pnb_embeddings *const *)parts, n, err);
done:
    for (size_t i = 0; parts != NULL && i < n; i++)
        pnb_embeddings_free(parts[i]);
    pnb__free(parts);
    pnb__free(path);
    return status;
}

static pnb_status replace_tail(pnb_store *store, const pnb__catalog_state *state, size_t at,
                               const pnb__shard_entry *joined, pnb_error *err)
{
    pnb_status status;
    PNB_TRY(store->calls->begin(store->writer, err));
    for (size_t i = at; i < state->n_shards; i++)
        PNB_TRY(store->calls->drop_shard(store->writer, state->shards[i].first, err));
    PNB_TRY(store->calls->add_shard(store->writer, joined, err));
    status = store->calls->commit(store->writer, err);
done:
    store->calls->rollback(store->writer);
    return status;
}

pnb_status pnb__shards_join(pnb_store *store, pnb_error *err)
{
    pnb__catalog_state state = {0};
    pnb_embeddings *set = NULL;
    pnb__shard_entry joined = {0};
    pnb_status status;
    PNB_TRY(store->calls->state(store->writer, &state, err));
    size_t at = state.n_shards > 1 ? first_to_join(&state) : 0;
    if (state.n_shards < 2 || at == state.n_shards - 1)
        goto done;
    PNB_TRY(read_tail(store, &state, at, &set, err));
    joined = (pnb__shard_entry){.first = state.shards[at].first, .n = set->n};
    PNB_TRY(pnb__shard_write(store, set, joined.first, &joined.file, err));
    PNB_TRY(replace_tail(store, &state, at, &joined, err));
    for (size_t i = at; i < state.n_shards; i++)
        PNB_TRY(remove_file(store, state.shards[i].file, err));
done:
    pnb__free(joined.file);
    pnb_embeddings_free(set);
    pnb__catalog_state_reset(&state);
    return status;
}
