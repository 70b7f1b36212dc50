/* The small files beside a vocabulary: added tokens in both forms, names of start and end, flags.
 */
#include "tests/tokenizer/support.h"

static void side_files_add_ids_with_gaps(void **state)
{
    scratch *s = *state;
    pnb__buf b = {0};
    pnb_error err = PNB_ERROR_INIT;
    put_piece(&b, "<pad>", 0, 3);
    put_piece(&b, "</s>", 0, 3);
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b,
              "\xE2\x96\x81"
              "a",
              -1, 1);
    put_setting(&b, 2, 42, 1);
    scratch_clear(s);
    scratch_file(s, "spiece.model", b.data, b.size);
    pnb_tokenizer *tok = open_one(s->dir);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 4);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 1); /* as SigLIP pads */
    pnb_tokenizer_free(tok);
    static const char config[] =
        "{\"pad_token\": \"<pad>\", \"added_tokens_decoder\": {\"9\": {\"content\": "
        "\"<extra>\", \"special\": true}, \"1\": {\"content\": \"</s>\", \"special\": true}}}";
    scratch_file(s, "tokenizer_config.json", config, sizeof config - 1);
    scratch_file(s, "added_tokens.json", "{\"<more>\": 6}", 13);
    tok = open_one(s->dir);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 10);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 0);
    assert_null(pnb_tokenizer_piece(tok, 7));
    expect_ids(tok, "a</s> a<extra><more>", IDS(3, 1, 3, 9, 6));
    pnb_tokenizer_free(tok);
    scratch_file(s, "added_tokens.json", "{\"<more>\": 3}", 13);
    assert_failed(pnb_tokenizer_load(&tok, s->dir, &err), &err, PNB_FORMAT, "both have id 3");
    scratch_file(s, "added_tokens.json", "{\"<more>\": \"x\"}", 15);
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(pnb_tokenizer_load(&tok, s->dir, &err), &err, PNB_FORMAT, "<more>");
    pnb__buf_reset(&b);
}

static void put_side(scratch *s, const char *map, const char *config, const char *list)
{
    const char *const names[] = {"special_tokens_map.json", "tokenizer_config.json",
                                 "added_tokens.json"};
    const char *const texts[] = {map, config, list};
    scratch_clear(s);
    for (size_t i = 0; i < 3; i++)
        if (texts[i] != NULL)
            scratch_file(s, names[i], texts[i], strlen(texts[i]));
}

static void names_and_flags(void **state)
{
    scratch *s = *state;
    pnb__tok_side side;
    pnb_error err = PNB_ERROR_INIT;
    put_side(s, "{\"bos_token\":{\"content\":\"<a>\"},\"eos_token\":null}",
             "{\"bos_token\":\"<b>\",\"eos_token\":\"<c>\",\"add_bos_token\":true,\"add_eos_"
             "token\":false,"
             "\"add_prefix_space\":true}",
             NULL);
    assert_ok(pnb__tok_read_side(&side, s->dir, &err), &err);
    assert_string_equal(side.bos, "<a>"); /* what was found first stays */
    assert_string_equal(side.eos, "<c>");
    assert_true(side.add_bos == 1 && side.add_eos == 0 && side.add_prefix_space);
    assert_int_equal(json_array_size(side.added), 0);
    pnb__tok_side_reset(&side);
    put_side(s, NULL, "{\"add_bos_token\":\"yes\"}", NULL);
    assert_ok(pnb__tok_read_side(&side, s->dir, &err), &err);
    assert_true(side.bos == NULL && side.eos == NULL && side.add_bos == -1 && side.add_eos == -1 &&
                !side.add_prefix_space);
    pnb__tok_side_reset(&side);
    assert_ok(pnb__tok_read_side(&side, NULL, &err), &err); /* nothing is beside it */
    assert_int_equal(json_array_size(side.added), 0);
    pnb__tok_side_reset(&side);
}

/* tokenizer_config.json first, with all that it says of a token; the older list adds what is not
 * there. */
static void added_tokens_of_both_forms(void **state)
{
    scratch *s = *state;
    pnb__tok_side side;
    pnb_error err = PNB_ERROR_INIT;
    put_side(s, NULL, "{\"added_tokens_decoder\":{\"9\":{\"content\":\"<x>\",\"lstrip\":true}}}",
             "{\"<y>\":9,\"<z>\":11}");
    assert_ok(pnb__tok_read_side(&side, s->dir, &err), &err);
    assert_int_equal(json_array_size(side.added), 2);
    const json_t *x = json_array_get(side.added, 0), *z = json_array_get(side.added, 1);
    assert_int_equal(json_integer_value(json_object_get(x, "id")), 9);
    assert_string_equal(json_string_value(json_object_get(x, "content")), "<x>");
    assert_true(json_is_true(json_object_get(x, "lstrip")));
    assert_int_equal(json_integer_value(json_object_get(z, "id")), 11);
    assert_string_equal(json_string_value(json_object_get(z, "content")), "<z>");
    assert_true(json_is_false(json_object_get(z, "normalized")) &&
                json_is_false(json_object_get(z, "special")));
    pnb__tok_side_reset(&side);
}

static void faults_are_named(void **state)
{
    scratch *s = *state;
    static const struct {
        const char *config, *list, *says;
    } bad[] = {
        {"{\"added_tokens_decoder\":{\"x\":{\"content\":\"a\"}}}", NULL,
         "added_tokens_decoder \"x\""},
        {"{\"added_tokens_decoder\":{\"\":{\"content\":\"a\"}}}", NULL, "want an id and a content"},
        {"{\"added_tokens_decoder\":{\"-1\":{\"content\":\"a\"}}}", NULL, "\"-1\""},
        {"{\"added_tokens_decoder\":{\"4194304\":{\"content\":\"a\"}}}", NULL, "\"4194304\""},
        {"{\"added_tokens_decoder\":{\"3\":{}}}", NULL, "\"3\""},
        {NULL, "{\"<y>\":\"3\"}", "added_tokens.json: \"<y>\" has no id"},
        {"{", NULL, "tokenizer_config.json"},
    };
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        pnb__tok_side side;
        pnb_error err = PNB_ERROR_INIT;
        put_side(s, "{\"bos_token\":\"<a>\"}", bad[i].config, bad[i].list);
        assert_failed(pnb__tok_read_side(&side, s->dir, &err), &err, PNB_FORMAT, bad[i].says);
        assert_true(side.bos == NULL && side.added == NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(side_files_add_ids_with_gaps),
        cmocka_unit_test(names_and_flags),
        cmocka_unit_test(added_tokens_of_both_forms),
        cmocka_unit_test(faults_are_named),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
