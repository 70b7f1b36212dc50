/* Words of captions against those of NLTK 3.8 (NLTKWordTokenizer behind Punkt without trained
 * parameters, but for the abbreviations of word_tokenize.c); and what words do in a tokenizer. */
#include "tests/tokenizer/support.h"

/* Text, and its words with | between them. */
static const char *const VECTORS[][2] = {
    {"a man riding a wave on top of a surfboard.", "a|man|riding|a|wave|on|top|of|a|surfboard|."},
    {"two dogs, one cat", "two|dogs|,|one|cat"},
    {"a man's dog isn't here", "a|man|'s|dog|is|n't|here"},
    {"the girls' room", "the|girls|'|room"},
    {"it's they're we've i'll i'd i'm", "it|'s|they|'re|we|'ve|i|'ll|i|'d|i|'m"},
    {"a stop sign on main st. in the rain.", "a|stop|sign|on|main|st.|in|the|rain|."},
    {"mr. smith and dr. who meet at 3:30 p.m. for tea",
     "mr.|smith|and|dr.|who|meet|at|3:30|p.m.|for|tea"},
    {"he bought 1,000 eggs, 2: all fresh", "he|bought|1,000|eggs|,|2|:|all|fresh"},
    {"a cat. a dog. a bird", "a|cat|.|a|dog|.|a|bird"},
    {"what is it? a bus! no...", "what|is|it|?|a|bus|!|no|..."},
    {"wait... what", "wait|...|what"},
    {"the sign says \"stop\" in red", "the|sign|says|``|stop|''|in|red"},
    {"\"stop\" says the sign", "``|stop|''|says|the|sign"},
    {"a `sign' that says ''no''", "a|`|sign|'|that|says|``|no|''"},
    {"t-shirt and black-and-white photo--old", "t-shirt|and|black-and-white|photo|--|old"},
    {"a (red) [green] {blue} <tag>", "a|(|red|)|[|green|]|{|blue|}|<|tag|>"},
    {"50% of $5 & #1 @home; *star*", "50|%|of|$|5|&|#|1|@|home|;|*|star|*"},
    {"cannot gonna wanna go gimme gotta lemme", "can|not|gon|na|wan|na|go|gim|me|got|ta|lem|me"},
    {"'tis a dog, 'twas a cat", "'t|is|a|dog|,|'t|was|a|cat"},
    {"d'ye like more'n one", "d|'ye|like|more|'n|one"},
    {"page 5. the end", "page|5.|the|end"},
    {"plan b. the end", "plan|b.|the|end"},
    {"see fig. 5. then go", "see|fig|.|5.|then|go"},
    {"\xE2\x80\x9Csmart\xE2\x80\x9D \xE2\x80\x98quotes\xE2\x80\x99 and \xC2\xABothers\xC2\xBB",
     "\xE2\x80\x9C|smart|\xE2\x80\x9D|\xE2\x80\x98|quotes|\xE2\x80\x99|and|\xC2\xAB|others|"
     "\xC2\xBB"},
    {"the man said it\xE2\x80\x99s ok", "the|man|said|it|\xE2\x80\x99|s|ok"},
    {"rock 'n' roll", "rock|'n|'|roll"},
    {"a 'b c", "a|'|b|c"},
    {"..", ".."},
    {"a..b", "a|..|b"},
    {"cats . dogs .", "cats|.|dogs|."},
    {"end.\"", "end|.|''"},
    {"end.) more", "end|.|)|more"},
    {"a dog.", "a|dog|."},
    {"  spaced   out  ", "spaced|out"},
    {"u.s. flag", "u.s.|flag"},
    {"semi-co. here", "semi-co.|here"},
    {"a/b and/or", "a/b|and/or"},
    {"caf\xC3\xA9 \xC3\xBCn\xC3\xAF"
     "code \xC3\xA0 la carte.",
     "caf\xC3\xA9|\xC3\xBCn\xC3\xAF"
     "code|\xC3\xA0|la|carte|."},
    {"3.5 inches, 7.", "3.5|inches|,|7|."},
    {"do n't", "do|n't"},
    {"can't won't shouldn't've", "ca|n't|wo|n't|shouldn't|'ve"},
    {":-)", ":|-|)"},
    {"a;b:c,d", "a|;|b|:|c|,|d"},
    {"?!", "?|!"},
};

static pnb_status put_word(void *user, const char *word, size_t n, pnb_error *err)
{
    pnb__buf *b = user;
    (void)err;
    if (b->size > 0)
        pnb__buf_putc(b, '|');
    pnb__buf_append(b, word, n);
    return PNB_OK;
}

static void words_are_nltks(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(VECTORS); i++) {
        pnb__buf b = {0};
        pnb_error err = PNB_ERROR_INIT;
        assert_ok(pnb__word_tokenize(VECTORS[i][0], strlen(VECTORS[i][0]), put_word, &b, &err),
                  &err);
        if (strcmp(b.data != NULL ? b.data : "", VECTORS[i][1]) != 0)
            fail_msg("\"%s\" gives \"%s\", not \"%s\"", VECTORS[i][0], b.data, VECTORS[i][1]);
        pnb__buf_reset(&b);
    }
}

static void nothing_has_no_words(void **state)
{
    (void)state;
    static const char *const empty[] = {"", " ", "\t\n  \xC2\xA0"};
    for (size_t i = 0; i < PNB_COUNT(empty); i++) {
        pnb__buf b = {0};
        assert_int_equal(pnb__word_tokenize(empty[i], strlen(empty[i]), put_word, &b, NULL),
                         PNB_OK);
        assert_int_equal(b.size, 0);
        pnb__buf_reset(&b);
    }
}

static pnb_status refuse_word(void *user, const char *word, size_t n, pnb_error *err)
{
    (void)word;
    (void)n;
    ++*(int *)user;
    return pnb__fail(err, PNB_LIMIT, "no more");
}

/* What the taker of a word says ends the reading. */
static void a_refusal_ends_it(void **state)
{
    pnb_error err = PNB_ERROR_INIT;
    int n_calls = 0;
    (void)state;
    assert_failed(pnb__word_tokenize("a b. c", 6, refuse_word, &n_calls, &err), &err, PNB_LIMIT,
                  "no more");
    assert_int_equal(n_calls, 1);
}

/* As the pre_tokenizer of a file: behind the normaliser, and no text is searched for special
 * tokens. */
static void in_a_tokenizer(void **state)
{
    (void)state;
    pnb_tokenizer *tok = parse_one(
        "{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true,\"normalized\":false}],"
        "\"normalizer\":{\"type\":\"Lowercase\"},"
        "\"pre_tokenizer\":{\"type\":\"NltkWordTokenize\"},"
        "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"<s>\":1,"
        "\"<\":2,\"s\":3,\">\":4,\"is\":5,\"n't\":6,\".\":7}}}");
    expect_ids(tok, "ISN'T <s>.", (const int32_t[]){5, 6, 2, 3, 4, 7}, 6);
    pnb_tokenizer_free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_nltks),
        cmocka_unit_test(nothing_has_no_words),
        cmocka_unit_test(a_refusal_ends_it),
        cmocka_unit_test(in_a_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
