/* What is read of a collection in Postgres, where somebody changed its tables by hand. */
#include "tests/store/postgres/server.h"

static server pg;

static void sql(const char *statement)
{
    char command[900];
    snprintf(command, sizeof command, "psql -q '%s' -c \"SET search_path = test; %s\" >/dev/null",
             pg.address, statement);
    assert_int_equal(system(command), 0);
}

static void keep(void *user, const char *text)
{
    pnb__buf *all = user;
    pnb__buf_printf(all, "%s\n", text);
}

static void wrong_tables_are_told(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *damage, *told;
    } cases[] = {{"DELETE FROM embedding WHERE number = 3", "row r2: it has no embedding"},
                 {"DELETE FROM row WHERE number = 7", "of its 20 rows are known"},
                 {"INSERT INTO removed VALUES(5)", "row r4: its number 5 was removed"},
                 {"UPDATE row SET number = 99 WHERE number = 8", "no shard holds its number 99"}};
    pnb_store *store = made_in(&pg, s, "p", false);
    pnb__buf all = {0};
    pnb_store_verified found;
    pnb_error err = PNB_ERROR_INIT;
    const pnb_store_verify_opts opts = {.problem = keep, .user = &all};
    add_rows(store, 0, 20);
    pnb_store_close(store);
    assert_ok(pnb_store_verify(scratch_path(s, "p"), &opts, &found, &err), &err);
    assert_int_equal(found.n_problems, 0);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        sql(cases[i].damage);
        pnb__buf_reset(&all);
        assert_ok(pnb_store_verify(scratch_path(s, "p"), &opts, &found, &err), &err);
        assert_non_null(all.data);
        assert_non_null(strstr(all.data, cases[i].told));
    }
    pnb__buf_reset(&all);
    sql("UPDATE fact SET value = '9' WHERE name = 'version'");
    assert_failed(pnb_store_open(&store, scratch_path(s, "p"), &err), &err, PNB_UNSUPPORTED,
                  "version 9");
    pnb_error_reset(&err);
    sql("DROP TABLE fact");
    assert_failed(pnb_store_open(&store, scratch_path(s, "p"), &err), &err, PNB_FORMAT,
                  "holds no collection");
}

int main(void)
{
    server_start(&pg);
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_tables_are_told)};
    int n_failed = cmocka_run_group_tests(tests, scratch_setup, store_teardown);
    server_end(&pg);
    return n_failed;
}
