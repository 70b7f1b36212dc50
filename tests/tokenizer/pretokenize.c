/* Where texts are cut into words: each cut of the reference files, the space in front, steps inside
 * each other. */
#include "tests/tokenizer/support.h"

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

static void cuts_work(void **state)
{
    (void)state;
    expect_words("null", "{\"type\":\"Whitespace\"}", "it's \xC3\xA9_1 !? ",
                 "|it|'|s|\xC3\xA9_1|!?");
    expect_words("null", "{\"type\":\"WhitespaceSplit\"}", " a,b\n c", "|a,b|c");
    expect_words("null", BYTE_LEVEL, "I'm  ok 42!  \n", "|I|'m| | ok| 42|!|  \n");
    expect_words("null", BYTE_LEVEL, "a\n\nb 'S x's", "|a|\n|\n|b| '|S| x|'s");
    expect_words("null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "a b", "| a| b");
    expect_words("null", "{\"type\":\"Metaspace\"}", "a b  c",
                 "|\xE2\x96\x81"
                 "a|\xE2\x96\x81"
                 "b|\xE2\x96\x81|\xE2\x96\x81"
                 "c");
    expect_words("null", "{\"type\":\"Metaspace\",\"prepend_scheme\":\"never\",\"split\":false}",
                 "a b",
                 "|a\xE2\x96\x81"
                 "b");
}

/* The words that steps make of a text, each after a '|'. */
static void expect_split(const pnb__split_step *steps, size_t n, const char *text, bool is_first,
                         const char *want)
{
    joined_words j = {{0}};
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__pretokenize(steps, n, text, strlen(text), is_first, join_word, &j, &err), &err);
    assert_string_equal(j.text.data != NULL ? j.text.data : "", want);
    pnb__buf_reset(&j.text);
}

/* \p{N} of CLIP is one digit a word; what is no letter, digit or space stays together. */
static void clip_cuts(void **state)
{
    (void)state;
    static char start[] = "<|start|>";
    static const pnb__added words[] = {{.content = start, .n = sizeof start - 1}};
    static const pnb__split_step plain = {.kind = PNB__SPLIT_CLIP};
    static const pnb__split_step open = {.kind = PNB__SPLIT_CLIP, .words = words, .n_words = 1};
    expect_split(&plain, 1, " it's 2024!? \xC3\xA9t\xC3\xA9", true,
                 "|it|'s|2|0|2|4|!?|\xC3\xA9t\xC3\xA9");
    expect_split(&plain, 1, "IT'S 'tis", true, "|IT|'|S|'t|is");
    /* open_clip's expression ignores case and knows the long s */
    expect_split(&open, 1, "IT'S it'\xC5\xBF", true, "|IT|'S|it|'\xC5\xBF");
    expect_split(&open, 1, "a<|START|>b", true, "|a|<|START|>|b");
    expect_split(&open, 1, "<\\start\\>", true, "|<\\|start|\\>"); /* '\\' is no '|' */
}

static void prefixes(void **state)
{
    (void)state;
    pnb__split_step meta = {
        .kind = PNB__SPLIT_METASPACE, .prefix = PNB__PREFIX_FIRST, .splits = true};
    expect_split(&meta, 1, "a b", true,
                 "|\xE2\x96\x81"
                 "a|\xE2\x96\x81"
                 "b");
    expect_split(&meta, 1, "a b", false,
                 "|a|\xE2\x96\x81"
                 "b");
    expect_split(&meta, 1, " a", true,
                 "|\xE2\x96\x81"
                 "a"); /* one is there already */
    expect_split(&meta, 1, "", true, "");
    meta.prefix = PNB__PREFIX_ALWAYS;
    expect_split(&meta, 1, "a", false,
                 "|\xE2\x96\x81"
                 "a");
    const pnb__split_step gpt2 = {.kind = PNB__SPLIT_GPT2, .prefix = PNB__PREFIX_ALWAYS};
    expect_split(&gpt2, 1, "a", false, "| a");
    expect_split(&gpt2, 1, " a", false, "| a");
    /* steps inside each other: spaces first, then word characters from others */
    static const pnb__split_step two[] = {{.kind = PNB__SPLIT_WHITESPACE_ONLY},
                                          {.kind = PNB__SPLIT_WHITESPACE}};
    expect_split(two, 2, "a-b c", true, "|a|-|b|c");
    expect_split(two, 0, "a-b c", true, "|a-b c");
}

static pnb_status refuse_second(void *user, const char *word, size_t n, pnb_error *err)
{
    int *n_words = user;
    (void)word;
    return ++*n_words == 2 ? pnb__fail(err, PNB_BUSY, "a word of %zu bytes", n) : PNB_OK;
}

/* What the receiver of words says ends the walk and is what comes back. */
static void receivers_may_fail(void **state)
{
    (void)state;
    for (pnb__split_kind kind = PNB__SPLIT_WHITESPACE; kind <= PNB__SPLIT_METASPACE; kind++) {
        const pnb__split_step step = {.kind = kind, .splits = true};
        int n_words = 0;
        pnb_error err = PNB_ERROR_INIT;
        assert_failed(
            pnb__pretokenize(&step, 1, "a bb ccc dd", 11, true, refuse_second, &n_words, &err),
            &err, PNB_BUSY, "a word of");
        assert_int_equal(n_words, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_work),
        cmocka_unit_test(clip_cuts),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(receivers_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
