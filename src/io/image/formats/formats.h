/* Which pictures can be read: endings of file names, first bytes, decoders. */
#ifndef PNB_IO_IMAGE_FORMATS_H
#define PNB_IO_IMAGE_FORMATS_H

#include "io/image/formats/codec.h"

typedef pnb_status (*pnb__decode_fn)(pnb_image *, const unsigned char *, size_t,
                                     const pnb_image_opts *, int *, pnb_error *);

/* The decoder for these first bytes. Errors  FORMAT (no picture), UNSUPPORTED (a format that is not
 * read, or whose library this build lacks; the text names which) */
pnb_status pnb__image_decoder(pnb__decode_fn *out, const unsigned char *bytes, size_t n_bytes,
                              pnb_error *err);

#endif
