/* An embedding set that is written a block of rows at a time, for sets that do not fit memory. */
#ifndef PNB_SETS_SET_WRITER_H
#define PNB_SETS_SET_WRITER_H

#include "io/weights/safetensors.h"
#include "sets/embeddings.h"

/* All zero: closed. */
typedef struct pnb__set_writer {
    pnb__ids_writer ids;
    pnb__st_writer arrays;
    int which[PNB__N_EMBEDDING_ARRAYS]; /* array of each view */
    int64_t first;                      /* byte of the file where arrays begin */
    size_t n, n_written;                /* rows in all, and so far */
} pnb__set_writer;

/* Begins a set of the family, rows, width, info and names of `like`, whose arrays are not looked
 * at. `path` ends in ".safetensors". Abort after a failure too.
 * Errors  as pnb_embeddings_save; UNSUPPORTED (a target in which nobody can go back, a pipe) */
pnb_status pnb__set_writer_open(pnb__set_writer *w, const pnb_embeddings *like, const char *path,
                                pnb_error *err);
/* The next rows: those of `block`, of the same family and width. Its names are not looked at.
 * Errors  NUMERIC (a number outside its range: rows are counted in the block), ARG (more rows than
 * announced, another family or width), IO */
pnb_status pnb__set_writer_append(pnb__set_writer *w, const pnb_embeddings *block, pnb_error *err);
/* Both files appear, whole. ARG when rows are missing. */
pnb_status pnb__set_writer_commit(pnb__set_writer *w, pnb_error *err);
void pnb__set_writer_abort(pnb__set_writer *w); /* fine after commit */

#endif
