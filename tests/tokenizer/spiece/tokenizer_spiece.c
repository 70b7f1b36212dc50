/* spiece.model as a tokenizer, against the sentencepiece library: user-defined pieces, suffixes,
 * types, and what is saved of it. The ids here that no golden case holds were computed with that
 * library. */
#include "tests/tokenizer/support.h"

static void saved_spiece_reads_back(void **state)
{
    scratch *s = *state;
    static const char *const names[] = {"sp_unigram400", "sp_unigram_identity",
                                        "sp_bpe_bytefallback"};
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char path[512], strings[512];
        snprintf(path, sizeof path, GOLDEN "%s/tokenizer.model", names[i]);
        snprintf(strings, sizeof strings, GOLDEN "%s/strings.json", names[i]);
        pnb_tokenizer *tok = open_one(path);
        assert_int_equal(pnb_tokenizer_pad_id(tok), 1);
        assert_int_equal(pnb_tokenizer_eos_id(tok), 1);
        assert_int_equal(pnb_tokenizer_unk_id(tok), 2);
        assert_int_equal(pnb_tokenizer_save(tok, scratch_path(s, "tokenizer.json"), NULL), PNB_OK);
        pnb_tokenizer *again = open_one(s->dir);
        assert_int_equal(pnb_tokenizer_vocab_size(again), pnb_tokenizer_vocab_size(tok));
        assert_int_equal(pnb_tokenizer_pad_id(again), 1);
        expect_agree(tok, again, strings);
        pnb_tokenizer_free(tok);
        pnb_tokenizer_free(again);
    }
}

static void user_defined_pieces_stay_whole(void **state)
{
    (void)state;
    pnb_tokenizer *tok = open_one(CORPUS "spiece/user_defined.model");
    expect_ids(tok, "the dog ran <sep>fast", IDS(18, 14, 8, 6, 4, 17, 7, 9, 6, 3, 24, 7, 16));
    expect_ids(tok,
               "  two   dogs\xE2\x96\x81\xE2\x96\x81"
               "and a\xE2\x98\x83\xE2\x98\x83"
               "cat </s>",
               IDS(18, 23, 15, 6, 4, 11, 5, 7, 9, 13, 10, 2, 12, 7, 19, 6, 2, 11, 2));
    expect_ids(tok, "dogdog", IDS(6, 4, 4));
    expect_ids(tok,
               "a \xE2\x96\x81"
               " ",
               IDS(10));
    pnb_tokenizer_free(tok);
}

static void whitespace_as_suffix(void **state)
{
    scratch *s = *state;
    pnb_error err = PNB_ERROR_INIT;
    pnb_tokenizer *tok = open_one(CORPUS "spiece/suffix.model");
    expect_ids(tok, "the dog ran <sep>fast", IDS(33, 4, 45, 51, 11, 45, 3, 35));
    expect_ids(tok,
               "  two   dogs\xE2\x96\x81\xE2\x96\x81"
               "and a\xE2\x98\x83\xE2\x98\x83"
               "cat </s>",
               IDS(34, 4, 48, 5, 30, 46, 2, 31, 2, 48, 2, 45));
    expect_ids(tok, "dogdog", IDS(4, 4, 45));
    expect_ids(tok,
               "a \xE2\x96\x81"
               " ",
               IDS(6));
    assert_failed(pnb_tokenizer_save(tok, scratch_path(s, "tokenizer.json"), &err), &err,
                  PNB_UNSUPPORTED, "treat_whitespace_as_suffix");
    pnb_tokenizer_free(tok);
}

static void expect_fault(pnb__buf *file, pnb_status want, const char *says)
{
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__tok_from_spiece(&tok, file->data, file->size, "x.model", NULL, &err), &err,
                  want, says);
    assert_non_null(strstr(err.text, "x.model"));
    assert_null(tok);
    pnb__buf_reset(file);
}

static void faults_of_the_whole_are_named(void **state)
{
    (void)state;
    pnb__buf b = {0};
    for (uint64_t type = 1; type <= 2; type++) {
        put_piece(&b, "<unk>", 0, 2);
        put_piece(&b, "a", -1, 1);
        put_piece(&b, "a", -2, 1);
        put_setting(&b, 2, 3, type);
        expect_fault(&b, PNB_FORMAT, type == 1 ? "two ids" : "differ");
    }
    put_piece(&b, "<unk>", 0, 2);
    pnb__buf map = {0};
    put_bytes(&map, 2, "\xFF\xFF\xFF\xFF....", 8);
    put_bytes(&b, 3, map.data, map.size);
    pnb__buf_reset(&map);
    expect_fault(&b, PNB_FORMAT, "charsmap");
}

/* Control and byte pieces are no text, unused ones are not chosen, bytes stand for the unknown. */
static void piece_types_are_kept(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "</s>", 0, 3);
    put_piece(&b, "ab", -1, 5);
    put_piece(&b, "a", -2, 1);
    put_piece(&b, "b", -2, 1);
    put_piece(&b, "<0x62>", 0, 6);
    put_setting(&b, 2, 42, 1);
    put_setting(&b, 3, 3, 0);
    assert_ok(pnb__tok_from_spiece(&tok, b.data, b.size, "x.model", NULL, &err), &err);
    expect_ids(tok, "ab", IDS(3, 4));
    expect_ids(tok, "</s>", IDS(0));
    expect_ids(tok, "<0x62>", IDS(0)); /* six unknown characters are one token */
    assert_int_equal(pnb_tokenizer_eos_id(tok), 1);
    pnb_tokenizer_free(tok);
    pnb__buf_reset(&b);
}

/* Equal scores: SentencePiece joins the first pair of a text, whatever the order of the pieces. */
static void places_decide_between_equal_scores(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "a", -3, 1);
    put_piece(&b, "b", -3, 1);
    put_piece(&b, "ba", -1, 1);
    put_piece(&b, "ab", -1, 1);
    put_setting(&b, 2, 3, 2);
    put_setting(&b, 3, 3, 0);
    assert_ok(pnb__tok_from_spiece(&tok, b.data, b.size, "x.model", NULL, &err), &err);
    expect_ids(tok, "aba", IDS(4, 1));
    expect_ids(tok, "bab", IDS(3, 2));
    pnb_tokenizer_free(tok);
    pnb__buf_reset(&b);
}

#ifdef PNB_FAULTS
static pnb_status open_spiece(scratch *s, pnb_error *err)
{
    pnb_tokenizer *tok;
    (void)s;
    pnb_status status = pnb_tokenizer_load(&tok, CORPUS "spiece/user_defined.model", err);
    pnb_tokenizer_free(tok);
    return status;
}

static void out_of_memory(void **state)
{
    fail_every_allocation(open_spiece, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_spiece_reads_back),
        cmocka_unit_test(user_defined_pieces_stay_whole),
        cmocka_unit_test(whitespace_as_suffix),
        cmocka_unit_test(faults_of_the_whole_are_named),
        cmocka_unit_test(piece_types_are_kept),
        cmocka_unit_test(places_decide_between_equal_scores),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
