/* Reading all of a collection.
 *
 * The database's checks, every number of every shard, what is left of interrupted writers.
 * Repairing takes out what cannot be read, so that the rest can be. */
#include <errno.h>
#include <string.h>

#include "sets/embeddings.h"
#include "store/store_internal.h"

typedef struct check_run {
    pnb_store *store;
    const pnb_store_verify_opts *opts;
    pnb_store_verified *out;
    void *connection;
    pnb_embeddings *origin; /* NULL before the first rows */
} check_run;

static void tell(void *user, const char *text)
{
    check_run *run = user;
    run->out->n_problems++;
    if (run->opts->problem != NULL)
        run->opts->problem(run->opts->user, text);
}

/* ---- shards ---- */

static pnb_status check_set(const check_run *run, const pnb__shard_entry *entry, const char *path,
                            pnb_error *err)
{
    pnb_embeddings *set = NULL;
    pnb_status status = pnb__shard_open_set(path, true, &set, err);
    if (status == PNB_OK && set->n != entry->n)
        status =
            pnb__fail(err, PNB_FORMAT, "%s has %zu rows, %zu are known", path, set->n, entry->n);
    if (status == PNB_OK && run->origin != NULL)
        status = pnb__embeddings_check_same(run->origin, set, err);
    pnb_embeddings_free(set);
    return status;
}

/* Takes the rows of a shard that cannot be read out of the collection. */
static pnb_status take_out(const check_run *run, const pnb__shard_entry *entry, pnb_error *err)
{
    const pnb__catalog_calls *calls = run->store->calls;
    void *writer = run->store->writer;
    int64_t end = entry->first + (int64_t)entry->n;
    size_t n;
    pnb_status status;
    PNB_TRY(calls->begin(writer, err));
    PNB_TRY(calls->remove_range(writer, entry->first, end, &n, err));
    PNB_TRY(calls->drop_shard(writer, entry->first, err));
    PNB_TRY(calls->forget(writer, entry->first, end, err));
    status = calls->commit(writer, err);
    run->out->n_repaired += status == PNB_OK;
done:
    calls->rollback(writer);
    return status;
}

/* A damaged copy of what the catalog has too is fetched again. */
static pnb_status fetch_again(const check_run *run, const pnb__shard_entry *entry, pnb_error *err)
{
    char *path = pnb__path_join(run->store->shards_path, entry->file);
    pnb_status status;
    if (path == NULL)
        return pnb__fail_nomem(err, strlen(entry->file));
    if (remove(path) != 0 && errno != ENOENT)
        PNB_TRY(pnb__fail_errno(err, "cannot remove", path));
    PNB_TRY(pnb__shard_fetch(run->store, run->connection, entry, err));
    status = check_set(run, entry, path, err);
    run->out->n_repaired += status == PNB_OK;
done:
    pnb__free(path);
    return status;
}

/* A writer took the file away after the state was read: its rows are in another one. */
static bool was_joined(const check_run *run, const pnb__catalog_state *state)
{
    int64_t generation = state->generation;
    return run->store->calls->generation(run->connection, &generation, NULL) == PNB_OK &&
           generation != state->generation && !run->opts->repair;
}

static pnb_status check_shards(check_run *run, const pnb__catalog_state *state, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < state->n_shards && status == PNB_OK; i++) {
        const pnb__shard_entry *entry = &state->shards[i];
        pnb_error why = PNB_ERROR_INIT;
        char *path = pnb__path_join(run->store->shards_path, entry->file);
        status =
            path != NULL ? pnb__shard_fetch(run->store, run->connection, entry, &why) : PNB_NOMEM;
        if (status == PNB_OK)
            status = check_set(run, entry, path, &why);
        pnb__free(path);
        if (status == PNB_NOMEM)
            return pnb__fail_nomem(err, 0);
        bool is_bad = status != PNB_OK && !(status == PNB_NOT_FOUND && was_joined(run, state));
        if (is_bad)
            tell(run, why.text);
        status = PNB_OK;
        if (is_bad && run->opts->repair)
            status = run->store->calls->get_set != NULL ? fetch_again(run, entry, err)
                                                        : take_out(run, entry, err);
    }
    return status;
}

/* ---- all ---- */

static pnb_status check_all(check_run *run, pnb_error *err)
{
    pnb_store *store = run->store;
    pnb__catalog_state state = {0};
    pnb_status status;
    PNB_TRY(store->calls->state(run->connection, &state, err));
    PNB_TRY(pnb__store_origin(store, run->connection, &run->origin, err));
    for (size_t i = 0; i < state.n_shards; i++)
        run->out->n_rows += state.shards[i].n;
    run->out->n_rows -= PNB_MIN(run->out->n_rows, state.n_removed);
    run->out->n_shards = state.n_shards;
    PNB_TRY(pnb__shards_leftovers(store, &state, false, &run->out->n_leftovers, err));
    PNB_TRY(store->calls->check(run->connection, tell, run, err));
    status = check_shards(run, &state, err);
done:
    pnb__catalog_state_reset(&state);
    pnb_embeddings_free(run->origin);
    return status;
}

pnb_status pnb_store_verify(const char *path, const pnb_store_verify_opts *opts,
                            pnb_store_verified *out, pnb_error *err)
{
    const pnb_store_verify_opts none = {.repair = false};
    pnb_store_verified found = {0};
    check_run run = {.opts = opts != NULL ? opts : &none, .out = &found};
    pnb_status status;
    PNB_TRY(pnb__store_open_bare(&run.store, path, err));
    if (run.opts->repair)
        PNB_TRY(pnb_store_begin(run.store, 0, err));
    run.connection = run.opts->repair ? run.store->writer : run.store->reader;
    PNB_TRY(check_all(&run, err));
    *out = found;
done:
    pnb_store_close(run.store);
    return status;
}
