/* The kinds of store of this build: what it says it has is what it opens. */
#include "tests/store/fixture.h"

#include "store/catalog.h"

static void what_this_build_has(void **state)
{
    (void)state;
    static const char *const names[][3] = {{"SQLite", "sqlite:a.db", "libsqlite3-dev"},
                                           {"Postgres", "postgresql://host/base", "libpq-dev"}};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        const pnb_store_place said = {.address = names[i][1]};
        pnb__place place = {0};
        pnb_error err = PNB_ERROR_INIT;
        pnb_status status = pnb__place_init(&place, "a/B c/", &said, &err);
        if (strstr(pnb_store_kinds(), names[i][0]) != NULL) {
            assert_ok(status, &err);
            assert_string_equal(place.calls->name, names[i][0]);
            assert_string_equal(place.schema, "penumbra_b_c");
        } else {
            assert_failed(status, &err, PNB_UNSUPPORTED, names[i][2]);
            assert_null(place.calls);
        }
        pnb__place_reset(&place);
    }
}

static void what_is_no_address(void **state)
{
    (void)state;
    static const pnb_store_place wrong[] = {{.address = "mysql://me:secret@host/base"},
                                            {.address = ""},
                                            {.address = "sqlite:"},
                                            {.address = "sqlite:a.db", .schema = "A"},
                                            {.address = "sqlite:a.db", .schema = "1a"}};
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        pnb__place place = {0};
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(pnb__place_init(&place, "c", &wrong[i], &err), PNB_ARG);
        assert_null(strstr(err.text, "secret"));
        assert_null(place.dir);
    }
}

/* The note in the folder is what the place is read from, and nothing else is taken for one. */
static void the_note(void **state)
{
    scratch *s = *state;
    char dir[sizeof s->path];
    snprintf(dir, sizeof dir, "%s", fresh(s));
    pnb__place place = {0};
    pnb_error err = PNB_ERROR_INIT;
    const pnb_store_place said = {.address = "sqlite:/somewhere/a.db", .schema = "s_1"};
    assert_ok(pnb__make_dirs(dir, &err), &err);
    assert_false(pnb_store_is_at(dir));
    assert_ok(pnb__place_init(&place, dir, &said, &err), &err);
    assert_ok(pnb__place_write(&place, &err), &err);
    pnb__place_reset(&place);
    assert_true(pnb_store_is_at(dir));
    assert_ok(pnb__place_read(&place, dir, &err), &err);
    assert_string_equal(place.address, "/somewhere/a.db");
    assert_string_equal(place.schema, "s_1");
    pnb__place_reset(&place);
    static const char *const wrong[] = {
        "{}", "[]", "{\"kind\": \"oracle\", \"address\": \"a\"}", "{\"kind\": \"sqlite\"}",
        "{\"kind\": \"sqlite\", \"address\": \"a\", \"schema\": \"a;b\"}"};
    for (size_t i = 0; i < PNB_COUNT(wrong); i++) {
        scratch_file(s, "c/store.json", wrong[i], strlen(wrong[i]));
        assert_true(pnb__place_read(&place, dir, &err) != PNB_OK);
        assert_null(place.dir);
        pnb_error_reset(&err);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_this_build_has), cmocka_unit_test(what_is_no_address),
        cmocka_unit_test(the_note), cmocka_unit_test(an_empty_state_is_reset)};
    return cmocka_run_group_tests(tests, scratch_setup, store_teardown);
}
