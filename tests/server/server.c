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
    assert_true(isnan(s.vague_above[0]) && isnan(s.vague_above[1])); /* nothing is too vague */
    assert_int_equal(s.metrics.n_routes, 3);
    assert_int_equal(s.access.n_keys + s.n_galleries, 0);
    pnb__server_open(&s);
    assert_int_equal(atomic_load(&s.state), PNB__SERVER_READY);
    pnb__server_drain(&s);
    assert_int_equal(atomic_load(&s.state), PNB__SERVER_DRAINING);
    pnb__server_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_begins_as_one_that_loads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
