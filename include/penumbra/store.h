/* Collections: embedding sets that grow, with what is known of their rows.
 *
 * A collection is a folder: `collection.db`, an SQLite file with the metadata, and in `shards/`
 * ordinary embedding sets; or the database is elsewhere, in Postgres say (pnb_store_create_at).
 * Adding is atomic a batch at a time, whenever the process or the machine stops. One process writes
 * at a time; any number read meanwhile, and each read sees the rows that were there when it began.
 * A row that was removed is in no read that begins afterwards. All rows come from the same weights,
 * are of one family, width, modality and preprocessing; others are refused by name.
 * docs/collections.md
 *
 *     pnb_store *store = NULL;
 *     pnb_store_hits hits = {0};
 *     if (pnb_store_open(&store, "photos", &err) == PNB_OK &&
 *         pnb_store_search(store, ctx, queries, NULL, &hits, &err) == PNB_OK)
 *         ... hits.number[q * hits.k] is the row nearest to query q: pnb_store_get tells of it
 *     pnb_store_hits_reset(&hits);
 *     pnb_store_close(store);
 *
 * Threads  any number may read through one store at once; writing needs one thread at a time.
 * A build without SQLite and libpq has all of these functions, and each says what is missing
 * (UNSUPPORTED).
 */
#ifndef PENUMBRA_STORE_H
#define PENUMBRA_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/embeddings.h"
#include "penumbra/error.h"
#include "penumbra/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What this build can keep collections in, "SQLite, Postgres" say, or "" for nothing. */
const char *pnb_store_kinds(void);

/* ---- a collection ---- */

/* An open collection: connections to its database, and what reads of it have prepared. */
typedef struct pnb_store pnb_store;

/* The model whose embeddings a collection is for, where that is known before the first row. */
typedef struct pnb_store_model {
    const char *dir;                 /* its folder, kept so that others need not name it; or NULL */
    const pnb_embeddings_info *info; /* weights, adapters and name are read; or NULL */
} pnb_store_model;

/* Makes an empty collection in a folder that is not there yet, or is empty. `model` may be NULL:
 * then the first rows say which weights the collection is of.
 * Errors  EXISTS (something is in the folder), IO, UNSUPPORTED, NOMEM */
pnb_status pnb_store_create(const char *path, const pnb_store_model *model, pnb_error *err);

/* Where the database of a collection is, when not in its folder. */
typedef struct pnb_store_place {
    const char *address; /* sqlite:PATH or postgresql://[user@]host[:port]/database; NULL: a file in
                          * the folder */
    const char *schema;  /* of Postgres; NULL: the folder's name, in small letters */
    bool join; /* Postgres: a collection that is there already gets one more folder, on this machine
                * say */
} pnb_store_place;

/* As pnb_store_create, with the database elsewhere. The folder keeps a note of the address, without
 * the password that it may hold: libpq looks for one in PGPASSWORD and ~/.pgpass. What Postgres
 * keeps is everything; the shards in the folder are copies, fetched when they are needed.
 * Errors  ARG (no such address), BUSY, and those of pnb_store_create */
pnb_status pnb_store_create_at(const char *path, const pnb_store_place *place,
                               const pnb_store_model *model, pnb_error *err);

/* Whether a folder is that of a collection; nothing is opened. */
bool pnb_store_is_at(const char *path);

/* Opens a collection; writing begins with pnb_store_begin. Nothing is read for each row, so that
 * the time does not depend on their number. Close with pnb_store_close.
 * Errors  NOT_FOUND (no collection there), FORMAT (damaged: the text says what to do), IO,
 *         UNSUPPORTED (of a later version, or no SQLite in this build), NOMEM */
pnb_status pnb_store_open(pnb_store **out, const char *path, pnb_error *err);
void pnb_store_close(pnb_store *store); /* NULL is fine; no call may be running */

/* What a collection is, as of the call. */
typedef struct pnb_store_about {
    size_t n_rows, n_shards;
    size_t n_removed; /* rows that are gone and still take room in a shard */
    bool is_settled;  /* the first rows came; before that the next three are not known */
    pnb_family family;
    size_t dim;
    pnb_embeddings_info info; /* weights, adapters and model may be known before */
    char model_dir[4096];     /* "" unknown */
} pnb_store_about;
/* Errors  FORMAT, IO, NOMEM */
pnb_status pnb_store_describe(pnb_store *store, pnb_store_about *out, pnb_error *err);

/* ---- writing ---- */

/* Makes this store the collection's one writer until pnb_store_end; adding and removing take that
 * part for their own call where nobody began. Files that an interrupted writer left are removed.
 * Waits up to `wait_s` seconds for another writer to end.
 * Errors  BUSY (another one writes: the text names the collection), IO, FORMAT, NOMEM */
pnb_status pnb_store_begin(pnb_store *store, double wait_s, pnb_error *err);
void pnb_store_end(pnb_store *store); /* fine without begin */

/* A small picture of a row, as a file's bytes: what a page shows beside the row. A JPEG where
 * `penumbra collection add` made it; the library does not look at them. */
typedef struct pnb_store_thumbnail {
    const void *bytes; /* NULL: none */
    size_t n_bytes;
} pnb_store_thumbnail;

/* Rows to add. What a set has beside its numbers is kept with each row: its id and path (any bytes,
 * as names of files are), its caption, and the JSON object of further fields. */
typedef struct pnb_store_batch {
    const pnb_embeddings *set; /* rows with their names: ids, paths, texts, extras */
    const char (*sha256)[65];  /* [n] of each row's input, in lower-case hexadecimal; NULL: of its
                                * id and numbers */
    const int64_t *time;       /* [n] Unix seconds of the inputs; NULL: now */
    const char *const *tags;   /* that all rows get: UTF-8 without control characters */
    size_t n_tags;
    const pnb_store_thumbnail *thumbnails; /* [n], kept and removed with their rows; NULL: none */
} pnb_store_batch;

/* What became of them. */
typedef struct pnb_store_added {
    size_t n_added;
    size_t n_known;    /* left out: the same input is there, or twice in the batch */
    size_t n_replaced; /* of those added: took the place of a row with the same id */
} pnb_store_added;

/* Adds what is new, all of it or, after a failure at any moment, nothing. Rows without an id are
 * named by the first 16 digits of their input's hash. A row whose id is there takes that row's
 * place, under a number of its own. `out` may be NULL.
 * Memory  a copy of the rows that are new, where not all are, and up to 32,768 rows when small
 * shards are joined
 * Errors  ARG (other weights, modality or preprocessing: both are named; a tag), SHAPE (family or
 *         width), NUMERIC, BUSY, IO (a full disk, ...), FORMAT, NOMEM */
pnb_status pnb_store_add(pnb_store *store, const pnb_store_batch *batch, pnb_store_added *out,
                         pnb_error *err);

/* Whether rows such as those of a set, of which one is enough, may come into the collection; asked
 * before a long job.  Errors  ARG, SHAPE (as pnb_store_add), FORMAT, IO, NOMEM */
pnb_status pnb_store_check(pnb_store *store, const pnb_embeddings *set, pnb_error *err);

/* Removes rows by their ids; *n_removed (may be NULL) counts those that were there. All or none.
 * Errors  as pnb_store_add */
pnb_status pnb_store_remove(pnb_store *store, const char *const *ids, size_t n, size_t *n_removed,
                            pnb_error *err);

/* Whether a row of that input is there; inputs that are need not be embedded.
 * Errors  FORMAT, IO, NOMEM */
pnb_status pnb_store_has(pnb_store *store, const char *sha256, bool *out, pnb_error *err);

/* ---- reading ---- */

/* Which rows: those that pass everything given. Begin from pnb_store_filter_default(): all rows. */
typedef struct pnb_store_filter {
    const char *const *tags; /* a row has all of them */
    size_t n_tags;
    int64_t since, until;                    /* time of the input, both included */
    double min_uncertainty, max_uncertainty; /* both included */
} pnb_store_filter;
pnb_store_filter pnb_store_filter_default(void);

/* A row as it is known. Texts belong to the list it is in. */
typedef struct pnb_store_row {
    int64_t number; /* the row's own for ever: never another one's, also after removal */
    const char *id;
    const char *path; /* where the input lies; NULL unknown, as are the next three */
    const char *text;
    const char *extra;   /* JSON object of further fields */
    const char *tags;    /* one a line, in order */
    char sha256[65];     /* of the input */
    int64_t time, added; /* Unix seconds: of the input, and when it came */
    double uncertainty;  /* by the measure that the family comes with */
} pnb_store_row;

/* A list of rows; all zero is empty. */
typedef struct pnb_store_rows {
    pnb_store_row *items;
    size_t n;
    void *memory; /* the library's own */
} pnb_store_rows;
void pnb_store_rows_reset(pnb_store_rows *rows); /* NULL is fine */

/* A page of rows in the order in which they came: up to `limit` of those behind row number `after`
 * (0: from the first). `filter` NULL: all. Release with pnb_store_rows_reset.
 * Errors  FORMAT, IO, NOMEM */
pnb_status pnb_store_list(pnb_store *store, const pnb_store_filter *filter, int64_t after,
                          size_t limit, pnb_store_rows *out, pnb_error *err);
/* What stands first in a list that is not paged. Ties go to the row that came first. */
typedef enum pnb_store_order {
    PNB_STORE_OLDEST,   /* the row that came first */
    PNB_STORE_NEWEST,   /* the row that came last */
    PNB_STORE_CERTAIN,  /* the lowest uncertainty */
    PNB_STORE_UNCERTAIN /* the highest uncertainty */
} pnb_store_order;
/* The first `limit` rows that pass, in that order; as pnb_store_list otherwise. */
pnb_status pnb_store_first(pnb_store *store, const pnb_store_filter *filter, pnb_store_order order,
                           size_t limit, pnb_store_rows *out, pnb_error *err);
/* Rows by number or by id, in the order asked for; those that are not there are left out. */
pnb_status pnb_store_get(pnb_store *store, const int64_t *numbers, size_t n, pnb_store_rows *out,
                         pnb_error *err);
pnb_status pnb_store_get_ids(pnb_store *store, const char *const *ids, size_t n,
                             pnb_store_rows *out, pnb_error *err);

/* The thumbnail that a row was added with, to be freed by pnb_store_thumbnail_free.
 * Errors  NOT_FOUND (no such row, or it has none), FORMAT, IO, NOMEM */
pnb_status pnb_store_get_thumbnail(pnb_store *store, int64_t number, unsigned char **bytes,
                                   size_t *n_bytes, pnb_error *err);
void pnb_store_thumbnail_free(unsigned char *bytes); /* NULL is fine */

/* ---- embeddings ---- */

/* The embeddings of rows as a set in memory, with their names, in the order of `rows`.
 * Errors  NOT_FOUND (one was removed meanwhile), FORMAT, IO, NOMEM; free with pnb_embeddings_free
 */
pnb_status pnb_store_set(pnb_store *store, const pnb_store_rows *rows, pnb_embeddings **out,
                         pnb_error *err);

/* ---- searching ---- */

/* The k nearest rows of each query, best first; where fewer are there number is -1, score -inf. */
typedef struct pnb_store_hits {
    size_t n_queries, k;
    pnb_measure measure; /* that was used */
    int64_t *number;     /* [n_queries][k] */
    double *score;       /* [n_queries][k] */
    size_t n_unsure;     /* queries, at least, for which an exact search may find others */
} pnb_store_hits;
void pnb_store_hits_reset(pnb_store_hits *hits); /* NULL is fine */

/* How near is measured, and which rows are looked at. */
typedef struct pnb_store_search_opts {
    pnb_search_opts search;         /* measure PNB_N_MEASURES: what the families suit */
    const pnb_store_filter *filter; /* NULL: all rows */
} pnb_store_search_opts;
pnb_store_search_opts pnb_store_search_opts_default(void); /* 10 hits by the families' measure */

/* Searches the rows of the collection. Filters hold inside the search: k rows come where k pass.
 * What a search prepares stays for later ones of the same measure. opts NULL: the defaults.
 * Errors  those of pnb_embeddings_check_mix and pnb_search; FORMAT, IO, NOMEM. An empty collection
 *         has no hits and is no error */
pnb_status pnb_store_search(pnb_store *store, const pnb_ctx *ctx, const pnb_embeddings *queries,
                            const pnb_store_search_opts *opts, pnb_store_hits *out, pnb_error *err);

/* What pnb_store_build made and found. */
typedef struct pnb_store_built {
    size_t n_shards, n_built; /* in all, and those that had none yet */
    double least_recall;      /* of all; 1 where there is none */
    double bytes;             /* of those built */
} pnb_store_built;

/* Builds the files that searches of kind HNSW or IVF by opts' measure read: one a shard, beside it,
 * for each that has none. Shards do not change, so such a file stays right; it goes with its shard.
 * Rows that come later are searched exactly until this is called again. Others may write while an
 * index is built; it is the writer for the moment in which a file gets its place. Files that are
 * there stay, whatever recall they were made for; with `out` NULL they are not looked at.
 * Errors  ARG (another kind), BUSY (for a minute), and those of pnb_index_create and _open */
pnb_status pnb_store_build(pnb_store *store, const pnb_ctx *ctx, const pnb_search_opts *opts,
                           pnb_store_built *out, pnb_error *err);
/* Rows of shards that have no such file: they are searched exactly.  Errors  FORMAT, IO, NOMEM */
pnb_status pnb_store_count_unbuilt(pnb_store *store, pnb_index_kind kind, size_t *n_rows,
                                   pnb_error *err);

/* ---- checking ---- */

/* What is done about what is found. */
typedef struct pnb_store_verify_opts {
    bool
        repair; /* take out rows whose shard is gone or damaged, and files that belong to nothing */
    void (*problem)(void *user, const char *text); /* called for each; NULL: they are counted */
    void *user;
} pnb_store_verify_opts;

/* What was found. */
typedef struct pnb_store_verified {
    size_t n_rows, n_shards, n_problems;
    size_t n_repaired;  /* of the problems */
    size_t n_leftovers; /* files of interrupted writers: no problem, removed by the next writer */
} pnb_store_verified;

/* Reads all of a collection, also of one that cannot be opened because a shard is damaged: the
 * database's own checks, every number of every shard, every row's place. opts NULL: no repair.
 * Errors  FORMAT (the database cannot be read at all), BUSY (repairing), IO, NOMEM */
pnb_status pnb_store_verify(const char *path, const pnb_store_verify_opts *opts,
                            pnb_store_verified *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
