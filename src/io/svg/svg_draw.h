/* Draws an SVG that pnb__svg_read found nothing against. */
#ifndef PNB_IO_SVG_SVG_DRAW_H
#define PNB_IO_SVG_SVG_DRAW_H

#include "base/base.h"
#include "penumbra/image.h"

/* The page, put on white so that its longer side has `side` pixels, of which `part` is kept (in
 * shares of the longer side; NULL: all of the page): the picture is RGB, part's size * side. Bits
 * are those of librsvg and cairo: the same on machines with the same packages.
 * Errors  FORMAT (librsvg refuses it), ARG (side outside 1..4096, an empty part), UNSUPPORTED,
 *         NOMEM */
pnb_status pnb__svg_draw(pnb_image *out, const char *bytes, size_t n, int side, const pnb_box *part,
                         pnb_error *err);

#endif
