/* Ticks, ranges and labels of the pages' plots, and what can be saved of them; a page must never
 * break on odd data. */
#include "report/chart.h"

#include <math.h>

#include "tests/report/page.h"

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

/* ---- what can be saved ---- */

static void draw_example(pnb__buf *out)
{
    const double x[] = {0, 1, 2}, y[] = {0.5, 5, 0.05};
    const double low[] = {0.4, 4, 0.04}, high[] = {0.6, 6, 0.06};
    pnb__chart c = {.title = "A title that is so long that it does not fit on one line of a chart",
                    .width = PNB__CHART_WIDTH,
                    .height = PNB__CHART_HEIGHT,
                    .x = {.label = "step"},
                    .y = {.log = true, .label = "loss, \"nats\""},
                    .legend = {{"model", 0, PNB__MARK_LINE}, {"limit", 0, PNB__MARK_DASHES}},
                    .n_legend = 2};
    pnb__axis_cover(&c.x, x, 3);
    pnb__axis_cover(&c.y, y, 3);
    pnb__chart_begin(&c, out);
    pnb__chart_curve(&c, &(pnb__curve){0, x, y, low, high, 3, 2});
    pnb__chart_dashes(&c, 0, (double[]){0, 2}, (double[]){1, 1}, 2);
    pnb__chart_end(&c);
    assert_false(out->failed);
}

static void test_saved_data(void **state)
{
    (void)state;
    static char csv[4096];
    pnb__buf out = {0};
    draw_example(&out);
    decode_link(&out, "text/csv;charset=utf-8", csv, sizeof csv);
    assert_string_equal(csv, "series,mark,step,\"loss, \"\"nats\"\"\",\"loss, \"\"nats\"\" low\","
                             "\"loss, \"\"nats\"\" high\"\n"
                             "model,line,0,0.5,0.4,0.6\nmodel,line,1,5,4,6\n"
                             "model,line,2,0.05,0.04,0.06\n"
                             "limit,dashes,0,1,,\nlimit,dashes,2,1,,\n");
    pnb__buf_reset(&out);
}

static void test_saved_figure(void **state)
{
    (void)state;
    static char svg[65536];
    pnb__buf out = {0};
    draw_example(&out);
    decode_link(&out, "image/svg+xml", svg, sizeof svg);
    assert_true(strncmp(svg, "<?xml", 5) == 0);
    assert_non_null(strstr(svg, "<style>"));
    assert_null(strstr(svg, "var(--")); /* a file of its own has no page to ask */
    assert_non_null(strstr(svg, "stroke:#2f6db3"));
    assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
    assert_non_null(strstr(out.data, "download=\"a-title-that-is-so-long"));
    assert_null(strstr(out.data, "<script"));
    pnb__buf_reset(&out);
}

/* Baseline of the first text of a class that holds `part`. */
static double baseline(const pnb__buf *out, const char *part)
{
    const char *at = strstr(out->data, part);
    double y = 0;
    assert_non_null(at);
    while (at > out->data && strncmp(at, " y=\"", 4) != 0)
        at--;
    assert_int_equal(sscanf(at, " y=\"%lf\"", &y), 1);
    return y;
}

/* A long title takes two lines, and nothing else comes nearer to it than a line. */
static void test_labels_keep_apart(void **state)
{
    (void)state;
    pnb__buf out = {0};
    draw_example(&out);
    double first = baseline(&out, "start\">A title that is so long"),
           second = baseline(&out, "chart</text");
    double label = baseline(&out, ">loss, &quot;nats"), legend = baseline(&out, ">model</text");
    double tick = baseline(&out, ">5</text");
    assert_true(second >= first + 14);
    assert_true(label >= second + 12);
    assert_true(legend >= label + 12);
    assert_true(tick >= legend + 10);
    pnb__buf_reset(&out);
}

static void test_log_axes_say_so(void **state)
{
    (void)state;
    pnb__buf out = {0};
    draw_example(&out);
    assert_non_null(strstr(out.data, "nats&quot;, log scale</text>"));
    assert_null(strstr(out.data, "step, log scale"));
    pnb__buf_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),           cmocka_unit_test(test_log_ticks),
        cmocka_unit_test(test_cover),           cmocka_unit_test(test_odd_data),
        cmocka_unit_test(test_base64),          cmocka_unit_test(test_saved_data),
        cmocka_unit_test(test_saved_figure),    cmocka_unit_test(test_labels_keep_apart),
        cmocka_unit_test(test_log_axes_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
