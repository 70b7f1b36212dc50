/* Under the tie of ranks: bytes from one process to another, by MPI or by sockets.
 *
 * All that ranks do together is a trade: each sends one post to some of the others and takes one
 * from each of them, at the same time, so that nobody waits in a row and a silent rank is the one
 * that is named. A post is a header and its bytes; the header says which trade it belongs to, so
 * that ranks that do different things find out, and may be the notice of a failure instead. */
#ifndef PNB_PEERS_WIRE_H
#define PNB_PEERS_WIRE_H

#include "base/base.h"
#include "penumbra/peers.h"

enum { PNB__POST_DATA = 0x70656e75, PNB__POST_NOTICE = 0x70656e78 };

typedef struct pnb__post_header {
    uint32_t kind;
    uint32_t flags;   /* OR of all ranks' flags of a trade: something is asked of all */
    uint64_t number;  /* of the trade */
    uint64_t n_bytes; /* that follow */
} pnb__post_header;

/* What a notice brings. */
typedef struct pnb__notice {
    uint32_t rank;   /* whose failure it is */
    uint32_t status; /* pnb_status */
    uint32_t is_own; /* that rank says so itself; else others say that it is gone or silent */
    char text[500];
} pnb__notice;

/* One direction of a trade with one rank. n_bytes is what is sent, or what must come. */
typedef struct pnb__post {
    bool is_used;
    pnb__post_header header;
    void *data;
    /* the wire's: how much of header and data has gone or come */
    size_t done;
} pnb__post;

typedef struct pnb__wire {
    void *self;
    /* Sends out[p] and takes in[p], for all p in use; both have n_ranks entries. A notice that
     * comes is put into *notice, and the trade ends with INTERRUPTED. `silent` gets the first rank
     * that nothing came from, or -1. Errors  INTERRUPTED, IO (a rank is gone, or none moved for
     * timeout_s), FORMAT (what came belongs to another trade) */
    pnb_status (*trade)(void *self, pnb__post *out, pnb__post *in, double timeout_s,
                        pnb__notice *notice, int *silent, pnb_error *err);
    /* Sends a notice to all, as far as that is possible at once, and takes those of others for at
     * most timeout_s, until `want` says that it is enough. */
    void (*tell)(void *self, const pnb__notice *mine, double timeout_s, pnb__notice *theirs,
                 bool *heard);
    void (*close)(void *self, bool is_sound); /* is_sound: nothing failed */
} pnb__wire;

/* ---- tcp.c ---- */
pnb_status pnb__tcp_open(pnb__wire *out, const pnb_launch *l, double timeout_s,
                         const volatile sig_atomic_t *stop, pnb_error *err);

/* ---- mpi.c, mpi_none.c ---- */
bool pnb__mpi_is_built(void);
const char *pnb__mpi_version(void); /* of the headers; NULL: built without */
pnb_status pnb__mpi_open(pnb__wire *out, const pnb_launch *l, pnb_error *err);

/* Whether a header that came fits what is waited for; a notice does. */
static inline bool pnb__post_fits(const pnb__post *in, const pnb__post_header *came)
{
    if (came->kind == PNB__POST_NOTICE)
        return came->n_bytes == sizeof(pnb__notice);
    return came->kind == PNB__POST_DATA && came->number == in->header.number &&
           came->n_bytes == in->header.n_bytes;
}

#endif
