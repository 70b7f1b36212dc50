/* Requests to replies without a socket: who is let in, in which order refusals come, states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/server/ask.h"

typedef struct fixture {
    pnb__server s;
    pnb__http_reply r;
} fixture;

static int start(void **state)
{
    fixture *f = pnb__alloc_zero(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(pnb__server_init(&f->s, pnb__n_routes, NULL), PNB_OK);
    *state = f;
    return 0;
}

static int end(void **state)
{
    fixture *f = *state;
    pnb__http_reply_reset(&f->r);
    pnb__server_reset(&f->s);
    pnb__free(f);
    return 0;
}

static void has_text(const pnb__http_reply *r, const char *text)
{
    if (r->body.data == NULL || strstr(r->body.data, text) == NULL)
        fail_msg("'%s' is not in %s", text, r->body.data);
}

static void health_follows_the_state(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"/health", "/healthz", "/livez", "/readyz"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        atomic_store(&f->s.state, PNB__SERVER_LOADING);
        assert_int_equal(ask(&f->s, "GET", names[i], NULL, &f->r), 503);
        assert_string_equal(f->r.body.data,
                            "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":"
                            "\"unavailable_error\",\"param\":null}}\n");
        assert_int_equal(f->r.retry_after_s, 1);
        pnb__server_open(&f->s);
        assert_int_equal(ask(&f->s, "GET", names[i], NULL, &f->r), 200);
        assert_string_equal(f->r.body.data, "{\"status\":\"ok\"}\n");
        pnb__server_drain(&f->s);
        assert_int_equal(ask(&f->s, "GET", names[i], NULL, &f->r), 503);
        has_text(&f->r, "Shutting down");
    }
}

/* What a request's end cannot be told from, and bodies that would have to be unpacked. */
static void framing_and_coding(void **state)
{
    fixture *f = *state;
    pnb__http_request q = {.method = "POST", .path = "/v1/embeddings", .body = "{\"zzz\":1}"};
    pnb__server_open(&f->s);
    q.has_two_lengths = true;
    f->r.closes = false;
    assert_int_equal(ask_with(&f->s, q, &f->r), 400);
    has_text(&f->r, "two Content-Length headers that differ");
    assert_true(f->r.closes);
    q.has_two_lengths = false;
    q.content_encoding = "gzip";
    assert_int_equal(ask_with(&f->s, q, &f->r), 415);
    has_text(&f->r, "\"message\":\"Content-Encoding 'gzip'");
    q.content_encoding = "Identity";
    assert_int_equal(ask_with(&f->s, q, &f->r), 400);
    has_text(&f->r, "unknown key");
}

static void others_wait_for_the_model(void **state)
{
    fixture *f = *state;
    assert_int_equal(ask(&f->s, "GET", "/metrics", NULL, &f->r), 503);
    pnb__server_open(&f->s);
    assert_int_equal(ask(&f->s, "GET", "/metrics", NULL, &f->r), 200);
    has_text(&f->r, "penumbra_requests_total{route=\"/metrics\",code=\"503\"} 1\n");
    pnb__server_drain(&f->s);
    assert_int_equal(ask(&f->s, "GET", "/metrics", NULL, &f->r), 503);
}

static void wrong_paths_and_methods(void **state)
{
    fixture *f = *state;
    pnb__server_open(&f->s);
    assert_int_equal(ask(&f->s, "GET", "/nowhere", NULL, &f->r), 404);
    has_text(&f->r, "not_found_error");
    assert_int_equal(ask(&f->s, "POST", "/metrics", NULL, &f->r), 405);
    assert_string_equal(f->r.allow, "GET");
    assert_int_equal(ask(&f->s, "HEAD", "/metrics", NULL, &f->r), 200);
    assert_int_equal(ask(&f->s, "OPTIONS", "/metrics", NULL, &f->r), 405);
}

static void a_key_opens_all_but_health(void **state)
{
    fixture *f = *state;
    static pnb__api_key keys[2];
    pnb__http_request q = {.method = "GET", .path = "/metrics"};
    for (size_t i = 0; i < 2; i++) {
        pnb__sha256 hash;
        pnb__sha256_init(&hash);
        pnb__sha256_update(&hash, i == 0 ? "first" : "second", i == 0 ? 5 : 6);
        pnb__sha256_hex(&hash, keys[i].sha256);
    }
    f->s.access.keys = keys;
    f->s.access.n_keys = 2;
    pnb__server_open(&f->s);
    static const char *const wrong[] = {
        NULL,          "",      "Bearer ",     "Bearer firs", "Bearer first2",
        "Basic first", "first", "bearer  firs"};
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        q.authorization = wrong[i];
        assert_int_equal(ask_with(&f->s, q, &f->r), 401);
        has_text(&f->r, "Invalid API Key");
    }
    static const char *const right[] = {"Bearer first", "Bearer second", "Bearer  second ",
                                        "bearer  first"};
    for (size_t i = 0; i < PNB_COUNT(right); i++) {
        q.authorization = right[i];
        assert_int_equal(ask_with(&f->s, q, &f->r), 200);
    }
    /* Strangers do not even learn which paths there are. */
    assert_int_equal(ask(&f->s, "GET", "/nowhere", NULL, &f->r), 401);
    assert_int_equal(ask(&f->s, "GET", "/health", NULL, &f->r), 200);
    f->s.access.keys = NULL;
    f->s.access.n_keys = 0;
}

static void pages_of_other_sites(void **state)
{
    fixture *f = *state;
    const struct {
        const char *host, *origin;
        int status;
    } cases[] = {{"localhost:8080", NULL, 200},
                 {"127.0.0.1:8080", NULL, 200},
                 {"[::1]:8080", NULL, 200},
                 {"192.168.1.7:8080", NULL, 200},
                 {"evil.example", NULL, 403},
                 {"localhost.evil.example", NULL, 403},
                 {"evillocalhost", NULL, 403},
                 {"photos.localhost", NULL, 200},
                 {"localhost:8080", "http://localhost:8080", 200},
                 {"localhost:8080", "http://localhost:9090", 403},
                 {"localhost:8080", "http://evil.example", 403},
                 {"localhost:8080", "null", 403},
                 {"evil.example:8080", "http://evil.example:8080", 403},
                 {"localhost:8080", "https://good.example", 200}};
    static const char *const good[] = {"https://good.example"};
    f->s.access.local_names_only = true;
    f->s.access.origins = good;
    f->s.access.n_origins = 1;
    pnb__server_open(&f->s);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__http_request q = {
            .method = "GET", .path = "/health", .host = cases[i].host, .origin = cases[i].origin};
        if (ask_with(&f->s, q, &f->r) != cases[i].status)
            fail_msg("host %s: %d", cases[i].host, f->r.status);
    }
    assert_string_equal(f->r.origin, good[0]); /* of the last case */
    pnb__http_request q = {
        .method = "OPTIONS", .path = "/metrics", .host = "localhost", .origin = good[0]};
    assert_int_equal(ask_with(&f->s, q, &f->r), 204);
    q.origin = "http://evil.example";
    assert_int_equal(ask_with(&f->s, q, &f->r), 403);
}

static void bodies_that_are_announced_too_large(void **state)
{
    fixture *f = *state;
    pnb__http_request q = {.method = "GET", .path = "/metrics"};
    pnb__server_open(&f->s);
    f->s.max_body_bytes = 100;
    assert_non_null(pnb__server_admit(&f->s, &q, 100, &f->r));
    assert_null(pnb__server_admit(&f->s, &q, 101, &f->r));
    assert_int_equal(f->r.status, 413);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        CASE(health_follows_the_state),
        CASE(framing_and_coding),
        CASE(others_wait_for_the_model),
        CASE(wrong_paths_and_methods),
        CASE(a_key_opens_all_but_health),
        CASE(pages_of_other_sites),
        CASE(bodies_that_are_announced_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
