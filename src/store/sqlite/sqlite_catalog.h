/* The connection to a collection.db, and statements on it. */
#ifndef PNB_STORE_SQLITE_SQLITE_CATALOG_H
#define PNB_STORE_SQLITE_SQLITE_CATALOG_H

#include <sqlite3.h>
#include <sys/types.h>

#include "store/catalog.h"

/* Statements that adding a row repeats; kept while the connection lives. */
enum { PNB__ADD_ROW, PNB__ADD_TAG, PNB__ADD_THUMBNAIL, PNB__KNOWS, PNB__NUMBER_OF, PNB__N_KEPT };

typedef struct pnb__sqlite {
    sqlite3 *db;
    char *path; /* for messages */
    dev_t device;
    ino_t file; /* that was opened there */
    sqlite3_stmt *kept[PNB__N_KEPT];
} pnb__sqlite;

/* What a code of SQLite means for whoever has the collection; `code` is no success. */
pnb_status pnb__sqlite_fail(const pnb__sqlite *s, int code, pnb_error *err);
/* IO where another file, or none, is where this one was opened: SQLite goes on reading what nobody
 * sees any more. */
pnb_status pnb__sqlite_check_there(const pnb__sqlite *s, pnb_error *err);
/* Runs statements without values. */
pnb_status pnb__sqlite_run(const pnb__sqlite *s, const char *sql, pnb_error *err);
pnb_status pnb__sqlite_prepare(const pnb__sqlite *s, const char *sql, sqlite3_stmt **out,
                               pnb_error *err);
/* One of those, ready for new values; whoever has stepped it resets it. */
pnb_status pnb__sqlite_kept(pnb__sqlite *s, int which, const char *sql, sqlite3_stmt **out,
                            pnb_error *err);
/* One row more; *more is false at the end. */
pnb_status pnb__sqlite_step(const pnb__sqlite *s, sqlite3_stmt *statement, bool *more,
                            pnb_error *err);
/* A statement that has no rows, with up to three values: numbers for 'i', texts for 's' (NULL is
 * null). *n (or NULL): rows it changed. */
pnb_status pnb__sqlite_change(const pnb__sqlite *s, size_t *n, pnb_error *err, const char *sql,
                              const char *kinds, ...);

/* ---- sqlite_read.c ---- */
pnb_status pnb__sqlite_generation(void *self, int64_t *out, pnb_error *err);
pnb_status pnb__sqlite_state(void *self, pnb__catalog_state *out, pnb_error *err);
pnb_status pnb__sqlite_fact(void *self, const char *name, char **out, pnb_error *err);
pnb_status pnb__sqlite_knows(void *self, const char (*sha256)[65], size_t n, bool *out,
                             pnb_error *err);
pnb_status pnb__sqlite_numbers(void *self, const pnb__page *page, pnb__number_fn visit, void *user,
                               pnb_error *err);
pnb_status pnb__sqlite_rows(void *self, const pnb__keys *keys, pnb__row_fn visit, void *user,
                            pnb_error *err);
pnb_status pnb__sqlite_thumbnail(void *self, int64_t number, pnb__buf *out, bool *has,
                                 pnb_error *err);
pnb_status pnb__sqlite_check(void *self, void (*problem)(void *user, const char *text), void *user,
                             pnb_error *err);

#endif
