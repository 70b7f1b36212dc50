/* An embedding set as something to search in. */
#ifndef PNB_COMMANDS_SERVE_SET_GALLERY_H
#define PNB_COMMANDS_SERVE_SET_GALLERY_H

#include "encode/encoder.h"
#include "program/app.h"
#include "server/searching/gallery.h"

typedef struct pnb__set_gallery pnb__set_gallery;

/* Which set, and what lies beside it. */
typedef struct pnb__set_gallery_place {
    const char *path, *calibration;
    pnb_index_kind approx; /* EXACT: none */
    double recall;         /* of hnsw and ivf */
} pnb__set_gallery_place;

/* Opens a set that `encoder` made, with the calibration beside it or the one that is named (NULL,
 * "none"), and the approximate index, which is built beside it where it is not there yet. What
 * queries of each side are worth is settled here, with a warning where nothing says it. Free with
 * pnb__set_gallery_free. Errors  ARG (a set of other weights), UNSUPPORTED (a measure that the kind
 * of index does not serve), and those of loading */
pnb_status pnb__set_gallery_open(pnb__set_gallery **out, pnb__app *app, const pnb_encoder *encoder,
                                 const pnb__set_gallery_place *place);
void pnb__set_gallery_free(pnb__set_gallery *g);

/* As routes see it, under a name; it must outlive what is returned. */
pnb__gallery pnb__set_gallery_view(pnb__set_gallery *g, const char *name);
/* How uncertain its rows are; not known of points.  Errors  NOMEM */
pnb_status pnb__set_gallery_spread(const pnb__set_gallery *g, pnb__spread *out, pnb_error *err);

#endif
