/* A collection as something to search in. */
#ifndef PNB_COMMANDS_SERVE_STORE_GALLERY_H
#define PNB_COMMANDS_SERVE_STORE_GALLERY_H

#include "encode/encoder.h"
#include "program/app.h"
#include "server/searching/gallery.h"

typedef struct pnb__store_gallery pnb__store_gallery;

/* Opens a collection of the model's embeddings; the rest as pnb__set_gallery_open, the calibration
 * lies in its folder. What other programs add and remove later counts from the next search on.
 * Errors  NOT_FOUND (no collection, or no rows yet), ARG (of other weights), those of opening */
pnb_status pnb__store_gallery_open(pnb__store_gallery **out, pnb__app *app,
                                   const pnb_encoder *encoder, const char *path,
                                   const char *calibration);
void pnb__store_gallery_free(pnb__store_gallery *g);

/* As routes see it, under the name of its folder; it must outlive what is returned. */
pnb__gallery pnb__store_gallery_view(pnb__store_gallery *g);

#endif
