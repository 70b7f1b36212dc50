/* A collection.db that is damaged, empty, of another program or not there. */
#include "tests/store/fixture.h"

static void overwrite(const char *path, long at, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void a_damaged_database(void **state)
{
    scratch *s = *state;
    pnb_store *store = filled(s, 40, 40);
    pnb_error err = PNB_ERROR_INIT;
    pnb_store_close(store);
    overwrite(scratch_path(s, "c/collection.db"), 0, "no database at all", 18);
    assert_failed(pnb_store_open(&store, scratch_path(s, "c"), &err), &err, PNB_FORMAT,
                  "is damaged or no collection");
    pnb_error_reset(&err);
    scratch_file(s, "c/collection.db", "", 0);
    assert_failed(pnb_store_open(&store, scratch_path(s, "c"), &err), &err, PNB_FORMAT,
                  "of another program");
    pnb_error_reset(&err);
    assert_int_equal(unlink(scratch_path(s, "c/collection.db")), 0);
    assert_failed(pnb_store_open(&store, scratch_path(s, "c"), &err), &err, PNB_NOT_FOUND,
                  "holds no collection");
    pnb_error_reset(&err);
    assert_failed(pnb_store_open(&store, scratch_path(s, "nowhere"), &err), &err, PNB_NOT_FOUND,
                  "holds no collection");
    pnb_error_reset(&err);
    /* pages of the middle: whatever is read, nothing crashes, and verify sees it */
    store = filled(s, 400, 400);
    pnb_store_close(store);
    char junk[4096];
    memset(junk, 0x5a, sizeof junk);
    for (long page = 2; page < 12; page++)
        overwrite(scratch_path(s, "c/collection.db"), page * 4096, junk, sizeof junk);
    pnb_store_verified found;
    pnb_status status = pnb_store_verify(scratch_path(s, "c"), NULL, &found, &err);
    assert_true(status == PNB_FORMAT || (status == PNB_OK && found.n_problems > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_damaged_database)};
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
