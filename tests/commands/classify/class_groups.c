/* Groups of pictures from a file and from a field: the same numbers by both, what a file may not
 * say, and accuracy by hand. */
#include "commands/classify/class_groups.h"
#include "tests/commands/classify/scratch_file.h"
#include "tests/prob/support.h"

enum { N = 6 };

/* Two rows are called alike; the last has no field. */
static pnb_embeddings *make_set(void)
{
    static const char *const ids[N] = {"a", "b", "c", "twin", "twin", "d"};
    static const char *const extra[N] = {"{\"where\":\"south\"}", "{\"where\":\"north\"}",
                                         "{\"where\":\"south\"}", "{\"where\":7}",
                                         "{\"where\":\"north\"}", NULL};
    pnb_embeddings *set = NULL;
    assert_ok(pnb_embeddings_create(&set, PNB_POINT, N, 2, err));
    for (size_t i = 0; i < N; i++) {
        assert_ok(pnb_embeddings_set_id(set, i, ids[i], err));
        if (extra[i] != NULL)
            assert_ok(pnb_embeddings_set_extra(set, i, extra[i], err));
    }
    return set;
}

static void by_field_and_file(void **state)
{
    (void)state;
    static const int32_t by_field[N] = {2, 1, 2, 0, 1, -1}, by_file[N] = {1, 0, 1, -1, -1, -1};
    static const char text[] = "# a comment\n\nc\tsouth\na\tsouth\r\nb\tnorth\n";
    pnb_embeddings *set = make_set();
    pnb__image_groups g;
    assert_ok(pnb__image_groups_read(&g, set, NULL, "where", err));
    assert_int_equal(g.names.n, 3);
    assert_string_equal(g.names.items[0], "7");
    assert_string_equal(g.names.items[2], "south");
    assert_memory_equal(g.group, by_field, sizeof by_field);
    pnb__image_groups_reset(&g);
    assert_ok(pnb__write_file(scratch_path, text, sizeof text - 1, err));
    assert_ok(pnb__image_groups_read(&g, set, scratch_path, NULL, err));
    assert_int_equal(g.names.n, 2);
    assert_memory_equal(g.group, by_file, sizeof by_file);
    pnb__image_groups_reset(&g);
    pnb_embeddings_free(set);
}

static void bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pnb_status status;
        const char *says;
    } cases[] = {{"e\tnorth\n", PNB_NOT_FOUND, "line 1: no picture has the id \"e\""},
                 {"a\tx\ntwin\tx\n", PNB_ARG, "line 2: several pictures"},
                 {"a\tx\na\ty\n", PNB_ARG, "line 2: \"a\" has a group already"},
                 {"a x\n", PNB_FORMAT, "line 1 is not id, tab, group"},
                 {"a\t\n", PNB_FORMAT, "line 1 is not id, tab, group"},
                 {"\n# none\n", PNB_FORMAT, "names no group"}};
    pnb_embeddings *set = make_set();
    pnb__image_groups g;
    for (size_t k = 0; k < PNB_COUNT(cases); k++) {
        pnb_error why = PNB_ERROR_INIT;
        assert_ok(pnb__write_file(scratch_path, cases[k].text, strlen(cases[k].text), err));
        assert_int_equal(pnb__image_groups_read(&g, set, scratch_path, NULL, &why),
                         cases[k].status);
        assert_non_null(strstr(why.text, cases[k].says));
        pnb__image_groups_reset(&g);
    }
    assert_fails(pnb__image_groups_read(&g, set, NULL, "nothing", err), PNB_NOT_FOUND,
                 "no picture has the field");
    pnb__image_groups_reset(&g);
    pnb_embeddings_free(set);
}

/* Row 2 has no label; of the others group 1 has one right of two, group 2 none of one. */
static void accuracy(void **state)
{
    (void)state;
    int32_t label[N] = {0, 1, -1, 2, 0, 1}, group[N] = {2, 1, 2, 0, 1, -1};
    int32_t top[2 * N] = {1, 0, 1, 0, 0, 1, 2, 0, 1, 0, 1, 2};
    const pnb_predictions p = {.n = N, .n_classes = 3, .k = 2, .top = top};
    const pnb_bootstrap_opts none = {.n_resamples = 0};
    pnb__image_groups g = {.group = NULL};
    pnb__labelled_images rows;
    static const char *const names[] = {"7", "north", "south"};
    for (size_t k = 0; k < 3; k++)
        assert_ok(pnb__texts_add(&g.names, names[k], strlen(names[k]), err));
    assert_ok(pnb__labelled_images_init(&rows, &p, label, group, err));
    assert_int_equal(rows.n, N - 1);
    static const double right[] = {0, 1, 1, 0, 1}, among_two[] = {1, 1, 1, 1, 1};
    for (size_t i = 0; i < rows.n; i++)
        assert_true(rows.right[i] == right[i] && rows.right5[i] == among_two[i]);
    assert_ok(pnb__image_groups_judge(&g, &rows, 3, &none, err));
    assert_true(g.acc1[0].mean.value == 1 && g.acc1[1].mean.value == 0.5);
    assert_true(g.all.worst == 2 && g.all.worst_mean.value == 0 && g.all.average.value == 0.5);
    assert_int_equal(g.n_without, 1);
    assert_null(g.acc5); /* three classes */
    pnb__labelled_images_reset(&rows);
    pnb__image_groups_reset(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_field_and_file),
                                       cmocka_unit_test(bad_files), cmocka_unit_test(accuracy)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
