/* Inputs of a request to embeddings, through the batches that all requests share. */
#ifndef PNB_SERVER_BATCHING_ENCODING_H
#define PNB_SERVER_BATCHING_ENCODING_H

#include "server/batching/inputs.h"
#include "server/server.h"

/* Captions and pictures in sets of their own, NULL where there are none of a kind. */
typedef struct pnb__encoded {
    pnb_embeddings *texts, *images;
    size_t *row; /* [inputs] of its set */
    size_t n_tokens;
} pnb__encoded;

/* Captions to tokens, pictures to pixels, both to embeddings. Release with pnb__encoded_reset,
 * after a failure too.
 * Errors  UNSUPPORTED (the model lacks a side), FORMAT, ARG, LIMIT (a picture that is none, too
 *         large, a URL), INTERRUPTED (the client has left), NOMEM, and those of the encoder */
pnb_status pnb__server_encode(pnb__served *s, const pnb__http_request *q, const pnb__inputs *in,
                              pnb__encoded *out, pnb_error *err);
void pnb__encoded_reset(pnb__encoded *e);

/* pnb__batch_fn over the encoder of a server, which is `user`. */
pnb_status pnb__server_encode_batch(void *user, pnb_encode_side side, const void *const *rows,
                                    size_t n, pnb_embeddings **out, pnb_error *err);
/* pnb__batcher_opts.waited */
void pnb__server_waited(void *user, double seconds);

#endif
