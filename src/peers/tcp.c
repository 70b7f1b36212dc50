/* Trades over sockets: one poll loop sends to all and takes from all at once.
 *
 * A socket that cannot be written to is not given up before it was read to its end: what a failing
 * rank said last must not be lost. A notice may stand where data are due; then the trade is over.
 */
#include "peers/tcp.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct tcp {
    size_t rank, n_ranks;
    int *sockets;
    struct pollfd *polled;
    pnb__post_header *came; /* of each rank, as far as it is here */
    bool *is_deaf;          /* cannot be written to any more */
    pnb__notice notice;     /* that comes */
} tcp;

enum { HEADER = sizeof(pnb__post_header) };

/* Part of header and data from byte `at` on; *n is its length. */
static void *piece(pnb__post_header *header, void *data, size_t n_data, size_t at, size_t *n)
{
    if (at < HEADER) {
        *n = HEADER - at;
        return (char *)header + at;
    }
    *n = n_data - (at - HEADER);
    return (char *)data + (at - HEADER);
}

static bool is_out_done(const pnb__post *post)
{
    return !post->is_used || post->done == HEADER + post->header.n_bytes;
}

static bool is_in_done(const tcp *t, size_t p, const pnb__post *post)
{
    return !post->is_used || (post->done >= HEADER && post->done == HEADER + t->came[p].n_bytes);
}

/* As much as the socket takes. */
static bool push(tcp *t, size_t p, pnb__post *post)
{
    bool moved = false;
    while (!is_out_done(post) && !t->is_deaf[p]) {
        size_t n = 0;
        const void *at = piece(&post->header, post->data, post->header.n_bytes, post->done, &n);
        ssize_t sent = send(t->sockets[p], at, n, MSG_NOSIGNAL);
        if (sent > 0) {
            post->done += (size_t)sent;
            moved = true;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            t->is_deaf[p] = true;
        }
    }
    return moved;
}

/* As much as is there. OK: nothing is wrong so far. */
static pnb_status pull(tcp *t, size_t p, pnb__post *post, bool *moved, pnb_error *err)
{
    while (!is_in_done(t, p, post)) {
        size_t n = 0;
        bool is_notice = post->done >= HEADER && t->came[p].kind == PNB__POST_NOTICE;
        void *to = is_notice ? (void *)&t->notice : post->data;
        void *at = piece(&t->came[p], to, t->came[p].n_bytes, post->done, &n);
        ssize_t got = recv(t->sockets[p], at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return PNB_OK;
        if (got <= 0)
            return pnb__fail(err, PNB_IO, "its process is gone (%s)",
                             got == 0 ? "connection closed" : strerror(errno));
        *moved = true;
        post->done += (size_t)got;
        if (post->done == HEADER && !pnb__post_fits(post, &t->came[p]))
            return pnb__fail(
                err, PNB_FORMAT,
                "it is at trade %llu with %llu bytes, others are at %llu with %llu: "
                "peers/ do not do the same",
                (unsigned long long)t->came[p].number, (unsigned long long)t->came[p].n_bytes,
                (unsigned long long)post->header.number, (unsigned long long)post->header.n_bytes);
    }
    return PNB_OK;
}

/* What each socket is waited for. False: nothing is left. */
static bool fill_polled(const tcp *t, const pnb__post *out, const pnb__post *in)
{
    bool any = false;
    for (size_t p = 0; p < t->n_ranks; p++) {
        bool takes = t->sockets[p] >= 0 && !is_in_done(t, p, &in[p]);
        bool sends = t->sockets[p] >= 0 && !is_out_done(&out[p]) && !t->is_deaf[p];
        t->polled[p] = (struct pollfd){
            .fd = takes || sends ? t->sockets[p] : -1,
            .events = (short)((takes ? POLLIN : 0) | (sends ? POLLOUT : 0)),
        };
        any = any || takes || sends;
    }
    return any;
}

static pnb_status move_all(tcp *t, pnb__post *out, pnb__post *in, bool *moved, pnb__notice *notice,
                           int *silent, pnb_error *err)
{
    for (size_t p = 0; p < t->n_ranks; p++) {
        if (t->polled[p].revents == 0)
            continue;
        if (push(t, p, &out[p]))
            *moved = true;
        pnb_status status = pull(t, p, &in[p], moved, err);
        *silent = (int)p;
        if (status != PNB_OK)
            return status;
        if (in[p].is_used && is_in_done(t, p, &in[p])) {
            if (t->came[p].kind == PNB__POST_NOTICE) {
                *notice = t->notice;
                return PNB_INTERRUPTED;
            }
            in[p].header = t->came[p];
        }
    }
    *silent = -1;
    return PNB_OK;
}

/* Whom a trade still waits for: those who have not sent, then those who do not take. */
static int find_silent(const tcp *t, const pnb__post *out, const pnb__post *in)
{
    for (size_t p = 0; p < t->n_ranks; p++)
        if (t->sockets[p] >= 0 && !is_in_done(t, p, &in[p]))
            return (int)p;
    for (size_t p = 0; p < t->n_ranks; p++)
        if (t->sockets[p] >= 0 && !is_out_done(&out[p]))
            return (int)p;
    return -1;
}

/* A notice behind half a post would be taken for the rest of it: such a rank gets none. */
static void stop_halves(tcp *t, const pnb__post *out)
{
    for (size_t p = 0; p < t->n_ranks; p++)
        if (out[p].is_used && out[p].done > 0 && !is_out_done(&out[p]))
            t->is_deaf[p] = true;
}

static pnb_status trade_posts(tcp *t, pnb__post *out, pnb__post *in, double timeout_s,
                              pnb__notice *notice, int *silent, pnb_error *err)
{
    enum { TICK_MS = 100 };
    double moved_at = pnb__now_s();
    *silent = -1;
    for (size_t p = 0; p < t->n_ranks; p++)
        if (t->sockets[p] >= 0)
            (void)push(t, p, &out[p]); /* mostly all of it: a poll saved */
    while (fill_polled(t, out, in)) {
        bool moved = false;
        int ready = poll(t->polled, (nfds_t)t->n_ranks, TICK_MS);
        if (ready > 0) {
            pnb_status status = move_all(t, out, in, &moved, notice, silent, err);
            if (status != PNB_OK)
                return status;
        }
        if (moved)
            moved_at = pnb__now_s();
        else if (pnb__now_s() - moved_at > timeout_s) {
            *silent = find_silent(t, out, in);
            return pnb__fail(err, PNB_IO, "nothing came from it for %.0f s", timeout_s);
        }
    }
    *silent = find_silent(t, out, in); /* it was sent nothing, but sent its own: gone since */
    return *silent < 0 ? PNB_OK : pnb__fail(err, PNB_IO, "its process is gone");
}

static pnb_status trade(void *self, pnb__post *out, pnb__post *in, double timeout_s,
                        pnb__notice *notice, int *silent, pnb_error *err)
{
    pnb_status status = trade_posts(self, out, in, timeout_s, notice, silent, err);
    if (status != PNB_OK)
        stop_halves(self, out);
    return status;
}

/* Throws away what a rank has sent until its notice. True: nothing more is to be had from it. */
static bool read_notice(tcp *t, size_t p, pnb__post *post, pnb__notice *theirs, bool *heard)
{
    char waste[4096];
    for (;;) {
        size_t n = 0;
        bool is_notice = post->done >= HEADER && t->came[p].kind == PNB__POST_NOTICE;
        void *at = piece(&t->came[p], is_notice ? (void *)theirs : (void *)waste,
                         t->came[p].n_bytes, post->done, &n);
        if (post->done >= HEADER && !is_notice) {
            at = waste;
            n = PNB_MIN(n, sizeof waste);
        }
        ssize_t got = recv(t->sockets[p], at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        post->done += (size_t)got;
        if (post->done == HEADER &&
            (t->came[p].kind != PNB__POST_NOTICE && t->came[p].kind != PNB__POST_DATA))
            return true; /* no header: a part of data that we stopped in */
        if (post->done == HEADER && is_notice && t->came[p].n_bytes != sizeof *theirs)
            return true;
        if (post->done >= HEADER && post->done == HEADER + t->came[p].n_bytes) {
            if (t->came[p].kind == PNB__POST_NOTICE) {
                *heard = true;
                return true;
            }
            post->done = 0;
        }
    }
}

static void tell(void *self, const pnb__notice *mine, double timeout_s, pnb__notice *theirs,
                 bool *heard)
{
    tcp *t = self;
    const pnb__post_header header = {.kind = PNB__POST_NOTICE, .n_bytes = sizeof *mine};
    double end = pnb__now_s() + timeout_s;
    unsigned char frame[HEADER + sizeof *mine];
    memcpy(frame, &header, HEADER);
    memcpy(frame + HEADER, mine, sizeof *mine);
    for (size_t p = 0; p < t->n_ranks; p++)
        if (t->sockets[p] >= 0 && !t->is_deaf[p])
            (void)send(t->sockets[p], frame, sizeof frame, MSG_NOSIGNAL);
    for (size_t p = 0; p < t->rank && theirs != NULL; p++) {
        pnb__post post = {0};
        struct pollfd polled = {.fd = t->sockets[p], .events = POLLIN};
        t->came[p] = (pnb__post_header){0};
        while (t->sockets[p] >= 0 && !read_notice(t, p, &post, &theirs[p], &heard[p]) &&
               pnb__now_s() < end)
            (void)poll(&polled, 1, 50);
    }
}

/* Whoever fails half-closes and reads to the end: closing at once would take back what it said. */
static void close_tcp(void *self, bool is_sound)
{
    tcp *t = self;
    char waste[4096];
    double end = pnb__now_s() + (is_sound ? 0 : 1);
    for (size_t p = 0; p < t->n_ranks; p++)
        if (t->sockets[p] >= 0)
            shutdown(t->sockets[p], SHUT_WR);
    for (size_t p = 0; p < t->n_ranks; p++) {
        struct pollfd polled = {.fd = t->sockets[p], .events = POLLIN};
        while (polled.fd >= 0 && !is_sound && pnb__now_s() < end) {
            ssize_t got = recv(polled.fd, waste, sizeof waste, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
                break;
            if (got < 0)
                (void)poll(&polled, 1, 50);
        }
        if (polled.fd >= 0)
            close(polled.fd);
    }
    pnb__free(t->sockets);
    pnb__free(t->polled);
    pnb__free(t->came);
    pnb__free(t->is_deaf);
    pnb__free(t);
}

/* Without sockets yet. */
static pnb_status create(tcp **out, size_t rank, size_t n_ranks, pnb_error *err)
{
    tcp *t = *out = pnb__alloc_zero(1, sizeof *t);
    if (t == NULL)
        return pnb__fail_nomem(err, sizeof *t);
    pnb_status status;
    PNB_TRY(PNB_ALLOC(t->sockets, n_ranks, err));
    for (size_t p = 0; p < n_ranks; p++)
        t->sockets[p] = -1;
    t->rank = rank;
    t->n_ranks = n_ranks;
    PNB_TRY(PNB_ALLOC_ZERO(t->polled, n_ranks, err));
    PNB_TRY(PNB_ALLOC_ZERO(t->came, n_ranks, err));
    status = PNB_ALLOC_ZERO(t->is_deaf, n_ranks, err);
done:
    if (status != PNB_OK)
        close_tcp(t, true);
    return status;
}

static pnb__wire wire_of(tcp *t)
{
    return (pnb__wire){.self = t, .trade = trade, .tell = tell, .close = close_tcp};
}

pnb_status pnb__tcp_tie(pnb__wire *out, size_t rank, size_t n_ranks, const int *sockets,
                        pnb_error *err)
{
    tcp *t = NULL;
    pnb_status status = create(&t, rank, n_ranks, err);
    if (status != PNB_OK)
        return status;
    memcpy(t->sockets, sockets, n_ranks * sizeof *sockets);
    *out = wire_of(t);
    return PNB_OK;
}

pnb_status pnb__tcp_open(pnb__wire *out, const pnb_launch *l, double timeout_s,
                         const volatile sig_atomic_t *stop, pnb_error *err)
{
    tcp *t = NULL;
    pnb_status status = create(&t, l->rank, l->n_ranks, err);
    if (status != PNB_OK)
        return status;
    status = pnb__tcp_meet(t->sockets, l, timeout_s, stop, err);
    if (status != PNB_OK)
        close_tcp(t, true);
    else
        *out = wire_of(t);
    return status;
}
