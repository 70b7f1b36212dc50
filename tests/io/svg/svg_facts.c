/* What is read of an SVG: its metadata, what is refused before it is drawn, damaged files. */
#include "tests/io/svg/support.h"

#define RDF                                                                                        \
    "<metadata><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" "                \
    "xmlns:cc=\"http://web.resource.org/cc/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">"
#define RDF_END "</rdf:RDF></metadata>"

static void metadata_is_that_of_the_first_work(void **state)
{
    pnb__svg_facts f;
    (void)state;
    need_svg();
    read_svg(&f, SVG_OPEN
             "<title>not this</title>" RDF "<cc:Work><dc:title>  A red\n  cat &amp; dog </dc:title>"
             "<dc:creator><cc:Agent><dc:title>Ann Other</dc:title></cc:Agent>"
             "</dc:creator><dc:subject>loose<rdf:Bag><rdf:li>cat</rdf:li><rdf:li/>"
             "<rdf:li> big \n dog</rdf:li></rdf:Bag></dc:subject>"
             "<dc:description>two animals</dc:description><dc:language>en"
             "</dc:language></cc:Work><cc:Work><dc:title>second</dc:title></cc:Work>" RDF_END
             "<rect width=\"5\" height=\"5\"/></svg>");
    assert_string_equal(f.title, "A red cat & dog");
    assert_string_equal(f.creator, "Ann Other");
    assert_string_equal(f.description, "two animals");
    assert_string_equal(f.language, "en");
    assert_int_equal(f.n_subjects, 3);
    assert_string_equal(f.subjects[0], "loose");
    assert_string_equal(f.subjects[1], "cat");
    assert_string_equal(f.subjects[2], "big dog");
    assert_null(f.refused);
    assert_true(f.cost >= 3 && f.cost < 4); /* svg, title, rect; metadata is not drawn */
    pnb__svg_facts_reset(&f);
    assert_null(f.title);
}

static void absent_texts_are_null(void **state)
{
    pnb__svg_facts f;
    (void)state;
    need_svg();
    read_svg(&f, SVG_OPEN RDF "<cc:Work><dc:title>  </dc:title></cc:Work>" RDF_END "</svg>");
    assert_null(f.title);
    assert_null(f.creator);
    assert_int_equal(f.n_subjects, 0);
    pnb__svg_facts_reset(&f);
}

/* A text is cut before a letter of several bytes, never inside. */
static void long_texts_are_cut(void **state)
{
    pnb__svg_facts f;
    pnb__buf b = {0};
    (void)state;
    need_svg();
    pnb__buf_puts(&b, SVG_OPEN RDF "<cc:Work><dc:title>");
    for (int i = 0; i < 5000; i++)
        pnb__buf_puts(&b, "\xC3\xA9");
    pnb__buf_puts(&b, "</dc:title></cc:Work>" RDF_END "</svg>");
    read_svg(&f, b.data);
    assert_true(strlen(f.title) <= PNB__SVG_MAX_TEXT && strlen(f.title) > PNB__SVG_MAX_TEXT - 4);
    assert_true(pnb__utf8_valid(f.title, strlen(f.title)));
    pnb__svg_facts_reset(&f);
    pnb__buf_reset(&b);
}

static void what_cannot_be_bounded_is_not_drawn(void **state)
{
    static const struct {
        const char *inside, *why;
    } cases[] = {
        {"<text>abc</text>", "fonts"},
        {"<text><tspan>abc</tspan></text>", "fonts"},
        {"<text> <tspan/> </text>", ""},
        {"<image width=\"9\" height=\"9\" xlink:href=\"data:image/png;base64,AA\"/>",
         "picture inside"},
        {"<filter><feImage/></filter>", "picture inside"},
        {"<filter><feTurbulence numOctaves=\"99999999\"/></filter>", "feTurbulence"},
        {"<filter><feConvolveMatrix order=\"1000\"/></filter>", "feConvolveMatrix"},
        {"<filter><feMorphology radius=\"9999\"/></filter>", "feMorphology"},
        {"<filter><feGaussianBlur stdDeviation=\"2\"/></filter>", ""},
        {"<style>rect{filter:url(#f)}</style>", "style sheet"},
        {"<style>rect{fill:red}</style>", ""},
        {"<g id=\"a\"><use xlink:href=\"#a\"/></g>", "circles"},
        {"<pattern id=\"p\"><rect fill=\"url(#p)\"/></pattern>", "circles"},
        {"<use xlink:href=\"#nowhere\"/>", ""},
        {"<other:text xmlns:other=\"urn:x\">abc</other:text>", ""},
    };
    (void)state;
    need_svg();
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        const char *why = refusal_of(cases[i].inside);
        if (cases[i].why[0] == '\0' ? why[0] != '\0' : strstr(why, cases[i].why) == NULL)
            fail_msg("%s: '%s' instead of '%s'", cases[i].inside, why, cases[i].why);
    }
}

static void expect_failure(const char *bytes, size_t n, pnb_status status, const char *text)
{
    pnb__svg_facts f;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__svg_read(&f, bytes, n, &err), status);
    if (strstr(err.text, text) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, text);
    assert_null(f.title);
    assert_int_equal(f.n_elements, 0);
}

static void damaged_files_are_refused(void **state)
{
    static const char bomb[] = "<!DOCTYPE svg [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b "
                               "\"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&c;\">]>"
                               "<svg id=\"&c;\"/>";
    (void)state;
    need_svg();
    expect_failure("", 0, PNB_FORMAT, "SVG");
    expect_failure("hello", 5, PNB_FORMAT, "damaged XML");
    expect_failure(SVG_OPEN, strlen(SVG_OPEN), PNB_FORMAT, "damaged XML");
    expect_failure("<html/>", 7, PNB_FORMAT, "not svg");
    expect_failure(bomb, strlen(bomb), PNB_FORMAT, "damaged XML");
    pnb__buf b = {0};
    pnb__buf_puts(&b, SVG_OPEN);
    for (int i = 0; i < PNB__SVG_MAX_ELEMENTS; i++)
        pnb__buf_puts(&b, "<g/>");
    pnb__buf_puts(&b, "</svg>");
    expect_failure(b.data, b.size, PNB_LIMIT, "elements");
    b.size = 0;
    for (int i = 0; i < 400; i++)
        pnb__buf_puts(&b, "<svg>");
    expect_failure(b.data, b.size, PNB_FORMAT, "damaged XML");
    pnb__buf_reset(&b);
    char *large = pnb__alloc_zero((size_t)PNB__SVG_MAX_BYTES + 1, 1);
    assert_non_null(large);
    expect_failure(large, (size_t)PNB__SVG_MAX_BYTES + 1, PNB_LIMIT, "bytes");
    pnb__free(large);
}

static void a_link_to_another_file_is_a_gap(void **state)
{
    static const struct {
        const char *inside;
        bool is_gap;
    } cases[] = {
        {"<image xlink:href=\"cat.png\"/>", true},
        {"<image xlink:href=\" data:image/png;base64,AA\"/>", false},
        {"<image/><use xlink:href=\"other.svg#a\"/>", false},
    };
    (void)state;
    need_svg();
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__svg_facts f;
        char *text = pnb__format("%s%s</svg>", SVG_OPEN, cases[i].inside);
        read_svg(&f, text);
        assert_int_equal(f.is_incomplete, cases[i].is_gap);
        pnb__svg_facts_reset(&f);
        pnb__free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_is_that_of_the_first_work),
        cmocka_unit_test(absent_texts_are_null),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(what_cannot_be_bounded_is_not_drawn),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(a_link_to_another_file_is_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
