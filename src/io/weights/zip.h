/* Reading zip archives: the container of PyTorch checkpoints. */
#ifndef PNB_IO_WEIGHTS_ZIP_H
#define PNB_IO_WEIGHTS_ZIP_H

#include "base/base.h"

/* One member; `data` points into the archive's bytes and is n_stored long. */
typedef struct pnb__zip_member {
    const char *name; /* terminated, in the arena */
    const unsigned char *data;
    size_t n_stored, n_bytes; /* in the archive, and unpacked; equal when stored plainly */
    uint32_t crc;
    bool is_deflated;
    size_t header_at; /* of its local header */
} pnb__zip_member;

typedef struct pnb__zip {
    pnb__zip_member *members; /* sorted by name */
    size_t n;
    const char *where;
} pnb__zip;

/* Reads the central directory of a whole archive (zip64 too) and checks it against every local
 * header. Names and members lie in the arena.
 * Errors  FORMAT (truncated, overlapping, contradicting, repeated or unsafe names), UNSUPPORTED
 *         (encrypted, several disks, other compressions), LIMIT, NOMEM */
pnb_status pnb__zip_open(pnb__zip *out, const unsigned char *bytes, size_t n_bytes,
                         const char *where, pnb__arena *arena, pnb_error *err);

const pnb__zip_member *pnb__zip_find(const pnb__zip *zip, const char *name); /* or NULL */

/* Unpacked bytes of a member, checked against its CRC: where they lie in the archive when stored,
 * otherwise *owned is allocated (pnb__free_aligned), which is at most 64 times what is stored plus
 * 64 KiB. Errors  FORMAT (damaged), LIMIT, NOMEM */
pnb_status pnb__zip_read(const pnb__zip *zip, const pnb__zip_member *m, const unsigned char **data,
                         void **owned, pnb_error *err);

#endif
