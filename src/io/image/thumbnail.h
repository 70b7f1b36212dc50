/* Small pictures that stand for large ones on a page. */
#ifndef PNB_IO_IMAGE_THUMBNAIL_H
#define PNB_IO_IMAGE_THUMBNAIL_H

#include "base/base.h"
#include "penumbra/image.h"

enum { PNB__THUMBNAIL_SIDE = 256 }; /* pixels of the longer side at most */

/* Appends a JPEG of a picture of any mode; one that is smaller already keeps its size.
 * Errors  ARG (empty), LIMIT, NOMEM */
pnb_status pnb__thumbnail_make(const pnb_image *image, pnb__buf *out, pnb_error *err);

#endif
