/* Inputs of many requests, encoded together. */
#ifndef PNB_SERVER_BATCHING_BATCHER_H
#define PNB_SERVER_BATCHING_BATCHER_H

#include "penumbra/embeddings.h"
#include "penumbra/encode.h"

/* Encodes n prepared rows of one side to a new set. Called from one thread. */
typedef pnb_status (*pnb__batch_fn)(void *user, pnb_encode_side side, const void *const *rows,
                                    size_t n, pnb_embeddings **out, pnb_error *err);

typedef struct pnb__batcher_opts {
    pnb__batch_fn encode;
    void *user;
    size_t max_batch;
    double
        wait_s; /* a batch that is not full waits at most so long, for requests that are coming */
    void (*waited)(void *user,
                   double seconds); /* of each request, until its first batch; or NULL */
} pnb__batcher_opts;

typedef struct pnb__batcher pnb__batcher;

/* Free with pnb__batcher_free; none of its calls may be running then, NULL is fine.
 * Errors  NOMEM */
pnb_status pnb__batcher_start(pnb__batcher **out, const pnb__batcher_opts *opts, pnb_error *err);
void pnb__batcher_free(pnb__batcher *b);

/* Says that a request is on its way here, +1, or that it goes elsewhere, -1: a batch waits for
 * those on their way and for no others, so that who comes alone waits for nobody. */
void pnb__batcher_expect(pnb__batcher *b, int by);

/* Rows of one request. */
typedef struct pnb__batch_rows {
    pnb_encode_side side;
    const void *rows;
    size_t n, row_bytes;
    bool is_expected;                  /* it was announced, and is here now */
    bool (*is_gone)(const void *user); /* nobody waits for them any more; NULL: somebody does */
    const void *user;
} pnb__batch_rows;

/* Waits until all are encoded, in as many batches as it takes, to a new set. A request of many rows
 * gives way to others after each batch. What fails in company is tried alone, so that one request
 * cannot spoil another's.
 * Errors  INTERRUPTED (nobody waits), NOMEM, and those of encoding */
pnb_status pnb__batcher_encode(pnb__batcher *b, const pnb__batch_rows *rows, pnb_embeddings **out,
                               pnb_error *err);

#endif
