/* Packed files whose bytes must be reached at any place: unpacked once, then mapped. */
#ifndef PNB_IO_UNPACK_H
#define PNB_IO_UNPACK_H

#include "base/base.h"

/* gzip (RFC 1952) or Zstandard (RFC 8878) by their first bytes. */
bool pnb__is_packed(const void *bytes, size_t n);
/* Replaces the map of a packed file by one of its unpacked bytes, all members or frames behind each
 * other. They lie in a file without a name in the folder of `path`, or in /tmp where that cannot be
 * written: pages of a file, not memory of the process, gone with the map. Of a file that is damaged
 * or ends early the bytes in front of that come out, if there are any. At most `max_bytes` do.
 * Errors  FORMAT (nothing could be unpacked), LIMIT, UNSUPPORTED (zstd, and built without), IO (no
 *         room on the disk), NOMEM; the map stays as it was then */
pnb_status pnb__unpack_map(pnb__map *m, const char *path, uint64_t max_bytes, pnb_error *err);

#endif
