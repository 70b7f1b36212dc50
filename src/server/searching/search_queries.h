/* Queries of requests, and what the galleries of a server find for them. */
#ifndef PNB_SERVER_SEARCHING_SEARCH_QUERIES_H
#define PNB_SERVER_SEARCHING_SEARCH_QUERIES_H

#include "server/batching/encoding.h"
#include "server/searching/gallery.h"

/* A set of one row, the caller's to free, and the row of the gallery it is, if it is one. */
typedef struct pnb__query_row {
    pnb_embeddings *set;
    bool is_image, is_row;
    size_t row;
} pnb__query_row;

/* The gallery of that name; else the first of that modality; both NULL: the first. NULL: none. */
const pnb__gallery *pnb__gallery_of(const pnb__served *s, const char *name, const char *modality);
/* The same.  Errors  NOT_FOUND: the text lists those there are */
pnb_status pnb__gallery_find(const pnb__gallery **out, const pnb__served *s, const char *name,
                             const char *modality, pnb_error *err);

/* Encodes a caption or a picture, whichever is not NULL.  Errors  as pnb__server_encode */
pnb_status pnb__query_of_input(pnb__served *s, const pnb__http_request *q, const json_t *text,
                               const json_t *image, pnb__query_row *out, pnb_error *err);
/* An embedding that the client has, of the model that is served, with log-variances or NULL.
 * Errors  SHAPE (another width), FORMAT (no numbers), ARG (not of unit length), NOMEM */
pnb_status pnb__query_of_vector(const pnb__served *s, const json_t *mean, const json_t *log_var,
                                bool is_image, pnb__query_row *out, pnb_error *err);
/* A row of the gallery.  Errors  NOT_FOUND, NOMEM */
pnb_status pnb__query_of_id(const pnb__gallery *g, const char *id, pnb__query_row *out,
                            pnb_error *err);

/* The ask->k nearest rows but the query's own into found[k + 1], with their number in *n. */
pnb_status pnb__server_search(pnb__served *s, const pnb__gallery *g, const pnb__query_row *query,
                              const pnb__gallery_ask *ask, pnb__found *found, size_t *n,
                              pnb__gallery_way *way, pnb_error *err);
/* Appends "row":...,"uncertainty":...,"id":... and what else is known of a row, without braces. */
pnb_status pnb__found_put(const pnb__gallery *g, const pnb__found *found, bool thumbnails,
                          pnb__buf *b, pnb_error *err);
/* Ends the list where p(match) falls below `least`; NaN: nowhere.
 * Errors  ARG (nothing says what a score is worth) */
pnb_status pnb__cut_found(const pnb__found *found, size_t *n, double least, pnb_error *err);

#endif
