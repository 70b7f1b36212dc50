/* /v1/collections with a gallery of a few lines: what is listed, which thumbnails are served, what
 * cannot be changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/server/ask.h"

static pnb_status count(void *self, size_t *n, pnb_error *err)
{
    (void)self;
    (void)err;
    *n = 3;
    return PNB_OK;
}

/* Of what does not answer. */
static pnb_status count_none(void *self, size_t *n, pnb_error *err)
{
    (void)self;
    (void)n;
    return pnb__fail(err, PNB_IO, "the database does not answer");
}

static pnb_status thumbnail(void *self, size_t row, pnb__buf *b, pnb_error *err)
{
    (void)self;
    if (row != 7)
        return pnb__fail(err, PNB_NOT_FOUND, "row %zu has no thumbnail", row);
    pnb__buf_puts(b, "JPEG");
    return PNB_OK;
}

static pnb_status remove_rows(void *self, const char *const *ids, size_t n, size_t *n_removed,
                              pnb_error *err)
{
    (void)self;
    (void)err;
    assert_true(n == 2 && strcmp(ids[1], "b") == 0);
    *n_removed = 1;
    return PNB_OK;
}

static pnb_status add(void *self, const pnb__gallery_batch *batch, pnb_store_added *added,
                      pnb_error *err)
{
    (void)self;
    (void)batch;
    (void)added;
    return pnb__fail(err, PNB_BUSY, "another program is writing");
}

static const pnb__gallery_calls fixed = {.count = count};
static const pnb__gallery_calls growing = {
    .count = count, .thumbnail = thumbnail, .add = add, .remove = remove_rows};
static const pnb__gallery_calls gone = {.count = count_none};
static pnb__gallery galleries[] = {{&growing, NULL, "my photos", "image"},
                                   {&fixed, NULL, "images", "image"},
                                   {&gone, NULL, "gone", "image"}};

static void has(const pnb__http_reply *r, const char *text)
{
    if (r->body.data == NULL || strstr(r->body.data, text) == NULL)
        fail_msg("'%s' is not in %s", text, r->body.data);
}

static void collections(void **state)
{
    pnb__server s;
    pnb__http_reply r = {0};
    (void)state;
    assert_int_equal(pnb__server_init(&s, pnb__n_routes, NULL), PNB_OK);
    s.nothing.galleries = galleries;
    s.nothing.n_galleries = 2;
    pnb__server_open(&s);
    assert_int_equal(ask(&s, "GET", "/v1/collections", NULL, &r), 200);
    assert_string_equal(
        r.body.data,
        "{\"object\":\"list\",\"can_create\":false,\"data\":[{\"name\":\"my photos\",\"modality\":"
        "\"image\",\"n_rows\":3,\"can_change\":true},{\"name\":\"images\",\"modality\":\"image\","
        "\"n_rows\":3,\"can_change\":false}]}\n");
    assert_int_equal(ask(&s, "GET", "/v1/collections/my photos/thumbnails/7", NULL, &r), 200);
    assert_string_equal(r.content_type, "image/jpeg");
    assert_non_null(strstr(r.caching, "private"));
    assert_string_equal(r.body.data, "JPEG");
    assert_int_equal(ask(&s, "GET", "/v1/collections/my photos/thumbnails/8", NULL, &r), 404);
    assert_null(r.caching);
    assert_int_equal(ask(&s, "GET", "/v1/collections/images/thumbnails/7", NULL, &r), 404);
    assert_int_equal(ask(&s, "GET", "/v1/collections/my photos/thumbnails/07x", NULL, &r), 404);
    assert_int_equal(
        ask(&s, "POST", "/v1/collections/my photos/remove", "{\"ids\":[\"a\",\"b\"]}", &r), 200);
    has(&r, "\"n_removed\":1,\"n_rows\":3");
    assert_int_equal(ask(&s, "POST", "/v1/collections/images/remove", "{\"ids\":[\"a\"]}", &r),
                     400);
    has(&r, "it stays as it is");
    assert_int_equal(ask(&s, "POST", "/v1/collections", "{\"name\":\"a\"}", &r), 501);
    has(&r, "--collection-root");
    s.nothing.n_galleries = 3; /* what cannot be counted is not empty */
    assert_int_equal(ask(&s, "GET", "/v1/collections", NULL, &r), 503);
    has(&r, "\"message\":\"the database does not answer\",\"type\":\"unavailable_error\"");
    assert_int_equal(r.retry_after_s, 1);
    pnb__http_reply_reset(&r);
    pnb__server_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(collections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
