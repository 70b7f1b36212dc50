/* Sockets between all pairs of ranks; tcp_meet.c makes them, tcp.c uses them. */
#ifndef PNB_PEERS_TCP_H
#define PNB_PEERS_TCP_H

#include "peers/wire.h"

/* sockets (n_ranks): filled with one a rank, -1 for our own; all -1 on failure. Waits at most
 * timeout_s. Errors  those of pnb_peers_open */
pnb_status pnb__tcp_meet(int *sockets, const pnb_launch *l, double timeout_s,
                         const volatile sig_atomic_t *stop, pnb_error *err);
/* A wire over connected sockets that do not block (n_ranks, -1 for our own), which it closes.
 * NOMEM: they stay the caller's. */
pnb_status pnb__tcp_tie(pnb__wire *out, size_t rank, size_t n_ranks, const int *sockets,
                        pnb_error *err);

#endif
