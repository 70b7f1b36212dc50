/* The opening of a report: its examples and shares, counted again from the answers. */
#include "tests/commands/report/fake_report.h"

static double number(const pnb__result *r, const char *path)
{
    const json_t *x = pnb__result_get(r, path);
    assert_true(json_is_number(x));
    return json_number_value(x);
}

/* The middle of the right ones, or wrong ones, in at[first .. end). */
static double middle_p(const pnb__answers *a, size_t first, size_t end, bool is_right)
{
    double p[N_TEXTS];
    size_t n = 0;
    for (size_t i = first; i < end; i++)
        if (a->at[i].is_right == is_right)
            p[n++] = a->at[i].p;
    assert_true(n > 0);
    return p[n / 2];
}

static void examples_keep_the_rule(void **state)
{
    static fake f;
    pnb__answers a;
    pnb__result *result = pnb__result_create();
    bool is_written = false;
    size_t n_given = 0, n_right = 0, n_top = 0;
    (void)state;
    fake_init(&f, N_TEXTS);
    f.report.more = pnb__result_create();
    pnb__page_begin(&f.report.page, f.report.more, "t", "s");
    assert_int_equal(pnb__report_opening(&f.report, result, &is_written), PNB_OK);
    assert_true(is_written);
    assert_int_equal(pnb__answers_of_search(&f.report, &a), PNB_OK);
    for (size_t i = 0; i < a.n; i++) {
        n_given += a.at[i].p >= 0.5;
        n_right += a.at[i].p >= 0.5 && a.at[i].is_right;
        n_top += i < 67 && a.at[i].is_right;
    }
    assert_true(fabs(number(result, "opening.shown.p") - middle_p(&a, 0, 67, true)) < 1e-9);
    assert_true(fabs(number(result, "opening.refused.p") - middle_p(&a, n_given, a.n, false)) <
                1e-9);
    assert_true(number(result, "opening.given.n") == (double)n_given);
    assert_true(fabs(number(result, "opening.given.right") - (double)n_right / (double)n_given) <
                1e-9);
    const json_t *top = json_array_get(pnb__result_get(result, "opening.parts"), 0);
    assert_int_equal(json_integer_value(json_object_get(top, "n")), 67);
    assert_true(fabs(json_number_value(json_object_get(top, "right")) - (double)n_top / 67) < 1e-9);
    assert_int_equal(f.report.n_missing, 2); /* pictures that are nowhere are shown by name */
    pnb__answers_reset(&a);
    pnb__page_reset(&f.report.page);
    pnb__result_free(f.report.more);
    pnb__result_free(result);
}

static void unsure_sets_open_with_retrieval(void **state)
{
    static fake f;
    pnb__result *result = pnb__result_create();
    bool is_written = true;
    (void)state;
    fake_init(&f, N_TEXTS); /* right ones score a little higher, and none is half sure */
    for (size_t t = 0; t < N_TEXTS; t++) {
        bool is_right = t % 10 == 0;
        f.index[t] = (int64_t)(is_right ? t / 2 : (t / 2 + 1) % N_IMAGES);
        f.score[t] = noise(t) + (is_right ? 0.05 : 0.0);
    }
    f.report.more = pnb__result_create();
    pnb__page_begin(&f.report.page, f.report.more, "t", "s");
    size_t before = f.report.page.out.size;
    assert_int_equal(pnb__report_opening(&f.report, result, &is_written), PNB_OK);
    assert_false(is_written);
    assert_int_equal(f.report.page.out.size, before);
    assert_true(pnb__result_is_empty(result));
    pnb__page_reset(&f.report.page);
    pnb__result_free(f.report.more);
    pnb__result_free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_keep_the_rule),
                                       cmocka_unit_test(unsure_sets_open_with_retrieval)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
