/* Sets in memory that several processes made of one list, as one. */
#ifndef PNB_ENCODE_JOB_EMBED_GATHER_H
#define PNB_ENCODE_JOB_EMBED_GATHER_H

#include "base/base.h"
#include "encode/job/embed_journal.h"
#include "penumbra/peers.h"

/* What is known of rows beside their numbers. */
typedef struct pnb__embed_known {
    size_t n_rows, n_truncated, n_unknown;
    size_t *input; /* (n_rows) that each row is of */
    pnb__embed_skip *skips;
    size_t n_skips;
} pnb__embed_known;
void pnb__embed_known_reset(pnb__embed_known *k);
pnb_status pnb__embed_known_skip(pnb__embed_known *k, size_t input, const char *why,
                                 pnb_error *err);

/* That of all ranks in their order, and from (n_ranks + 1) the first row of each. On failure `all`
 * is empty.  Errors  FORMAT (a rank sent something else), NOMEM, those of other ranks */
pnb_status pnb__embed_gather_known(pnb_peers *ranks, const pnb__embed_known *mine,
                                   pnb__embed_known *all, size_t *from, pnb_error *err);
/* The arrays of all ranks' rows into `all`, a set of from[n_ranks] rows like `mine`. */
pnb_status pnb__embed_gather_rows(pnb_peers *ranks, const pnb_embeddings *mine, pnb_embeddings *all,
                                  const size_t *from, pnb_error *err);

#endif
