/* A server from its beginning to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "server/server.h"

static void it_begins_as_one_that_loads(void **state)
{
    pnb__server s;
    (void)state;
    assert_int_equal(pnb__server_init(&s, 3, NULL), PNB_OK);
    assert_int_equal(atomic_load(&s.state), PNB__SERVER_LOADING);
    assert_true(isnan(s.now->spread[0].vague) &&
                isnan(s.now->spread[1].vague)); /* nothing is too vague */
    assert_int_equal(s.metrics.n_routes, 3);
    assert_int_equal(s.access.n_keys + s.now->n_galleries, 0);
    pnb__server_open(&s);
    assert_int_equal(atomic_load(&s.state), PNB__SERVER_READY);
    pnb__server_drain(&s);
    assert_int_equal(atomic_load(&s.state), PNB__SERVER_DRAINING);
    pnb__server_reset(&s);
}

/* A request keeps to what was served when it began; what is replaced is idle when it has ended. */
static void a_request_keeps_to_what_it_began_with(void **state)
{
    pnb__server s;
    (void)state;
    assert_int_equal(pnb__server_init(&s, 0, NULL), PNB_OK);
    pnb__served first = pnb__served_make(&s), second = pnb__served_make(&s);
    assert_ptr_equal(pnb__server_replace(&s, &first), &s.nothing);
    pnb__served *a = pnb__server_take(&s), *b = pnb__server_take(&s);
    assert_true(a == &first && b == &first && a->server == &s);
    assert_ptr_equal(pnb__server_replace(&s, &second), &first);
    pnb__served *c = pnb__server_take(&s);
    assert_ptr_equal(c, &second);
    pnb__server_give(&s, a);
    assert_false(pnb__served_is_idle(&first));
    pnb__server_give(&s, b);
    assert_true(pnb__served_is_idle(&first));
    assert_false(pnb__served_is_idle(&second));
    pnb__server_give(&s, c);
    assert_true(pnb__served_is_idle(&second));
    pnb__server_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_begins_as_one_that_loads),
                                       cmocka_unit_test(a_request_keeps_to_what_it_began_with)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
