/* Names of rows: every form a picture or caption answers to, which of two rows is nearer, names
 * that fit two, and captions given away by their text. */
#include "tests/truth/support.h"

#include "penumbra/embeddings.h"
#include "truth/id_resolver.h"

static void expect_row(const pnb__id_resolver *names, const char *name, int64_t want)
{
    int64_t row = -9;
    assert_ok(pnb__id_resolver_find(names, name, &row, err));
    if (row != want)
        fail_msg("'%s' is row %lld, not %lld", name, (long long)row, (long long)want);
}

/* One row, named so; whether each of the names finds it. */
static void expect_forms(pnb__name_kind kind, const char *id, const char *const *known,
                         const char *const *unknown)
{
    const char *const ids[] = {id};
    const pnb_truth_rows one = rows(ids, 1);
    pnb__id_resolver names;
    assert_ok(pnb__id_resolver_init(&names, kind, &one, err));
    for (; *known != NULL; known++)
        expect_row(&names, *known, 0);
    for (; *unknown != NULL; unknown++)
        expect_row(&names, *unknown, -1);
    pnb__id_resolver_reset(&names);
}

static void forms_of_a_image(void **state)
{
    (void)state;
    expect_forms(PNB__NAMES_IMAGES, "val2014/COCO_val2014_000000391895.jpg",
                 (const char *const[]){
                     "val2014/COCO_val2014_000000391895.jpg", "val2014/COCO_val2014_000000391895",
                     "COCO_val2014_000000391895.jpg", "COCO_val2014_000000391895", "391895", NULL},
                 (const char *const[]){"000000391895", "391895.jpg", "val2014", "", "9", NULL});
    /* digits must fill the part behind the last '_'; of zeros one stays */
    expect_forms(PNB__NAMES_IMAGES, "x_12a34.png", (const char *const[]){"x_12a34", NULL},
                 (const char *const[]){"34", "12a34", NULL});
    expect_forms(PNB__NAMES_IMAGES, "a_000", (const char *const[]){"0", "a_000", NULL},
                 (const char *const[]){"000", "", NULL});
    /* '#' is a sign like others in a picture's name */
    expect_forms(PNB__NAMES_IMAGES, "a.jpg#1", (const char *const[]){"a.jpg#1", NULL},
                 (const char *const[]){"a.jpg", "a#1", NULL});
}

static void forms_of_a_text(void **state)
{
    (void)state;
    expect_forms(PNB__NAMES_TEXTS, "dir/x_007.jpg#2",
                 (const char *const[]){"dir/x_007.jpg#2", "x_007.jpg#2", "x_007#2", "7#2",
                                       "dir/x_007#2", NULL},
                 (const char *const[]){"x_007", "x_007#1", "#2", "7", NULL});
}

static void endings(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n;
    } cases[] = {{"x.jpg", 1},   {"x.jpeg", 1}, {"x.abcde", 1}, {"x.abcdef", 8}, {"x.", 2},
                 {".jpg", 4},    {"a/.jpg", 6}, {"a.b/c", 5},   {"x.1", 3},      {"x.h5", 1},
                 {"a.b.jpg", 3}, {"", 0},       {"x", 1},       {"001.Bird", 3}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        if (pnb__without_ending(cases[i].name, strlen(cases[i].name)) != cases[i].n)
            fail_msg("'%s' has %zu bytes without its ending", cases[i].name,
                     pnb__without_ending(cases[i].name, strlen(cases[i].name)));
}

/* The id is stronger than fields, those than shortened ids, those than paths; two rows of equal
 * strength are an error that names both. */
static void nearer_names_win(void **state)
{
    (void)state;
    const char *const ids[] = {"5", "a_5.jpg", "b/a_6.jpg", "c/a_6.jpg", "r"};
    const char *const paths[] = {NULL, "p/q.jpg", "q.jpg", NULL, "r.png"};
    const char *const extras[] = {"{\"cocoid\":9}", "{\"image_id\":\"9x\"}", "no json, no ids",
                                  NULL, "{\"cocoid\":6}"};
    const pnb_truth_rows five = {.n = 5, .ids = ids, .paths = paths, .extras = extras};
    pnb__id_resolver names;
    int64_t row = 0;
    assert_ok(pnb__id_resolver_init(&names, PNB__NAMES_IMAGES, &five, err));
    assert_false(names.unnamed);
    expect_row(&names, "5", 0);     /* also the number of row 1 */
    expect_row(&names, "6", 4);     /* a field; the number of rows 2 and 3 */
    expect_row(&names, "9", 0);     /* a field that is a number */
    expect_row(&names, "9x", 1);    /* a field that is a text */
    expect_row(&names, "q.jpg", 2); /* a path as it is; a shortened one of row 1 */
    expect_row(&names, "r", 4);     /* twice the same row is no conflict */
    assert_fails(pnb__id_resolver_find(&names, "a_6.jpg", &row, err), PNB_ARG,
                 "'a_6.jpg' fits rows 2 and 3 of the pictures");
    assert_int_equal(row, -1);
    pnb__id_resolver_reset(&names);
    assert_null(names.alias);
}

static void texts_are_given_away_once(void **state)
{
    (void)state;
    const char *const texts[] = {"a cat", " a dog\n", "a cat ", NULL, ""};
    const pnb_truth_rows five = {.n = 5, .texts = texts};
    pnb__id_resolver names;
    assert_ok(pnb__id_resolver_init(&names, PNB__NAMES_TEXTS, &five, err));
    assert_true(names.unnamed && names.n_texts == 4);
    assert_int_equal(pnb__id_resolver_take_text(&names, "a cat"), 0);
    assert_int_equal(pnb__id_resolver_take_text(&names, "a cat"), 2);
    assert_int_equal(pnb__id_resolver_take_text(&names, "a cat"), 0); /* all were: the first */
    assert_int_equal(pnb__id_resolver_take_text(&names, "a dog"), 1);
    assert_int_equal(pnb__id_resolver_take_text(&names, ""), 4);
    assert_int_equal(pnb__id_resolver_take_text(&names, "a"), -1);
    pnb__id_resolver_reset(&names);
}

static void row_numbers_are_no_names(void **state)
{
    (void)state;
    const char *const numbers[] = {"0", "1", NULL}, *const other[] = {"0", "2", "1"};
    const pnb_truth_rows by_number = rows(numbers, 3), named = rows(other, 3), none = rows(NULL, 0);
    pnb__id_resolver names;
    assert_ok(pnb__id_resolver_init(&names, PNB__NAMES_IMAGES, &by_number, err));
    assert_true(names.unnamed);
    pnb__id_resolver_reset(&names);
    assert_ok(pnb__id_resolver_init(&names, PNB__NAMES_IMAGES, &named, err));
    assert_false(names.unnamed);
    pnb__id_resolver_reset(&names);
    assert_ok(pnb__id_resolver_init(&names, PNB__NAMES_TEXTS, &none, err));
    expect_row(&names, "0", -1);
    assert_int_equal(pnb__id_resolver_take_text(&names, "x"), -1);
    pnb__id_resolver_reset(&names);
}

static void rows_of_a_set(void **state)
{
    (void)state;
    char id[] = "i", path[] = "p", text[] = "t", extra[] = "{}";
    char *ids[] = {id}, *paths[] = {path}, *texts[] = {text}, *extras[] = {extra};
    const pnb_embeddings set = {
        .n = 1, .ids = ids, .paths = paths, .texts = texts, .extras = extras};
    const pnb_truth_rows r = pnb_truth_rows_of(&set);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.ids[0], "i");
    assert_string_equal(r.paths[0], "p");
    assert_string_equal(r.texts[0], "t");
    assert_string_equal(r.extras[0], "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_a_image),
        cmocka_unit_test(forms_of_a_text),
        cmocka_unit_test(endings),
        cmocka_unit_test(nearer_names_win),
        cmocka_unit_test(texts_are_given_away_once),
        cmocka_unit_test(row_numbers_are_no_names),
        cmocka_unit_test(rows_of_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
