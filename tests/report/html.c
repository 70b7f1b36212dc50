/* The frame of a page: what a reader meets first, the list of sections, cards, and pictures that
 * lie inside the file. */
#include "report/html.h"

#include "tests/report/page.h"

static void test_page_opens_with_the_answer(void **state)
{
    (void)state;
    pnb__buf out = {0};
    pnb__html_begin(&out, "T", "made");
    pnb__html_headline(&out, "Asked: what?", "This <much>.");
    pnb__html_contents(&out);
    pnb__html_section(&out, "First & last", "About it.");
    pnb__html_section_end(&out);
    pnb__html_section(&out, "Second", NULL);
    pnb__html_section_end(&out);
    pnb__html_end(&out);
    assert_false(out.failed);
    const char *answer = strstr(out.data, "This &lt;much&gt;.");
    const char *contents = strstr(out.data, "<li><a href=\"#s1\">First &amp; last</a></li>");
    const char *second = strstr(out.data, "<li><a href=\"#s2\">Second</a></li>");
    const char *section = strstr(out.data, "<section id=\"s2\"><h2>Second</h2>");
    assert_true(answer != NULL && contents > answer && second > contents && section > second);
    assert_null(strstr(out.data, "<!--contents-->"));
    pnb__buf_reset(&out);
}

/* Texts are escaped wherever they stand, so that none of them becomes a section or a mark. */
static void test_texts_are_no_markup(void **state)
{
    (void)state;
    pnb__buf out = {0};
    pnb__html_begin(&out, "<!--contents-->\n", "</style> & \"more\"");
    pnb__html_headline(&out, "a < b?", "<section><h2>");
    pnb__html_contents(&out);
    pnb__html_section(&out, "</h2><section><h2>", "<p>");
    pnb__html_section_end(&out);
    pnb__html_end(&out);
    assert_non_null(strstr(out.data, "<title>&lt;!--contents--&gt;\n</title>"));
    assert_non_null(strstr(out.data, "<h1>&lt;!--contents--&gt;\n</h1>\n"
                                     "<p class=\"soft\">&lt;/style&gt; &amp; &quot;more&quot;</p>\n"
                                     "<p class=\"asked\">a &lt; b?</p>\n"
                                     "<p class=\"answer\">&lt;section&gt;&lt;h2&gt;</p>\n"));
    assert_non_null(strstr(out.data,
                           "<a href=\"#s1\">&lt;/h2&gt;&lt;section&gt;&lt;h2&gt;</a></li>\n"
                           "</ul></nav>\n<section id=\"s1\">"));
    assert_non_null(strstr(out.data, "</h2>\n<p class=\"soft\">&lt;p&gt;</p>\n</section>\n"
                                     "</main></body></html>\n"));
    assert_null(strstr(out.data, "s2"));
    pnb__buf_reset(&out);
}

/* One file: nothing is asked of a network, and light and dark both have every colour. */
static void test_page_stands_alone(void **state)
{
    (void)state;
    pnb__buf out = {0};
    pnb__html_begin(&out, "T", "");
    pnb__html_section(&out, "Only", NULL); /* no list was asked for: sections have names still */
    pnb__html_section_end(&out);
    pnb__html_end(&out);
    assert_int_equal(strncmp(out.data, "<!doctype html>\n<html lang=\"en\">", 32), 0);
    assert_null(strstr(out.data, "http"));
    assert_null(strstr(out.data, "<script"));
    assert_null(strstr(out.data, "<nav"));
    assert_non_null(strstr(out.data, "prefers-color-scheme:dark"));
    assert_non_null(strstr(out.data, "<section id=\"s1\"><h2>Only</h2>\n</section>\n"));
    for (const char *at = out.data; (at = strstr(at, "var(--")) != NULL; at++) {
        char name[40];
        size_t n = strcspn(at + 4, ")");
        snprintf(name, sizeof name, "%.*s:#", (int)n, at + 4);
        const char *light = strstr(out.data, name);
        assert_true(light != NULL && strstr(light + 1, name) != NULL);
    }
    pnb__buf_reset(&out);
}

static void test_cards(void **state)
{
    (void)state;
    pnb__buf out = {0};
    pnb__html_cards_begin(&out);
    pnb__html_card(&out, "Best & first");
    pnb__buf_puts(&out, "x");
    pnb__html_card(&out, "Worst");
    pnb__html_cards_end(&out);
    assert_string_equal(out.data, "<div class=\"cards\">\n"
                                  "<div class=\"card\"><h3>Best &amp; first</h3>\nx</div>\n"
                                  "<div class=\"card\"><h3>Worst</h3>\n</div></div>\n");
    pnb__buf_reset(&out);
}

/* ---- pictures ---- */

static pnb_image make_image(int width, int height)
{
    pnb_image image = {0};
    assert_int_equal(pnb_image_create(&image, width, height, 3, NULL), PNB_OK);
    for (int i = 0; i < 3 * width * height; i++)
        image.pixels[i] = (unsigned char)(i % 3 * 100);
    return image;
}

/* The picture in the page decodes to width x height. */
static pnb_image shown(const char *page)
{
    static unsigned char png[1 << 16];
    pnb_image image = {0};
    size_t n = decode_after(page, "data:image/png;base64,", png, sizeof png);
    assert_int_equal(pnb_image_decode(&image, png, n, NULL, NULL), PNB_OK);
    return image;
}

/* Shrunk to fit, never enlarged, at least one pixel; the colours stay. */
static void test_image_data(void **state)
{
    static const int sizes[][5] = {/* width, height, room, shown */
                                   {40, 20, 10, 10, 5},
                                   {20, 40, 10, 5, 10},
                                   {10, 10, 10, 10, 10},
                                   {3, 7, 50, 3, 7},
                                   {200, 1, 10, 10, 1}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        pnb__buf out = {0};
        pnb_image image = make_image(sizes[i][0], sizes[i][1]);
        assert_int_equal(pnb__html_image_data(&out, &image, sizes[i][2], NULL), PNB_OK);
        assert_int_equal(strncmp(out.data, "data:image/png;base64,", 22), 0);
        pnb_image small = shown(out.data);
        assert_int_equal(small.width, sizes[i][3]);
        assert_int_equal(small.height, sizes[i][4]);
        for (int p = 0; p < 3 * small.width * small.height; p++)
            assert_int_equal(small.pixels[p], p % 3 * 100);
        pnb_image_free(&small);
        pnb_image_free(&image);
        pnb__buf_reset(&out);
    }
}

static void test_shots(void **state)
{
    (void)state;
    static const struct {
        const char *css;
        int side;
    } cases[] = {{"", 96}, {"hit", 96}, {"big hit", 160}};
    pnb_image image = make_image(300, 300);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__buf out = {0};
        char start[64];
        assert_int_equal(pnb__html_shot(&out, &image, cases[i].css, "a \"cat\"", "rank <1>", NULL),
                         PNB_OK);
        snprintf(start, sizeof start,
                 "<figure class=\"shot %s\"><img alt=\"a &quot;cat&quot;\" src", cases[i].css);
        assert_int_equal(strncmp(out.data, start, strlen(start)), 0);
        assert_non_null(strstr(out.data, "\"><figcaption><b>a &quot;cat&quot;</b><br>rank &lt;1&gt;"
                                         "</figcaption></figure>\n"));
        pnb_image small = shown(out.data);
        assert_int_equal(small.width, cases[i].side);
        pnb_image_free(&small);
        pnb__buf_reset(&out);
    }
    pnb__buf out = {0};
    assert_int_equal(pnb__html_shot(&out, NULL, "", "gone", "", NULL), PNB_OK);
    assert_string_equal(out.data, "<figure class=\"shot \"><figcaption><b>gone</b></figcaption>"
                                  "</figure>\n");
    pnb__buf_reset(&out);
    pnb_image_free(&image);
}

#ifdef PNB_FAULTS
/* A picture that does not get its memory is an error of the shot; what is written stays whole. */
static void test_no_memory(void **state)
{
    (void)state;
    pnb_image image = make_image(300, 200);
    long n = 0;
    for (pnb_status status = PNB_NOMEM; status != PNB_OK; n++) {
        pnb__buf out = {0};
        pnb_error err = PNB_ERROR_INIT;
        pnb__buf_puts(&out, "room for what follows needs no memory of its own");
        pnb__alloc_fail_after(n);
        status = pnb__html_shot(&out, &image, "", "n", "", &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || status == PNB_NOMEM);
        if (out.failed)
            status = PNB_NOMEM;
        pnb__buf_reset(&out);
    }
    assert_true(n > 3);
    pnb_image_free(&image);
}

/* A page that failed stays so. */
static void test_failed_page(void **state)
{
    (void)state;
    for (int in_end = 0; in_end < 2; in_end++) {
        pnb__buf out = {0};
        pnb__html_begin(&out, "T", "");
        pnb__html_contents(&out);
        pnb__html_section(&out, "S", NULL);
        if (!in_end)
            out.failed = true;
        pnb__alloc_fail_after(0);
        pnb__html_end(&out);
        pnb__alloc_fail_after(-1);
        assert_true(out.failed);
        pnb__buf_reset(&out);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_opens_with_the_answer),
        cmocka_unit_test(test_texts_are_no_markup),
        cmocka_unit_test(test_page_stands_alone),
        cmocka_unit_test(test_cards),
        cmocka_unit_test(test_image_data),
        cmocka_unit_test(test_shots),
#ifdef PNB_FAULTS
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_failed_page),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
