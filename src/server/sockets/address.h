/* Names of hosts to addresses to listen at. */
#ifndef PNB_SERVER_SOCKETS_ADDRESS_H
#define PNB_SERVER_SOCKETS_ADDRESS_H

#include <sys/socket.h>

#include "base/base.h"

typedef struct pnb__address {
    struct sockaddr_storage at;
    socklen_t n_bytes;
} pnb__address;

/* The first address of a name, with a port.  Errors  NOT_FOUND */
pnb_status pnb__address_of(pnb__address *out, const char *host, int port, pnb_error *err);
/* Whether nobody but this machine reaches it. */
bool pnb__address_is_local(const pnb__address *a);
/* The address of a peer in numbers, without its port; "" for other than IP. */
void pnb__address_text(const struct sockaddr *a, char *text, size_t size);

#endif
