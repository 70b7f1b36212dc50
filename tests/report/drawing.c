/* A figure and the files that it offers: the SVG with its own style, the numbers; colours of the
 * page and of the file; names. */
#include "report/drawing.h"

#include "tests/report/page.h"

static const char svg[] = "<svg viewBox=\"0 0 1 1\"><title>T</title></svg>\n";

static void test_figure(void **state)
{
    static char file[1 << 15];
    static const char rows[] = "x,y\n1,2\n";
    (void)state;
    for (int has_data = 0; has_data < 2; has_data++) {
        pnb__buf out = {0}, style = {0};
        pnb__drawing d;
        pnb__buf_puts(&out, "before <svg> of others\n");
        pnb__drawing_begin(&d, &out, "Loss: 2 < 3", "wide");
        pnb__buf_puts(&out, svg);
        if (has_data)
            pnb__buf_puts(&d.csv, rows);
        pnb__drawing_end(&d);
        assert_true(!out.failed && d.csv.data == NULL);
        assert_non_null(strstr(out.data, "others\n<figure class=\"chart wide\">\n<svg viewBox"));
        assert_non_null(strstr(out.data,
                               "</svg>\n<figcaption class=\"save\">save "
                               "<a download=\"loss-2-3.svg\" href=\"data:image/svg+xml;"));
        assert_string_equal(strstr(out.data, "</figcaption>"), "</figcaption></figure>\n");
        decode_link(&out, "image/svg+xml", file, sizeof file);
        pnb__drawing_style(&style, true);
        const char *at = strstr(file, style.data); /* behind the tag that opens the SVG */
        assert_non_null(at);
        static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                   "<svg viewBox=\"0 0 1 1\"><style>\n";
        assert_int_equal(at - file, sizeof head - 1);
        assert_memory_equal(file, head, sizeof head - 1);
        assert_string_equal(at + style.size, "</style>\n<title>T</title></svg>\n");
        assert_int_equal(strstr(out.data, "download=\"loss-2-3.csv\"") != NULL, has_data);
        if (has_data) {
            decode_link(&out, "text/csv;charset=utf-8", file, sizeof file);
            assert_string_equal(file, rows);
        }
        pnb__buf_reset(&style);
        pnb__buf_reset(&out);
    }
}

/* The page's colours are names that light and dark both give; those of a file are the light ones.
 */
static void test_colours(void **state)
{
    pnb__buf palette = {0}, page = {0}, alone = {0};
    (void)state;
    pnb__drawing_palette(&palette);
    pnb__drawing_style(&page, false);
    pnb__drawing_style(&alone, true);
    char *dark = strstr(palette.data, "@media(prefers-color-scheme:dark){");
    assert_non_null(dark);
    assert_null(strchr(alone.data, '$'));
    assert_null(strchr(page.data, '$'));
    assert_null(strstr(alone.data, "var("));
    assert_null(strchr(page.data, '#'));
    for (int i = 0; i < 8; i++) {
        char text[80], of_file[80], light[8];
        snprintf(text, sizeof text, "--c%d:#", i);
        const char *at = strstr(palette.data, text);
        assert_true(at != NULL && at < dark && strstr(dark, text) != NULL);
        snprintf(light, sizeof light, "%.7s", at + strlen(text) - 1);
        assert_memory_not_equal(light, strstr(dark, text) + strlen(text) - 1, 7);
        snprintf(text, sizeof text, "svg .dot.c%d,svg .bar.c%d,svg .ring.c%d{fill:var(--c%d)}", i,
                 i, i, i);
        assert_non_null(strstr(page.data, text));
        snprintf(of_file, sizeof of_file, "svg .whisker.c%d{stroke:%s}", i, light);
        assert_non_null(strstr(alone.data, of_file));
    }
    pnb__buf_reset(&palette);
    pnb__buf_reset(&page);
    pnb__buf_reset(&alone);
}

static void test_slugs(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"Total loss, weighted", "total-loss-weighted"},
        {"  R@1 (%) ", "r-1"},
        {"\xC3\xA9t\xC3\xA9", "t"},
        {"", "figure"},
        {"--?", "figure"},
        {"a/../b", "a-b"},
        {"0123456789012345678901234567890123456789012345678901234567 9 tail",
         "0123456789012345678901234567890123456789012345678901234567-9"}}; /* sixty at most */
    char out[80];
    for (size_t i = 0; i < PNB_COUNT(pairs); i++) {
        pnb__slug(pairs[i][0], out, sizeof out);
        assert_string_equal(out, pairs[i][1]);
    }
    memset(out, 'x', sizeof out);
    pnb__slug("longer than its room", out, 8);
    assert_string_equal(out, "longer"); /* "longer-" has no end */
    assert_int_equal(out[8], 'x');
}

#ifdef PNB_FAULTS
/* Whatever is short of memory fails the page, and nothing leaks. */
static void test_no_memory(void **state)
{
    bool passed = false;
    (void)state;
    for (long n = 0; !passed; n++) {
        pnb__buf out = {0};
        pnb__drawing d;
        pnb__alloc_fail_after(n);
        pnb__drawing_begin(&d, &out, "T", "");
        pnb__buf_puts(&out, svg);
        pnb__buf_puts(&d.csv, "x\n1\n");
        pnb__drawing_end(&d);
        pnb__alloc_fail_after(-1);
        passed = !out.failed;
        assert_true(!passed || n > 2);
        assert_null(d.csv.data);
        assert_true(!passed || strstr(out.data, "</figure>") != NULL);
        pnb__buf_reset(&out);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figure),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_slugs),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
