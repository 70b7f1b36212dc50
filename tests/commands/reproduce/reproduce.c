/* Stages and seeds of an experiment: each is measured once, kept, and made again only where it is
 * gone; a failure says where it was. */
#include "tests/commands/reproduce/made_up.h"

static size_t n_measured;
static bool fails; /* the second stage of the second seed */

static pnb_status measure(pnb__reproduction *run, size_t stage, uint64_t seed, json_t *found)
{
    n_measured++;
    if (fails && stage == 1 && seed == 8)
        return pnb__fail(&run->app->err, PNB_NUMERIC, "the loss is not finite");
    pnb__reproduce_put(run, found, stage == 0 ? "a" : "b", "r1", 0.01 * (double)seed);
    return PNB_OK;
}

static const pnb__experiment made_up = {.word = "made-up",
                                        .paper = "a paper, Table 9",
                                        .needs = PNB__REPRO_SETS,
                                        PNB__EXPERIMENT_TABLES,
                                        .measure = measure};

static pnb_status run(fixture *f, pnb__result **out)
{
    n_measured = 0;
    *out = pnb__result_create();
    return pnb__reproduce(&f->app, &made_up, &f->opts, *out);
}

static void run_ok(fixture *f, pnb__result **out)
{
    if (run(f, out) != PNB_OK)
        fail_msg("%s", f->app.err.text);
}

static void stages_are_measured_once(void **state)
{
    fixture *f = *state;
    pnb__result *first = NULL, *again = NULL;
    fails = false;
    run_ok(f, &first);
    assert_int_equal(n_measured, 4);
    run_ok(f, &again);
    assert_int_equal(n_measured, 0);
    assert_true(json_equal(pnb__result_get(first, "figures"), pnb__result_get(again, "figures")));
    const json_t *row = row_of(again, "figures", "source", "here", 0);
    assert_near(json_number_value(json_object_get(row, "value")), 7.5, 1e-6, 0);
    pnb__result_free(first);
    pnb__result_free(again);
}

/* One more seed measures that alone; a result that is gone is made again. */
static void what_is_missing_is_measured(void **state)
{
    fixture *f = *state;
    pnb__result *r = NULL;
    char path[128];
    fails = false;
    run_ok(f, &r);
    pnb__result_free(r);
    f->opts.n_seeds = 3;
    run_ok(f, &r);
    pnb__result_free(r);
    assert_int_equal(n_measured, 2);
    snprintf(path, sizeof path, "%s/results/two-8.json", f->out);
    assert_int_equal(unlink(path), 0);
    run_ok(f, &r);
    pnb__result_free(r);
    assert_int_equal(n_measured, 1);
}

/* The first stages alone, and later the others beside them. */
static void fewer_stages_are_measured(void **state)
{
    fixture *f = *state;
    pnb__result *r = NULL;
    fails = false;
    f->opts.n_stages = 1;
    run_ok(f, &r);
    pnb__result_free(r);
    assert_int_equal(n_measured, 2);
    f->opts.n_stages = 0;
    run_ok(f, &r);
    pnb__result_free(r);
    assert_int_equal(n_measured, 2);
}

static void a_failure_says_where_and_keeps_the_rest(void **state)
{
    fixture *f = *state;
    pnb__result *r = NULL;
    fails = true;
    assert_int_equal(run(f, &r), PNB_NUMERIC);
    pnb__result_free(r);
    assert_string_equal(f->app.err.text, "two, seed 8: the loss is not finite");
    f->app.err = (pnb_error)PNB_ERROR_INIT;
    fails = false;
    run_ok(f, &r);
    pnb__result_free(r);
    assert_int_equal(n_measured, 1);
}

static void settings_of_another_run_are_refused(void **state)
{
    fixture *f = *state;
    pnb__result *r = NULL;
    fails = false;
    run_ok(f, &r);
    pnb__result_free(r);
    f->opts.n_steps = 9;
    assert_int_equal(run(f, &r), PNB_EXISTS);
    pnb__result_free(r);
    assert_int_equal(n_measured, 0);
    assert_non_null(strstr(f->app.err.text, "its --max-steps is 0, not 9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stages_are_measured_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_missing_is_measured, set_up, tear_down),
        cmocka_unit_test_setup_teardown(fewer_stages_are_measured, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failure_says_where_and_keeps_the_rest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(settings_of_another_run_are_refused, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
