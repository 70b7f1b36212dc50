/* What ranks do together, for the rooms above: parts gathered, numbers summed, texts traded.
 *
 * Everything is made of trades (wire.h), the same for MPI and sockets, and adds in the order of
 * ranks: a fixed number of ranks gives the same bits whatever carries them. Of NULL (one process)
 * each call leaves its arguments as they are. All ranks call alike; one thread at a time.
 * Errors of all  those of a rank that failed (named); IO (a rank gone, or silent) ; NOMEM */
#ifndef PNB_PEERS_RANKS_H
#define PNB_PEERS_RANKS_H

#include "base/base.h"
#include "penumbra/peers.h"

/* Data of n_ranks parts, part r being bytes from[r] to from[r + 1] - 1 and that of this rank filled
 * in: afterwards all are. from (n_ranks + 1). */
pnb_status pnb__peers_gather(pnb_peers *r, void *data, const size_t *from, pnb_error *err);

/* Where part i of n things begins that are dealt evenly to n_parts; nothing overflows. */
size_t pnb__peers_part_at(size_t n, size_t n_parts, size_t i);
/* The same of n things of `size` bytes, each rank's part of them filled in by itself. */
pnb_status pnb__peers_gather_even(pnb_peers *r, void *data, size_t n, size_t size, pnb_error *err);

/* n numbers become their sum over the ranks, on all of them. `culprit`, where it is not NULL, gets
 * the lowest rank whose own numbers are not finite though the sum is asked for, or -1: the same on
 * every rank. */
pnb_status pnb__peers_sum(pnb_peers *r, void *data, size_t n, bool is_double, int *culprit,
                          pnb_error *err);

/* Numbers of n_ranks parts, part r being from[r] to from[r + 1] - 1, all filled in by every rank:
 * afterwards our part is the sum of what the ranks had there, added in doubles and rounded once;
 * the others stay. from (n_ranks + 1). */
pnb_status pnb__peers_sum_part(pnb_peers *r, float *data, const size_t *from, pnb_error *err);

/* Whether any rank has `flag` up. */
pnb_status pnb__peers_any(pnb_peers *r, bool *flag, pnb_error *err);

/* Bytes of every rank, of any length: out (n_ranks) buffers, filled with what each gave. */
pnb_status pnb__peers_tell_all(pnb_peers *r, const void *bytes, size_t n, pnb__buf *out,
                               pnb_error *err);

/* Rank 0's bytes on all ranks: `b` is replaced on the others. */
pnb_status pnb__peers_share(pnb_peers *r, pnb__buf *b, pnb_error *err);

/* The same text on all ranks, line by line "name: value"; a rank with another one is named with
 * the first line that differs.  Errors  ARG */
pnb_status pnb__peers_compare(pnb_peers *r, const char *what, const char *text, pnb_error *err);

/* A failure that all ranks found alike, of rank `whose`: settled without a word. `err` becomes its
 * text behind "rank N: ". Returns `status`. */
pnb_status pnb__peers_blame(pnb_peers *r, size_t whose, pnb_status status, pnb_error *err);

/* Bytes that left this process, and seconds in trades, since it was opened. */
typedef struct pnb__peers_cost {
    uint64_t n_bytes, n_trades;
    double seconds;
} pnb__peers_cost;
pnb__peers_cost pnb__peers_get_cost(const pnb_peers *r);

#endif
