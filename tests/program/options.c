/* Option tables: values, lists, ranges, suggestions, and every way to get a command line wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "program/options.h"

struct args {
    bool verbose;
    int64_t count, maybe;
    double rate, maybe_rate;
    const char *name, *mode;
    pnb__text_list images, rest;
};

#define AT(field) PNB__FIELD(struct args, field)
static const pnb__option rows[] = {
    {.name = "verbose", .letter = 'v', .kind = PNB__OPT_FLAG, .at = AT(verbose), .help = "Talk"},
    {.name = "batch-size",
     .letter = 'b',
     .kind = PNB__OPT_INT,
     .at = AT(count),
     .value = "N",
     .fallback = "8",
     .min = 1,
     .max = 100,
     .help = "Inputs"},
    {.name = "maybe", .kind = PNB__OPT_INT, .at = AT(maybe), .value = "N", .help = "Optional"},
    {.name = "rate",
     .kind = PNB__OPT_REAL,
     .at = AT(rate),
     .value = "R",
     .fallback = "1e-3",
     .max = INFINITY,
     .help = "Rate"},
    {.name = "maybe-rate", .kind = PNB__OPT_REAL, .at = AT(maybe_rate), .value = "R", .help = "?"},
    {.name = "name",
     .kind = PNB__OPT_TEXT,
     .at = AT(name),
     .value = "STR",
     .required = true,
     .help = "What to call it"},
    {.name = "mode",
     .kind = PNB__OPT_CHOICE,
     .at = AT(mode),
     .value = "M",
     .fallback = "slow",
     .choices = "slow|fast",
     .help = "Speed"},
    {.name = "images", .kind = PNB__OPT_FILES, .at = AT(images), .value = "PATH...", .help = "In"},
    {.name = "rest", .kind = PNB__OPT_REST, .at = AT(rest), .value = "WORD...", .help = "Others"},
};

static struct args parsed;
static pnb_error err;

static pnb_status parse(const char *first, ...)
{
    char *words[32];
    int n = 0;
    const pnb__opt_set set = {rows, PNB_COUNT(rows), &parsed, false, NULL};
    va_list list;
    va_start(list, first);
    for (const char *w = first; w != NULL; w = va_arg(list, const char *))
        words[n++] = (char *)(uintptr_t)w;
    va_end(list);
    pnb__options_free(&set, 1);
    pnb_error_reset(&err);
    return pnb__options_parse(&set, 1, n, words, &err);
}

static void refused(const char *text)
{
    assert_int_equal(err.status, PNB_ARG);
    if (strstr(err.text, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, err.text);
}

static int release(void **state)
{
    const pnb__opt_set set = {rows, PNB_COUNT(rows), &parsed, false, NULL};
    (void)state;
    pnb__options_free(&set, 1);
    return 0;
}

static void test_fallbacks(void **state)
{
    (void)state;
    assert_int_equal(parse("--name", "x", NULL), PNB_OK);
    assert_false(parsed.verbose);
    assert_int_equal(parsed.count, 8);
    assert_true(parsed.maybe == PNB__INT_UNSET);
    assert_true(fabs(parsed.rate - 1e-3) < 1e-15);
    assert_true(isnan(parsed.maybe_rate));
    assert_string_equal(parsed.mode, "slow");
    assert_int_equal(parsed.images.n, 0);
}

static void test_values(void **state)
{
    (void)state;
    assert_int_equal(parse("--name=a=b", "-v", "-b", "5", "--rate", "0.5", "--maybe", "-3",
                           "--mode=fast", "--maybe_rate", "-1e-4", NULL),
                     PNB_OK);
    assert_string_equal(parsed.name, "a=b");
    assert_true(parsed.verbose);
    assert_int_equal(parsed.count, 5);
    assert_int_equal(parsed.maybe, -3);
    assert_true(fabs(parsed.maybe_rate + 1e-4) < 1e-15);
    assert_string_equal(parsed.mode, "fast");
    assert_int_equal(parse("-b7", "--name", "x", NULL), PNB_OK);
    assert_int_equal(parsed.count, 7);
}

static void test_lists(void **state)
{
    (void)state;
    assert_int_equal(parse("--images", "a", "b", "-", "--name", "x", "--images", "c", NULL),
                     PNB_OK);
    assert_int_equal(parsed.images.n, 4);
    assert_string_equal(parsed.images.items[2], "-");
    assert_string_equal(parsed.images.items[3], "c");
    assert_int_equal(parse("one", "--name", "x", "two", "--", "--three", NULL), PNB_OK);
    assert_int_equal(parsed.rest.n, 3);
    assert_string_equal(parsed.rest.items[2], "--three");
}

static void test_wrong_words(void **state)
{
    (void)state;
    assert_int_equal(parse("--name", "x", "--batchsize", "3", NULL), PNB_ARG);
    refused("unknown option --batchsize; did you mean --batch-size?");
    assert_int_equal(parse("--name", "x", "--zzzzzzzzzzzz", NULL), PNB_ARG);
    refused("unknown option --zzzzzzzzzzzz");
    assert_null(strstr(err.text, "did you mean"));
    assert_int_equal(parse("--name", "x", "-z", NULL), PNB_ARG);
    refused("unknown option -z");
    assert_int_equal(parse("--batch-size", "3", NULL), PNB_ARG);
    refused("--name STR is missing: What to call it");
    assert_int_equal(parse("--name", "--verbose", NULL), PNB_ARG);
    refused("--name needs a value (STR)");
    assert_int_equal(parse("--name", "x", "--verbose=1", NULL), PNB_ARG);
    refused("--verbose takes no value");
}

static void test_wrong_values(void **state)
{
    (void)state;
    static const char *const whole[] = {"", "3x", "1.5", " 3", "9223372036854775808"};
    for (size_t i = 0; i < PNB_COUNT(whole); i++) {
        assert_int_equal(parse("--name", "x", "--batch-size", whole[i], NULL), PNB_ARG);
        refused("a whole number is wanted");
    }
    assert_int_equal(parse("--name", "x", "--batch-size", "0", NULL), PNB_ARG);
    refused("must be between 1 and 100");
    assert_int_equal(parse("--name", "x", "--rate", "nan", NULL), PNB_ARG);
    refused("a number is wanted");
    assert_int_equal(parse("--name", "x", "--rate", "-1", NULL), PNB_ARG);
    refused("must be at least 0");
    assert_int_equal(parse("--name", "x", "--mode", "fas", NULL), PNB_ARG);
    refused("must be one of slow|fast");
    assert_int_equal(parse("--name", "x", "--mode", "", NULL), PNB_ARG);
}

/* ---- fields of a job: numbers of other widths, choices as places, defaults that stay ---- */

enum colour { RED, GREEN, BLUE, NO_COLOUR };

struct job {
    int level;
    size_t n;
    enum colour colour;
    bool is_exact;
    double share;
    const char *name, *word;
};

#define AT_JOB(field) PNB__FIELD(struct job, field)
static const pnb__option job_rows[] = {
    PNB__ROW_INT("level", AT_JOB(level), "N", "Level", PNB__RANGE(-1, 7)),
    PNB__ROW_INT("n", AT_JOB(n), "N", "Number", PNB__RANGE(0, 1e12)),
    /* the choices are in another order than the enum, and one is none of it */
    PNB__ROW_CHOICE("colour", AT_JOB(colour), "C", "auto|blue|red", "Colour",
                    .names = "red\0green\0blue\0"),
    PNB__ROW_CHOICE("form", AT_JOB(is_exact), "F", "published|exact", "Form"),
    PNB__ROW_REAL("share", AT_JOB(share), "S", "Share"),
    PNB__ROW_TEXT("name", AT_JOB(name), "STR", "Name", .fallback = "usual"),
    PNB__ROW_REST("word", AT_JOB(word), "WORD", "One word"),
};

static struct job parse_job(bool has_defaults, const char *first, ...)
{
    struct job job = {.level = -1, .n = 9, .colour = GREEN, .share = 0.5, .word = NULL};
    const pnb__opt_set set = {job_rows, PNB_COUNT(job_rows), &job, has_defaults, NULL};
    char *words[16];
    int n = 0;
    va_list list;
    va_start(list, first);
    for (const char *w = first; w != NULL; w = va_arg(list, const char *))
        words[n++] = (char *)(uintptr_t)w;
    va_end(list);
    pnb_error_reset(&err);
    (void)pnb__options_parse(&set, 1, n, words, &err);
    pnb__options_free(&set, 1);
    return job;
}

static void test_defaults(void **state)
{
    (void)state;
    struct job job = parse_job(true, "--n", "3000000000", NULL);
    assert_int_equal(job.level, -1);
    assert_true(job.n == 3000000000U);
    assert_int_equal(job.colour, GREEN);
    assert_true(job.share > 0.4);
    assert_string_equal(job.name, "usual"); /* a fallback is stronger than the struct's own */
    job = parse_job(false, NULL);
    assert_true(isnan(job.share));
    assert_int_equal(job.colour, RED);
}

static void test_fields(void **state)
{
    (void)state;
    struct job job =
        parse_job(true, "--level", "7", "--colour", "blue", "--form", "exact", "w", NULL);
    assert_int_equal(err.status, PNB_OK);
    assert_int_equal(job.level, 7);
    assert_int_equal(job.colour, BLUE);
    assert_true(job.is_exact);
    assert_string_equal(job.word, "w");
    assert_int_equal(parse_job(true, "--colour", "auto", NULL).colour, NO_COLOUR);
    assert_int_equal(parse_job(true, "--colour", "red", NULL).colour, RED);
    assert_false(parse_job(true, "--form", "published", NULL).is_exact);
    (void)parse_job(true, "--level", "4294967296", NULL);
    refused("must be between -1 and 7");
    (void)parse_job(true, "one", "two", NULL);
    refused("one WORD at a time, found 'two' too");
    (void)parse_job(true, "--colour", "green", NULL);
    refused("must be one of auto|blue|red");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_fallbacks, release),
        cmocka_unit_test_teardown(test_values, release),
        cmocka_unit_test_teardown(test_lists, release),
        cmocka_unit_test_teardown(test_wrong_words, release),
        cmocka_unit_test_teardown(test_wrong_values, release),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
