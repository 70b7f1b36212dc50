/* Inputs read ahead of their use, on threads of their own. */
#ifndef PNB_ENCODE_JOB_EMBED_AHEAD_H
#define PNB_ENCODE_JOB_EMBED_AHEAD_H

#include "base/base.h"

typedef struct pnb__embed_ahead pnb__embed_ahead;

/* Prepares one input: fills `row` or fails. Several threads call it at once. */
typedef pnb_status (*pnb__embed_read_fn)(void *user, size_t input, float *row, pnb_error *err);

typedef struct pnb__embed_ahead_opts {
    pnb__embed_read_fn read;
    void *user;
    size_t first, end; /* inputs to read, in this order */
    size_t row_values; /* floats of a row */
    size_t n_rows;     /* read ahead at most this many */
    int n_threads;
} pnb__embed_ahead_opts;

/* Starts reading at once. Release with pnb__embed_ahead_free, which waits for the inputs being read
 * and drops the rest. Errors  NOMEM (memory, or no thread could be started) */
pnb_status pnb__embed_ahead_start(pnb__embed_ahead **out, const pnb__embed_ahead_opts *opts,
                                  pnb_error *err);
void pnb__embed_ahead_free(pnb__embed_ahead *a);

/* The next input in order: waits for it if need be, copies its row or its error. False when all
 * have been taken. */
bool pnb__embed_ahead_next(pnb__embed_ahead *a, size_t *input, float *row, pnb_error *why);

/* Rows that lie ready now. */
size_t pnb__embed_ahead_ready(pnb__embed_ahead *a);

#endif
