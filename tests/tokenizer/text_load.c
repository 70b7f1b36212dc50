/* Parts of tokenizer.json one by one: normalisers, cuts, templates, and the files beside it that
 * name the special tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "tokenizer/text.h"

typedef struct joined {
    pnb__buf text;
} joined;

static pnb_status join_word(void *user, const char *word, size_t n, pnb_error *err)
{
    joined *j = user;
    (void)err;
    pnb__buf_putc(&j->text, '|');
    pnb__buf_append(&j->text, word, n);
    return PNB_OK;
}

/* Words that a file with this normalizer and pre_tokenizer makes of a text, each after a '|'. */
static void expect_words(const char *normalizer, const char *splitter, const char *text,
                         const char *want)
{
    pnb__buf json = {0};
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    joined j = {{0}};
    pnb__sink sink = {join_word, NULL, &j};
    pnb__buf_printf(&json,
                    "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\",\"vocab\":"
                    "{},\"merges\":[]}}",
                    normalizer, splitter);
    if (pnb_tokenizer_parse(&tok, json.data, json.size, &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(pnb__tok_words(tok, text, strlen(text), &sink, NULL), PNB_OK);
    if (strcmp(j.text.data != NULL ? j.text.data : "", want) != 0)
        fail_msg("%s %s \"%s\": \"%s\", want \"%s\"", normalizer, splitter, text, j.text.data,
                 want);
    pnb__buf_reset(&j.text);
    pnb__buf_reset(&json);
    pnb_tokenizer_free(tok);
}

#define REPLACE(pattern, content)                                                                  \
    "{\"type\":\"Replace\",\"pattern\":" pattern ",\"content\":\"" content "\"}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

/* Gemma: spaces are replaced, then a Split at spaces finds none. */
static void split_at_replaced_spaces(void **state)
{
    (void)state;
    static const char split[] = "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":"
                                "\"MergedWithPrevious\",\"invert\":false}";
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    pnb__buf json = {0};
    expect_words(REPLACE("{\"String\":\" \"}", "\xE2\x96\x81"), split, "a b",
                 "|a\xE2\x96\x81"
                 "b");
    pnb__buf_printf(&json, "{\"pre_tokenizer\":%s,\"model\":{\"vocab\":{},\"merges\":[]}}", split);
    assert_int_equal(pnb_tokenizer_parse(&tok, json.data, json.size, &err), PNB_UNSUPPORTED);
    pnb__buf_reset(&json);
}

static void normalizers_work(void **state)
{
    (void)state;
    expect_words(REPLACE("{\"Regex\":\"\\\\A +\"}", ""), "null", "  a  b  ", "|a  b  ");
    expect_words(REPLACE("{\"Regex\":\" +\\\\z\"}", ""), "null", "  a  b  ", "|  a  b");
    expect_words("{\"type\":\"NFC\"}", "null",
                 "e\xCC\x81 q\xCC\x81\xCC\xA3 \xE1\x84\x80\xE1\x85\xA1",
                 "|\xC3\xA9 q\xCC\xA3\xCC\x81 \xEA\xB0\x80");
    expect_words("null", "null", " A b", "| A b");
    expect_words("{\"type\":\"Lowercase\"}", "null", "\xC3\x84 \xCE\xA3", "|\xC3\xA4 \xCF\x83");
    expect_words("{\"type\":\"NFC\"}", "null", "e\xCC\x81", "|\xC3\xA9");
    expect_words("{\"type\":\"NFD\"}", "null", "\xC3\xA9", "|e\xCC\x81");
    expect_words("{\"type\":\"NFKC\"}", "null", "\xEF\xAC\x81 \xEF\xBC\xA1", "|fi A");
    expect_words("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":"
                 "\"StripAccents\"}]}",
                 "null", "caf\xC3\xA9", "|cafe");
    expect_words("{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}", "null",
                 " a \xE3\x80\x80", "| a");
    expect_words("{\"type\":\"Strip\"}", "null", "\xE3\x80\x80\ta b ", "|a b");
    expect_words("{\"type\":\"Prepend\",\"prepend\":\"x\"}", "null", "a", "|xa");
    expect_words(REPLACE("{\"Regex\":\"\\\\s+\"}", " "), "null", "a\t\xC2\xA0 b", "|a b");
    expect_words(REPLACE("{\"Regex\":\" {2,}\"}", "_"), "null", "a b  c   d", "|a b_c_d");
    expect_words(REPLACE("{\"Regex\":\"[a-c\\\\]]\"}", ""), "null", "xaby]z", "|xyz");
    expect_words(REPLACE("{\"String\":\"ab\"}", "c"), "null", "aabb", "|acb");
}

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

/* Every byte has its own letter and comes back from it. */
static void byte_letters_are_a_bijection(void **state)
{
    (void)state;
    bool seen[0x144] = {false};
    for (int b = 0; b < 256; b++) {
        uint32_t c = pnb__byte_char((unsigned char)b);
        assert_true(c < 0x144 && !seen[c]);
        seen[c] = true;
        assert_int_equal(pnb__char_byte(c), b);
    }
    assert_int_equal(pnb__byte_char(' '), 0x120);
    assert_int_equal(pnb__byte_char('\n'), 0x10A);
    assert_int_equal(pnb__byte_char(0xAD), 0x143);
    assert_int_equal(pnb__char_byte(' '), -1);
    assert_int_equal(pnb__char_byte(0x144), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_at_replaced_spaces), cmocka_unit_test(normalizers_work),
        cmocka_unit_test(cuts_work), cmocka_unit_test(files_beside_it_name_the_special_tokens),
        cmocka_unit_test(byte_letters_are_a_bijection)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
