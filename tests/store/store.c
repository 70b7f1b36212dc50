/* Opening takes the same time whatever the number of rows. */
#include "tests/store/fixture.h"

static void an_empty_one(void **state)
{
    scratch *s = *state;
    pnb_store *store = filled(s, 0, 1);
    pnb_store_about about;
    pnb_store_rows rows = {0};
    pnb_embeddings *set = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_store_describe(store, &about, &err), &err);
    assert_int_equal(about.n_rows + about.n_shards + about.n_removed, 0);
    assert_false(about.is_settled);
    assert_string_equal(about.model_dir, "");
    assert_ok(pnb_store_list(store, NULL, 0, 0, &rows, &err), &err);
    assert_int_equal(rows.n, 0);
    assert_failed(pnb_store_set(store, &rows, &set, &err), &err, PNB_ARG, "no rows");
    pnb_store_rows_reset(&rows);
    pnb_store_close(store);
    pnb_store_close(NULL);
}

/* A folder that holds something is nobody's to make a collection in; an empty one is. */
static void where_one_is_made(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__make_dirs(fresh(s), &err), &err);
    assert_ok(pnb_store_create(scratch_path(s, "c"), NULL, &err), &err);
    assert_failed(pnb_store_create(scratch_path(s, "c"), NULL, &err), &err, PNB_EXISTS, "a folder");
    pnb_error_reset(&err);
    fresh(s);
    scratch_file(s, "c", "a file", 6);
    assert_failed(pnb_store_create(scratch_path(s, "c"), NULL, &err), &err, PNB_EXISTS, "a folder");
}

#ifdef PNB_FAULTS
/* Opening touches no row: as many allocations for many rows as for few. */
static long allocations_of_opening(scratch *s)
{
    long before = pnb__alloc_count();
    pnb_store_close(opened(scratch_path(s, "c")));
    return pnb__alloc_count() - before;
}

static void opening_reads_no_row(void **state)
{
    scratch *s = *state;
    pnb_store_close(filled(s, 10, 10));
    long few = allocations_of_opening(s);
    pnb_store_close(filled(s, 4000, 4000));
    assert_int_equal(allocations_of_opening(s), few);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one),
        cmocka_unit_test(where_one_is_made),
#ifdef PNB_FAULTS
        cmocka_unit_test(opening_reads_no_row),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
