/* Lines about rows: which row each text gets, and what would lose one. */
#include "commands/classify/id_file.h"
#include "tests/commands/classify/scratch_file.h"
#include "tests/prob/support.h"

enum { N = 4 };

static pnb_status read_text(const char *text, char **value, pnb_error *error)
{
    static const char *const ids[N] = {"b", "twin", "a", "twin"};
    pnb_embeddings *set = NULL;
    assert_ok(pnb_embeddings_create(&set, PNB_POINT, N, 2, err));
    for (size_t i = 0; i < N; i++)
        assert_ok(pnb_embeddings_set_id(set, i, ids[i], err));
    assert_ok(pnb__write_file(scratch_path, text, strlen(text), err));
    pnb_status status = pnb__id_file_read(set, scratch_path, "class", value, error);
    pnb_embeddings_free(set);
    return status;
}

static void free_values(char **value)
{
    for (size_t i = 0; i < N; i++)
        pnb__free(value[i]);
}

static void lines_find_their_rows(void **state)
{
    (void)state;
    char *value[N] = {NULL};
    assert_ok(read_text("# id, class\r\n\r\na\tred\tstar\r\nb\t 2", value, err));
    assert_string_equal(value[2], "red\tstar"); /* the first tab parts */
    assert_string_equal(value[0], " 2");
    assert_true(value[1] == NULL && value[3] == NULL);
    free_values(value);
}

static void lost_lines_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pnb_status status;
        const char *says;
    } cases[] = {{"a\tx\nA\ty\n", PNB_NOT_FOUND, "line 2: no picture has the id \"A\""},
                 {"twin\tx\n", PNB_ARG, "line 1: several pictures have the id \"twin\""},
                 {"a\tx\nb\ty\na\tx\n", PNB_ARG, "line 3: \"a\" has a class already"},
                 {"a\n", PNB_FORMAT, "line 1 is not id, tab, class"},
                 {"b\t\n", PNB_FORMAT, "line 1 is not id, tab, class"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char *value[N] = {NULL};
        pnb_error error = PNB_ERROR_INIT;
        assert_int_equal(read_text(cases[i].text, value, &error), cases[i].status);
        if (strstr(error.text, cases[i].says) == NULL)
            fail_msg("\"%s\" lacks \"%s\"", error.text, cases[i].says);
        free_values(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_find_their_rows),
                                       cmocka_unit_test(lost_lines_are_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
