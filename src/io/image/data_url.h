/* Pictures inside of a text: data URLs. */
#ifndef PNB_IO_IMAGE_DATA_URL_H
#define PNB_IO_IMAGE_DATA_URL_H

#include "base/base.h"

/* Whether a text is one of a picture, by its beginning. */
bool pnb__is_image_url(const char *text);

/* Appends the bytes of "data:image/TYPE;base64,BYTES", or of bare base64. Nothing is ever fetched:
 * any other URL is refused. The type is not looked at, the bytes tell what they are.
 * Errors  ARG (a URL of something else, or that would have to be fetched), FORMAT (no base64,
 *         nothing in it), NOMEM */
pnb_status pnb__image_text_read(pnb__buf *out, const char *text, size_t n, pnb_error *err);

#endif
