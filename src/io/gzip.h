/* gzip files unpacked into memory. */
#ifndef PNB_IO_GZIP_H
#define PNB_IO_GZIP_H

#include "base/base.h"

/* 0x1f 0x8b at the start. */
bool pnb__is_gzip(const void *bytes, size_t n);

/* Unpacks the first member of a gzip file, one 0 byte behind it; free *out with pnb__free.
 * Errors  FORMAT (damaged, cut short), LIMIT (more than max_bytes when unpacked), NOMEM */
pnb_status pnb__gunzip(const void *bytes, size_t n, size_t max_bytes, unsigned char **out,
                       size_t *n_out, pnb_error *err);

#endif
