/* Addresses: what is kept of them has no password, and what cannot be read is not told. */
#include "tests/io/scratch.h"

#include "store/postgres/postgres.h"

static void addresses(void **state)
{
    (void)state;
    static const char *const wrong[] = {"postgresql://me:sec@ret@host/x", "postgresql://h:1x/y",
                                        "postgresql://[::1/x", "postgresql:"};
    pnb_error err = PNB_ERROR_INIT;
    char *kept = NULL;
    assert_ok(pnb__pg_keep_address("postgresql://me:secret@h:77/x?sslmode=require", &kept, &err),
              &err);
    assert_null(strstr(kept, "secret"));
    assert_non_null(strstr(kept, "user='me'"));
    assert_non_null(strstr(kept, "port='77'"));
    assert_non_null(strstr(kept, "sslmode='require'"));
    char *again = NULL;
    assert_ok(pnb__pg_keep_address(kept, &again, &err), &err);
    assert_string_equal(again, kept);
    pnb__free(kept);
    pnb__free(again);
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        assert_int_equal(pnb__pg_keep_address(wrong[i], &kept, &err), PNB_ARG);
        assert_null(strstr(err.text, "ret"));
        pnb_error_reset(&err);
    }
}

/* Where nothing listens: at once, by name. */
static void nobody_there(void **state)
{
    (void)state;
    char address[] = "postgresql://me:secret@127.0.0.1:1/base", dir[] = "c", schema[] = "s";
    const pnb__place place = {.dir = dir, .address = address, .schema = schema};
    pnb__pg *s = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__pg_connect(&s, &place, &err), PNB_IO);
    assert_null(s);
    assert_non_null(strstr(err.text, "schema s of the Postgres database base at 127.0.0.1:1"));
    assert_null(strstr(err.text, "secret"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses), cmocka_unit_test(nobody_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
