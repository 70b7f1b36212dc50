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

/* Any thread may call, several at once. A query is a set of one row. */
typedef struct pnb__gallery_calls {
    /* The k nearest of the rows that pass `only` (NULL: of all), best first, at most k; *measure is
     * what they were compared by.
     * Errors  ARG (also: no rows that a filter could tell apart), SHAPE (a query of another model
     * or width), NOMEM */
    pnb_status (*search)(void *self, const pnb_embeddings *query, size_t k,
                         const pnb_store_filter *only, pnb__found *out, size_t *n,
                         const char **measure, pnb_error *err);
    /* The nearest rows that lie inside of the query; NULL: nothing is known of that. */
    pnb_status (*narrower)(void *self, const pnb_embeddings *query, size_t k, pnb__found *out,
                           size_t *n, pnb_error *err);
    bool (*find)(void *self, const char *id, size_t *row);
    /* A new set of one row.  Errors  NOMEM */
    pnb_status (*take)(void *self, size_t row, pnb_embeddings **out, pnb_error *err);
    /* Appends "id":...,"caption":... and further fields of a row, without braces. Paths of this
     * machine are none of them. */
    void (*put_fields)(void *self, size_t row, pnb__buf *b);
    const char *(*caption)(void *self, size_t row); /* of what `narrower` finds; NULL: none */
    size_t (*count)(void *self);                    /* rows at the moment */
    bool (*has_row)(void *self, size_t row);
} pnb__gallery_calls;

typedef struct pnb__gallery {
    const pnb__gallery_calls *calls;
    void *self;
    const char *name, *modality; /* "image", "text" */
} pnb__gallery;

#endif
