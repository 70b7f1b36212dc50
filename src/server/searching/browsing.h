/* Looking through a gallery without a query. */
#ifndef PNB_SERVER_SEARCHING_BROWSING_H
#define PNB_SERVER_SEARCHING_BROWSING_H

#include "server/searching/gallery.h"

/* Rows, each with a figure of its own; all zero is none. Release with pnb__browsed_reset. */
typedef struct pnb__browsed {
    pnb__found *rows; /* `score`: mean score to the nearest other rows, of outliers; else NaN */
    size_t *group;    /* of duplicates, from 0; else NULL */
    size_t n;
    size_t n_looked; /* rows that were compared, the newest */
} pnb__browsed;
void pnb__browsed_reset(pnb__browsed *b);

enum { PNB__MAX_LOOKED = 4000 }; /* rows compared with each other at most */

/* Up to k rows in an order.  Errors  those of the gallery, NOMEM */
pnb_status pnb__browse_order(const pnb__gallery *g, pnb_store_order order, size_t k,
                             pnb__browsed *out, pnb_error *err);
/* Up to k rows that stand alone among the newest, the furthest out first. */
pnb_status pnb__browse_outliers(const pnb_ctx *ctx, const pnb__gallery *g, size_t k,
                                pnb__browsed *out, pnb_error *err);
/* Groups of near-duplicates among the newest: whole ones, of k rows in all at most, largest first.
 * `min_score`: cosine at which two rows are near. */
pnb_status pnb__browse_duplicates(const pnb_ctx *ctx, const pnb__gallery *g, double min_score,
                                  size_t k, pnb__browsed *out, pnb_error *err);

#endif
