/* What keeps the metadata of a collection: the calls behind store.h. sqlite/ is one; another is a
 * folder beside it and a row in catalog.c.
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

typedef pnb_status (*pnb__number_fn)(void *user, int64_t number, pnb_error *err);
/* The texts of `row` live during the call. */
typedef pnb_status (*pnb__row_fn)(void *user, const pnb_store_row *row, pnb_error *err);

typedef struct pnb__page {
    const pnb_store_filter *filter; /* or NULL */
    int64_t after;
    size_t limit;          /* 0: none */
    pnb_store_order order; /* anything but OLDEST begins at the first row: `after` is 0 */
} pnb__page;

/* `self` is one connection, used by one thread at a time. Texts are UTF-8, paths and ids bytes.
 * Errors of all: FORMAT (damaged), BUSY (held by another program too long), IO, NOMEM */
typedef struct pnb__catalog_calls {
    /* In a folder that is there. EXISTS; NOT_FOUND, UNSUPPORTED (version) */
    pnb_status (*create)(const char *dir, pnb_error *err);
    pnb_status (*open)(void **self, const char *dir, pnb_error *err);
    void (*close)(void *self);

    /* ---- reading ---- */
    pnb_status (*generation)(void *self, int64_t *out, pnb_error *err);
    pnb_status (*state)(void *self, pnb__catalog_state *out, pnb_error *err);
    /* NULL: no such fact; free with pnb__free */
    pnb_status (*fact)(void *self, const char *name, char **out, pnb_error *err);
    pnb_status (*knows)(void *self, const char *sha256, bool *out, pnb_error *err);
    pnb_status (*numbers)(void *self, const pnb__page *page, pnb__number_fn visit, void *user,
                          pnb_error *err);
    /* By id, or by number where id is NULL; not called for what is not there. */
    pnb_status (*row)(void *self, const char *id, int64_t number, pnb__row_fn visit, void *user,
                      pnb_error *err);
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
    pnb_status (*add_row)(void *self, const pnb_store_row *row, pnb_error *err);
    /* Goes with its row. NULL, as `thumbnail` is then: this kind keeps none. */
    pnb_status (*put_thumbnail)(void *self, int64_t number, const pnb_store_thumbnail *picture,
                                pnb_error *err);
    /* Of rows of an id, and of those of numbers first .. end - 1; *n counts them. */
    pnb_status (*remove_id)(void *self, const char *id, size_t *n, pnb_error *err);
    pnb_status (*remove_range)(void *self, int64_t first, int64_t end, size_t *n, pnb_error *err);
    /* Removed numbers that no shard holds any more. */
    pnb_status (*forget)(void *self, int64_t first, int64_t end, pnb_error *err);
} pnb__catalog_calls;

/* The kind that a folder's collection has, or is made of. UNSUPPORTED where this build lacks it. */
pnb_status pnb__catalog_kind(const pnb__catalog_calls **out, pnb_error *err);

extern const pnb__catalog_calls pnb__catalog_sqlite;

#endif
