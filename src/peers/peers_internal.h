/* The tie of one process to the others, shared by ranks.c and collect.c. */
#ifndef PNB_PEERS_RANKS_INTERNAL_H
#define PNB_PEERS_RANKS_INTERNAL_H

#include "peers/peers.h"
#include "peers/wire.h"

struct pnb_peers {
    size_t rank, n_ranks;
    double timeout_s;
    pnb__wire wire;
    pnb__post *out, *in; /* (n_ranks) of the trade at hand */
    uint64_t number;     /* of the next trade */
    void *scratch;       /* of sums */
    size_t n_scratch;
    bool is_settled; /* a failure is known to all */
    pnb__notice failure;
    pnb__peers_cost cost;
};

/* Empties both lists of posts. */
void pnb__peers_begin(pnb_peers *r);
/* Runs the trade that out and in were filled for; flags go along. */
pnb_status pnb__peers_trade(pnb_peers *r, uint32_t flags, pnb_error *err);

#endif
