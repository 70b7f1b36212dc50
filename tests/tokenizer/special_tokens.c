/* Which ids pad, end and mask: what the files say, in whose order, and the rule where they are
 * silent. */
#include <unistd.h>

#include "tests/tokenizer/support.h"

static void put(const char *dir, const char *name, const char *text)
{
    char *path = pnb__path_join(dir, name);
    assert_int_equal(pnb__write_file(path, text, strlen(text), NULL), PNB_OK);
    pnb__free(path);
}

static void drop(const char *dir, const char *name)
{
    char *path = pnb__path_join(dir, name);
    unlink(path);
    pnb__free(path);
}

static void files_beside_it_name_the_special_tokens(void **state)
{
    (void)state;
    char dir[] = "/tmp/pnb_special_XXXXXX";
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_non_null(mkdtemp(dir));
    put(dir, "tokenizer.json",
        "{\"padding\":{\"pad_id\":2},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\","
        "\"vocab\":{\"<unk>\":0,\"</s>\":1,\"<pad>\":2,\"x\":3,\"m\":7}}}");
    assert_int_equal(pnb_tokenizer_load(&tok, dir, &err), PNB_OK);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 2);
    assert_int_equal(pnb_tokenizer_eos_id(tok), 1);
    assert_int_equal(pnb_tokenizer_mask_id(tok), -1);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 8); /* ids may have holes */
    assert_null(pnb_tokenizer_piece(tok, 5));
    pnb_tokenizer_free(tok);
    put(dir, "special_tokens_map.json", "{\"pad_token\":{\"content\":\"</s>\"}}");
    put(dir, "tokenizer_config.json", "{\"pad_token\":\"x\",\"mask_token\":\"m\"}");
    assert_int_equal(pnb_tokenizer_load(&tok, dir, &err), PNB_OK);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 1);
    assert_int_equal(pnb_tokenizer_mask_id(tok), 7);
    assert_true(pnb_tokenizer_is_special(tok, 7));
    assert_false(pnb_tokenizer_is_special(tok, 0));
    pnb_tokenizer_free(tok);
    put(dir, "tokenizer_config.json", "{");
    assert_int_equal(pnb_tokenizer_load(&tok, dir, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "tokenizer_config.json"));
    drop(dir, "tokenizer.json");
    drop(dir, "special_tokens_map.json");
    drop(dir, "tokenizer_config.json");
    rmdir(dir);
}

#define VOCAB "{\"u\":0,\"</s>\":1,\"[PAD]\":2,\"<s>\":3,\"m\":4}"

/* Where no file says it. */
static void rules_of_the_vocabulary(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int pad;
        const char *source;
    } cases[] = {
        {WORD(VOCAB), 2, "the usual name of a pad token"},
        {BPE(VOCAB, "[]"), 1, PNB__PAD_AS_SIGLIP},
        {UNIGRAM("[[\"u\",0],[\"<pad>\",0],[\"</s>\",0]]"), 2, PNB__PAD_AS_SIGLIP},
        {WORD("{\"u\":0,\"</s>\":1}"), 1, "no pad token: the end token"},
        {WORD("{\"u\":0}"), -1, "no pad or end token: rows are filled with 0"},
        {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"end_of_word_suffix\":\"</w>\","
         "\"merges\":[],\"vocab\":{\"[PAD]\":1,\"<|endoftext|>\":0}}}",
         0, PNB__PAD_AS_CLIP},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_tokenizer *tok = parse_one(cases[i].json);
        const pnb_padding padding = pnb_tokenizer_padding(tok);
        assert_int_equal(padding.id, cases[i].pad);
        assert_string_equal(padding.source, cases[i].source);
        assert_true(padding.assumed);
        pnb_tokenizer_free(tok);
    }
}

typedef struct side_case {
    const char *map, *config; /* special_tokens_map.json, tokenizer_config.json; NULL: not there */
    pnb_status want;
    int pad;          /* when it is read */
    const char *says; /* of the padding, or of the error */
} side_case;

static void expect_side(scratch *s, const side_case *c)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    scratch_file(s, "tokenizer.json", WORD(VOCAB), strlen(WORD(VOCAB)));
    if (c->map != NULL)
        scratch_file(s, "special_tokens_map.json", c->map, strlen(c->map));
    if (c->config != NULL)
        scratch_file(s, "tokenizer_config.json", c->config, strlen(c->config));
    pnb_status status = pnb_tokenizer_load(&tok, s->dir, &err);
    if (c->want != PNB_OK) {
        assert_failed(status, &err, c->want, c->says);
        return;
    }
    assert_ok(status, &err);
    assert_int_equal(pnb_tokenizer_pad_id(tok), c->pad);
    assert_string_equal(pnb_tokenizer_padding(tok).source, c->says);
    pnb_tokenizer_free(tok);
}

static void files_are_followed_in_their_order(void **state)
{
    static const side_case cases[] = {
        {NULL, NULL, PNB_OK, 2, "the usual name of a pad token"},
        {"{\"pad_token\":null}", "{}", PNB_OK, 2, "the usual name of a pad token"},
        {"{\"pad_token\":\"m\"}", "{\"pad_token\":\"</s>\"}", PNB_OK, 4,
         "pad_token of special_tokens_map.json"},
        {"{\"pad_token\":\"m\"}",
         "{\"pad_token\":{\"content\":\"</s>\"},\"added_tokens_decoder\":{}}", PNB_OK, 1,
         "pad_token of tokenizer_config.json"},
        {"{\"eos_token\":\"m\"}", "{\"padding_side\":\"right\"}", PNB_OK, 2,
         "the usual name of a pad token"},
        {"{\"mask_token\":\"nowhere\"}", NULL, PNB_OK, 2, "the usual name of a pad token"},
        {"{\"pad_token\":\"nowhere\"}", NULL, PNB_FORMAT, 0,
         "special_tokens_map.json: pad_token \"nowhere\" is not in the vocabulary"},
        {NULL, "{\"eos_token\":\"nowhere\"}", PNB_FORMAT, 0,
         "tokenizer_config.json: eos_token \"nowhere\" is not in the vocabulary"},
        {"{\"pad_token\":7}", NULL, PNB_FORMAT, 0, "\"pad_token\" is neither text nor"},
        {NULL, "{\"padding_side\":\"left\"}", PNB_UNSUPPORTED, 0, "padding_side \"left\""},
        {NULL, "{\"truncation_side\":\"left\"}", PNB_UNSUPPORTED, 0, "truncation_side \"left\""},
        {NULL, "{\"padding_side\":3}", PNB_FORMAT, 0, "neither \"right\" nor \"left\""},
        {"[]", NULL, PNB_FORMAT, 0, "special_tokens_map.json: not a JSON object"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        expect_side(*state, &cases[i]);
}

/* [UNK] is text like other; the end, the mask and the template are not. */
static void special_ones_are_marked(void **state)
{
    (void)state;
    pnb_tokenizer *tok = parse_one("{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":"
                                   "true},{\"id\":1,\"content\":"
                                   "\"x\",\"special\":true}],\"model\":{\"unk_token\":\"[UNK]\","
                                   "\"vocab\":{\"[UNK]\":0,\"x\":1,"
                                   "\"</s>\":2,\"[MASK]\":3,\"a\":4,\"[CLS]\":5}}}");
    static const bool want[] = {false, true, true, true, false, false};
    for (int id = 0; id < 6; id++)
        assert_int_equal(pnb_tokenizer_is_special(tok, id), want[id]);
    assert_int_equal(pnb_tokenizer_bos_id(tok), 5);
    assert_int_equal(pnb_tokenizer_eos_id(tok), 2); /* by its name */
    assert_false(pnb_tokenizer_is_special(tok, -1) || pnb_tokenizer_is_special(tok, 6));
    pnb_tokenizer_free(tok);
}

/* The template has a word before names: first of what it puts in front, last of what it puts
 * behind. */
static void ends_of_the_template(void **state)
{
    (void)state;
    pnb_tokenizer *tok = parse_one("{\"post_processor\":{\"type\":\"TemplateProcessing\","
                                   "\"single\":[{\"SpecialToken\":{\"id\":\"s\"}},"
                                   "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"e\"}}"
                                   "],\"special_tokens\":{\"s\":{\"ids\":"
                                   "[3,2]},\"e\":{\"ids\":[2,4]}}},\"model\":{\"unk_token\":\"u\","
                                   "\"vocab\":{\"u\":0,\"</s>\":1,\"x\":2,"
                                   "\"y\":3,\"z\":4}}}");
    assert_int_equal(pnb_tokenizer_bos_id(tok), 3);
    assert_int_equal(pnb_tokenizer_eos_id(tok), 4);
    static const bool want[] = {false, false, true, true, true};
    for (int id = 0; id < 5; id++)
        assert_int_equal(pnb_tokenizer_is_special(tok, id), want[id]);
    pnb_tokenizer_free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_beside_it_name_the_special_tokens),
        cmocka_unit_test(rules_of_the_vocabulary),
        cmocka_unit_test(files_are_followed_in_their_order),
        cmocka_unit_test(special_ones_are_marked),
        cmocka_unit_test(ends_of_the_template),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
