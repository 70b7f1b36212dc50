/* Status names, the error record and its "first error wins" rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/base.h"

static void names_cover_every_status(void **state)
{
    (void)state;
    assert_string_equal(pnb_status_name(PNB_OK), "OK");
    assert_string_equal(pnb_status_name(PNB_SHAPE), "SHAPE");
    assert_string_equal(pnb_status_name(PNB_INTERRUPTED), "INTERRUPTED");
    for (int i = 0; i < PNB_N_STATUS; i++) {
        assert_string_not_equal(pnb_status_name((pnb_status)i), "UNKNOWN");
        assert_true(strlen(pnb_status_sentence((pnb_status)i)) > 3);
    }
}

static void names_outside_the_list(void **state)
{
    (void)state;
    assert_string_equal(pnb_status_name(PNB_N_STATUS), "UNKNOWN");
    /* Through memory: a constant outside the enum is something compilers warn about. */
    int codes[] = {-1, 1000};
    for (size_t i = 0; i < PNB_COUNT(codes); i++) {
        assert_string_equal(pnb_status_name((pnb_status)codes[i]), "UNKNOWN");
        assert_non_null(pnb_status_sentence((pnb_status)codes[i]));
    }
}

static void first_error_wins(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__fail(&err, PNB_SHAPE, "found %d", 3), PNB_SHAPE);
    assert_int_equal(pnb__fail(&err, PNB_IO, "later"), PNB_IO);
    assert_int_equal(err.status, PNB_SHAPE);
    assert_string_equal(err.text, "found 3");
    pnb_error_reset(&err);
    assert_int_equal(err.status, PNB_OK);
    assert_string_equal(err.text, "");
    assert_int_equal(pnb__fail(&err, PNB_IO, "now"), PNB_IO);
    assert_string_equal(err.text, "now");
}

static void null_record_is_fine(void **state)
{
    (void)state;
    pnb_error_reset(NULL);
    assert_int_equal(pnb__fail(NULL, PNB_ARG, "x"), PNB_ARG);
    assert_int_equal(pnb__fail_nomem(NULL, 7), PNB_NOMEM);
    pnb__error_prefix(NULL, "x");
}

static void long_text_is_cut(void **state)
{
    (void)state;
    char longer[2000];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    pnb_error err = PNB_ERROR_INIT;
    pnb__fail(&err, PNB_ARG, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    pnb__error_prefix(&err, "where");
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "where: aaa", 10);
    pnb__error_prefix(&err, "%s", longer);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void prefix_needs_an_error(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    pnb__error_prefix(&err, "block %d", 7);
    assert_string_equal(err.text, "");
    pnb__fail(&err, PNB_FORMAT, "bad");
    pnb__error_prefix(&err, "block %d", 7);
    assert_string_equal(err.text, "block 7: bad");
    assert_int_equal(err.status, PNB_FORMAT);
}

static void errno_becomes_a_status(void **state)
{
    (void)state;
    static const struct {
        int code;
        pnb_status status;
    } cases[] = {
        {ENOENT, PNB_NOT_FOUND}, {EEXIST, PNB_EXISTS}, {ENOMEM, PNB_NOMEM}, {EACCES, PNB_IO}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error err = PNB_ERROR_INIT;
        errno = cases[i].code;
        assert_int_equal(pnb__fail_errno(&err, "cannot open", "a/b"), cases[i].status);
        assert_memory_equal(err.text, "cannot open a/b: ", 17);
        assert_true(strlen(err.text) > 17);
        assert_int_equal(strcmp(err.text + 17, "out of memory") == 0, cases[i].code == ENOMEM);
    }
}

static void out_of_memory_names_the_size(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__fail_nomem(&err, 12345), PNB_NOMEM);
    assert_non_null(strstr(err.text, "12345"));
}

static pnb_status try_two(pnb_status first, int *n_run)
{
    pnb_status status = PNB_OK;
    PNB_TRY(first);
    ++*n_run;
done:
    return status;
}

static void try_stops_at_the_first_failure(void **state)
{
    (void)state;
    int n_run = 0;
    assert_int_equal(try_two(PNB_IO, &n_run), PNB_IO);
    assert_int_equal(n_run, 0);
    assert_int_equal(try_two(PNB_OK, &n_run), PNB_OK);
    assert_int_equal(n_run, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_cover_every_status),
        cmocka_unit_test(names_outside_the_list),
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(null_record_is_fine),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(prefix_needs_an_error),
        cmocka_unit_test(errno_becomes_a_status),
        cmocka_unit_test(out_of_memory_names_the_size),
        cmocka_unit_test(try_stops_at_the_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
