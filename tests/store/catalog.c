/* The kinds of store of this build: what it says it has is what it opens. */
#include "tests/store/fixture.h"

#include "store/catalog.h"

static void what_this_build_has(void **state)
{
    (void)state;
    const pnb__catalog_calls *calls = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb__catalog_kind(&calls, &err);
    if (pnb_store_kinds()[0] != '\0') {
        assert_ok(status, &err);
        assert_string_equal(pnb_store_kinds(), "SQLite");
        assert_non_null(calls);
    } else {
        assert_failed(status, &err, PNB_UNSUPPORTED, "libsqlite3-dev");
        assert_null(calls);
    }
}

static void an_empty_state_is_reset(void **state)
{
    (void)state;
    pnb__catalog_state s = {0};
    pnb__catalog_state_reset(&s);
    assert_true(s.n_shards == 0 && s.shards == NULL && s.removed == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_this_build_has),
                                       cmocka_unit_test(an_empty_state_is_reset)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
