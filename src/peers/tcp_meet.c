/* How ranks find each other without MPI: rank 0 listens where MASTER_ADDR and MASTER_PORT say, the
 * others tell it where they listen, get the list of all, and each calls those below it.
 *
 *     rank r > 0 -> 0    hello {magic, version, ranks, rank, port it listens at}
 *     0 -> rank r        places of ranks 1..R-1, once all have come
 *     rank r -> 0 < s < r  hello
 *
 * Rank 0 sees where a rank calls from; one on its own machine may call from a loopback address,
 * which to the others means the machine of rank 0. Who calls and is no rank is hung up on. */
#include "peers/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HELLO = 0x706e6248, VERSION = 1, ADDRESS_BYTES = 64, HELLO_WAIT_S = 5 };

typedef struct hello {
    uint32_t magic, version, n_ranks, rank, port;
} hello;

typedef struct place {
    char address[ADDRESS_BYTES];
    uint32_t port;
} place;

/* How long ranks wait for each other, and what ends it before. */
typedef struct patience {
    double timeout_s, end;
    const volatile sig_atomic_t *stop; /* may be NULL */
} patience;

/* As long as somebody may press Ctrl-C and see nothing happen. */
enum { TICK_MS = 200 };

static bool is_stopped(const patience *w)
{
    return w->stop != NULL && *w->stop;
}

static pnb_status fail_stopped(const pnb_launch *l, pnb_error *err)
{
    return pnb__fail(err, PNB_INTERRUPTED, "rank %zu of %zu still waited for the others", l->rank,
                     l->n_ranks);
}

static void nap(void)
{
    const struct timespec t = {.tv_nsec = 20000000};
    nanosleep(&t, NULL);
}

/* Only this machine is meant. */
static bool is_loopback(const char *address)
{
    return strcmp(address, "localhost") == 0 || pnb__starts_with(address, "127.") ||
           strcmp(address, "::1") == 0;
}

/* Small messages go at once, and a call that waits ends: meeting is no place to hang. */
static void tune(int s, const patience *w)
{
    const int yes = 1;
    double left = PNB_MAX(w->end - pnb__now_s(), 0.1);
    const struct timeval wait = {
        .tv_sec = left < HELLO_WAIT_S ? (time_t)left : HELLO_WAIT_S,
        .tv_usec = left < HELLO_WAIT_S ? (suseconds_t)((left - (double)(time_t)left) * 1e6) : 0};
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

static bool send_all(int s, const void *data, size_t n)
{
    const char *at = data;
    while (n > 0) {
        ssize_t sent = send(s, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool take_all(int s, void *data, size_t n, const patience *w)
{
    char *at = data;
    while (n > 0) {
        ssize_t got = recv(s, at, n, 0);
        if (got < 0 && errno == EINTR && !is_stopped(w))
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

/* Listens at a port, 0 for any, on this machine alone or on all its addresses. */
static int listen_at(bool loopback, int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)*port),
                            .sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY)};
    socklen_t n = sizeof a;
    const int yes = 1;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return -1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(s, (const struct sockaddr *)&a, sizeof a) != 0 || listen(s, 1024) != 0 ||
        getsockname(s, (struct sockaddr *)&a, &n) != 0) {
        int reason = errno;
        close(s);
        errno = reason;
        return -1;
    }
    *port = ntohs(a.sin_port);
    return s;
}

/* Connects until the end: rank 0 may start later than we do, and its name be known later too. */
static pnb_status call(int *out, const char *address, int port, const pnb_launch *l,
                       const patience *w, pnb_error *err)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    char service[16];
    const char *why = "";
    snprintf(service, sizeof service, "%d", port);
    do {
        struct addrinfo *found = NULL;
        int failure = getaddrinfo(address, service, &hints, &found);
        int s = failure == 0 ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
        bool ok = s >= 0;
        if (ok)
            tune(s, w);
        if (ok && connect(s, found->ai_addr, found->ai_addrlen) != 0)
            ok = false;
        why = failure != 0 ? gai_strerror(failure) : strerror(errno);
        if (found != NULL)
            freeaddrinfo(found);
        if (ok) {
            *out = s;
            return PNB_OK;
        }
        if (s >= 0)
            close(s);
        nap();
    } while (pnb__now_s() < w->end && !is_stopped(w));
    if (is_stopped(w))
        return fail_stopped(l, err);
    return pnb__fail(err, PNB_NOT_FOUND, "%s port %d does not answer for %.0f s: %s", address, port,
                     w->timeout_s, why);
}

/* A caller that says hello; -1: none came for a while, or one that is no rank. */
static int accept_one(int listener, hello *h, const patience *w)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    if (poll(&p, 1, TICK_MS) <= 0)
        return -1;
    int s = accept(listener, NULL, NULL);
    if (s < 0)
        return -1;
    fcntl(s, F_SETFD, FD_CLOEXEC);
    tune(s, w);
    if (take_all(s, h, sizeof *h, w) && h->magic == HELLO)
        return s;
    close(s);
    return -1;
}

/* The first that has not called. */
static pnb_status fail_missing(const int *sockets, size_t from, size_t n, double timeout_s,
                               pnb_error *err)
{
    size_t p = from;
    while (p < n && sockets[p] >= 0)
        p++;
    return pnb__fail(err, PNB_IO, "rank %zu of %zu did not come within %.0f s", p, n, timeout_s);
}

/* Takes calls from ranks from..n-1. ports is NULL where nobody asks for them. */
static pnb_status await(int listener, int *sockets, const pnb_launch *l, size_t from,
                        uint32_t *ports, const patience *w, pnb_error *err)
{
    for (size_t n = from; n < l->n_ranks;) {
        hello h;
        int s = accept_one(listener, &h, w);
        if (s < 0 && is_stopped(w))
            return fail_stopped(l, err);
        if (s < 0 && pnb__now_s() > w->end)
            return fail_missing(sockets, from, l->n_ranks, w->timeout_s, err);
        if (s < 0)
            continue;
        bool is_ours = h.version == VERSION && h.n_ranks == l->n_ranks && h.rank >= from &&
                       h.rank < l->n_ranks && sockets[h.rank] < 0;
        if (!is_ours) {
            close(s);
            return pnb__fail(err, PNB_ARG,
                             "a rank %u of %u called, version %u, where there are %zu ranks: two "
                             "jobs at one port, or one rank started twice",
                             h.rank, h.n_ranks, h.version, l->n_ranks);
        }
        sockets[h.rank] = s;
        if (ports != NULL)
            ports[h.rank] = h.port;
        n++;
    }
    return PNB_OK;
}

static void address_of(int s, char out[ADDRESS_BYTES])
{
    struct sockaddr_in a;
    socklen_t n = sizeof a;
    out[0] = '\0';
    if (getpeername(s, (struct sockaddr *)&a, &n) == 0)
        getnameinfo((const struct sockaddr *)&a, n, out, ADDRESS_BYTES, NULL, 0, NI_NUMERICHOST);
}

/* Rank 0: the places of all go to all. */
static pnb_status host(int listener, int *sockets, const pnb_launch *l, place *places,
                       const patience *w, pnb_error *err)
{
    uint32_t *ports = NULL;
    if (PNB_ALLOC_ZERO(ports, l->n_ranks, err) != PNB_OK)
        return PNB_NOMEM;
    pnb_status status = await(listener, sockets, l, 1, ports, w, err);
    for (size_t p = 1; p < l->n_ranks && status == PNB_OK; p++) {
        address_of(sockets[p], places[p].address);
        places[p].port = ports[p];
    }
    for (size_t p = 1; p < l->n_ranks && status == PNB_OK; p++)
        if (!send_all(sockets[p], places, l->n_ranks * sizeof *places))
            status = pnb__fail(err, PNB_IO, "rank %zu hung up while ranks met", p);
    pnb__free(ports);
    return status;
}

/* The list comes when all ranks have: that may take as long as the slowest of them. */
static pnb_status take_places(int s, place *places, const pnb_launch *l, const patience *w,
                              pnb_error *err)
{
    struct pollfd p = {.fd = s, .events = POLLIN};
    while (poll(&p, 1, TICK_MS) <= 0) {
        if (is_stopped(w))
            return fail_stopped(l, err);
        if (pnb__now_s() > w->end)
            return pnb__fail(err, PNB_IO, "rank 0 did not say within %.0f s where the others are",
                             w->timeout_s);
    }
    if (take_all(s, places, l->n_ranks * sizeof *places, w))
        return PNB_OK;
    return pnb__fail(err, PNB_IO, "rank 0 hung up while ranks met");
}

/* The others: rank 0 first, then those between. */
static pnb_status join(int listener, int port, int *sockets, const pnb_launch *l, place *places,
                       const patience *w, pnb_error *err)
{
    const hello h = {HELLO, VERSION, (uint32_t)l->n_ranks, (uint32_t)l->rank, (uint32_t)port};
    pnb_status status = call(&sockets[0], l->address, l->port, l, w, err);
    if (status == PNB_OK && !send_all(sockets[0], &h, sizeof h))
        status = pnb__fail(err, PNB_IO, "rank 0 hung up while ranks met");
    if (status == PNB_OK)
        status = take_places(sockets[0], places, l, w, err);
    for (size_t p = 1; p < l->rank && status == PNB_OK; p++) {
        places[p].address[ADDRESS_BYTES - 1] = '\0';
        const char *address = is_loopback(places[p].address) ? l->address : places[p].address;
        status = call(&sockets[p], address, (int)places[p].port, l, w, err);
        if (status == PNB_OK && !send_all(sockets[p], &h, sizeof h))
            status = pnb__fail(err, PNB_IO, "rank %zu hung up while ranks met", p);
    }
    if (status == PNB_OK)
        status = await(listener, sockets, l, l->rank + 1, NULL, w, err);
    return status;
}

/* From here on nothing waits in a call: trades poll. */
static void loosen(int s)
{
    fcntl(s, F_SETFL, fcntl(s, F_GETFL) | O_NONBLOCK);
}

pnb_status pnb__tcp_meet(int *sockets, const pnb_launch *l, double timeout_s,
                         const volatile sig_atomic_t *stop, pnb_error *err)
{
    const patience w = {timeout_s, pnb__now_s() + timeout_s, stop};
    place *places = NULL;
    int port = l->rank == 0 ? l->port : 0;
    for (size_t p = 0; p < l->n_ranks; p++)
        sockets[p] = -1;
    if (PNB_ALLOC_ZERO(places, l->n_ranks, err) != PNB_OK)
        return PNB_NOMEM;
    int listener = listen_at(is_loopback(l->address), &port);
    pnb_status status = PNB_OK;
    if (listener < 0)
        status = pnb__fail(err, PNB_IO, "rank %zu cannot listen at port %d: %s", l->rank, port,
                           strerror(errno));
    else if (l->rank == 0)
        status = host(listener, sockets, l, places, &w, err);
    else
        status = join(listener, port, sockets, l, places, &w, err);
    if (listener >= 0)
        close(listener);
    for (size_t p = 0; p < l->n_ranks; p++) {
        if (sockets[p] >= 0 && status == PNB_OK)
            loosen(sockets[p]);
        else if (sockets[p] >= 0) {
            close(sockets[p]);
            sockets[p] = -1;
        }
    }
    pnb__free(places);
    return status;
}
