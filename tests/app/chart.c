/* Ticks, ranges and escaping of the report's plots; a page must never break on odd data. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "app/chart.h"
#include "app/html.h"
#include "app/svg.h"

static void check_ticks(pnb__axis axis, const char *const *wanted, size_t n_wanted)
{
    double ticks[24];
    size_t n = pnb__axis_ticks(&axis, ticks, 24);
    assert_int_equal(n, n_wanted);
    for (size_t i = 0; i < n; i++) {
        char text[24];
        pnb__axis_format(&axis, ticks[i], text);
        assert_string_equal(text, wanted[i]);
    }
}

static void test_ticks(void **state)
{
    (void)state;
    check_ticks((pnb__axis){.low = 0, .high = 1},
                (const char *[]){"0", "0.2", "0.4", "0.6", "0.8", "1.0"}, 6);
}

static void test_log_ticks(void **state)
{
    (void)state;
    check_ticks((pnb__axis){.low = 0.01, .high = 0.5, .log = true},
                (const char *[]){"0.01", "0.02", "0.05", "0.1", "0.2", "0.5"}, 6);
    check_ticks((pnb__axis){.low = 1e-6, .high = 1, .log = true},
                (const char *[]){"1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1"}, 7);
}

static void test_cover(void **state)
{
    (void)state;
    pnb__axis axis = {0};
    const double values[] = {NAN, 3, INFINITY, -2, 5};
    pnb__axis_cover(&axis, values, 5);
    assert_true(axis.low == -2 && axis.high == 5);
    pnb__axis log_axis = {.log = true};
    pnb__axis_cover(&log_axis, values, 5);
    assert_true(log_axis.low == 3 && log_axis.high == 5);
}

/* No coordinate may be "nan" or "inf", whatever the data. */
static void test_odd_data(void **state)
{
    (void)state;
    const double xs[] = {1, 2, 3}, constant[] = {4, 4, 4}, bad[] = {NAN, INFINITY, -INFINITY};
    const double *const all[] = {constant, bad};
    for (int log_scale = 0; log_scale < 2; log_scale++)
        for (size_t k = 0; k < 2; k++) {
            pnb__buf out = {0};
            pnb__chart c = {.title = "odd",
                            .width = 400,
                            .height = 300,
                            .x = {.label = "x"},
                            .y = {.log = log_scale != 0, .label = "y"}};
            pnb__axis_cover(&c.x, xs, 3);
            pnb__axis_cover(&c.y, all[k], 3);
            pnb__chart_begin(&c, &out);
            pnb__chart_line(&c, 0, xs, all[k], 3);
            pnb__chart_dot(&c, 0, NAN, 1, 2);
            pnb__chart_end(&c);
            assert_false(out.failed);
            assert_null(strstr(out.data, "nan"));
            assert_null(strstr(out.data, "inf"));
            pnb__buf_reset(&out);
        }
}

static void test_escape(void **state)
{
    (void)state;
    pnb__buf out = {0};
    pnb__html_escape(&out, "<b>\"a&b\"</b>\x01\xFF");
    assert_string_equal(out.data, "&lt;b&gt;&quot;a&amp;b&quot;&lt;/b&gt;\xEF\xBF\xBD\xEF\xBF\xBD");
    pnb__buf_reset(&out);
}

static void test_base64(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < PNB_COUNT(pairs); i++) {
        pnb__buf out = {0};
        pnb__buf_puts(&out, "");
        pnb__base64(&out, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(out.data != NULL ? out.data : "", pairs[i][1]);
        pnb__buf_reset(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),  cmocka_unit_test(test_log_ticks),
        cmocka_unit_test(test_cover),  cmocka_unit_test(test_odd_data),
        cmocka_unit_test(test_escape), cmocka_unit_test(test_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
