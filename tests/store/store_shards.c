/* Files of shards: few of them, and none that nothing names. */
#include "tests/store/fixture.h"

/* Many small additions do not leave many small files, and removing all leaves none. */
static void shards_are_joined_and_go(void **state)
{
    pnb_store *store = filled(*state, 64, 1);
    pnb_store_about about;
    char id[64][24];
    const char *ids[64];
    size_t n = 0;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_describe(store, &about, &err), &err);
    assert_true(about.n_shards <= 7);
    for (size_t i = 0; i < 64; i++) {
        snprintf(id[i], sizeof id[i], "r%zu", i);
        ids[i] = id[i];
    }
    assert_ok(pnb_store_remove(store, ids, 64, &n, &err), &err);
    assert_int_equal(n, 64);
    assert_ok(pnb_store_remove(store, ids, 64, &n, &err), &err);
    assert_int_equal(n, 0);
    assert_ok(pnb_store_describe(store, &about, &err), &err);
    assert_int_equal(about.n_shards, 0);
    assert_int_equal(about.n_removed, 0);
    assert_int_equal(add_rows(store, 0, 3).n_added, 3);
    pnb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shards_are_joined_and_go)};
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
