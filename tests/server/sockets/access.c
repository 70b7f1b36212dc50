/* Keys from files, and requests a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/sockets/access.h"

static pnb_status read_keys(pnb__access *a, const char *text, pnb_error *err)
{
    char path[] = "/tmp/penumbra-keys-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    pnb_status status = pnb__access_read_keys(a, path, err);
    unlink(path);
    return status;
}

static void keys_are_lines(void **state)
{
    pnb__access a;
    (void)state;
    pnb__access_init(&a);
    assert_true(pnb__access_has_key(&a, NULL)); /* none is asked for */
    assert_int_equal(
        read_keys(&a, "# of the web site\r\n\n 0123456789abcdef \r\nfedcba98765432100", NULL),
        PNB_OK);
    assert_int_equal(a.n_keys, 2);
    assert_true(pnb__access_has_key(&a, "Bearer 0123456789abcdef"));
    assert_true(pnb__access_has_key(&a, "Bearer fedcba98765432100"));
    assert_true(pnb__access_has_key(&a, "bearer 0123456789abcdef")); /* RFC 7235: in any case */
    assert_true(pnb__access_has_key(&a, "BEARER 0123456789abcdef"));
    assert_false(pnb__access_has_key(&a, "bearer 0123456789ABCDEF"));
    assert_false(pnb__access_has_key(&a, "Basic 0123456789abcdef"));
    assert_false(pnb__access_has_key(&a, "Bearer 0123456789abcdeg"));
    assert_false(pnb__access_has_key(&a, "Bearer # of the web site"));
    assert_false(pnb__access_has_key(&a, NULL));
    pnb__access_reset(&a);
}

static void files_that_hold_no_keys(void **state)
{
    static const char *const texts[] = {"", "\n# nothing\n", "short\n"};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(texts); i++) {
        pnb__access a;
        pnb_error err = PNB_ERROR_INIT;
        pnb__access_init(&a);
        assert_int_equal(read_keys(&a, texts[i], &err), PNB_FORMAT);
        assert_non_null(strstr(err.text, i < 2 ? "holds no key" : "16 are wanted"));
        pnb__access_reset(&a);
    }
}

static void so_many_requests_a_second(void **state)
{
    pnb__access a;
    int wait_s = 0;
    (void)state;
    pnb__access_init(&a);
    assert_true(pnb__access_take(&a, "10.0.0.1", 0, &wait_s)); /* no limit */
    a.rate = 4;
    for (int i = 0; i < 4; i++)
        assert_true(pnb__access_take(&a, "10.0.0.1", 100, &wait_s));
    assert_false(pnb__access_take(&a, "10.0.0.1", 100, &wait_s));
    assert_int_equal(wait_s, 1);
    assert_true(pnb__access_take(&a, "10.0.0.2", 100, &wait_s));
    assert_true(pnb__access_take(&a, "10.0.0.1", 100.26, &wait_s));
    assert_false(pnb__access_take(&a, "10.0.0.1", 100.27, &wait_s));
    for (int i = 0; i < 4; i++) /* what was not asked for is not saved beyond a second's worth */
        assert_true(pnb__access_take(&a, "10.0.0.1", 1000, &wait_s));
    assert_false(pnb__access_take(&a, "10.0.0.1", 1000, &wait_s));
    assert_false(pnb__access_take(&a, "10.0.0.1", 900, &wait_s)); /* a clock that jumps back */
    pnb__access_reset(&a);
    pnb__access_init(&a);
    a.rate = 0.1; /* one every ten seconds */
    assert_true(pnb__access_take(&a, "::1", 5, &wait_s));
    assert_false(pnb__access_take(&a, "::1", 5, &wait_s));
    assert_int_equal(wait_s, 10);
    pnb__access_reset(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_are_lines),
                                       cmocka_unit_test(files_that_hold_no_keys),
                                       cmocka_unit_test(so_many_requests_a_second)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
