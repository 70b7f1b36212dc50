/* How a command's result leaves it: printed or saved, nothing where nothing was found, and the sets
 * of unknown origin told once however often it leaves. */
#include "program/result_end.h"

#include "program/app.h"
#include "tests/data/fixture.h"

typedef struct ended {
    char *text;
    pnb_status status;
} ended;

static ended finish(pnb__result *r, pnb__app *app, pnb_status status)
{
    ended e = {0};
    size_t size = 0;
    app->out = open_memstream(&e.text, &size);
    assert_non_null(app->out);
    e.status = pnb__result_finish(r, app, status);
    fclose(app->out);
    return e;
}

static void test_printed(void **state)
{
    (void)state;
    pnb__app app = {0};
    pnb__result *r = pnb__result_create();
    pnb__result_int(r, "n", "rows", 3);
    ended e = finish(r, &app, PNB_OK);
    assert_int_equal(e.status, PNB_OK);
    assert_string_equal(e.text, "rows  3\n");
    free(e.text);
    r = pnb__result_create();
    pnb__result_int(r, "n", "rows", 3);
    e = finish(r, &app, PNB_IO); /* the command failed */
    assert_int_equal(e.status, PNB_IO);
    assert_string_equal(e.text, "");
    free(e.text);
}

static void test_nothing_found(void **state)
{
    (void)state;
    pnb__app app = {.common.json = true};
    ended e = finish(pnb__result_create(), &app, PNB_OK);
    assert_int_equal(e.status, PNB_OK);
    assert_string_equal(e.text, "");
    free(e.text);
    e = finish(NULL, &app, PNB_OK); /* no memory for it */
    assert_int_equal(e.status, PNB_NOMEM);
    free(e.text);
}

static size_t n_times(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        n++;
    return n;
}

static void test_unknown_sets(void **state)
{
    (void)state;
    char first[] = "a.npy", second[] = "b.npy", *names[] = {first, second};
    pnb__app app = {.common.json = true, .unknown_sets = names, .n_unknown_sets = 2};
    char *dir = scratch_create(), *path = pnb__path_join(dir, "r.json"), *saved = NULL;
    size_t size = 0;
    pnb__result *r = pnb__result_create();
    pnb__result_int(r, "n", "rows", 3);
    assert_int_equal(pnb__result_save(r, &app, path), PNB_OK);
    ended e = finish(r, &app, PNB_OK);
    assert_int_equal(pnb__read_file(path, 10000, &saved, &size, NULL), PNB_OK);
    assert_int_equal(n_times(saved, "unknown_provenance"), 1);
    assert_int_equal(n_times(e.text, "unknown_provenance"), 1);
    assert_int_equal(n_times(e.text, "a.npy"), 1);
    assert_int_equal(n_times(e.text, "b.npy"), 1);
    assert_string_equal(saved, e.text);
    pnb__free(saved);
    pnb__free(path);
    free(e.text);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_printed),
                                       cmocka_unit_test(test_nothing_found),
                                       cmocka_unit_test(test_unknown_sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
