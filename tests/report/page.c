/* Pages of results: sections only where something stands in them, intervals in the cell of their
 * value, shares as per cent and counts as they are. */
#include "report/page.h"

#include <math.h>

#include "tests/report/page.h"

static pnb__result *make(void)
{
    static const pnb__column columns[] = {{"name", "name"},      {"r1", "R@1"},  {"r1_low", NULL},
                                          {"r1_high", NULL},     {"n", "count"}, {"none", "none"},
                                          {"meaning", "meaning"}};
    pnb__result *r = pnb__result_create();
    pnb__result_begin(r, "inner", NULL);
    pnb__result_real(r, "rsum", "RSUM", 2.5, 2);
    pnb__result_end(r);
    pnb__result_table(r, "rows", NULL, columns, PNB_COUNT(columns));
    pnb__result_row(r, "%s %.2f %.2f %.2f %d %.1f %s", "a<b", 0.25, 0.125, 0.5, 3, (double)NAN,
                    "how often");
    pnb__result_row(r, "%s %.2f %.2f %.2f %d %.1f %s", "c", 0.75, (double)NAN, (double)NAN, 4,
                    (double)NAN, "");
    return r;
}

static void test_table(void **state)
{
    (void)state;
    pnb__result *r = make();
    pnb__page page;
    pnb__page_begin(&page, r, "title", "");
    pnb__page_section(&page, "Empty", NULL);
    pnb__page_table(&page, "nowhere", NULL);
    pnb__page_section(&page, "Rows", "what they are");
    pnb__page_percents(&page, "rows", NULL);
    const char *text = page.out.data;
    assert_null(strstr(text, "Empty"));
    assert_non_null(strstr(text, ">Rows</h2>"));
    assert_non_null(strstr(text, "<td>a&lt;b</td>"));
    assert_non_null(strstr(text, ">25.0% <span class=\"soft\">[12.5, 50.0]</span></td>"));
    assert_non_null(strstr(text, ">75.0%</td>"));            /* no interval known */
    assert_non_null(strstr(text, "<td class=\"n\">3</td>")); /* a count is no share */
    assert_null(strstr(text, ">none<"));                     /* a column without any value */
    assert_null(strstr(text, "_low"));
    assert_non_null(strstr(text, "class=\"wordy\""));
    assert_false(page.out.failed);
    pnb__page_reset(&page);
    pnb__result_free(r);
}

static void test_chosen_columns(void **state)
{
    (void)state;
    static const char *const keys[] = {"n", "name", "not_there", NULL};
    pnb__result *r = make();
    pnb__page page;
    pnb__page_begin(&page, r, "title", "");
    pnb__page_table(&page, "rows", keys);
    assert_non_null(strstr(page.out.data, "<td class=\"n\">3</td><td>a&lt;b</td></tr>"));
    pnb__page_reset(&page);
    pnb__result_free(r);
}

static void test_numbers(void **state)
{
    (void)state;
    pnb__result *r = make();
    const pnb__page page = {.shown = r};
    assert_true(pnb__page_number(&page, "inner.rsum") == 2.5);
    assert_true(isnan(pnb__page_number(&page, "inner.nothing")));
    assert_true(isnan(pnb__page_number(&page, "rows")));
    assert_true(pnb__page_cell(&page, "rows", "name", "c", "r1") == 0.75);
    assert_true(isnan(pnb__page_cell(&page, "rows", "name", "d", "r1")));
    assert_true(isnan(pnb__page_cell(&page, "rows", "name", "c", "none")));
    pnb__result_free(r);
}

static void test_missing_result(void **state)
{
    (void)state;
    pnb__page page;
    pnb__page_begin(&page, NULL, "title", "");
    pnb__page_table(&page, "rows", NULL); /* a result that memory was short for */
    assert_true(page.out.failed);
    pnb__page_reset(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_chosen_columns),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_missing_result)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
