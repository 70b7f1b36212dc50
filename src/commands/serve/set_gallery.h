/* An embedding set as something to search in. */
#ifndef PNB_COMMANDS_SERVE_SET_GALLERY_H
#define PNB_COMMANDS_SERVE_SET_GALLERY_H

#include "encode/encoder.h"
#include "program/app.h"
#include "server/searching/gallery.h"

typedef struct pnb__set_gallery pnb__set_gallery;

/* Opens a set that `encoder` made, with the calibration beside it or the one that is named (NULL,
 * "none"). What queries of each side are worth is settled here, with a warning where nothing says
 * it. Free with pnb__set_gallery_free.
 * Errors  ARG (a set of other weights), and those of loading */
pnb_status pnb__set_gallery_open(pnb__set_gallery **out, pnb__app *app, const pnb_encoder *encoder,
                                 const char *path, const char *calibration);
void pnb__set_gallery_free(pnb__set_gallery *g);

/* As routes see it, under a name; it must outlive what is returned. */
pnb__gallery pnb__set_gallery_view(pnb__set_gallery *g, const char *name);
/* How uncertain its rows are; not known of points.  Errors  NOMEM */
pnb_status pnb__set_gallery_spread(const pnb__set_gallery *g, pnb__spread *out, pnb_error *err);

#endif
