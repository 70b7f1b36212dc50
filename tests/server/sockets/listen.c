/* The server on a real socket, without a model: thousands of malformed requests from several
 * clients at once, clients that leave in the middle, and an end while they go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/answer.h"
#include "server/batching/batcher.h"
#include "server/sockets/listen.h"

enum { N_CLIENTS = 4, N_REQUESTS = 700 };

/* A model of neither side: what is well formed ends where it would be encoded. */
typedef struct fixture {
    pnb__server s;
    pnb_model_info info;
    pnb_encoder encoder;
    pnb__listener *l;
    int port;
} fixture;

static pnb_status encode_nothing(void *user, pnb_encode_side side, const void *const *rows,
                                 size_t n, pnb_embeddings **out, pnb_error *err)
{
    (void)user;
    (void)side;
    (void)rows;
    (void)n;
    (void)out;
    return pnb__fail(err, PNB_UNSUPPORTED, "no model");
}

static int start(void **state)
{
    const pnb__batcher_opts batches = {.encode = encode_nothing, .max_batch = 4};
    fixture *f = pnb__alloc_zero(1, sizeof *f);
    const pnb__listen_opts opts = {"127.0.0.1", 0, 4, 8, 64, 20};
    assert_non_null(f);
    *state = f;
    assert_int_equal(pnb__server_init(&f->s, pnb__n_routes, NULL), PNB_OK);
    f->s.max_body_bytes = 5000;
    snprintf(f->s.name, sizeof f->s.name, "none");
    f->encoder.info = &f->info;
    f->s.nothing.encoder = &f->encoder;
    assert_int_equal(pnb__batcher_start(&f->s.nothing.batcher, &batches, NULL), PNB_OK);
    pnb__server_open(&f->s);
    if (pnb__listen_version() != NULL)
        assert_int_equal(pnb__listen(&f->l, &f->s, &opts, &f->port, NULL), PNB_OK);
    return 0;
}

static int end(void **state)
{
    fixture *f = *state;
    pnb__server_drain(&f->s);
    pnb__listen_end(f->l, 5);
    pnb__batcher_free(f->s.nothing.batcher);
    pnb__server_reset(&f->s);
    pnb__free(f);
    return 0;
}

/* Nothing is waited for longer than that: half a request has no reply. */
static int connect_to(int port, int patience_ms)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct timeval limit = {patience_ms / 1000, patience_ms % 1000 * 1000L};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* What comes back until the other end closes. */
static size_t read_all(int fd, char *text, size_t size)
{
    size_t n = 0;
    for (ssize_t got; n < size - 1 && (got = recv(fd, text + n, size - 1 - n, 0)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    return n;
}

static void send_text(int fd, const char *text, size_t n)
{
    (void)send(fd, text, n, MSG_NOSIGNAL);
}

/* Requests that are right but for some of their bytes, bodies cut short, chunks that lie. */
static size_t make_request(pnb__rng *rng, char *text, size_t size)
{
    static const char *const bodies[] = {"{\"text\":\"a\"", "{\"ids\":[1,2]}", "[[[[", "\"", "{}",
                                         "{\"input\":[[]]}"};
    const pnb__route *route = pnb__routes[pnb__rng_below(rng, pnb__n_routes)];
    const char *body = bodies[pnb__rng_below(rng, PNB_COUNT(bodies))];
    size_t claimed = strlen(body) + pnb__rng_below(rng, 3) * pnb__rng_below(rng, 6000);
    bool is_chunked = pnb__rng_below(rng, 4) == 0;
    int n = is_chunked ? snprintf(text, size,
                                  "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n",
                                  route->method, route->path, claimed, body)
                       : snprintf(text, size,
                                  "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                  "Content-Length: %zu\r\n\r\n%s",
                                  route->method, route->path, claimed, body);
    for (uint64_t k = pnb__rng_below(rng, 4); k > 0; k--)
        text[pnb__rng_below(rng, (uint64_t)n)] = (char)pnb__rng_below(rng, 256);
    return (size_t)n;
}

typedef struct client {
    int port, number;
    pthread_t thread;
} client;

static void *attack(void *user)
{
    const client *c = user;
    pnb__rng rng;
    char text[1024], reply[4096];
    pnb__rng_init(&rng, 11, (uint64_t)c->number);
    for (int i = 0; i < N_REQUESTS; i++) {
        size_t n = make_request(&rng, text, sizeof text);
        int fd = connect_to(c->port, 10);
        if (fd < 0)
            continue;
        send_text(fd, text, n);
        if (i % 3 != 0) /* others leave without reading */
            (void)read_all(fd, reply, sizeof reply);
        close(fd);
    }
    return NULL;
}

static void ask_health(int port)
{
    static const char request[] =
        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char reply[4096];
    int fd = connect_to(port, 20000);
    assert_true(fd >= 0);
    send_text(fd, request, sizeof request - 1);
    read_all(fd, reply, sizeof reply);
    close(fd);
    if (strncmp(reply, "HTTP/1.1 200", 12) != 0 || strstr(reply, "{\"status\":\"ok\"}") == NULL)
        fail_msg("health: %s", reply);
}

static void malformed_requests(void **state)
{
    fixture *f = *state;
    client clients[N_CLIENTS];
    if (f->l == NULL)
        skip();
    ask_health(f->port);
    for (int i = 0; i < N_CLIENTS; i++) {
        clients[i] = (client){.port = f->port, .number = i};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, attack, &clients[i]), 0);
    }
    for (int i = 0; i < N_CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    ask_health(f->port);
    for (int i = 0; f->s.metrics.n_working + f->s.metrics.n_waiting > 0 && i < 1000; i++)
        usleep(1000);
    assert_int_equal(f->s.metrics.n_working, 0); /* no worker is stuck */
    assert_int_equal(f->s.metrics.n_waiting, 0);
}

static void a_port_that_is_taken(void **state)
{
    fixture *f = *state;
    pnb__listener *second = NULL;
    const pnb__listen_opts opts = {"127.0.0.1", f->port, 1, 1, 4, 1};
    int port = 0;
    pnb_error err = PNB_ERROR_INIT;
    if (f->l == NULL)
        skip();
    assert_int_equal(pnb__listen(&second, &f->s, &opts, &port, &err), PNB_IO);
    assert_null(second);
    char want[100];
    snprintf(want, sizeof want, "cannot listen at 127.0.0.1 port %d: Address already in use",
             f->port);
    assert_string_equal(err.text, want);
}

static void the_end_while_clients_go_on(void **state)
{
    fixture *f = *state;
    client clients[N_CLIENTS];
    if (f->l == NULL)
        skip();
    for (int i = 0; i < N_CLIENTS; i++) {
        clients[i] = (client){.port = f->port, .number = 50 + i};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, attack, &clients[i]), 0);
    }
    usleep(50000);
    pnb__server_drain(&f->s);
    pnb__listen_end(f->l, 5);
    f->l = NULL;
    for (int i = 0; i < N_CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    assert_int_equal(f->s.metrics.n_connections, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {CASE(malformed_requests), CASE(a_port_that_is_taken),
                                       CASE(the_end_while_clients_go_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
