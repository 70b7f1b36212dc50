/* Which addresses are those of this machine alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/sockets/address.h"

static void local_ones_and_others(void **state)
{
    static const struct {
        const char *host, *text;
        bool is_local;
    } cases[] = {{"127.0.0.1", "127.0.0.1", true},
                 {"127.1.2.3", "127.1.2.3", true},
                 {"::1", "::1", true},
                 {"0.0.0.0", "0.0.0.0", false},
                 {"::", "::", false},
                 {"192.0.2.7", "192.0.2.7", false}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__address a;
        char text[64];
        assert_int_equal(pnb__address_of(&a, cases[i].host, 8080, NULL), PNB_OK);
        assert_int_equal(pnb__address_is_local(&a), cases[i].is_local);
        pnb__address_text((const struct sockaddr *)&a.at, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
    pnb__address a;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__address_of(&a, "300.0.0.1", 80, &err), PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "300.0.0.1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(local_ones_and_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
