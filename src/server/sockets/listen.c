/* libmicrohttpd's callbacks: connections with a clock, requests that grow, replies.
 *
 * One thread of the library reads and writes all sockets and never waits for work: a request that
 * is complete is put into the queue and its connection suspended, which means that the library does
 * not look at it until a worker has the reply and resumes it. What the library does not limit is
 * watched here: a whole request within the time, however slowly its bytes drip. */
#include "server/sockets/listen.h"

#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "program/options.h"
#include "server/answer.h"
#include "server/batching/work_queue.h"
#include "server/sockets/address.h"
#include "server/sockets/listen_library.h"

enum { HEAD_BYTES = 32 << 10, STACK_BYTES = 1 << 20, TICK_MS = 100 };

/* One connection, in the list of all. */
typedef struct wire {
    struct wire *next, *before;
    int fd;
    double deadline_s; /* for the request or the reply under way; INFINITY: at work */
} wire;

typedef struct exchange {
    pnb__work work; /* first: the queue hands it back */
    struct pnb__listener *l;
    struct MHD_Connection *connection;
    wire *wire;
    const pnb__route *route; /* NULL: refused already */
    pnb__http_request q;
    pnb__http_reply r;
    pnb__buf body;
    char peer[64];
    bool is_too_large, is_started, is_done;
} exchange;

struct pnb__listener {
    pnb__server *s;
    pnb__listen_opts opts;
    struct MHD_Daemon *daemon;
    pnb__work_queue *queue;
    pthread_t watcher;
    bool has_watcher;
    pthread_mutex_t lock; /* of everything below, and of all wires */
    wire *wires;
    size_t n_exchanges;
    bool is_ending;
    char said[400]; /* what the library said last */
};

const char *pnb__listen_version(void)
{
    pnb_error err = PNB_ERROR_INIT;
    return pnb__mhd_open(&err) == PNB_OK ? pnb__mhd.MHD_get_version()
                                         : "cannot be opened: apt-get install " PNB__MHD_PACKAGE;
}

/* ---- connections and their clock ---- */

static void set_deadline(pnb__listener *l, wire *w, double seconds)
{
    pthread_mutex_lock(&l->lock);
    w->deadline_s = pnb__now_s() + seconds;
    pthread_mutex_unlock(&l->lock);
}

static wire *open_wire(pnb__listener *l, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        pnb__mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    wire *w = pnb__alloc_zero(1, sizeof *w);
    if (w == NULL || info == NULL) {
        pnb__free(w);
        return NULL;
    }
    *w = (wire){.fd = info->connect_fd, .deadline_s = pnb__now_s() + l->opts.timeout_s};
    pthread_mutex_lock(&l->lock);
    w->next = l->wires;
    if (l->wires != NULL)
        l->wires->before = w;
    l->wires = w;
    pthread_mutex_unlock(&l->lock);
    return w;
}

static void close_wire(pnb__listener *l, wire *w)
{
    pthread_mutex_lock(&l->lock);
    *(w->before != NULL ? &w->before->next : &l->wires) = w->next;
    if (w->next != NULL)
        w->next->before = w->before;
    pthread_mutex_unlock(&l->lock);
    pnb__free(w);
}

/* MHD_NotifyConnectionCallback; without a record the connection is refused in its first request. */
static void on_connection(void *user, struct MHD_Connection *connection, void **record,
                          enum MHD_ConnectionNotificationCode what)
{
    pnb__listener *l = user;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *record = open_wire(l, connection);
        pnb__metrics_move(&l->s->metrics, &l->s->metrics.n_connections, 1);
        return;
    }
    if (*record != NULL)
        close_wire(l, *record);
    pnb__metrics_move(&l->s->metrics, &l->s->metrics.n_connections, -1);
}

/* Ends connections whose time is over; at the end all that have asked for nothing. */
static void *watch(void *user)
{
    pnb__listener *l = user;
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
    pthread_mutex_lock(&l->lock);
    while (!l->is_ending) {
        double now_s = pnb__now_s();
        size_t n_slow = 0;
        for (wire *w = l->wires; w != NULL; w = w->next)
            if (now_s > w->deadline_s) {
                shutdown(w->fd, SHUT_RDWR); /* the library sees it and closes */
                w->deadline_s = now_s + l->opts.timeout_s;
                n_slow++;
            }
        pthread_mutex_unlock(&l->lock);
        if (n_slow > 0)
            pnb__metrics_add(&l->s->metrics, &l->s->metrics.n_slow, n_slow);
        nanosleep(&tick, NULL);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- one request ---- */

/* pnb__http_request.is_gone: its end of the connection is closed. Only while it is suspended, when
 * nobody else reads from it. */
static bool is_gone(const void *user)
{
    const exchange *x = user;
    char byte;
    return recv(x->wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return pnb__mhd.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static size_t announced(struct MHD_Connection *connection)
{
    const char *text = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t n = 0;
    bool is_number = text != NULL && text[0] != '-' && pnb__read_int(text, &n);
    return is_number ? (size_t)n : text != NULL ? SIZE_MAX : 0;
}

/* Content-Length of a request: the last one, and whether another one was different. */
typedef struct lengths {
    const char *last;
    bool differ;
} lengths;

/* MHD_KeyValueIterator */
static enum MHD_Result see_length(void *user, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    lengths *seen = user;
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) != 0 || value == NULL)
        return MHD_YES;
    seen->differ = seen->differ || (seen->last != NULL && strcmp(seen->last, value) != 0);
    seen->last = value;
    return MHD_YES;
}

static bool has_two_lengths(struct MHD_Connection *connection)
{
    lengths seen = {0};
    pnb__mhd.MHD_get_connection_values(connection, MHD_HEADER_KIND, see_length, &seen);
    return seen.differ;
}

static bool wants_slot(struct MHD_Connection *connection)
{
    const char *value =
        pnb__mhd.MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "fail_on_no_slot");
    return value != NULL && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

static exchange *open_exchange(pnb__listener *l, struct MHD_Connection *connection,
                               const char *path, const char *method)
{
    const union MHD_ConnectionInfo *record =
        pnb__mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const union MHD_ConnectionInfo *peer =
        pnb__mhd.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    exchange *x = pnb__alloc_zero(1, sizeof *x);
    if (x == NULL || record == NULL || record->socket_context == NULL) {
        pnb__free(x);
        return NULL;
    }
    *x = (exchange){.l = l, .connection = connection, .wire = record->socket_context};
    if (peer != NULL)
        pnb__address_text(peer->client_addr, x->peer, sizeof x->peer);
    x->q = (pnb__http_request){
        .method = method,
        .path = path,
        .authorization = header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .host = header_of(connection, MHD_HTTP_HEADER_HOST),
        .origin = header_of(connection, "Origin"),
        .content_encoding = header_of(connection, MHD_HTTP_HEADER_CONTENT_ENCODING),
        .has_two_lengths = has_two_lengths(connection),
        .wants_slot = wants_slot(connection),
        .peer = x->peer,
        .is_gone = is_gone,
        .user = x};
    pthread_mutex_lock(&l->lock);
    l->n_exchanges++;
    pthread_mutex_unlock(&l->lock);
    return x;
}

/* MHD_RequestCompletedCallback */
static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how)
{
    pnb__listener *l = user;
    exchange *x = *context;
    (void)connection;
    (void)how;
    if (x == NULL)
        return;
    set_deadline(l, x->wire, l->opts.timeout_s); /* for the next one */
    pthread_mutex_lock(&l->lock);
    l->n_exchanges--;
    pthread_mutex_unlock(&l->lock);
    pnb__http_reply_reset(&x->r);
    pnb__buf_reset(&x->body);
    pnb__free(x);
    *context = NULL;
}

static void add_headers(struct MHD_Response *response, const exchange *x)
{
    const pnb__http_reply *r = &x->r;
    char seconds[16];
    const char *type = r->content_type != NULL ? r->content_type : "application/json";
    pnb__mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    pnb__mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                     r->caching != NULL ? r->caching : "no-store");
    pnb__mhd.MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (r->policy[0] != '\0') {
        pnb__mhd.MHD_add_response_header(response, "Content-Security-Policy", r->policy);
        pnb__mhd.MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        pnb__mhd.MHD_add_response_header(response, "X-Frame-Options", "DENY");
    }
    if (r->allow != NULL)
        pnb__mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, r->allow);
    if (r->status == MHD_HTTP_UNAUTHORIZED)
        pnb__mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (r->origin != NULL) {
        pnb__mhd.MHD_add_response_header(response, "Access-Control-Allow-Origin", r->origin);
        pnb__mhd.MHD_add_response_header(response, "Access-Control-Allow-Headers",
                                         "Authorization, Content-Type");
        pnb__mhd.MHD_add_response_header(response, "Vary", "Origin");
    }
    if (r->retry_after_s > 0) {
        snprintf(seconds, sizeof seconds, "%d", r->retry_after_s);
        pnb__mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    if (r->closes || atomic_load(&x->l->s->state) == PNB__SERVER_DRAINING)
        pnb__mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

/* The body goes over to the library. */
static enum MHD_Result send_reply(exchange *x)
{
    pnb__buf *b = &x->r.body;
    struct MHD_Response *response =
        b->data == NULL
            ? pnb__mhd.MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT)
            : pnb__mhd.MHD_create_response_from_buffer_with_free_callback(b->size, b->data,
                                                                          pnb__free);
    if (response == NULL)
        return MHD_NO;
    *b = (pnb__buf){0};
    add_headers(response, x);
    set_deadline(x->l, x->wire, x->l->opts.timeout_s);
    enum MHD_Result done =
        pnb__mhd.MHD_queue_response(x->connection, (unsigned)x->r.status, response);
    pnb__mhd.MHD_destroy_response(response);
    return done;
}

/* ---- work ---- */

static void finish(exchange *x)
{
    x->is_done = true;
    pnb__mhd.MHD_resume_connection(x->connection); /* which may free x at once */
}

static void run_work(void *user, pnb__work *w)
{
    pnb__listener *l = user;
    exchange *x = (exchange *)w;
    pnb__metrics_move(&l->s->metrics, &l->s->metrics.n_waiting, -1);
    pnb__metrics_move(&l->s->metrics, &l->s->metrics.n_working, 1);
    pnb__server_run(l->s, x->route, &x->q, &x->r);
    pnb__metrics_move(&l->s->metrics, &l->s->metrics.n_working, -1);
    finish(x);
}

static void drop_work(void *user, pnb__work *w)
{
    pnb__listener *l = user;
    exchange *x = (exchange *)w;
    pnb__metrics_move(&l->s->metrics, &l->s->metrics.n_waiting, -1);
    pnb__metrics_add(&l->s->metrics, &l->s->metrics.n_gone, 1);
    pnb__http_fail(&x->r, 503, "nobody waits for this");
    finish(x);
}

static bool work_is_gone(void *user, pnb__work *w)
{
    (void)user;
    return is_gone(w);
}

/* The request is complete. */
static enum MHD_Result start(exchange *x)
{
    pnb__listener *l = x->l;
    x->is_started = true;
    x->q.body = x->body.data;
    x->q.n_body = x->body.size;
    if (x->is_too_large)
        pnb__http_fail(&x->r, 413, "the body is larger than the limit of %zu bytes",
                       l->s->max_body_bytes);
    else if (x->body.failed)
        pnb__http_fail(&x->r, 503, "out of memory");
    else if (x->route->is_quick)
        pnb__server_run(l->s, x->route, &x->q, &x->r);
    if (x->r.status != 0)
        return send_reply(x);
    set_deadline(l, x->wire, 1e9);
    pnb__metrics_move(&l->s->metrics, &l->s->metrics.n_waiting, 1);
    pnb__mhd.MHD_suspend_connection(x->connection);
    if (pnb__work_queue_push(l->queue, &x->work))
        return MHD_YES;
    pnb__metrics_move(&l->s->metrics, &l->s->metrics.n_waiting, -1);
    pnb__metrics_add(&l->s->metrics, &l->s->metrics.n_refused_full, 1);
    pnb__http_fail(&x->r, 429, "%zu requests are waiting already", l->opts.max_queue);
    x->r.retry_after_s = 1;
    finish(x);
    return MHD_YES;
}

/* What comes beyond the limit is read and forgotten, until its time is over. */
static void add_body(exchange *x, const char *data, size_t n)
{
    size_t limit = x->l->s->max_body_bytes;
    if (x->is_too_large || n > limit - PNB_MIN(limit, x->body.size)) {
        x->is_too_large = true;
        pnb__buf_reset(&x->body);
        return;
    }
    pnb__buf_append(&x->body, data, n);
}

/* MHD_AccessHandlerCallback: first with the head, then with each part of the body, then at its end;
 * once more when it was resumed. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *n_data, void **context)
{
    pnb__listener *l = user;
    exchange *x = *context;
    (void)version;
    if (x == NULL) {
        x = *context = open_exchange(l, connection, path, method);
        if (x == NULL)
            return MHD_NO;
        x->route = pnb__server_admit(l->s, &x->q, announced(connection), &x->r);
        return x->route != NULL ? MHD_YES : send_reply(x);
    }
    if (*n_data > 0) {
        add_body(x, data, *n_data);
        *n_data = 0;
        return MHD_YES;
    }
    return x->is_started ? (x->is_done ? send_reply(x) : MHD_YES) : start(x);
}

/* ---- from start to end ---- */

static void on_log(void *user, const char *fmt, va_list args) PNB_PRINTF(2, 0);
static void on_log(void *user, const char *fmt, va_list args)
{
    pnb__listener *l = user;
    pthread_mutex_lock(&l->lock);
    vsnprintf(l->said, sizeof l->said, fmt, args);
    l->said[strcspn(l->said, "\n")] = '\0';
    pthread_mutex_unlock(&l->lock);
}

/* The library's own sockets do not say why they could not be had. */
static pnb_status open_socket(const pnb__listener *l, const pnb__address *at, int *out, int *port,
                              pnb_error *err)
{
    enum { BACKLOG = 511 };
    const int on = 1;
    pnb__address bound = {.n_bytes = sizeof bound.at};
    int fd = socket(at->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_open = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                   bind(fd, (const struct sockaddr *)&at->at, at->n_bytes) == 0 &&
                   listen(fd, BACKLOG) == 0 &&
                   getsockname(fd, (struct sockaddr *)&bound.at, &bound.n_bytes) == 0;
    if (!is_open) {
        char place[300];
        snprintf(place, sizeof place, "%s port %d", l->opts.host, l->opts.port);
        pnb_status status = pnb__fail_errno(err, "cannot listen at", place);
        if (fd >= 0)
            close(fd);
        return status;
    }
    *port =
        ntohs(bound.at.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&bound.at)->sin6_port
                                             : ((const struct sockaddr_in *)&bound.at)->sin_port);
    *out = fd;
    return PNB_OK;
}

/* poll, not epoll: with that libmicrohttpd 0.9.75 does not notice some clients that left in the
 * middle of a body, and their connections count until the clock ends them. */
static pnb_status start_daemon(pnb__listener *l, const pnb__address *at, int *port, pnb_error *err)
{
    unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     (at->at.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    int fd = -1;
    pnb_status status = pnb__mhd_open(err);
    if (status == PNB_OK)
        status = open_socket(l, at, &fd, port, err);
    if (status != PNB_OK)
        return status;
    l->daemon = pnb__mhd.MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, l, MHD_OPTION_EXTERNAL_LOGGER, on_log, l,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, l,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)l->opts.max_connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    if (l->daemon != NULL)
        return PNB_OK;
    close(fd);
    return pnb__fail(err, PNB_IO, "cannot listen at %s port %d: %s", l->opts.host, l->opts.port,
                     l->said[0] != '\0' ? l->said : "the library does not say why");
}

static pnb_status start_all(pnb__listener *l, int *port, pnb_error *err)
{
    static const pnb__work_calls calls = {run_work, drop_work, work_is_gone};
    pnb__address at;
    pnb_status status = pnb__address_of(&at, l->opts.host, l->opts.port, err);
    if (status == PNB_OK)
        status =
            pnb__work_queue_start(&l->queue, l->opts.n_workers, l->opts.max_queue, &calls, l, err);
    if (status != PNB_OK)
        return status;
    l->has_watcher = pnb__start_threads(watch, l, &l->watcher, 1) == 1;
    if (!l->has_watcher)
        return pnb__fail(err, PNB_NOMEM, "no thread to watch connections could be started");
    return start_daemon(l, &at, port, err);
}

pnb_status pnb__listen(pnb__listener **out, pnb__server *s, const pnb__listen_opts *opts, int *port,
                       pnb_error *err)
{
    pnb__listener *l = pnb__alloc_zero(1, sizeof *l);
    if (l == NULL)
        return pnb__fail_nomem(err, sizeof *l);
    *l = (pnb__listener){.s = s, .opts = *opts};
    pthread_mutex_init(&l->lock, NULL);
    pnb_status status = start_all(l, port, err);
    if (status == PNB_OK)
        *out = l;
    else
        pnb__listen_end(l, 0);
    return status;
}

/* Waits until nobody is asking; connections on which nothing was asked are ended at once. */
static void drain(pnb__listener *l, double limit_s)
{
    const struct timespec tick = {.tv_nsec = 10000000};
    double end_s = pnb__now_s() + limit_s;
    int fd = pnb__mhd.MHD_quiesce_daemon(l->daemon);
    if (fd >= 0)
        close(fd);
    for (bool is_busy = true; is_busy && pnb__now_s() < end_s;) {
        nanosleep(&tick, NULL);
        pthread_mutex_lock(&l->lock);
        is_busy = l->n_exchanges > 0;
        pthread_mutex_unlock(&l->lock);
    }
}

void pnb__listen_end(pnb__listener *l, double limit_s)
{
    if (l == NULL)
        return;
    if (l->daemon != NULL)
        drain(l, limit_s);
    pnb__work_queue_free(l->queue); /* resumes what is suspended: the daemon must still be there */
    if (l->daemon != NULL)
        pnb__mhd.MHD_stop_daemon(l->daemon);
    pthread_mutex_lock(&l->lock);
    l->is_ending = true;
    pthread_mutex_unlock(&l->lock);
    if (l->has_watcher)
        pthread_join(l->watcher, NULL);
    pthread_mutex_destroy(&l->lock);
    pnb__free(l);
}
