/* Two tokenizers are one, or are told apart by size, by a piece, or by what they make of a text. */
#include "tokenizer/tokenizer_compare.h"

#include "tests/tokenizer/support.h"

static const char *const texts[] = {"a red star", "two blue circles", "a star and a circle"};
static const char *const others[] = {"a red start", "two blue squares", "a star and a square"};

static pnb_tokenizer *trained(const char *const *on, pnb_tokenizer_kind kind, int size,
                              pnb_clean clean)
{
    pnb_tokenizer_opts opts = pnb_tokenizer_opts_default();
    pnb_tokenizer *tok = NULL;
    opts.kind = kind;
    opts.vocab_size = size;
    opts.clean = clean;
    assert_int_equal(pnb_tokenizer_train(&tok, on, PNB_COUNT(texts), &opts, NULL), PNB_OK);
    return tok;
}

static void expect(const pnb_tokenizer *a, pnb_tokenizer *b, const char *wanted)
{
    char why[PNB__TOKENIZER_WHY];
    assert_int_equal(pnb__tokenizer_compare(a, b, why, NULL), PNB_OK);
    if (wanted[0] == '\0' ? why[0] != '\0' : strstr(why, wanted) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", why, wanted);
    pnb_tokenizer_free(b);
}

static void test_differences(void **state)
{
    enum { SIZE = 268 };
    pnb_tokenizer *bpe = trained(texts, PNB_TOKENIZER_BYTE_BPE, SIZE, PNB_CLEAN_CANONICALIZE);
    (void)state;
    expect(bpe, trained(texts, PNB_TOKENIZER_BYTE_BPE, SIZE, PNB_CLEAN_CANONICALIZE), "");
    expect(bpe, trained(texts, PNB_TOKENIZER_BYTE_BPE, SIZE - 5, PNB_CLEAN_CANONICALIZE),
           "ids there, 2");
    expect(bpe, trained(others, PNB_TOKENIZER_BYTE_BPE, SIZE, PNB_CLEAN_CANONICALIZE), " is \"");
    expect(bpe, trained(texts, PNB_TOKENIZER_BYTE_BPE, SIZE, PNB_CLEAN_NONE),
           "\"A photo of TWO cats");
    pnb_tokenizer_free(bpe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
