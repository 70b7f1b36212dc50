/* One list embedded by several processes: whose inputs are whose, and how far all of them are. */
#ifndef PNB_ENCODE_JOB_EMBED_SHARE_H
#define PNB_ENCODE_JOB_EMBED_SHARE_H

#include "base/base.h"
#include "encode/job/embed_journal.h"
#include "penumbra/peers.h"

/* Inputs begin .. end - 1. */
typedef struct pnb__embed_range {
    size_t begin, end;
} pnb__embed_range;

/* What no part covers of n inputs, as ranges in order; free with pnb__free. NOMEM */
pnb_status pnb__embed_gaps(const pnb__embed_part *parts, size_t n_parts, size_t n,
                           pnb__embed_range **out, size_t *n_out, pnb_error *err);
/* Ranges become those of one rank: the batches of all, cut into n_ranks equal runs. They begin at
 * multiples of `batch`. */
void pnb__embed_deal(pnb__embed_range *ranges, size_t *n, size_t batch, size_t rank,
                     size_t n_ranks);

/* Where a rank is. */
typedef struct pnb__embed_place {
    uint64_t n_done; /* inputs, of its share */
    bool stops;      /* it was told to */
    bool has_ended;  /* nothing is left for it */
} pnb__embed_place;

/* Ranks meet after so many batches of each that the slowest takes half a second: who fails, stops
 * or is gone is known soon, and nobody waits for long. */
typedef struct pnb__embed_rounds {
    pnb_peers *ranks;
    size_t n_batches; /* of a round, the same on all ranks */
    size_t n_since;   /* batches of this one */
    double began_s;
} pnb__embed_rounds;

void pnb__embed_rounds_init(pnb__embed_rounds *r, pnb_peers *ranks);
/* Whether the round is over, after another batch. Alone it never is. */
bool pnb__embed_rounds_step(pnb__embed_rounds *r);
/* Meets: out has the inputs of all, whether one stops, whether all have ended.
 * Errors  those of other ranks; IO (a rank is gone or silent) */
pnb_status pnb__embed_rounds_meet(pnb__embed_rounds *r, const pnb__embed_place *mine,
                                  pnb__embed_place *out, pnb_error *err);

#endif
