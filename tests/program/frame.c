/* From a command line to an exit status: what ran, what was printed where, and what is said of
 * command lines that are wrong. */
#include "program/frame.h"

#include "tests/program/toy.h"

static int n_runs;

static pnb_status count_run(pnb__app *app, const paint_args *args)
{
    n_runs++;
    fprintf(app->out, "%s %d %s %zu\n", args->name, (int)args->size, args->mode, args->words.n);
    return PNB_OK;
}

static void expect(const char *const *words, int status, const char *out, const char *log)
{
    outcome o = run_toy(&toy, words);
    assert_int_equal(o.status, status);
    assert_string_equal(o.out, out);
    assert_string_equal(o.log, log);
    free_outcome(&o);
}

/* ---- outcomes ---- */

static void test_runs(void **state)
{
    (void)state;
    paint = count_run;
    n_runs = 0;
    expect(WORDS("paint", "--name", "wall"), 0, "wall 3 slow 0\n", "");
    expect(WORDS("paint", "-s", "5", "--mode=fast", "--name=w", "a", "--", "--help"), 0,
           "w 5 fast 2\n", "");
    assert_int_equal(n_runs, 2);
    expect(WORDS("measure", "rough"), 0, "", "");
}

static pnb_status skip_some(pnb__app *app, const paint_args *args)
{
    for (int64_t i = 0; i < args->size; i++)
        pnb__skipped(app, "a.png", "empty");
    return PNB_OK;
}

static pnb_status fail_as_named(pnb__app *app, const paint_args *args)
{
    if (strcmp(args->name, "interrupted") == 0)
        return pnb__fail(&app->err, PNB_INTERRUPTED, "3 of 5 rows are kept");
    if (strcmp(args->name, "usage") == 0)
        return pnb__usage(app, "--wet and --size do not go together");
    if (strcmp(args->name, "silent") == 0)
        return PNB_NOT_FOUND;
    return pnb__fail(&app->err, PNB_IO, "no wall");
}

static void test_exit_statuses(void **state)
{
    (void)state;
    paint = skip_some;
    expect(WORDS("paint", "--name", "x", "-s", "1"), 3, "",
           "skipped: a.png: empty\n1 input skipped\n");
    expect(WORDS("paint", "--name", "x", "-s", "2", "-q"), 3, "",
           "skipped: a.png: empty\nskipped: a.png: empty\n");
    paint = fail_as_named;
    expect(WORDS("paint", "--name", "x"), 1, "", "toy paint: error: no wall\n");
    expect(WORDS("paint", "--name", "usage"), 2, "",
           "toy paint: error: --wet and --size do not go together\nTry 'toy paint --help'.\n");
    expect(WORDS("paint", "--name", "interrupted"), 130, "",
           "toy paint: interrupted: 3 of 5 rows are kept\n");
    outcome o = run_toy(&toy, WORDS("paint", "--name", "silent"));
    assert_int_equal(o.status, 1);
    assert_non_null(strstr(o.log, pnb_status_sentence(PNB_NOT_FOUND))); /* no words: the status's */
    free_outcome(&o);
    pnb__program terminal = toy;
    terminal.is_tty = terminal.colour = true;
    o = run_toy(&terminal, WORDS("paint", "--name", "x"));
    assert_string_equal(o.log, "\r\033[Ktoy paint: \033[31merror: \033[0mno wall\n");
    free_outcome(&o);
}

/* Results that could not be written are no success, even of a command that went well. */
static void test_full_disk(void **state)
{
    (void)state;
    pnb__program full = toy;
    paint = count_run;
    full.out = fopen("/dev/full", "w");
    if (full.out == NULL)
        skip();
    outcome o = run_toy(&full, WORDS("paint", "--name", "x"));
    assert_int_equal(o.status, 1);
    assert_non_null(strstr(o.log, "toy paint: error: cannot write standard output"));
    free_outcome(&o);
    fclose(full.out);
}

/* What was asked for reaches the context, and what the library logs the person. */
static pnb_status look_at_context(pnb__app *app, const paint_args *args)
{
    (void)args;
    assert_int_equal(app->ctx->n_threads, 3);
    assert_int_equal(app->ctx->device, PNB_DEVICE_REF);
    assert_true(app->ctx->batch_invariant);
    assert_true(app->common.seed == 7 && app->common.json);
    assert_string_equal(app->hub.home, "/home/x");
    pnb__log(app->ctx, PNB_LOG_INFO, "noted");
    pnb__log(app->ctx, PNB_LOG_WARN, "looked at");
    return PNB_OK;
}

static void test_context(void **state)
{
    (void)state;
    pnb__program here = toy;
    here.hub.home = "/home/x";
    paint = look_at_context;
    outcome o = run_toy(&here, WORDS("paint", "--name", "x", "--threads", "3", "--device", "ref",
                                     "--seed=7", "--json", "--batch-invariant"));
    assert_int_equal(o.status, 0);
    assert_string_equal(o.log, "noted\nwarning: looked at\n");
    free_outcome(&o);
}

/* ---- command lines ---- */

static void test_unknown_commands(void **state)
{
    (void)state;
    expect(WORDS(NULL), 2, "", "toy: error: a command is missing\nTry 'toy --help'.\n");
    expect(WORDS("pain"), 2, "",
           "toy: error: unknown command 'pain'; did you mean 'paint'?\nTry 'toy --help'.\n");
    expect(WORDS("sing"), 2, "", "toy: error: unknown command 'sing'\nTry 'toy --help'.\n");
    expect(WORDS("measure"), 2, "",
           "toy measure: error: a command is missing\nTry 'toy measure --help'.\n");
    expect(WORDS("measure", "rouhg"), 2, "",
           "toy measure: error: unknown command 'rouhg'; did you mean 'rough'?\n"
           "Try 'toy measure --help'.\n");
    expect(WORDS("measure", "paint"), 2, "",
           "toy measure: error: unknown command 'paint'\nTry 'toy measure --help'.\n");
}

static void test_wrong_options(void **state)
{
    (void)state;
    paint = count_run;
    n_runs = 0;
    outcome o = run_toy(&toy, WORDS("paint"));
    assert_int_equal(o.status, 2);
    expect_in_order(o.log, "toy paint: error: ", "--name");
    expect_in_order(o.log, "--name", "Try 'toy paint --help'.\n");
    free_outcome(&o);
    o = run_toy(&toy, WORDS("paint", "--name", "x", "--size", "10"));
    assert_int_equal(o.status, 2);
    free_outcome(&o);
    o = run_toy(&toy, WORDS("paint", "--name", "x", "--out", "/nowhere/at/all.txt"));
    assert_int_equal(o.status, 1); /* a name that was looked at before the work began */
    assert_non_null(strstr(o.log, "there is no folder /nowhere/at"));
    free_outcome(&o);
    pnb__program set = toy;
    static const char *const environment[] = {"TOY=1", "PENUMBRA_SIZE=7", "PENUMBRA_NAME=n", NULL};
    set.environment = environment;
    o = run_toy(&set, WORDS("paint"));
    assert_string_equal(o.out, "n 7 slow 0\n");
    free_outcome(&o);
    static const char *const bad[] = {"PENUMBRA_SISE=7", NULL};
    set.environment = bad;
    o = run_toy(&set, WORDS("paint", "--name", "x"));
    assert_int_equal(o.status, 2);
    free_outcome(&o);
    assert_int_equal(n_runs, 1);
}

/* A word of an older release runs the command of its own and says the new one. */
static void test_retired_words(void **state)
{
    (void)state;
    paint = count_run;
    expect(WORDS("daub", "--name", "x"), 0, "x 3 slow 0\n",
           "warning: `toy daub` is now `toy paint`; the old word will go in the next release\n");
    pnb__program young = toy;
    young.retired = NULL;
    outcome o = run_toy(&young, WORDS("daub", "--name", "x"));
    assert_int_equal(o.status, 2);
    free_outcome(&o);
}

/* ---- texts ---- */

static void expect_printed(const char *const *words, const char *opening)
{
    n_runs = 0;
    outcome o = run_toy(&toy, words);
    assert_int_equal(o.status, 0);
    expect_opening(o.out, opening);
    assert_string_equal(o.log, "");
    assert_int_equal(n_runs, 0);
    free_outcome(&o);
}

static void test_help(void **state)
{
    (void)state;
    paint = count_run;
    const char *whole = "toy ", *one = "toy paint: cover a wall\n";
    expect_printed(WORDS("--help"), whole);
    expect_printed(WORDS("-h"), whole);
    expect_printed(WORDS("help"), whole);
    expect_printed(WORDS("paint", "--help"), one);
    expect_printed(WORDS("paint", "--name", "x", "--wrong", "-h"), one);
    expect_printed(WORDS("help", "paint"), one);
    expect_printed(WORDS("measure", "--help"), "toy measure: tell lengths\n");
    expect_printed(WORDS("measure", "rouhg", "--help"), "toy measure: tell lengths\n");
    expect_printed(WORDS("help", "measure", "exact"), "toy measure exact: by rule\n");
    outcome o = run_toy(&toy, WORDS("help", "sing"));
    assert_int_equal(o.status, 2);
    free_outcome(&o);
}

static void test_texts(void **state)
{
    (void)state;
    char version[64];
    snprintf(version, sizeof version, "toy %s (pictures: ", pnb_version());
    expect_printed(WORDS("--version"), version);
    expect_printed(WORDS("manual", "paint"), "<!-- Made by `penumbra manual paint`");
    expect_printed(WORDS("manual", "--roff"), ".\\\" Made from the option tables");
    expect_printed(WORDS("manual", "--roff", "measure"), ".\\\" Made from the option tables");
    expect_printed(WORDS("completion", "zsh"), "#compdef toy\n");
    expect(WORDS("completion", "tcsh"), 2, "",
           "toy: error: completion: bash, zsh or fish is wanted\nTry 'toy --help'.\n");
    expect(WORDS("completion"), 2, "",
           "toy: error: completion: bash, zsh or fish is wanted\nTry 'toy --help'.\n");
    const char *one = "toy: error: manual: name one command\nTry 'toy --help'.\n";
    expect(WORDS("manual"), 2, "", one);
    expect(WORDS("manual", "sing"), 2, "", one);
    expect(WORDS("manual", "paint", "measure"), 2, "", one);
    expect(WORDS("manual", "--roff", "sing"), 2, "", one);
}

#ifdef PNB_FAULTS
/* Whatever is short of memory is an error that says so; nothing leaks and nothing runs twice. */
static void test_no_memory(void **state)
{
    (void)state;
    paint = count_run;
    for (long n = 0;; n++) {
        n_runs = 0;
        pnb__alloc_fail_after(n);
        outcome o = run_toy(&toy, WORDS("paint", "--name", "x", "--colours", "red", "blue"));
        pnb__alloc_fail_after(-1);
        bool is_done = o.status == 0;
        assert_true(is_done || (o.status == 1 && strstr(o.log, "memory") != NULL));
        assert_true(n_runs <= 1 && (n_runs == 1 || !is_done));
        free_outcome(&o);
        if (is_done) {
            assert_true(n > 2);
            break;
        }
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_exit_statuses),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_unknown_commands),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_retired_words),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_texts),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
