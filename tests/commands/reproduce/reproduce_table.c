/* Tables of an experiment by hand: lines in their order, means and intervals, what becomes of
 * claims. */
#include "tests/commands/reproduce/made_up.h"

static const pnb__experiment made_up = {
    .word = "made-up", .paper = "a paper, Table 9", PNB__EXPERIMENT_TABLES};

typedef struct shown {
    pnb__reproduction run;
    json_t *found[4]; /* [stage][seed] */
    pnb__result *r;
} shown;

/* Row a of stage one: its R@1 by seed in shares; b of stage two is always half of it and 0.1. */
static void show(fixture *f, const double *a, shown *s)
{
    *s = (shown){.run = {.app = &f->app,
                         .about = &made_up,
                         .opts = &f->opts,
                         .n_stages = 2,
                         .program = "penumbra",
                         .data_words = "drawn",
                         .found = s->found}};
    for (size_t k = 0; k < 4; k++)
        s->found[k] = json_pack("{s:o}", "values", json_object());
    for (size_t i = 0; i < 2; i++) {
        pnb__reproduce_put(&s->run, s->found[i], "a", "r1", a[i]);
        pnb__reproduce_put(&s->run, s->found[i], "a", "cost", 4);
        pnb__reproduce_put(&s->run, s->found[2 + i], "b", "r1", a[i] / 2 + 0.1);
        pnb__reproduce_put(&s->run, s->found[2 + i], "b", "cost", 4);
    }
    s->r = pnb__result_create();
    assert_int_equal(pnb__make_dirs(f->out, &f->app.err), PNB_OK);
    assert_int_equal(pnb__reproduce_show(&s->run, s->r), PNB_OK);
}

static void hide(shown *s)
{
    for (size_t k = 0; k < 4; k++)
        json_decref(s->found[k]);
    pnb__result_free(s->r);
}

static const char *text_at(const json_t *row, const char *key)
{
    assert_non_null(row);
    return json_string_value(json_object_get(row, key));
}

static double real_at(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

/* The paper's lines first, ours behind, none of ours for what was not measured. */
static void lines_stand_above_ours(void **state)
{
    shown s;
    show(*state, (double[]){0.5, 0.7}, &s);
    assert_int_equal(json_array_size(pnb__result_get(s.r, "table")), 6 + 2);
    const json_t *paper = row_of(s.r, "table", "row", "method a", 0);
    const json_t *ours = row_of(s.r, "table", "row", "method a", 2);
    assert_string_equal(text_at(paper, "r1"), "60.0 \xC2\xB1 2.0");
    assert_string_equal(text_at(paper, "where"), "Table 9, X");
    assert_string_equal(text_at(ours, "where"), "here");
    assert_string_equal(text_at(ours, "r1"), "60.0 \xC2\xB1 14.1"); /* 10 sqrt 2 */
    assert_string_equal(text_at(ours, "cost"), "4");
    assert_null(row_of(s.r, "table", "row", "of others", 1));
    assert_string_equal(text_at(row_of(s.r, "table", "row", "of others", 0), "r1"), "");
    hide(&s);
}

/* Differences seed by seed: 0.5 a - 0.1, here 0.15 and 0.25, of which the interval by Student's t
 * with one degree of freedom is 20 +- 12.706 * 5. The paper's is the mean of
 * 60 - 55 and 70 - 58, each of one place. */
static void claims_are_differences_with_intervals(void **state)
{
    shown s;
    show(*state, (double[]){0.5, 0.7}, &s);
    const json_t *first = row_of(s.r, "claims", "claim", "a finds more", 0);
    assert_near(real_at(first, "paper"), 8.5, 1e-9, 0);
    assert_near(real_at(first, "difference"), 20.0, 1e-9, 0);
    assert_near(real_at(first, "low"), 20 - 12.7062 * 5, 0.051, 0);
    assert_near(real_at(first, "high"), 20 + 12.7062 * 5, 0.051, 0);
    assert_string_equal(text_at(first, "verdict"), "open: the interval holds 0");
    assert_null(row_of(s.r, "claims", "claim", "c was not measured", 0));
    hide(&s);
}

static void verdicts_are_of_the_interval(void **state)
{
    shown s;
    show(*state, (double[]){0.60, 0.61}, &s);
    assert_string_equal(text_at(row_of(s.r, "claims", "claim", "a finds more", 0), "verdict"),
                        "as in the paper");
    /* said of b, whose paper line is below a's: the claim's own sign is the paper's difference */
    assert_string_equal(text_at(row_of(s.r, "claims", "claim", "b finds more", 0), "verdict"),
                        "as in the paper");
    assert_string_equal(text_at(row_of(s.r, "claims", "claim", "a costs more", 0), "verdict"),
                        "open: the interval holds 0"); /* equal costs */
    hide(&s);
    show(*state, (double[]){0.10, 0.11}, &s); /* half of it and 0.1 is more */
    assert_string_equal(text_at(row_of(s.r, "claims", "claim", "a finds more", 0), "verdict"),
                        "the other way round");
    hide(&s);
}

static void one_seed_says_nothing(void **state)
{
    fixture *f = *state;
    shown s;
    show(f, (double[]){0.5, NAN}, &s);
    const json_t *first = row_of(s.r, "claims", "claim", "a finds more", 0);
    assert_string_equal(text_at(first, "verdict"), "open: one seed");
    assert_true(json_is_null(json_object_get(first, "low")));
    hide(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_stand_above_ours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(claims_are_differences_with_intervals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(verdicts_are_of_the_interval, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_seed_says_nothing, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
