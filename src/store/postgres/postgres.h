/* A collection in a schema of a Postgres database: the connection, and statements on it. */
#ifndef PNB_STORE_POSTGRES_POSTGRES_H
#define PNB_STORE_POSTGRES_POSTGRES_H

#include "store/catalog.h"
#include "store/postgres/postgres_library.h"

typedef struct pnb__pg {
    PGconn *conn;
    char *where; /* for messages: host, port, database, schema; never the password */
    char *schema;
    bool is_writing;   /* between begin and commit or rollback */
    bool is_claimed;   /* holds the lock of the one writer */
    bool knows_vector; /* whether there is the column of pgvector was asked */
    bool has_vector;
    pnb__buf rows, tags, thumbnails; /* what waits to be copied */
} pnb__pg;

/* ---- postgres_connect.c ---- */

pnb_status pnb__pg_keep_address(const char *address, char **out, pnb_error *err);
/* `schema` need not be there.  Errors  IO, NOMEM, ARG (no address) */
pnb_status pnb__pg_connect(pnb__pg **out, const pnb__place *place, pnb_error *err);
void pnb__pg_close(void *self);
pnb_status pnb__pg_claim(void *self, pnb_error *err);
/* What went wrong, for whoever has the collection; `result` (or NULL) is freed. */
pnb_status pnb__pg_fail(pnb__pg *s, PGresult *result, pnb_error *err);
/* One statement with n texts as $1 ... ($i NULL is null); *out (or NULL) is to be PQclear'ed.
 * Outside of a transaction a connection that is gone is made again, once. */
pnb_status pnb__pg_query(pnb__pg *s, const char *sql, int n, const char *const *values,
                         PGresult **out, pnb_error *err);
/* With up to four numbers; *n_changed (or NULL): rows that it changed. */
pnb_status pnb__pg_change(pnb__pg *s, const char *sql, int n, const int64_t *values,
                          size_t *n_changed, pnb_error *err);

/* ---- postgres_text.c ---- texts as Postgres takes them ---- */

/* Appends bytes that may be no UTF-8 as text that is: docs/collections.md says how. */
void pnb__pg_escape(pnb__buf *out, const char *bytes);
/* Back, in place. */
void pnb__pg_unescape(char *text);
/* Appends `{"a","b"}` as an array is written; the texts are escaped. */
void pnb__pg_text_array(pnb__buf *out, const char *const *texts, size_t n);

/* ---- postgres_schema.c ---- */

/* Statements that make the tables of a schema; it is the first of the search path. */
void pnb__pg_schema_sql(pnb__buf *out, const char *schema);
/* Those that add pgvector's column and its index for vectors of a width; "" where the column cannot
 * have so many dimensions. */
void pnb__pg_vector_sql(pnb__buf *out, size_t width);
/* COPY of a set's arrays, to the server or from it; has_vector: and of the vector. */
void pnb__pg_copy_sql(pnb__buf *out, const pnb_embeddings *set, bool has_vector, bool to_server,
                      int64_t first);

/* ---- postgres_read.c ---- */
pnb_status pnb__pg_generation(void *self, int64_t *out, pnb_error *err);
pnb_status pnb__pg_state(void *self, pnb__catalog_state *out, pnb_error *err);
pnb_status pnb__pg_fact(void *self, const char *name, char **out, pnb_error *err);
pnb_status pnb__pg_knows(void *self, const char (*sha256)[65], size_t n, bool *out, pnb_error *err);
pnb_status pnb__pg_numbers(void *self, const pnb__page *page, pnb__number_fn visit, void *user,
                           pnb_error *err);
pnb_status pnb__pg_rows(void *self, const pnb__keys *keys, pnb__row_fn visit, void *user,
                        pnb_error *err);
pnb_status pnb__pg_thumbnail(void *self, int64_t number, pnb__buf *out, bool *has, pnb_error *err);
pnb_status pnb__pg_check(void *self, void (*problem)(void *user, const char *text), void *user,
                         pnb_error *err);

/* ---- postgres_copy.c ---- embeddings ---- */
pnb_status pnb__pg_put_set(void *self, int64_t first, const pnb_embeddings *set, pnb_error *err);
pnb_status pnb__pg_get_set(void *self, int64_t first, pnb_embeddings *set, pnb_error *err);
/* One COPY to the server of what a buffer holds, which is empty then. */
pnb_status pnb__pg_copy_buffer(pnb__pg *s, const char *sql, pnb__buf *rows, pnb_error *err);

#endif
