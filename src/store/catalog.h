/* What keeps the metadata of a collection: the calls behind store.h. sqlite/ and postgres/ are two;
 * another is a folder beside them and a row in catalog.c. Nothing above asks which one it has.
 *
 * A row's number says where its embedding lies: shards cover numbers first .. first + n - 1, and
 * place `number - first` of a shard is the row. So shards may be joined without touching a row.
 * Numbers are given once: those of rows that were removed, or whose adding failed after they were
 * given out, are never given again. */
#ifndef PNB_STORE_CATALOG_H
#define PNB_STORE_CATALOG_H

#include "base/base.h"
#include "penumbra/store.h"

typedef struct pnb__shard_entry {
    int64_t first;
    size_t n;
    char *file; /* name below shards/ */
} pnb__shard_entry;

/* All that searching needs to know, as of one moment. All zero is empty. */
typedef struct pnb__catalog_state {
    int64_t generation;       /* counts writings */
    int64_t next;             /* number of the next row */
    pnb__shard_entry *shards; /* by first */
    size_t n_shards;
    int64_t *removed; /* numbers that shards still hold, ascending */
    size_t n_removed;
} pnb__catalog_state;
void pnb__catalog_state_reset(pnb__catalog_state *state);

/* Where a collection is: its folder, and what the database is found by. All zero is nothing. */
typedef struct pnb__place {
    const struct pnb__catalog_calls *calls;
    char *dir;
    char *address; /* NULL: a file in the folder */
    char *schema;  /* for databases that hold several collections; or NULL */
} pnb__place;

typedef pnb_status (*pnb__number_fn)(void *user, int64_t number, pnb_error *err);
/* The texts of `row` live during the call. */
typedef pnb_status (*pnb__row_fn)(void *user, const pnb_store_row *row, pnb_error *err);

typedef struct pnb__page {
    const pnb_store_filter *filter; /* or NULL */
    int64_t after;
    size_t limit;          /* 0: none */
    pnb_store_order order; /* anything but OLDEST begins at the first row: `after` is 0 */
} pnb__page;

/* Rows asked for: ids, or numbers where ids is NULL. */
typedef struct pnb__keys {
    const char *const *ids;
    const int64_t *numbers;
    size_t n;
} pnb__keys;

/* `self` is one connection, used by one thread at a time. Texts are UTF-8, paths and ids bytes.
 * Errors of all: FORMAT (damaged), BUSY (held by another program too long), IO, NOMEM */
typedef struct pnb__catalog_calls {
    const char *kind; /* as addresses begin, and in the folder's note */
    const char *name; /* for people */
    /* The address as the folder's note has it: absolute, without a password.  Errors  ARG */
    pnb_status (*keep_address)(const char *address, char **out, pnb_error *err);
    /* In a folder that is there. EXISTS; NOT_FOUND, UNSUPPORTED (version) */
    pnb_status (*create)(const pnb__place *place, pnb_error *err);
    pnb_status (*open)(void **self, const pnb__place *place, pnb_error *err);
    void (*close)(void *self);
    /* Makes the connection the one writer's, for as long as it lives; NULL: the lock in the folder
     * is enough.  Errors  BUSY */
    pnb_status (*claim)(void *self, pnb_error *err);

    /* ---- reading ---- */
    pnb_status (*generation)(void *self, int64_t *out, pnb_error *err);
    pnb_status (*state)(void *self, pnb__catalog_state *out, pnb_error *err);
    /* NULL: no such fact; free with pnb__free */
    pnb_status (*fact)(void *self, const char *name, char **out, pnb_error *err);
    /* Of n inputs: out[i]. */
    pnb_status (*knows)(void *self, const char (*sha256)[65], size_t n, bool *out, pnb_error *err);
    pnb_status (*numbers)(void *self, const pnb__page *page, pnb__number_fn visit, void *user,
                          pnb_error *err);
    /* n rows in the order asked for; `visit` is not called for what is not there. */
    pnb_status (*rows)(void *self, const pnb__keys *keys, pnb__row_fn visit, void *user,
                       pnb_error *err);
    /* Fills a set that has the arrays with the embeddings of numbers first .. first + n - 1; NULL:
     * this kind keeps none, so that a shard whose file is gone is lost.  Errors  NOT_FOUND (some
     * are not there any more) */
    pnb_status (*get_set)(void *self, int64_t first, pnb_embeddings *set, pnb_error *err);
    /* Appends the thumbnail of a row; *has is false where there is none. */
    pnb_status (*thumbnail)(void *self, int64_t number, pnb__buf *out, bool *has, pnb_error *err);
    /* The database's own checks, and numbers that no shard covers; calls `problem` for each. */
    pnb_status (*check)(void *self, void (*problem)(void *user, const char *text), void *user,
                        pnb_error *err);

    /* ---- writing: between begin and commit or rollback ---- */
    pnb_status (*begin)(void *self, pnb_error *err);
    pnb_status (*commit)(void *self, pnb_error *err); /* ends it in every case */
    void (*rollback)(void *self);
    pnb_status (*put_fact)(void *self, const char *name, const char *value, pnb_error *err);
    /* The numbers behind its last are the next ones. */
    pnb_status (*add_shard)(void *self, const pnb__shard_entry *shard, pnb_error *err);
    pnb_status (*drop_shard)(void *self, int64_t first, pnb_error *err);
    /* Embeddings of numbers from `first` on; NULL: the shard's file is all there is. */
    pnb_status (*put_set)(void *self, int64_t first, const pnb_embeddings *set, pnb_error *err);
    /* A row whose id and input no other row has, one of this transaction neither. */
    pnb_status (*add_row)(void *self, const pnb_store_row *row, pnb_error *err);
    /* Goes with its row. NULL, as `thumbnail` is then: this kind keeps none. */
    pnb_status (*put_thumbnail)(void *self, int64_t number, const pnb_store_thumbnail *image,
                                pnb_error *err);
    /* A number of a shard that no row has. */
    pnb_status (*add_removed)(void *self, int64_t number, pnb_error *err);
    /* Of rows of n ids, and of those of numbers first .. end - 1; *n_gone counts them. */
    pnb_status (*remove_ids)(void *self, const char *const *ids, size_t n, size_t *n_gone,
                             pnb_error *err);
    pnb_status (*remove_range)(void *self, int64_t first, int64_t end, size_t *n_gone,
                               pnb_error *err);
    /* Removed numbers first .. end - 1 that no shard holds any more, and their embeddings. */
    pnb_status (*forget)(void *self, int64_t first, int64_t end, pnb_error *err);
} pnb__catalog_calls;

#define PNB__PLACE_FILE "store.json"

/* The place that is asked for (NULL: a file in the folder), with the address as it was given.
 * Errors  ARG (no such address), UNSUPPORTED (this build lacks the kind), NOMEM */
pnb_status pnb__place_init(pnb__place *out, const char *dir, const pnb_store_place *said,
                           pnb_error *err);
/* That of a folder, by the note in it.  Errors  FORMAT, IO, UNSUPPORTED, NOMEM */
pnb_status pnb__place_read(pnb__place *out, const char *dir, pnb_error *err);
/* Writes the note, without a password; none where the database is in the folder. */
pnb_status pnb__place_write(const pnb__place *place, pnb_error *err);
void pnb__place_reset(pnb__place *place);

extern const pnb__catalog_calls pnb__catalog_sqlite, pnb__catalog_postgres;

#endif
