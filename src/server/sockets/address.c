/* Names of hosts to addresses, by the C library's resolver.
 *
 * Of a name with several addresses the first is taken, as the resolver orders them; what is
 * listened at is printed with the name that was given. */
#include "server/sockets/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

pnb_status pnb__address_of(pnb__address *out, const char *host, int port, pnb_error *err)
{
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int reason = getaddrinfo(host, service, &wanted, &found);
    if (reason != 0 || found == NULL)
        return pnb__fail(err, PNB_NOT_FOUND, "there is no host '%s' to listen at: %s", host,
                         gai_strerror(reason));
    memcpy(&out->at, found->ai_addr, found->ai_addrlen);
    out->n_bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return PNB_OK;
}

bool pnb__address_is_local(const pnb__address *a)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->at;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->at;
    if (a->at.ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    return a->at.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

void pnb__address_text(const struct sockaddr *a, char *text, size_t size)
{
    text[0] = '\0';
    if (a != NULL && a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, text, (socklen_t)size);
    else if (a != NULL && a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, text, (socklen_t)size);
}
