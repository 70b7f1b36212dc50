/* What is searched: the seam between routes and whatever keeps rows. */
#ifndef PNB_SERVER_SEARCHING_GALLERY_H
#define PNB_SERVER_SEARCHING_GALLERY_H

#include "io/json/json.h"
#include "penumbra/embeddings.h"
#include "penumbra/store.h"

/* One row that was found. */
typedef struct pnb__found {
    size_t row;
    double score, p_match, uncertainty; /* p_match NaN: nothing says what a score is worth */
} pnb__found;

/* What the uncertainty of a query is held against: shares of the rows of its kind stay below each;
 * NaN: not known. */
typedef struct pnb__spread {
    double half, most, vague; /* 0.5, 0.9, 0.99 */
} pnb__spread;

/* What is added: embeddings with their names, and of pictures their thumbnails. */
typedef struct pnb__gallery_batch {
    pnb_embeddings *set;
    const char (*sha256)[65];
    const pnb_store_thumbnail *thumbnails; /* [n] or NULL */
    const char *const *tags;
    size_t n_tags;
} pnb__gallery_batch;

/* What is looked for. */
typedef struct pnb__gallery_ask {
    size_t k;                     /* hits at most */
    const pnb_store_filter *only; /* NULL: all rows may be hits */
    bool exact;                   /* by looking at every row, whatever else was prepared */
} pnb__gallery_ask;

/* What a search went by. */
typedef struct pnb__gallery_way {
    const char *measure;
    const char *approx; /* the kind of index that chose candidates; NULL: every row was looked at */
    bool may_differ;    /* from an exact search: a nearer row may have been missed */
} pnb__gallery_way;

/* Any thread may call, several at once. A query is a set of one row. Calls that are NULL are not
 * there for that kind. Errors of all: IO, where what keeps the rows does not answer, is gone or is
 * damaged: nobody may take that for an empty collection. */
typedef struct pnb__gallery_calls {
    /* The nearest of the rows that may be hits, best first.
     * Errors  ARG (also: no rows that a filter could tell apart), SHAPE (a query of another model
     * or width), NOMEM */
    pnb_status (*search)(void *self, const pnb_embeddings *query, const pnb__gallery_ask *ask,
                         pnb__found *out, size_t *n, pnb__gallery_way *way, pnb_error *err);
    /* How many of the first n hold a match but for a share alpha of queries like this one; *by is
     * what that was read from.  Errors  ARG (nothing was calibrated, alpha too small for it) */
    pnb_status (*conformal)(void *self, bool is_image, double alpha, const pnb__found *found,
                            size_t n, size_t *n_kept, const char **by, pnb_error *err);
    /* The nearest rows that lie inside of the query, or those that the query lies in. */
    pnb_status (*related)(void *self, const pnb_embeddings *query, bool inside, size_t k,
                          pnb__found *out, size_t *n, pnb_error *err);
    /* Errors  NOT_FOUND */
    pnb_status (*find)(void *self, const char *id, size_t *row, pnb_error *err);
    /* A new set of rows.  Errors  NOT_FOUND (one is gone), NOMEM */
    pnb_status (*take)(void *self, const size_t *rows, size_t n, pnb_embeddings **out,
                       pnb_error *err);
    /* Up to `limit` rows in an order, without scores. */
    pnb_status (*pick)(void *self, pnb_store_order order, size_t limit, pnb__found *out, size_t *n,
                       pnb_error *err);
    /* Appends the JPEG of a row.  Errors  NOT_FOUND */
    pnb_status (*thumbnail)(void *self, size_t row, pnb__buf *b, pnb_error *err);
    pnb_status (*add)(void *self, const pnb__gallery_batch *batch, pnb_store_added *added,
                      pnb_error *err);
    pnb_status (*remove)(void *self, const char *const *ids, size_t n, size_t *n_removed,
                         pnb_error *err);
    /* Appends "id":...,"caption":... and further fields of a row, without braces. Where its input
     * lies is none of them; an id is what the row was added under, which may be a path. */
    pnb_status (*put_fields)(void *self, size_t row, pnb__buf *b, pnb_error *err);
    pnb_status (*count)(void *self, size_t *n, pnb_error *err); /* rows at the moment */
    pnb_status (*has_row)(void *self, size_t row, bool *has, pnb_error *err);
} pnb__gallery_calls;

typedef struct pnb__gallery {
    const pnb__gallery_calls *calls;
    void *self;
    const char *name, *modality; /* "image", "text" */
} pnb__gallery;

#endif
