/* Plots of results: which rows become points, in what units, and what is left out. The numbers are
 * read back from the CSV that a chart offers. */
#include "report/plot.h"

#include <math.h>

#include "tests/report/page.h"

/* A table of bins for two models, one row of which lacks its height. */
static pnb__result *make(void)
{
    static const pnb__column columns[] = {{"model", "model"}, {"at", "at"},   {"to", "to"},
                                          {"n", "n"},         {"low", "low"}, {"high", "high"}};
    pnb__result *r = pnb__result_create();
    pnb__result_table(r, "rows", NULL, columns, PNB_COUNT(columns));
    pnb__result_row(r, "%s %.1f %.1f %.2f %.2f %.2f", "a", 0.0, 2.0, 4.0, 3.0, 5.0);
    pnb__result_row(r, "%s %.1f %.1f %.2f %.2f %.2f", "b", 0.0, 2.0, 0.5, 0.25, 0.75);
    pnb__result_row(r, "%s %.1f %.1f %.2f %.2f %.2f", "a", 2.0, 4.0, (double)NAN, 0.0, 0.0);
    pnb__result_row(r, "%s %.1f %.1f %.2f %.2f %.2f", "a", 4.0, 6.0, 5.0, 4.0, 6.0);
    pnb__result_row(r, "%s %.1f %.1f %.2f %.2f %.2f", "b", 4.0, 6.0, 1.0, 0.75, 1.25);
    return r;
}

static char csv[4000];

/* The CSV of the plot, "" where nothing is drawn. */
static const char *drawn(const pnb__plot *plot, const pnb__result *r)
{
    pnb__buf out = {0};
    pnb__plot_draw(plot, r, &out);
    assert_false(out.failed);
    csv[0] = '\0';
    if (out.size > 0)
        decode_link(&out, "text/csv;charset=utf-8", csv, sizeof csv);
    pnb__buf_reset(&out);
    return csv;
}

static pnb__plot plot_of(const char *where, pnb__shape shape)
{
    return (pnb__plot){.title = "t",
                       .table = "rows",
                       .x = {.label = "x"},
                       .y = {.label = "y"},
                       .series = {{.name = "one",
                                   .x = "at",
                                   .y = "n",
                                   .where = "model",
                                   .is = where,
                                   .low = "low",
                                   .high = "high",
                                   .shape = shape}},
                       .n_series = 1};
}

static void test_rows(void **state)
{
    (void)state;
    pnb__result *r = make();
    pnb__plot plot = plot_of("a", PNB__SHAPE_CURVE);
    const char *text = drawn(&plot, r);
    assert_non_null(strstr(text, "0,4,3,5\n")); /* x, y and its interval */
    assert_non_null(strstr(text, "4,5,4,6\n"));
    assert_null(strstr(text, "0.5")); /* the other model */
    assert_null(strstr(text, "nan")); /* the row without height */
    plot.series[0].x_to = "to";       /* a dot stands in the middle */
    text = drawn(&plot, r);
    assert_non_null(strstr(text, "1,4,3,5\n"));
    assert_non_null(strstr(text, "5,5,4,6\n"));
    pnb__result_free(r);
}

/* Both from their first point on: 4 -> 5 is 25% more, 0.5 -> 1 is 100% more. */
static void test_changes(void **state)
{
    (void)state;
    pnb__result *r = make();
    pnb__plot plot = plot_of("a", PNB__SHAPE_CURVE);
    plot.is_change = true;
    assert_non_null(strstr(drawn(&plot, r), "4,5,")); /* one alone stays as it is */
    plot.series[1] = plot.series[0];
    plot.series[1].is = "b";
    plot.n_series = 2;
    const char *text = drawn(&plot, r);
    assert_non_null(strstr(text, "4,25,0,50\n"));
    assert_non_null(strstr(text, "4,100,50,150\n"));
    assert_non_null(strstr(text, "0,0,-25,25\n"));
    pnb__result_free(r);
}

static void test_nothing(void **state)
{
    (void)state;
    pnb__result *r = make();
    pnb__plot plot = plot_of("c", PNB__SHAPE_CURVE); /* no such row */
    assert_string_equal(drawn(&plot, r), "");
    plot.table = "nowhere";
    assert_string_equal(drawn(&plot, r), "");
    plot = plot_of("a", PNB__SHAPE_CUT); /* a cut through nothing */
    assert_string_equal(drawn(&plot, r), "");
    pnb__result_free(r);
}

/* The least-squares line of (0, 4) and (4, 5) goes through both. */
static void test_trend(void **state)
{
    (void)state;
    pnb__result *r = make();
    pnb__plot plot = plot_of("a", PNB__SHAPE_CURVE);
    plot.series[0].low = plot.series[0].high = NULL;
    assert_null(strstr(drawn(&plot, r), "dashes"));
    plot.reference = PNB__REFERENCE_TREND;
    plot.reference_name = "trend";
    size_t n = 0;
    for (const char *at = drawn(&plot, r); (at = strstr(at, "trend,dashes,")) != NULL; n++) {
        double x, y;
        at += strlen("trend,dashes,");
        assert_int_equal(sscanf(at, "%lf,%lf", &x, &y), 2);
        assert_true(fabs(y - (4 + x / 4)) < 1e-6);
    }
    assert_int_equal(n, 2);
    pnb__result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_changes),
                                       cmocka_unit_test(test_nothing),
                                       cmocka_unit_test(test_trend)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
