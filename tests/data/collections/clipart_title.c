/* Titles of clip art: each part of the rule, and its errors on 200 that were looked at. */
#include "data/collections/clipart_title.h"

#include "tests/data/fixture.h"

static const char *const kinds[] = {
#define KIND(NAME, text) text,
    PNB__TITLE_LIST(KIND)
#undef KIND
};

static void expect(const pnb__title_facts *facts, pnb__title_kind kind, const char *clean)
{
    char out[PNB__TITLE_MAX + 1] = "not touched";
    pnb__title_kind found = pnb__title_clean(facts, out);
    if (found != kind || strcmp(out, clean) != 0)
        fail_msg("'%s': %s '%s' instead of %s '%s'", facts->title, kinds[found], out, kinds[kind],
                 clean);
}

static void titles_are_cleaned(void **state)
{
    static const struct {
        const char *title, *clean;
    } cases[] = {
        {"Sprint Cell Phone", "sprint cell phone"},
        {"  flan_bw ", "flan black and white"},
        {"Bacon (B and W)", "bacon black and white"},
        {"Tigre01", "tigre"},
        {"Woman Police 02", "woman police"},
        {"BlueMan#208", "blueman"},
        {"cormorant v0.1", "cormorant"},
        {"3 faces", "3 faces"},
        {"Ice Cream Cone (1 Scoop)", "ice cream cone 1 scoop"},
        {"arrow-down-green", "arrow down green"},
        {"t-shirt", "t-shirt"},
        {"man in chair - thinking", "man in chair - thinking"},
        {"Telephone (mail: ann@example.org)", "telephone"},
        {"house http://example.org", "house"},
        {"clouds (Wed Aug 25 23:29:46 2004)", "clouds"},
        {"don&#39;t panic", "don't panic"},
        {"braces.svg", "braces"},
        {"mouth - body part", "mouth"},
        {"Coccinella Miller", "coccinella"},
    };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        const pnb__title_facts facts = {
            .title = cases[i].title, .creator = "Ann Miller", .file = "x/y.svg", .n_carriers = 1};
        expect(&facts, PNB__TITLE_DESCRIBES, cases[i].clean);
    }
}

static void what_does_not_describe(void **state)
{
    static const struct {
        const char *title;
        pnb__title_kind kind;
    } cases[] = {
        {NULL, PNB__TITLE_MISSING},
        {"  ", PNB__TITLE_MISSING},
        {"Ann Miller", PNB__TITLE_AUTHOR},
        {"untitled", PNB__TITLE_CODE},
        {"fc15", PNB__TITLE_CODE},
        {"0x881e2f8", PNB__TITLE_CODE},
        {"Lemon SVG theme", PNB__TITLE_COLLECTION},
        {"Various Cliparts", PNB__TITLE_COLLECTION},
        {"libro di ricette", PNB__TITLE_LANGUAGE},
        {"gr\xC3\xBCner Frosch", PNB__TITLE_LANGUAGE},
    };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        const pnb__title_facts facts = {
            .title = cases[i].title, .creator = "Ann Miller", .file = "x/y.svg", .n_carriers = 1};
        expect(&facts, cases[i].kind, "");
    }
}

/* What other pictures and the picture's own words say of a title. */
static void series_and_languages(void **state)
{
    static const char *const keywords[] = {"cat", "mammal"};
    (void)state;
    pnb__title_facts f = {
        .title = "moons", .creator = "Ann", .file = "sky/sun.svg", .n_carriers = 4};
    expect(&f, PNB__TITLE_COLLECTION, "");
    f.n_carriers = 3;
    expect(&f, PNB__TITLE_DESCRIBES, "moons");
    f.n_carriers = 4;
    f.file = "sky/moon-crescent.svg";
    expect(&f, PNB__TITLE_DESCRIBES, "moons");
    f.file = "moon/sun.svg";
    expect(&f, PNB__TITLE_DESCRIBES, "moons");

    f = (pnb__title_facts){.title = "Clipart by Nicu Buculei - antenna",
                           .creator = "Nicu Buculei",
                           .file = "x/keyboard.svg",
                           .n_carriers = 23};
    expect(&f, PNB__TITLE_COLLECTION, "");
    f.file = "x/antenna.svg";
    expect(&f, PNB__TITLE_DESCRIBES, "antenna");

    f = (pnb__title_facts){.title = "gattina cat",
                           .creator = "Ann",
                           .file = "x/y.svg",
                           .n_carriers = 1,
                           .is_creator_foreign = true};
    expect(&f, PNB__TITLE_LANGUAGE, "");
    f.keywords = keywords;
    f.n_keywords = 2;
    expect(&f, PNB__TITLE_DESCRIBES, "gattina cat");
    f.language = "it-IT";
    expect(&f, PNB__TITLE_LANGUAGE, "");
    f.language = "EN";
    expect(&f, PNB__TITLE_DESCRIBES, "gattina cat");
}

static void long_titles_are_no_titles(void **state)
{
    char title[2000];
    pnb__title_facts f = {.title = title, .file = "x/y.svg", .n_carriers = 1};
    (void)state;
    for (size_t n = 1; n < sizeof title; n += 13) {
        char out[PNB__TITLE_MAX + 1];
        for (size_t i = 0; i < n; i++)
            title[i] = "word bw tea 07 (\t"[i % 17];
        title[n] = '\0';
        if (pnb__title_clean(&f, out) == PNB__TITLE_DESCRIBES)
            assert_true(strlen(out) <= PNB__TITLE_MAX && strlen(out) > 0);
    }
    memset(title, 'a', sizeof title - 1);
    title[sizeof title - 1] = '\0';
    expect(&f, PNB__TITLE_CODE, "");
}

static void expect_file(const char *file, const char *creator, const char *clean)
{
    const pnb__title_facts f = {.file = file, .creator = creator, .n_carriers = 1};
    char out[PNB__TITLE_MAX + 1];
    (void)pnb__title_of_file(&f, out);
    if (strcmp(out, clean) != 0)
        fail_msg("%s: '%s' instead of '%s'", file, out, clean);
}

static void names_of_files(void **state)
{
    (void)state;
    expect_file("map/aiga_toilet_women_.svg", "Jean-Victor Balin", "toilet women");
    expect_file("food/peach_simple.svg", "Gerald G.", "peach simple");
    expect_file("office/desk_lamp_gerald_g._01.svg", "Gerald G.", "desk lamp");
    expect_file("animals/2_dead_frogs_lumen_desig_01.svg", "Lumen Design Studio", "2 dead frogs");
    expect_file("people/sm_021.svg", "Nicu Buculei", "");
    expect_file("cards/bordered_c_7.svg", NULL, "bordered c");
    expect_file("unsorted/cornetto_di.svg", NULL, "");
}

static void keywords_are_words(void **state)
{
    static const struct {
        const char *raw, *clean;
    } cases[] = {
        {"Big_Cat", "big cat"},
        {"hash(0x85c)", ""},
        {"hash", ""},
        {"0xa121e1c", ""},
        {"unsorted", ""},
        {"Ann Miller", ""},
        {"", ""},
        {"tv", ""},
        {"d\xC3\xA9"
         "cor",
         ""},
        {"led", "led"},
    };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char out[PNB__TITLE_MAX + 1];
        pnb__keyword_clean(cases[i].raw, "ann miller", out);
        assert_string_equal(out, cases[i].clean);
    }
}

/* ---- the sample ---- */

enum {
    VERDICT,
    FILE_VERDICT,
    CARRIERS,
    FOREIGN,
    LANGUAGE,
    CREATOR,
    NAME,
    KEYWORDS,
    TITLE,
    N_COLUMNS
};

typedef struct errors {
    size_t n, kept_wrongly, dropped_wrongly, n_kept, n_files, wrong_files;
} errors;

static void look_at(char *line, errors *e)
{
    char *column[N_COLUMNS], out[PNB__TITLE_MAX + 1];
    const char *keywords[64];
    size_t n_keywords = 0;
    for (int k = 0; k < N_COLUMNS; k++) {
        column[k] = strsep(&line, "\t");
        assert_non_null(column[k]);
    }
    for (char *word; (word = strsep(&column[KEYWORDS], "|")) != NULL && n_keywords < 64;)
        keywords[n_keywords++] = word;
    const pnb__title_facts f = {.title = column[TITLE],
                                .creator = column[CREATOR],
                                .language = column[LANGUAGE],
                                .file = column[NAME],
                                .keywords = keywords,
                                .n_keywords = n_keywords,
                                .n_carriers = strtoul(column[CARRIERS], NULL, 10),
                                .is_creator_foreign = column[FOREIGN][0] == '1'};
    bool is_kept = pnb__title_clean(&f, out) == PNB__TITLE_DESCRIBES;
    bool is_right = column[VERDICT][0] == 'd';
    e->n++;
    e->n_kept += is_kept;
    e->kept_wrongly += is_kept && !is_right;
    e->dropped_wrongly += !is_kept && is_right;
    bool is_file = !is_kept && pnb__title_of_file(&f, out) == PNB__TITLE_DESCRIBES;
    if (is_file != (column[FILE_VERDICT][0] != '-'))
        fail_msg("%s: a caption from its name, or none, that was not looked at", column[NAME]);
    e->n_files += is_file;
    e->wrong_files += column[FILE_VERDICT][0] == 'n';
}

/* The figures of docs/data.md#clipart. */
static void errors_on_what_was_looked_at(void **state)
{
    char *text = NULL, *line = NULL;
    size_t n = 0;
    errors e = {0};
    (void)state;
    ASSERT_OK(pnb__read_file(PNB_SOURCE_DIR "/tests/data/collections/titles.tsv", 1 << 20, &text,
                             &n, &err));
    pnb__line_reader lines = {.at = text, .end = text + n, .path = "titles.tsv"};
    for (;;) {
        ASSERT_OK(pnb__line_next(&lines, &line, &err));
        if (line == NULL)
            break;
        if (line[0] != '#' && line[0] != '\0')
            look_at(line, &e);
    }
    pnb__free(text);
    print_message("%zu titles, %zu kept: %zu of them wrongly, %zu dropped wrongly; %zu from files, "
                  "%zu wrong\n",
                  e.n, e.n_kept, e.kept_wrongly, e.dropped_wrongly, e.n_files, e.wrong_files);
    assert_int_equal(e.n, 200);
    assert_int_equal(e.kept_wrongly, 14);
    assert_int_equal(e.dropped_wrongly, 2);
    assert_int_equal(e.n_files, 30);
    assert_int_equal(e.wrong_files, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(titles_are_cleaned),
        cmocka_unit_test(what_does_not_describe),
        cmocka_unit_test(series_and_languages),
        cmocka_unit_test(long_titles_are_no_titles),
        cmocka_unit_test(names_of_files),
        cmocka_unit_test(keywords_are_words),
        cmocka_unit_test(errors_on_what_was_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
