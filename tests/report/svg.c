/* Elements as they are written, and text that stays text whatever it holds. */
#include "report/svg.h"

#include <math.h>

#include "tests/report/page.h"

#define EXPECT(CALL, WANT)                                                                         \
    do {                                                                                           \
        pnb__buf out = {0};                                                                        \
        CALL;                                                                                      \
        assert_false(out.failed);                                                                  \
        assert_string_equal(out.data, WANT);                                                       \
        pnb__buf_reset(&out);                                                                      \
    } while (0)

static void test_shapes(void **state)
{
    (void)state;
    EXPECT(pnb__svg_line(&out, "axis", 1, 2.25, -3, 4.06),
           "<line class=\"axis\" x1=\"1.0\" y1=\"2.2\" x2=\"-3.0\" y2=\"4.1\"/>\n");
    EXPECT(pnb__svg_rect(&out, "bar c1", 1, 2, 3, 4),
           "<rect class=\"bar c1\" x=\"1.0\" y=\"2.0\" width=\"3.0\" height=\"4.0\"/>\n");
    EXPECT(pnb__svg_circle(&out, "dot", 1, 2, 3),
           "<circle class=\"dot\" cx=\"1.0\" cy=\"2.0\" r=\"3.0\"/>\n");
    EXPECT(pnb__svg_ellipse(&out, "ring", 1, 2, (const double[]){3, 4}, 45),
           "<ellipse class=\"ring\" rx=\"3.0\" ry=\"4.0\" "
           "transform=\"translate(1.0 2.0) rotate(45.0)\"/>\n");
    EXPECT(pnb__svg_text(&out, "tick", 1, 2, "end", "a < b"),
           "<text class=\"tick\" x=\"1.0\" y=\"2.0\" text-anchor=\"end\">a &lt; b</text>\n");
    EXPECT((pnb__svg_begin(&out, 420, 300.4, "\"T\""), pnb__svg_end(&out)),
           "<svg viewBox=\"0 0 420 300\" width=\"420\" height=\"300\" role=\"img\" "
           "xmlns=\"http://www.w3.org/2000/svg\"><title>&quot;T&quot;</title>\n</svg>\n");
}

/* A place that is no number lifts the pen; nothing of it is written. */
static void test_polyline(void **state)
{
    const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 2, NAN, 4, 5, INFINITY};
    const double odd[] = {NAN, NAN};
    (void)state;
    EXPECT(pnb__svg_polyline(&out, "line c0", x, y, 6),
           "<path class=\"line c0\" d=\"M1.0 1.0L2.0 2.0M4.0 4.0L5.0 5.0\"/>\n");
    EXPECT(pnb__svg_polyline(&out, "line", odd, odd, 2), "<path class=\"line\" d=\"\"/>\n");
    EXPECT(pnb__svg_polyline(&out, "line", odd, x, 1), "<path class=\"line\" d=\"\"/>\n");
    EXPECT(pnb__svg_polyline(&out, "line", NULL, NULL, 0), "<path class=\"line\" d=\"\"/>\n");
}

static void test_escape(void **state)
{
    (void)state;
    pnb__buf out = {0};
    pnb__html_escape(&out, "<b>\"a&b\"</b>\x01\xFF");
    assert_string_equal(out.data, "&lt;b&gt;&quot;a&amp;b&quot;&lt;/b&gt;\xEF\xBF\xBD\xEF\xBF\xBD");
    pnb__buf_reset(&out);
}

/* What HTML and XML both take stays as it is; what XML has no way to write does not pass. */
static void test_characters(void **state)
{
    (void)state;
#define ODD "\xEF\xBF\xBD" /* U+FFFD */
    static const char *const pairs[][2] = {
        {"", ""},
        {"it's\tone\nline", "it's\tone\nline"},
        {"\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x90\xB1", "\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x90\xB1"},
        {"\r\x1B", ODD ODD},
        {"a\xE6\xBC", "a" ODD ODD},                 /* cut off */
        {"\xC0\xBC", ODD ODD},                      /* '<' written too long */
        {"\xED\xA0\x80", ODD ODD ODD},              /* half a pair of UTF-16 */
        {"\xEF\xBF\xBE|\xEF\xBF\xBF", ODD "|" ODD}, /* U+FFFE and U+FFFF are no characters */
        {"&amp;", "&amp;amp;"}};
    for (size_t i = 0; i < PNB_COUNT(pairs); i++)
        EXPECT((pnb__buf_puts(&out, ""), pnb__html_escape(&out, pairs[i][0])), pairs[i][1]);
}

/* Characters count, not bytes. */
static void test_text_width(void **state)
{
    (void)state;
    assert_true(pnb__text_width("", 12) == 0);
    assert_true(fabs(pnb__text_width("abcd", 10) - 22.4) < 1e-9);
    assert_true(pnb__text_width("\xC3\xA9\xE6\xBC\xA2", 12) == pnb__text_width("ab", 12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_polyline),
        cmocka_unit_test(test_escape), cmocka_unit_test(test_characters),
        cmocka_unit_test(test_text_width)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
