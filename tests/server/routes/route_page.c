/* GET /: without a key and while the model is loading, with its policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/server/ask.h"

static void the_page_is_always_there(void **state)
{
    static pnb__api_key keys[1] = {{"0"}};
    pnb__server s;
    pnb__http_reply r = {0};
    (void)state;
    assert_int_equal(pnb__server_init(&s, pnb__n_routes, NULL), PNB_OK);
    s.access.keys = keys;
    s.access.n_keys = 1;
    assert_int_equal(ask(&s, "GET", "/", NULL, &r), 200);
    assert_string_equal(r.content_type, "text/html; charset=utf-8");
    assert_true(pnb__starts_with(r.policy, "default-src 'none'"));
    assert_int_equal(ask(&s, "GET", "/v1/collections", NULL, &r), 401);
    assert_string_equal(r.policy, "");
    assert_int_equal(ask(&s, "POST", "/", "{}", &r), 401);
    s.access.n_keys = 0;
    s.access.keys = NULL;
    pnb__http_reply_reset(&r);
    pnb__server_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_page_is_always_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
