/* Errors as replies, and hosts that headers name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "io/json/json.h"
#include "server/sockets/http.h"

static void errors_have_openais_form(void **state)
{
    static const struct {
        pnb_status status;
        int code;
        const char *type;
    } cases[] = {
        {PNB_ARG, 400, "invalid_request_error"}, {PNB_FORMAT, 400, "invalid_request_error"},
        {PNB_NOT_FOUND, 404, "not_found_error"}, {PNB_LIMIT, 413, "invalid_request_error"},
        {PNB_BUSY, 429, "rate_limit_error"},     {PNB_UNSUPPORTED, 501, "not_supported_error"},
        {PNB_NOMEM, 503, "unavailable_error"},   {PNB_IO, 503, "unavailable_error"},
        {PNB_NUMERIC, 500, "server_error"}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__http_reply r = {0};
        pnb_error err = {.status = cases[i].status, .text = "a \"b\" \\"};
        json_t *v = NULL;
        pnb__buf_puts(&r.body, "half an answer");
        pnb__http_fail_with(&r, &err);
        assert_int_equal(r.status, cases[i].code);
        assert_int_equal(pnb__json_load_bytes(&v, r.body.data, r.body.size, "reply", NULL), PNB_OK);
        const json_t *e = json_object_get(v, "error");
        assert_int_equal(json_integer_value(json_object_get(e, "code")), cases[i].code);
        assert_string_equal(json_string_value(json_object_get(e, "type")), cases[i].type);
        assert_string_equal(json_string_value(json_object_get(e, "message")), err.text);
        assert_true(json_is_null(json_object_get(e, "param")));
        json_decref(v);
        pnb__http_reply_reset(&r);
        err.text[0] = '\0'; /* an error without a text has the sentence of its kind */
        pnb__http_fail_with(&r, &err);
        assert_non_null(strstr(r.body.data, pnb_status_sentence(err.status)));
        pnb__http_reply_reset(&r);
    }
}

static void hosts_of_headers(void **state)
{
    static const struct {
        const char *header, *host;
    } cases[] = {{"localhost", "localhost"},
                 {"a.b:80", "a.b"},
                 {"[::1]:80", "::1"},
                 {"http://a.b:80", "a.b"},
                 {"https://[2001:db8::1]", "2001:db8::1"},
                 {"http://a/b", "a"}};
    char host[40], small[4];
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        assert_true(pnb__http_host_of(cases[i].header, host, sizeof host));
        assert_string_equal(host, cases[i].host);
    }
    assert_false(pnb__http_host_of(NULL, host, sizeof host));
    assert_false(pnb__http_host_of("", host, sizeof host));
    assert_false(pnb__http_host_of(":80", host, sizeof host));
    assert_true(pnb__http_host_of("localhost", small, sizeof small));
    assert_string_equal(small, "loc");
    assert_true(pnb__http_is_local("LOCALHOST"));
    assert_true(pnb__http_is_local("127.8.9.1"));
    assert_false(pnb__http_is_local("128.0.0.1"));
    assert_false(pnb__http_is_local("xlocalhost"));
    assert_false(pnb__http_is_local(""));
    assert_true(pnb__http_is_address("10.0.0.1"));
    assert_false(pnb__http_is_address("10.0.0.1.example"));
}

/* A path of any bytes, quoted and cut in the middle of a letter. */
static void messages_are_utf8(void **state)
{
    pnb__http_reply r = {0};
    json_t *reply = NULL;
    (void)state;
    pnb__http_fail(&r, 404, "nothing at %.5s", "/\xff\xfe\xc3\xa4");
    assert_int_equal(pnb__json_load_bytes(&reply, r.body.data, r.body.size, "reply", NULL), PNB_OK);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(reply, "error"), "message")),
        "nothing at /?\?\xc3\xa4");
    json_decref(reply);
    pnb__http_fail(&r, 404, "nothing at %.4s", "/\xff\xfe\xc3\xa4");
    assert_non_null(strstr(r.body.data, "nothing at /?\?\?\""));
    pnb__http_reply_reset(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages_are_utf8),
                                       cmocka_unit_test(errors_have_openais_form),
                                       cmocka_unit_test(hosts_of_headers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
