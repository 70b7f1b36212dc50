/* /v1/search and /knn-service over a gallery that grows while it is asked, and over one whose
 * database does not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "server/searching/search_queries.h"
#include "tests/server/ask.h"

/* Rows come between any two questions; most_asked is the longest list that a search was asked for,
 * which has to fit where the list is written. */
typedef struct growing {
    size_t n_rows, step, most_asked;
    pnb_status count_fails, fields_fail;
} growing;

static pnb_status count_rows(void *self, size_t *n, pnb_error *err)
{
    growing *g = self;
    if (g->count_fails != PNB_OK)
        return pnb__fail(err, g->count_fails, "the database does not answer");
    *n = g->n_rows;
    g->n_rows += g->step;
    return PNB_OK;
}

static pnb_status search_rows(void *self, const pnb_embeddings *query, const pnb__gallery_ask *ask,
                              pnb__found *out, size_t *n, pnb__gallery_way *way, pnb_error *err)
{
    growing *g = self;
    (void)query;
    (void)err;
    way->measure = "csd";
    g->most_asked = PNB_MAX(g->most_asked, ask->k);
    for (*n = 0; *n < ask->k; (*n)++) /* past its end AddressSanitizer sees it */
        out[*n] = (pnb__found){*n, 1, NAN, 0};
    return PNB_OK;
}

static pnb_status find_id(void *self, const char *id, size_t *row, pnb_error *err)
{
    (void)self;
    *row = 0;
    return strcmp(id, "0") == 0 ? PNB_OK : pnb__fail(err, PNB_NOT_FOUND, "no '%s'", id);
}

static pnb_status take_row(void *self, const size_t *rows, size_t n, pnb_embeddings **out,
                           pnb_error *err)
{
    (void)self;
    (void)rows;
    return pnb_embeddings_create(out, PNB_POINT, n, 2, err);
}

static pnb_status put_fields(void *self, size_t row, pnb__buf *b, pnb_error *err)
{
    const growing *g = self;
    pnb__buf_printf(b, "\"id\":\"%zu\"", row);
    return g->fields_fail == PNB_OK ? PNB_OK : pnb__fail(err, g->fields_fail, "it went meanwhile");
}

static pnb_status has_row(void *self, size_t row, bool *has, pnb_error *err)
{
    const growing *g = self;
    (void)err;
    *has = row < g->n_rows;
    return PNB_OK;
}

static const pnb__gallery_calls calls = {.search = search_rows,
                                         .find = find_id,
                                         .take = take_row,
                                         .put_fields = put_fields,
                                         .count = count_rows,
                                         .has_row = has_row};

static void start(pnb__server *s, pnb__gallery *gallery)
{
    assert_int_equal(pnb__server_init(s, pnb__n_routes, NULL), PNB_OK);
    s->nothing.galleries = gallery;
    s->nothing.n_galleries = 1;
    pnb__server_open(s);
}

/* The list has room for the rows that there were when it was made. */
static void rows_that_come_meanwhile(void **state)
{
    static const char *const bodies[] = {"{\"id\":\"0\",\"k\":1000}", "{\"id\":\"0\",\"k\":5}"};
    pnb__server s;
    pnb__http_reply r = {0};
    (void)state;
    for (size_t n = 1; n < 40; n++) {
        growing rows = {.n_rows = n, .step = 7};
        pnb__gallery g = {&calls, &rows, "photos", "image"};
        size_t k = PNB_MIN(n, (size_t)(n % 2 == 0 ? 1000 : 5));
        start(&s, &g);
        assert_int_equal(ask(&s, "POST", "/v1/search", bodies[n % 2], &r), 200);
        assert_true(rows.most_asked <= k + 1);
        pnb__server_reset(&s);
    }
    pnb__http_reply_reset(&r);
}

static void expect(pnb__server *s, const char *path, const char *body, int status, const char *says)
{
    pnb__http_reply r = {0};
    int got = ask(s, "POST", path, body, &r);
    if (got != status || strstr(r.body.data, says) == NULL)
        fail_msg("%s: %d %s, wanted is %d, %s", path, got, r.body.data, status, says);
    pnb__http_reply_reset(&r);
}

/* What does not answer is no empty list. */
static void a_database_that_is_gone(void **state)
{
    pnb__server s;
    growing rows = {.n_rows = 3, .count_fails = PNB_IO};
    pnb__gallery g = {&calls, &rows, "photos", "image"};
    (void)state;
    start(&s, &g);
    expect(&s, "/v1/search", "{\"id\":\"0\"}", 503, "does not answer");
    expect(&s, "/metadata", "{\"ids\":[9]}", 503, "does not answer");
    rows.count_fails = PNB_OK;
    rows.fields_fail = PNB_IO;
    expect(&s, "/v1/search", "{\"id\":\"0\"}", 503, "it went meanwhile");
    expect(&s, "/metadata", "{\"ids\":[1]}", 503, "it went meanwhile");
    rows.fields_fail = PNB_OK;
    expect(&s, "/v1/search", "{\"id\":\"0\"}", 200, "\"answer\":\"found\"");
    expect(&s, "/v1/search", "{\"id\":\"1\"}", 404, "no '1'");
    expect(&s, "/metadata", "{\"ids\":[1]}", 200, "\"metadata\":{\"id\":\"1\"}");
    expect(&s, "/metadata", "{\"ids\":[3]}", 400, "no row of photos, which has 3");
    pnb__server_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_that_come_meanwhile),
                                       cmocka_unit_test(a_database_that_is_gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
