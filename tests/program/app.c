/* How a command speaks: lines with and without a terminal, quiet or not; skipped inputs; wrong use;
 * Ctrl-C; the options that every command takes. */
#include "program/app.h"

#include "tests/program/toy.h"

/* What is said on a log of one kind. */
static void expect_said(bool is_tty, bool colour, bool quiet, const char *want)
{
    char *text = NULL;
    size_t n = 0;
    pnb__app app = {.is_tty = is_tty, .colour = colour, .common.quiet = quiet};
    app.log = open_memstream(&text, &n);
    assert_non_null(app.log);
    pnb__say(&app, "%d rows", 3);
    pnb__warn(&app, "odd %s", "rows");
    pnb__skipped(&app, "a.png", "it is 100% empty");
    assert_int_equal(app.n_skipped, 1);
    fclose(app.log);
    assert_string_equal(text, want);
    free(text);
}

static void test_lines(void **state)
{
    (void)state;
    expect_said(false, false, false,
                "3 rows\nwarning: odd rows\nskipped: a.png: it is 100% empty\n");
    expect_said(false, false, true, "warning: odd rows\nskipped: a.png: it is 100% empty\n");
    expect_said(false, true, false,
                "3 rows\n\033[33mwarning: \033[0modd rows\nskipped: a.png: it is 100% empty\n");
    expect_said(true, false, false,
                "\r\033[K3 rows\n\r\033[Kwarning: odd rows\n"
                "\r\033[Kskipped: a.png: it is 100% empty\n");
}

/* A reason that begins with the name of what was skipped says it once, and only a whole name. */
static void test_skipped_names(void **state)
{
    static const char *const said[][2] = {{"set: d/a.png", "d/a.png: no picture"},
                                          {"d/a.png", "d/a.png: no picture"},
                                          {"d/a.png", "d/a.pn: no picture"},
                                          {"a.png: b", "a.png: no picture"},
                                          {"", ": no picture"}};
    char *text = NULL;
    size_t n = 0;
    (void)state;
    pnb__app app = {.log = open_memstream(&text, &n)};
    for (size_t i = 0; i < PNB_COUNT(said); i++)
        pnb__skipped(&app, said[i][0], said[i][1]);
    fclose(app.log);
    assert_string_equal(text, "skipped: set: d/a.png: no picture\n"
                              "skipped: d/a.png: no picture\n"
                              "skipped: d/a.png: d/a.pn: no picture\n"
                              "skipped: a.png: b: a.png: no picture\n"
                              "skipped: : : no picture\n");
    free(text);
}

/* A text longer than its room is cut, not written over. */
static void test_long_lines(void **state)
{
    char *text = NULL, longest[3000];
    size_t n = 0;
    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    pnb__app app = {.log = open_memstream(&text, &n)};
    pnb__say(&app, "%s", longest);
    pnb__usage(&app, "%s", longest);
    fclose(app.log);
    assert_int_equal(n, 1024);
    assert_int_equal(text[n - 1], '\n');
    assert_true(strlen(app.err.text) == sizeof app.err.text - 1);
    free(text);
}

/* Wrong use is remembered with the first error's words. */
static void test_usage(void **state)
{
    (void)state;
    pnb__app app = {0};
    assert_int_equal(pnb__usage(&app, "no %s", "wall"), PNB_ARG);
    assert_int_equal(pnb__usage(&app, "no paint"), PNB_ARG);
    assert_true(app.usage);
    assert_int_equal(app.err.status, PNB_ARG);
    assert_string_equal(app.err.text, "no wall");
}

static void test_interrupts(void **state)
{
    (void)state;
    volatile sig_atomic_t flag = 0;
    pnb__app app = {0};
    assert_false(pnb__is_interrupted(&app)); /* nobody listens */
    app.interrupted = &flag;
    assert_false(pnb__is_interrupted(&app));
    flag = 1;
    assert_true(pnb__is_interrupted(&app));
}

/* The fallbacks of the common options, and their ranges. */
static void test_common_options(void **state)
{
    static const char *const refused[][2] = {{"--seed", "-1"},
                                             {"--threads", "4097"},
                                             {"--max-image-pixels", "0"},
                                             {"--max-image-pixels", "268435457"}};
    pnb__common common;
    const pnb__opt_set set = {
        .rows = pnb__common_options, .n = pnb__n_common_options, .args = &common};
    (void)state;
    ASSERT_OK(pnb__options_parse(&set, 1, 0, NULL, &err));
    assert_true(!common.help && !common.json && !common.quiet && !common.batch_invariant);
    assert_true(common.seed == 0 && common.threads == 0);
    assert_true(common.max_image_pixels == 178956970); /* Pillow's limit */
    assert_string_equal(common.device, "cpu");
    for (size_t i = 0; i < PNB_COUNT(refused); i++) {
        char *words[2] = {(char *)(uintptr_t)refused[i][0], (char *)(uintptr_t)refused[i][1]};
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(pnb__options_parse(&set, 1, 2, words, &err), PNB_ARG);
        assert_non_null(strstr(err.text, refused[i][0]));
        pnb__options_free(&set, 1);
    }
    char *quiet[] = {(char *)(uintptr_t) "-q", (char *)(uintptr_t) "-t", (char *)(uintptr_t) "2"};
    ASSERT_OK(pnb__options_parse(&set, 1, 3, quiet, &err));
    assert_true(common.quiet && common.threads == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),      cmocka_unit_test(test_skipped_names),
        cmocka_unit_test(test_long_lines), cmocka_unit_test(test_usage),
        cmocka_unit_test(test_interrupts), cmocka_unit_test(test_common_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
