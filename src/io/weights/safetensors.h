/* Inside of safetensors: the header parser and the streaming writer. */
#ifndef PNB_IO_WEIGHTS_SAFETENSORS_H
#define PNB_IO_WEIGHTS_SAFETENSORS_H

#include "base/base.h"
#include "penumbra/safetensors.h"

/* Longest header accepted and written. */
#define PNB__ST_MAX_HEADER ((size_t)100 * 1000 * 1000)

typedef struct pnb__st_pair {
    const char *key, *value;
} pnb__st_pair;

/* What a file says; everything lies in the arena, `data` of the views in the bytes. */
typedef struct pnb__st_header {
    pnb_array_view *views; /* in the order of their bytes */
    size_t n_views;
    pnb__st_pair *metadata;
    size_t n_metadata;
    size_t n_trailing; /* bytes after the last array */
} pnb__st_header;

/* Checks every rule of docs/formats.md on a whole file image. `where` starts error texts.
 * Errors  as pnb_safetensors_open */
pnb_status pnb__st_parse(pnb__st_header *out, const unsigned char *bytes, size_t n_bytes,
                         const char *where, pnb__arena *arena, pnb_error *err);

/* Whether the files are as they were when they were opened.  Errors  IO: the text names the one
 * that was written to */
pnb_status pnb__st_check_files(const pnb_safetensors *st, pnb_error *err);

/* Writer of one file whose array bytes come in pieces. `data` of the views is not looked at. */
typedef struct pnb__st_writer {
    pnb__out_file out;
    size_t *order; /* append array order[0] whole, then order[1], ... */
    size_t n;
    uint64_t n_written, n_total; /* array bytes so far and at the end */
} pnb__st_writer;

pnb_status pnb__st_writer_open(pnb__st_writer *w, const char *path, const pnb_array_view *arrays,
                               size_t n, const char *const *metadata, pnb_error *err);
/* The same on an output that is open already; it belongs to the writer after success. */
pnb_status pnb__st_writer_open_on(pnb__st_writer *w, pnb__out_file *f, const pnb_array_view *arrays,
                                  size_t n, const char *const *metadata, pnb_error *err);
pnb_status pnb__st_writer_append(pnb__st_writer *w, const void *data, size_t n_bytes,
                                 pnb_error *err);
/* Puts all bytes on the disk without replacing the target yet: call before several commits. */
pnb_status pnb__st_writer_sync(pnb__st_writer *w, pnb_error *err);
/* Replaces the target; ARG when fewer bytes came than the header promises. Ends the writer. */
pnb_status pnb__st_writer_commit(pnb__st_writer *w, pnb_error *err);
void pnb__st_writer_abort(pnb__st_writer *w); /* fine after commit and on an all-zero writer */

/* Puts what was written so far on the disk without replacing the target: called on all files of a
 * set before the first is committed, so that a full disk is noticed while nothing has changed. */
pnb_status pnb__out_sync(const pnb__out_file *f, pnb_error *err);

#endif
