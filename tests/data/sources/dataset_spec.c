/* From the text of --train-data to paths: sources, braces, globs, and the names in a folder. */
#include "data/sources/dataset_internal.h"
#include "tests/data/sources/opened.h"

/* The paths that `spec` stands for, blanks between. */
static void expands_to(const char *spec, const char *want)
{
    pnb__paths paths = {0};
    pnb__buf joined = {0};
    ASSERT_OK(pnb__spec_expand(&paths, spec, &err));
    for (size_t i = 0; i < paths.n; i++)
        pnb__buf_printf(&joined, "%s%s", i > 0 ? " " : "", paths.items[i]);
    assert_string_equal(joined.data, want);
    pnb__buf_reset(&joined);
    pnb__paths_free(&paths);
    assert_null(paths.items);
}

static void refused(const char *spec, pnb_status want, const char *part)
{
    pnb__paths paths = {0};
    ASSERT_FAILS(pnb__spec_expand(&paths, spec, &err), want, part);
    pnb__paths_free(&paths);
}

static void test_braces(void **state)
{
    (void)state;
    expands_to("a.tar", "a.tar");
    expands_to("a::b.tar::a", "a b.tar a"); /* in order, twice where it stands twice */
    expands_to("s{8..11}.tar", "s8.tar s9.tar s10.tar s11.tar");
    expands_to("s{008..011}", "s008 s009 s010 s011"); /* the width of the first number */
    expands_to("{7..7}", "7");
    expands_to("x{,y}z", "xz xyz");
    expands_to("{a,b}{1..2}", "a1 a2 b1 b2");
    expands_to("{a..b,c}", "a..b c"); /* with a comma it is a list */
    expands_to("p:q", "p:q");         /* one colon is a name */
}

static void test_refused(void **state)
{
    (void)state;
    refused("{3..1}", PNB_ARG, "must go up from a number >= 0, by less than 1000000");
    refused("{0..1000000}", PNB_ARG, "must go up");
    refused("{-1..2}", PNB_ARG, "must go up");
    refused("{x..y}", PNB_ARG, "must look like {00000..00012}");
    refused("{1..}", PNB_ARG, "must look like");
    refused("{1..2x}", PNB_ARG, "must go up");
    refused("a{b", PNB_ARG, "a brace is not closed");
    refused("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", PNB_ARG, "too many braces");
    refused("", PNB_ARG, "a source is empty");
    refused("::a", PNB_ARG, "a source is empty");
    refused("a::", PNB_ARG, "a source is empty");
    refused("a::pipe:cat b", PNB_UNSUPPORTED, "pipe:cat b: commands are not run");
    refused("/nonexistent/*.tar", PNB_NOT_FOUND, "no file matches this pattern");
}

static void test_globs(void **state)
{
    (void)state;
    static const char *const names[] = {"b.tar", "a.tar", "a1.tar", "c.txt", ".hidden.tar"};
    for (size_t i = 0; i < PNB_COUNT(names); i++)
        put_text(scratch, names[i], "");
    char *spec = in_scratch("{a*,c*}"),
         *want = pnb__format("%s/a.tar %s/a1.tar %s/c.txt", scratch, scratch, scratch);
    expands_to(spec, want);
    pnb__free(spec);
    pnb__free(want);
    spec = in_scratch("?[.]tar");
    want = pnb__format("%s/a.tar %s/b.tar", scratch, scratch);
    expands_to(spec, want);
    pnb__free(spec);
    pnb__free(want);
}

/* Names of a folder are sorted among themselves and stand behind what the list held before. */
static void test_list(void **state)
{
    (void)state;
    static const char *const want[] = {"z", ".x", "B", "a", "b"};
    pnb__paths names = {0};
    put_text(scratch, "b", "");
    put_text(scratch, "a", "");
    put_text(scratch, "B", "");
    put_text(scratch, ".x", "");
    ASSERT_OK(pnb__paths_add(&names, "zebra", 1, &err));
    ASSERT_OK(pnb__list_dir(&names, scratch, &err));
    assert_int_equal(names.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(names.items[i], want[i]);
    pnb__paths_sort(&names, 0);
    assert_string_equal(names.items[4], "z");
    pnb__paths_sort(&names, 9); /* behind the end: nothing to do */
    ASSERT_FAILS(pnb__list_dir(&names, "/nonexistent", &err), PNB_NOT_FOUND, "/nonexistent");
    assert_int_equal(names.n, 5);
    pnb__paths_free(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_braces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_globs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
