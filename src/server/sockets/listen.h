/* The server on a socket: libmicrohttpd speaks HTTP, this hands its requests to routes. */
#ifndef PNB_SERVER_SOCKETS_LISTEN_H
#define PNB_SERVER_SOCKETS_LISTEN_H

#include "server/server.h"

typedef struct pnb__listen_opts {
    const char *host;            /* a name or an address of this machine */
    int port;                    /* 0: any that is free */
    size_t n_workers, max_queue; /* requests worked on at once, and those that wait */
    size_t max_connections;
    double timeout_s; /* for a whole request to arrive, and for its reply to be taken */
} pnb__listen_opts;

typedef struct pnb__listener pnb__listener;

/* Version of libmicrohttpd, or what to install where it cannot be opened; NULL where this build is
 * without. */
const char *pnb__listen_version(void);

/* Listens from now on; `s` must outlive it. The port that was chosen is in *port.
 * Errors  UNSUPPORTED (without libmicrohttpd), NOT_FOUND (no such host), BUSY (the port is
 *         taken), IO, NOMEM */
pnb_status pnb__listen(pnb__listener **out, pnb__server *s, const pnb__listen_opts *opts, int *port,
                       pnb_error *err);
/* Takes no connection any more, answers what was asked, for at most `limit_s`, and frees it all.
 * NULL is fine. */
void pnb__listen_end(pnb__listener *l, double limit_s);

#endif
