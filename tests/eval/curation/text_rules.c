/* Rules on captions: limits, shares, scripts, expressions, blocked words, what is refused, and
 * memory that runs out. How a caption is taken apart is text_words.c's. */
#include "base/names.h"
#include "eval/curation/text_words.h"
#include "tests/prob/support.h"

static pnb_text_rules *made(pnb_text_rules_opts opts)
{
    pnb_text_rules *rules = NULL;
    assert_ok(pnb_text_rules_create(&rules, &opts, err));
    return rules;
}

static uint32_t failed_by(pnb_text_rules_opts opts, const char *sentence)
{
    pnb_text_rules *rules = made(opts);
    uint32_t failed = 0;
    assert_ok(pnb_text_rules_check(rules, sentence, &failed, err));
    pnb_text_rules_free(rules);
    return failed;
}

#define BIT(rule) ((uint32_t)1 << PNB_RULE_##rule)
#define OPTS(...)                                                                                  \
    (pnb_text_rules_opts)                                                                          \
    {                                                                                              \
        .max_repeated = 1, __VA_ARGS__                                                             \
    }

static void knows_scripts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *letters;
    } cases[] = {{"latin", "a\xC3\x9F\xC5\x82\xE1\xBA\xA1"},
                 {"greek", "\xCE\xB1\xE1\xBC\x80"},
                 {"cyrillic", "\xD0\xB6"},
                 {"armenian", "\xD5\xA1"},
                 {"hebrew", "\xD7\x90"},
                 {"arabic", "\xD8\xA7"},
                 {"devanagari", "\xE0\xA4\x95"},
                 {"bengali", "\xE0\xA6\x95"},
                 {"tamil", "\xE0\xAE\x95"},
                 {"thai", "\xE0\xB8\x81"},
                 {"georgian", "\xE1\x83\x90"},
                 {"hangul", "\xED\x95\x9C"},
                 {"kana", "\xE3\x81\x82\xE3\x82\xA2"},
                 {"han", "\xE4\xB8\xAD\xF0\xA0\x80\x80"}};
    assert_int_equal(PNB_COUNT(cases), PNB_N_SCRIPTS);
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        for (size_t j = 0; j < PNB_COUNT(cases); j++) {
            pnb_text_rules_opts opts = OPTS(.min_script = 1, .script = (pnb_script)j);
            assert_string_equal(pnb__name_at(PNB_NAMES(PNB_SCRIPT_LIST), (unsigned)j, ""),
                                cases[j].name);
            assert_int_equal(failed_by(opts, cases[i].letters), i == j ? 0 : BIT(SCRIPT));
        }
}

static void applies_every_limit(void **state)
{
    (void)state;
    assert_int_equal(failed_by(OPTS(.min_words = 3), "two words"), BIT(MIN_WORDS));
    assert_int_equal(failed_by(OPTS(.min_words = 2), "two words"), 0);
    assert_int_equal(failed_by(OPTS(.max_words = 1), "two words"), BIT(MAX_WORDS));
    assert_int_equal(failed_by(OPTS(.max_words = 2), "two words"), 0);
    assert_int_equal(failed_by(OPTS(.min_chars = 6), " abcde "), BIT(MIN_CHARS));
    assert_int_equal(failed_by(OPTS(.min_chars = 5), " abcde "), 0);
    assert_int_equal(failed_by(OPTS(.max_chars = 4), "abcde"), BIT(MAX_CHARS));
    assert_int_equal(failed_by(OPTS(.min_ascii = 0.76), "abc\xC3\xA9"), BIT(ASCII));
    assert_int_equal(failed_by(OPTS(.min_ascii = 0.75), "abc\xC3\xA9"), 0);
    assert_int_equal(failed_by(OPTS(.min_ascii = 0.1), ""), BIT(ASCII));
    assert_int_equal(failed_by(OPTS(.min_script = 0.6), "ab \xD0\xB6\xD0\xB6 12"), BIT(SCRIPT));
    assert_int_equal(failed_by(OPTS(.min_script = 0.5), "ab \xD0\xB6\xD0\xB6 12"), 0);
    pnb_text_rules_opts repeated = {.max_repeated = 0.5};
    assert_int_equal(failed_by(repeated, "nike Nike NIKE shoe"), 0); /* 4 words, 2 distinct */
    assert_int_equal(failed_by(repeated, "nike Nike NIKE"), BIT(REPEATED));
    assert_int_equal(failed_by(repeated, ""), 0);
    assert_int_equal(failed_by(OPTS(.needs_letter = true), "2041 - 33%"), BIT(LETTERS));
    assert_int_equal(failed_by(OPTS(.needs_letter = true), "4x4"), 0);
    assert_int_equal(failed_by(OPTS(.min_words = 1), NULL), BIT(NO_TEXT));
    /* everything that fails is told */
    assert_int_equal(failed_by(OPTS(.min_words = 2, .needs_letter = true, .min_chars = 9), "7"),
                     BIT(MIN_WORDS) | BIT(MIN_CHARS) | BIT(LETTERS));
    /* without a rule nothing fails, not even what could not be read */
    assert_int_equal(failed_by(OPTS(.min_words = 0), NULL), 0);
}

static void searches_expressions(void **state)
{
    (void)state;
    assert_int_equal(failed_by(OPTS(.match = "^a (photo|picture) of"), "a photo of it"), 0);
    assert_int_equal(failed_by(OPTS(.match = "^a (photo|picture) of"), "A photo of it"),
                     BIT(MATCH));
    assert_int_equal(
        failed_by(OPTS(.match = "^a (photo|picture) of", .ignore_case = true), "A Photo of it"), 0);
    assert_int_equal(failed_by(OPTS(.no_match = "https?://"), "see http://x"), BIT(NO_MATCH));
    assert_int_equal(failed_by(OPTS(.no_match = "https?://"), "see"), 0);
    pnb_text_rules *rules = NULL;
    pnb_text_rules_opts bad = OPTS(.match = "(open");
    assert_fails(pnb_text_rules_create(&rules, &bad, err), PNB_ARG, "'(open'");
    assert_null(rules);
}

static void finds_blocked_words(void **state)
{
    (void)state;
    static const char *const blocked[] = {"stock photo", "LOREM", "\xC3\x89t\xC3\xA9", "x-ray"};
    const pnb_text_rules_opts opts = OPTS(.blocked = blocked, .n_blocked = 4);
    assert_int_equal(failed_by(opts, "A Stock-Photo of a cat"), BIT(BLOCKED));
    assert_int_equal(failed_by(opts, "stock of a photo"), 0);
    assert_int_equal(failed_by(opts, "stock photos"), 0); /* whole words only */
    assert_int_equal(failed_by(opts, "lorem"), BIT(BLOCKED));
    assert_int_equal(failed_by(opts, "un \xC3\xA9t\xC3\xA9"), BIT(BLOCKED));
    assert_int_equal(failed_by(opts, "an X ray"), BIT(BLOCKED));
    /* many entries: each is found, neighbours are not */
    enum { N = 3000 };
    static char text[N][16];
    static const char *many[N];
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "w%d v%d", i, i);
        many[i] = text[i];
    }
    pnb_text_rules *rules = made(OPTS(.blocked = many, .n_blocked = N));
    for (int i = 0; i < N; i++) {
        char sentence[48];
        uint32_t failed;
        snprintf(sentence, sizeof sentence, "a w%d v%d b", i, i);
        assert_ok(pnb_text_rules_check(rules, sentence, &failed, err));
        assert_int_equal(failed, BIT(BLOCKED));
        snprintf(sentence, sizeof sentence, "a w%d v%d b", i, i + 1);
        assert_ok(pnb_text_rules_check(rules, sentence, &failed, err));
        assert_int_equal(failed, 0);
    }
    pnb_text_rules_free(rules);
}

/* regcomp would copy what is repeated: gigabytes for a few bytes of expression. */
static void expressions_are_measured_before(void **state)
{
    (void)state;
    static const char *const large[] = {
        "((a{255}){255}){255}",       "((a{255}){255}){2}",    "(((a|b{200})c){200}){9}",
        "([[:alpha:]]{255}){100}",    "((x{9}){99,}y){99,99}", "((((a{99}){99}){99}){99}",
        "a(([]a-z]{255}){255}|b)+x*", "(a\\{{255}){255}",
    };
    static const char *const fine[] = {"(a{255}){70}", "[^]{1,}]+x{3,5}(photo|picture){2}",
                                       "a{3}",         "a\\{999",
                                       "[{]255}",      "(a*)*b"};
    pnb_text_rules *rules = NULL;
    for (size_t i = 0; i < PNB_COUNT(large); i++) {
        pnb_text_rules_opts bad = OPTS(.match = large[i]);
        assert_fails(pnb_text_rules_create(&rules, &bad, err), PNB_LIMIT, "places");
        bad = OPTS(.no_match = large[i]);
        assert_fails(pnb_text_rules_create(&rules, &bad, err), PNB_LIMIT, "places");
    }
    for (size_t i = 0; i < PNB_COUNT(fine); i++)
        pnb_text_rules_free(made(OPTS(.match = fine[i])));
    pnb_text_rules_opts back = OPTS(.match = "(a+)\\1");
    assert_fails(pnb_text_rules_create(&rules, &back, err), PNB_UNSUPPORTED, "refers back");
    pnb_text_rules_opts apart = OPTS(.match = "a)(b");
    assert_fails(pnb_text_rules_create(&rules, &apart, err), PNB_ARG, "no POSIX extended one");
}

/* A megabyte of one letter, which an expression begins to fit at every byte: regexec by itself
 * tries each, which takes hours. What could take gigabytes of states is not looked into and fails.
 */
static void searches_long_texts_once(void **state)
{
    (void)state;
    const size_t n = 1000000;
    char *sentence = malloc(n + 1);
    memset(sentence, 'a', n);
    sentence[n] = '\0';
    uint32_t failed, match = (uint32_t)1 << PNB_RULE_MATCH,
                     no_match = (uint32_t)1 << PNB_RULE_NO_MATCH;
    static const struct {
        const char *expression;
        bool found, passes_over;
    } cases[] = {{"(a|aa)+b", false, false},    {"^a+$", true, false},
                 {"b|a$", true, false},         {"(a*)b", false, false},
                 {"^b|b", false, false},        {"(a|b)*a(a|b){300}c", false, true},
                 {"(a{255}){20}b", false, true}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_text_rules *rules =
            made(OPTS(.match = cases[i].expression, .no_match = cases[i].expression));
        assert_int_equal(pnb_text_rules_check(rules, sentence, &failed, NULL), PNB_OK);
        assert_int_equal(failed, cases[i].passes_over ? match | no_match
                                 : cases[i].found     ? no_match
                                                      : match);
        pnb_text_rules_free(rules);
    }
    free(sentence);
}

static void refuses_bad_rules(void **state)
{
    (void)state;
    pnb_text_rules *rules = NULL;
    static const char *const empty[] = {"?!"}, *const broken[] = {"\xFF"};
    const struct {
        pnb_text_rules_opts opts;
        pnb_status status;
        const char *words;
    } cases[] = {{OPTS(.min_words = 5, .max_words = 4), PNB_ARG, "at most 4 words"},
                 {OPTS(.min_chars = 5, .max_chars = 4), PNB_ARG, "at most 4 characters"},
                 {OPTS(.min_ascii = 1.5), PNB_ARG, "min_ascii is 1.5"},
                 {OPTS(.min_script = NAN), PNB_ARG, "min_script"},
                 {OPTS(.script = PNB_N_SCRIPTS), PNB_ARG, "script number"},
                 {OPTS(.blocked = empty, .n_blocked = 1), PNB_ARG, "holds no word"},
                 {OPTS(.blocked = broken, .n_blocked = 1), PNB_FORMAT, "blocked entry"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        assert_fails(pnb_text_rules_create(&rules, &cases[i].opts, err), cases[i].status,
                     cases[i].words);
        assert_null(rules);
    }
    rules = made(OPTS(.min_words = 1));
    uint32_t failed;
    assert_fails(pnb_text_rules_check(rules, "\xC3", &failed, err), PNB_FORMAT, "UTF-8");
    pnb_text_rules_free(rules);
    pnb_text_rules_free(NULL);
}

/* A hostile caption: long, one word, all the same word. Bounded time and memory. */
static void stands_long_texts(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    char *sentence = malloc(N + 1);
    assert_non_null(sentence);
    static const char *const blocked[] = {"a b c d e f g h"};
    pnb_text_rules_opts opts = {.max_repeated = 0.5, .blocked = blocked, .n_blocked = 1};
    memset(sentence, 'a', N);
    sentence[N] = '\0';
    assert_int_equal(failed_by(opts, sentence), 0);
    for (size_t i = 1; i < N; i += 2)
        sentence[i] = ' ';
    assert_int_equal(failed_by(opts, sentence), BIT(REPEATED));
    free(sentence);
}

#ifdef PNB_FAULTS
static void runs_out_of_memory(void **state)
{
    (void)state;
    static const char *const blocked[] = {"one two", "three"};
    const pnb_text_rules_opts opts = {
        .max_repeated = 0.5, .match = "a", .blocked = blocked, .n_blocked = 2};
    long n = 0;
    for (;; n++) {
        pnb_text_rules *rules = NULL;
        uint32_t failed;
        long before = pnb__alloc_count();
        pnb__alloc_fail_after(n);
        pnb_status status = pnb_text_rules_create(&rules, &opts, NULL);
        if (status == PNB_OK)
            status = pnb_text_rules_check(rules, "a longer caption of words", &failed, NULL);
        pnb__alloc_fail_after(-1);
        bool through = pnb__alloc_count() - before <= n;
        pnb_text_rules_free(rules);
        assert_true(through ? status == PNB_OK : status == PNB_NOMEM);
        if (through)
            break;
    }
    assert_true(n > 5);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_scripts),        cmocka_unit_test(applies_every_limit),
        cmocka_unit_test(searches_expressions), cmocka_unit_test(finds_blocked_words),
        cmocka_unit_test(refuses_bad_rules),    cmocka_unit_test(searches_long_texts_once),
        cmocka_unit_test(stands_long_texts),    cmocka_unit_test(expressions_are_measured_before),
#ifdef PNB_FAULTS
        cmocka_unit_test(runs_out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
