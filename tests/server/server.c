/* A server's life: loading, answering, draining; everything is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/server.h"

static void from_loading_to_draining(void **state)
{
    (void)state;
    pnb__server s;
    assert_int_equal(pnb__server_init(&s, 3, NULL), PNB_OK);
    assert_int_equal(atomic_load(&s.state), PNB__SERVER_LOADING);
    pnb__server_open(&s);
    assert_int_equal(atomic_load(&s.state), PNB__SERVER_READY);
    pnb__server_drain(&s);
    assert_int_equal(atomic_load(&s.state), PNB__SERVER_DRAINING);
    pnb__server_reset(&s);
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        pnb__server s;
        pnb_error err = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        pnb_status status = pnb__server_init(&s, 3, &err);
        pnb__alloc_fail_after(-1);
        pnb__server_reset(&s);
        if (status == PNB_OK)
            return;
        assert_int_equal(status, PNB_NOMEM);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_loading_to_draining),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
