/* The sentence of a method: which controls its uncertainty beats, and what became of retrieval. */
#include "commands/adapt/compare.h"
#include "program/result_end.h"
#include "tests/prob/support.h"
#include <string.h>

/* says(f, score, difference, p) of a method beside the controls -0.10 (untrained) and 0.50. */
static const char *says(pnb__result **out, double s, double r2, double score, double difference,
                        double p)
{
    static const pnb__column columns[] = {
        {"method", "method"}, {"kind", "kind"}, {"t2i_r1", "R@1"},   {"t2i_difference", "d"},
        {"p", "p"},           {"r2", "R2"},     {"spearman_s", "S"}, {"minus_s_r2", "-S R2"}};
    pnb__result *r = pnb__result_create();
    pnb__result_int(r, "n_bins", NULL, 10);
    pnb__result_table(r, "methods", "methods", columns, PNB_COUNT(columns));
    pnb__result_row(r, "%s %s %.3f %.3f %.3f %.3f %.3f %.3f", "frozen", "frozen", 0.4, (double)NAN,
                    (double)NAN, (double)NAN, (double)NAN, (double)NAN);
    pnb__result_row(r, "%s %s %.3f %.3f %.3f %.3f %.3f %.3f", "untrained", "control", 0.4, 0.0, 1.0,
                    0.2, 0.5, -0.1);
    pnb__result_row(r, "%s %s %.3f %.3f %.3f %.3f %.3f %.3f", "length", "control", 0.4, 0.0, 1.0,
                    0.6, -0.8, 0.5);
    pnb__result_row(r, "%s %s %.3f %.3f %.3f %.3f %.3f %.3f", "pfe", "method", 0.4 + difference,
                    difference, p, r2, s, score);
    pnb__compare_put_words(r);
    const json_t *rows = pnb__result_get(r, "words");
    assert_int_equal(json_array_size(rows), 1); /* controls and frozen rows have none */
    *out = r;
    return json_string_value(json_object_get(json_array_get(rows, 0), "says"));
}

static void expect(double score, double difference, double p, const char *uncertainty,
                   const char *retrieval)
{
    pnb__result *r = NULL;
    const char *text = says(&r, -0.9, 0.9, score, difference, p);
    if (strstr(text, uncertainty) == NULL || strstr(text, retrieval) == NULL)
        fail_msg("'%s' has not '%s' and '%s'", text, uncertainty, retrieval);
    pnb__result_free(r);
}

static void uncertainty_beside_controls(void **state)
{
    (void)state;
    expect(0.8, 0, 1, "better than both controls (-S R\xC2\xB2 0.80; untrained -0.10, length 0.50)",
           "R@1 stays at 40.0%");
    expect(0.3, 0, 1, "better than an untrained head, not than the length of captions", "stays");
    expect(0.5, 0, 1, "better than an untrained head, not than the length", "stays");
}

/* Ten bins in an order that chance brings about one time in twenty: S = -0.548. */
static void an_order_by_chance_tells_nothing(void **state)
{
    pnb__result *r = NULL;
    (void)state;
    assert_non_null(strstr(says(&r, -0.54, 0.9, 0.6, 0, 1), "does not tell which captions fail"));
    pnb__result_free(r);
    assert_non_null(strstr(says(&r, -0.56, 0.9, 0.6, 0, 1), "better than both controls"));
    pnb__result_free(r);
    assert_non_null(strstr(says(&r, 0.9, 0.9, -0.8, 0, 1), "does not tell which captions fail"));
    pnb__result_free(r);
}

static void retrieval_beside_frozen_rows(void **state)
{
    (void)state;
    expect(0.8, 0.02, 0.01, "both", "R@1 rises from 40.0% to 42.0% (p 0.010)");
    expect(0.8, -0.02, 0.01, "both", "R@1 falls from 40.0% to 38.0% (p 0.010)");
    expect(0.8, 0.02, 0.3, "both",
           "R@1 is 42.0%, not to be told from the frozen rows' 40.0% (p 0.30)");
    expect(0.8, 0.02, (double)NAN, "both", "R@1 is 42.0%, that of the frozen rows 40.0%");
}

/* A method of points is measured by what points have, and said to be one. */
static void points_are_said_to_be_points(void **state)
{
    static const pnb__column columns[] = {
        {"method", "method"}, {"kind", "kind"},        {"family", "captions"},
        {"t2i_r1", "R@1"},    {"t2i_difference", "d"}, {"p", "p"},
        {"r2", "R2"},         {"spearman_s", "S"},     {"minus_s_r2", "-S R2"}};
    pnb__result *r = pnb__result_create();
    (void)state;
    pnb__result_int(r, "n_bins", NULL, 10);
    pnb__result_table(r, "methods", "methods", columns, PNB_COUNT(columns));
    for (int i = 0; i < 2; i++)
        pnb__result_row(r, "%s %s %s %.3f %.3f %.3f %.3f %.3f %.3f", "m", "method",
                        i == 0 ? "point" : "vmf", 0.4, 0.0, 1.0, 0.9, -0.9, 0.8);
    pnb__compare_put_words(r);
    const json_t *rows = pnb__result_get(r, "words");
    const char *point = json_string_value(json_object_get(json_array_get(rows, 0), "says"));
    const char *vmf = json_string_value(json_object_get(json_array_get(rows, 1), "says"));
    assert_ptr_equal(strstr(point, "its captions are points: 1 - cosine to the first hit tells"),
                     point);
    assert_ptr_equal(strstr(vmf, "its uncertainty tells"), vmf);
    pnb__result_free(r);
}

static void rows_without_uncertainty(void **state)
{
    pnb__result *r = NULL;
    (void)state;
    assert_non_null(strstr(says(&r, 0, 0, 0, 0, 1), "it says nothing of uncertainty"));
    pnb__result_free(r);
    assert_non_null(strstr(says(&r, NAN, NAN, NAN, 0, 1), "it says nothing of uncertainty"));
    pnb__result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(uncertainty_beside_controls),
                                       cmocka_unit_test(an_order_by_chance_tells_nothing),
                                       cmocka_unit_test(retrieval_beside_frozen_rows),
                                       cmocka_unit_test(points_are_said_to_be_points),
                                       cmocka_unit_test(rows_without_uncertainty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
