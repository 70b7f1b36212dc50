/* tar archives with byte positions: what a data loader needs to go straight to a sample again. */
#ifndef PNB_IO_TABLES_TAR_H
#define PNB_IO_TABLES_TAR_H

#include "base/base.h"

typedef struct pnb__tar_member {
    const char *name;          /* until the next call on the same reader */
    const unsigned char *data; /* in the map; NULL when size is 0 */
    uint64_t size;
    uint64_t data_offset;
    uint64_t
        header_offset; /* of the first header block that belongs to the member (pax, long name) */
    bool is_file;      /* regular file; folders and links are reported with size 0 */
} pnb__tar_member;

typedef struct pnb__tar {
    pnb__map map; /* of a file; unused for bytes */
    const unsigned char *bytes;
    size_t n_bytes;
    uint64_t position; /* next header */
    pnb__buf name;
    char *where; /* starts error texts */
} pnb__tar;

/* Maps an archive: ustar, pax (path, size) and GNU (long names, base-256 sizes). One packed by gzip
 * or zstd is unpacked first (io/unpack.h), and positions are those of the unpacked one. On failure
 * the reader is closed. Errors  NOT_FOUND, IO, FORMAT, LIMIT, UNSUPPORTED (bzip2; zstd in a build
 * without it), NOMEM */
pnb_status pnb__tar_open(pnb__tar *t, const char *path, pnb_error *err);
/* The same on borrowed bytes. */
pnb_status pnb__tar_open_bytes(pnb__tar *t, const void *bytes, size_t n, const char *where,
                               pnb_error *err);
void pnb__tar_close(pnb__tar *t); /* an all-zero reader is fine */

/* Next member; *more is false at the end (zero block, or the file ends after a whole member).
 * Errors  FORMAT (checksum, truncated, bad number), UNSUPPORTED (sparse), NOMEM. After an error the
 * position has not moved. */
pnb_status pnb__tar_next(pnb__tar *t, pnb__tar_member *m, bool *more, pnb_error *err);
/* Goes to a header_offset seen before (or 0). ARG when it is outside the archive or not on a block.
 */
pnb_status pnb__tar_seek(pnb__tar *t, uint64_t header_offset, pnb_error *err);

/* Writer: same members, same bytes (owner 0, mode 0644, time 0). The file appears at commit. */
typedef struct pnb__tar_writer {
    pnb__out_file out;
    uint64_t position;
} pnb__tar_writer;
pnb_status pnb__tar_writer_open(pnb__tar_writer *w, const char *path, pnb_error *err);
/* ARG: name empty, absolute or with a ".." part. */
pnb_status pnb__tar_writer_add(pnb__tar_writer *w, const char *name, const void *data, size_t n,
                               pnb_error *err);
pnb_status pnb__tar_writer_commit(pnb__tar_writer *w, pnb_error *err);
void pnb__tar_writer_abort(pnb__tar_writer *w); /* fine after commit and on an all-zero writer */

#endif
