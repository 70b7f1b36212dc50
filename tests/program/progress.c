/* Progress: durations, lines and bars by hand-set clocks, what is said at the end, and the watch
 * that stops a job. */
#include "program/progress.h"

#include <math.h>

#include "tests/program/toy.h"

static void test_durations(void **state)
{
    (void)state;
    char text[16];
    pnb__format_duration(65, text);
    assert_string_equal(text, "01:05");
    pnb__format_duration(3723, text);
    assert_string_equal(text, "1:02:03");
    pnb__format_duration(NAN, text);
    assert_string_equal(text, "--:--");
    pnb__format_duration(1e12, text);
    assert_string_equal(text, "--:--");
}

/* Rounded to whole seconds before the parts are taken; a hundred hours are absurd. */
static void test_rounding(void **state)
{
    static const struct {
        double seconds;
        const char *want;
    } cases[] = {{0, "00:00"},        {0.49, "00:00"},     {59.6, "01:00"},
                 {3599.7, "1:00:00"}, {86399, "23:59:59"}, {359999, "99:59:59"},
                 {360000, "--:--"},   {-1, "--:--"},       {INFINITY, "--:--"}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char text[16];
        pnb__format_duration(cases[i].seconds, text);
        assert_string_equal(text, cases[i].want);
    }
}

/* ---- what is shown ---- */

static pnb__app app;
static char *text;
static size_t n_text;

static void begin(bool is_tty, bool quiet)
{
    app = (pnb__app){.is_tty = is_tty, .common.quiet = quiet};
    app.log = open_memstream(&text, &n_text);
    assert_non_null(app.log);
}

static void expect_shown(const char *want)
{
    fclose(app.log);
    assert_string_equal(text, want);
    free(text);
}

/* As if it had begun `seconds` ago and nothing had been shown for a minute. Jobs here are long, so
 * that a pause of this machine changes no digit. */
static void age(pnb__progress *p, double seconds)
{
    p->start_s = pnb__now_s() - seconds;
    p->shown_s -= 60;
}

enum { FIRST = 10, DONE = 50010, TOTAL = 50060 };
#define AGE 4999.55 /* seconds: 1:23:20 rounded, ten pictures in each */

static void test_lines(void **state)
{
    (void)state;
    pnb__progress p;
    begin(false, false);
    pnb__progress_start(&p, &app, "embedding", "pictures", FIRST, TOTAL);
    pnb__progress_update(&p, DONE, NULL); /* five seconds are not over */
    age(&p, AGE);
    pnb__progress_update(&p, DONE, NULL); /* fifty are to do */
    pnb__progress_update(&p, DONE, NULL);
    age(&p, AGE);
    pnb__progress_update(&p, FIRST, "loss 1.5"); /* nothing of this run yet: who knows */
    p.total = 0;
    age(&p, AGE);
    pnb__progress_update(&p, DONE, NULL);
    age(&p, AGE);
    pnb__progress_finish(&p, DONE);
    expect_shown("embedding 50010/50060 pictures (99%), 10.0/s, 00:05 left\n"
                 "embedding 10/50060 pictures (0%), 0.0/s, --:-- left  loss 1.5\n"
                 "embedding 50010 pictures, 10.0/s\n"
                 "embedding: 50010 pictures in 1:23:20 (10.0/s)\n");
}

/* A terminal has one line, drawn over and taken away. */
static void test_bar(void **state)
{
    (void)state;
    pnb__progress p;
    begin(true, false);
    pnb__progress_start(&p, &app, "embedding", "pictures", FIRST, 2 * DONE);
    pnb__progress_update(&p, DONE, NULL); /* at once */
    pnb__progress_update(&p, DONE, NULL); /* a tenth of a second is not over */
    assert_true(fflush(app.log) == 0 && n_text > 0);
    rewind(app.log); /* its rate is that of this machine */
    p.total = TOTAL;
    age(&p, AGE);
    pnb__progress_update(&p, DONE, NULL);
    age(&p, AGE);
    pnb__progress_update(&p, DONE + 100, "late"); /* more than was announced: full, and no time */
    p.total = 0;
    age(&p, AGE);
    pnb__progress_update(&p, DONE, NULL);
    age(&p, AGE);
    pnb__progress_finish(&p, DONE);
    expect_shown(
        "\r\033[Kembedding  99% [#######################.] 50010/50060  10.0 pictures/s  00:05 left"
        "\r\033[Kembedding 100% [########################] 50110/50060  10.0 pictures/s  --:-- left"
        "  late\r\033[Kembedding 50010 pictures, 10.0/s"
        "\r\033[Kembedding: 50010 pictures in 1:23:20 (10.0/s)\n");
}

static void test_quiet(void **state)
{
    (void)state;
    pnb__progress p;
    begin(false, true);
    pnb__progress_start(&p, &app, "embedding", "pictures", 0, 10);
    age(&p, 5);
    pnb__progress_update(&p, 5, NULL);
    pnb__progress_finish(&p, 10);
    expect_shown("");
}

/* Of a job that went on from a later place than it ended at, nothing was done. */
static void test_nothing_done(void **state)
{
    (void)state;
    pnb__progress p;
    begin(false, false);
    pnb__progress_start(&p, &app, "embedding", "pictures", 10, 110);
    age(&p, 59.55);
    pnb__progress_finish(&p, 4);
    expect_shown("embedding: 4 pictures in 01:00 (0.0/s)\n");
}

/* ---- watching ---- */

static void test_watch(void **state)
{
    (void)state;
    volatile sig_atomic_t flag = 0;
    pnb__watching watching;
    begin(false, false);
    app.interrupted = &flag;
    pnb_watch w = pnb__watch_begin(&watching, &app, "search", "rows");
    assert_true(w.step(w.user, 5, TOTAL));
    age(watching.progress, AGE);
    assert_true(w.step(w.user, DONE, TOTAL)); /* the total comes with the step */
    flag = 1;
    assert_false(w.step(w.user, DONE + 1, TOTAL));
    age(watching.progress, AGE);
    pnb__watch_end(&watching);
    assert_null(watching.progress);
    expect_shown("search 50010/50060 rows (99%), 10.0/s, 00:05 left\n"
                 "search: 50011 rows in 1:23:20 (10.0/s)\n");
}

/* What was over before a line was due says nothing. */
static void test_short_watch(void **state)
{
    (void)state;
    pnb__watching watching;
    begin(false, false);
    pnb_watch w = pnb__watch_begin(&watching, &app, "search", "rows");
    assert_true(w.step(w.user, 20, 20));
    pnb__watch_end(&watching);
    expect_shown("");
}

#ifdef PNB_FAULTS
/* Without memory for a bar the job goes on without one, and still stops. */
static void test_watch_without_memory(void **state)
{
    (void)state;
    volatile sig_atomic_t flag = 0;
    pnb__watching watching;
    begin(false, false);
    app.interrupted = &flag;
    pnb__alloc_fail_after(0);
    pnb_watch w = pnb__watch_begin(&watching, &app, "search", "rows");
    pnb__alloc_fail_after(-1);
    assert_true(w.step(w.user, 1, 20));
    flag = 1;
    assert_false(w.step(w.user, 2, 20));
    pnb__watch_end(&watching);
    expect_shown("");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bar),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_nothing_done),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_short_watch),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_watch_without_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
