/* A collection as something to search in. */
#ifndef PNB_COMMANDS_SERVE_STORE_GALLERY_H
#define PNB_COMMANDS_SERVE_STORE_GALLERY_H

#include "encode/encoder.h"
#include "program/app.h"
#include "server/searching/gallery.h"

typedef struct pnb__store_gallery pnb__store_gallery;

/* Which collection, and what lies beside it. */
typedef struct pnb__store_gallery_place {
    const char *path, *calibration;
    const char *modality;  /* of one that never had a row */
    pnb_index_kind approx; /* EXACT: none */
    double recall;         /* of hnsw and ivf */
} pnb__store_gallery_place;

/* Opens a collection of the model's embeddings; the rest as pnb__set_gallery_open, the calibration
 * lies in its folder. What other programs add and remove later counts from the next search on.
 * Approximate indexes of shards are made, or built beside those that have none.
 * Errors  NOT_FOUND (no collection, or no rows yet), ARG (of other weights), those of opening */
pnb_status pnb__store_gallery_open(pnb__store_gallery **out, pnb__app *app,
                                   const pnb_encoder *encoder,
                                   const pnb__store_gallery_place *place);
void pnb__store_gallery_free(pnb__store_gallery *g);

/* As routes see it, under the name of its folder; it must outlive what is returned. */
pnb__gallery pnb__store_gallery_view(pnb__store_gallery *g);
/* Builds graphs or cells for what has come since; nothing where that is little. Beside requests, in
 * a thread of its own.  Errors  INTERRUPTED (the watch), BUSY, and those of pnb_store_build */
pnb_status pnb__store_gallery_grow(pnb__store_gallery *g, const pnb_watch *watch, pnb_error *err);
/* How uncertain its rows are, by some 2,000 of them; not known of points.
 * Errors  FORMAT, IO, NOMEM */
pnb_status pnb__store_gallery_spread(const pnb__store_gallery *g, pnb__spread *out, pnb_error *err);

#endif
