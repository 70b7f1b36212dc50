/* A store in memory: connections, and the snapshot that reads go by. */
#ifndef PNB_STORE_STORE_INTERNAL_H
#define PNB_STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "penumbra/view.h"
#include "store/catalog.h"

/* What searches of one kind of index go by. */
typedef struct pnb__prepared {
    pnb_view view;
    pnb_index *index; /* NULL: not made yet */
    pnb_search_opts opts;
} pnb__prepared;
void pnb__prepared_reset(pnb__prepared *prepared);

/* One embedding set of the collection, mapped; shared by the snapshots that have it. */
typedef struct pnb__shard {
    int n_users; /* by the store's mutex */
    int64_t first;
    char *path, *file; /* `file` lies in path */
    pnb_embeddings *set;
    pnb__prepared prepared[PNB_N_INDEX_KINDS]; /* made when first wanted, by the store's mutex */
} pnb__shard;

/* What a read sees; unchanged while anyone holds it. */
typedef struct pnb__snapshot {
    int n_users;
    int64_t generation;
    pnb__shard **shards; /* by first */
    size_t n_shards;
    unsigned char **live; /* [shard][row] 0: removed; NULL where nothing is */
    size_t n_rows, n_removed;
} pnb__snapshot;

struct pnb_store {
    char *path, *shards_path;
    pnb__place place;
    const pnb__catalog_calls *calls; /* of the place */
    void *reader, *writer;           /* connections; no writer: somebody else may write */
    int lock;                        /* of the writer; -1 */
    pthread_mutex_t mutex;           /* of the reader and the snapshot */
    pnb__snapshot *now;              /* or NULL */
};

#define PNB__SHARDS "shards" /* the folder of embeddings */
#define PNB__WRITER_LOCK "writer.lock"

/* Opens what is at a place, which goes to the store. */
pnb_status pnb__store_open_place(pnb_store **out, pnb__place *place, pnb_error *err);
/* Opens the catalog alone: shards may be damaged. */
pnb_status pnb__store_open_bare(pnb_store **out, const char *path, pnb_error *err);
/* Waits a little: what holds a lock may end. */
void pnb__store_pause(void);

/* ---- store_snapshot.c ---- */

/* The collection as it is now; give it back with drop.  Errors  FORMAT, IO, NOMEM */
pnb_status pnb__snapshot_take(pnb_store *store, pnb__snapshot **out, pnb_error *err);
void pnb__snapshot_drop(pnb_store *store, pnb__snapshot *snapshot); /* NULL is fine */
/* Opens a shard's file as mapped rows.  Errors  those of pnb_embeddings_load */
pnb_status pnb__shard_open_set(const char *path, bool check_numbers, pnb_embeddings **out,
                               pnb_error *err);
/* The shard that holds a number and its place there; NULL: none. */
pnb__shard *pnb__snapshot_find(const pnb__snapshot *snapshot, int64_t number, size_t *place);

/* ---- store_origin.c ---- facts on where rows come from, as JSON in the catalog ---- */

/* A set of one row that has family, width and info of the collection's rows, without arrays; NULL
 * before the first rows. Free with pnb_embeddings_free. */
pnb_status pnb__store_origin(pnb_store *store, void *connection, pnb_embeddings **out,
                             pnb_error *err);
pnb_status pnb__store_put_origin(pnb_store *store, const pnb_embeddings *set, pnb_error *err);
/* The model that the collection is for: folder (NULL unknown, free with pnb__free), and weights,
 * adapters and name in `info`. */
pnb_status pnb__store_get_model(pnb_store *store, void *connection, char **dir,
                                pnb_embeddings_info *info, pnb_error *err);
/* The text of that fact; allocated. */
pnb_status pnb__store_model_text(const pnb_store_model *model, char **out, pnb_error *err);
/* Whether rows of the set may come into the collection. */
pnb_status pnb__store_check_origin(pnb_store *store, const pnb_embeddings *set, bool *is_first,
                                   pnb_error *err);

/* ---- store_shards.c ---- files of shards ---- */

/* Writes a set under the name that its first number gives; *file is allocated. */
pnb_status pnb__shard_write(const pnb_store *store, const pnb_embeddings *set, int64_t first,
                            char **file, pnb_error *err);
/* Sees to it that the file of a shard is there: where the catalog keeps embeddings, and it is not,
 * it is fetched; else nothing is done.  Errors  NOT_FOUND (the shard was dropped), IO, NOMEM */
pnb_status pnb__shard_fetch(pnb_store *store, void *connection, const pnb__shard_entry *entry,
                            pnb_error *err);
/* Files in shards/ that the catalog does not name; `remove` takes them away. */
pnb_status pnb__shards_leftovers(const pnb_store *store, const pnb__catalog_state *state,
                                 bool remove, size_t *n, pnb_error *err);
/* Joins shards at the end while the last is not much smaller than what stands before it. */
pnb_status pnb__shards_join(pnb_store *store, pnb_error *err);

/* ---- store_index.c ---- */

/* Whether indexes of a kind lie in files beside shards, and the path of one; allocated. */
bool pnb__shard_has_index_file(pnb_index_kind kind);
pnb_status pnb__shard_index_path(const pnb__shard *shard, pnb_index_kind kind, char **out,
                                 pnb_error *err);

/* ---- store_write.c ---- */

/* Makes the store the writer for one call; *began says whether pnb_store_end is due. */
pnb_status pnb__store_need_writer(pnb_store *store, bool *began, pnb_error *err);

/* Prefixes an error with the collection's name. */
pnb_status pnb__store_blame(const pnb_store *store, pnb_status status, pnb_error *err);

#endif
