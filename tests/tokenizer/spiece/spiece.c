/* A spiece.model taken apart: pieces, options and their defaults, what is passed over, and what is
 * refused. */
#include <math.h>

#include "tests/tokenizer/support.h"
#include "tokenizer/spiece/spiece.h"

static void expect_fault(pnb__buf *file, pnb_status want, const char *says)
{
    pnb__spiece_file f;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb__spiece_read(&f, file->data, file->size, &err), &err, want, says);
    assert_null(f.pieces);
    pnb__buf_reset(file);
}

static void spiece_faults_are_named(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb__buf_puts(&b, "");
    expect_fault(&b, PNB_FORMAT, "no unknown piece");
    pnb__buf_puts(&b, "{\"model\": 3}");
    expect_fault(&b, PNB_FORMAT, "not a SentencePiece model");
    pnb__buf_append(&b, "\x0A\xFF\xFF\xFF\xFF\x0F", 6);
    expect_fault(&b, PNB_FORMAT, "cut short");
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "<unk2>", 0, 2);
    expect_fault(&b, PNB_FORMAT, "both the unknown");
    put_piece(&b, "", 0, 1);
    expect_fault(&b, PNB_FORMAT, "piece 0 is empty");
    put_piece(&b, "a\xFF", 0, 1);
    expect_fault(&b, PNB_FORMAT, "UTF-8");
    put_piece(&b, "a", NAN, 1);
    expect_fault(&b, PNB_FORMAT, "score");
    put_piece(&b, "a", 0, 9);
    expect_fault(&b, PNB_FORMAT, "type");
    put_piece(&b, "<unk>", 0, 2);
    put_setting(&b, 2, 3, 3);
    expect_fault(&b, PNB_UNSUPPORTED, "model type 3");
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "ab", 0, 5);
    put_setting(&b, 2, 3, 2);
    expect_fault(&b, PNB_UNSUPPORTED, "unused");
}

static void read_file(pnb__spiece_file *f, pnb__buf *b)
{
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__spiece_read(f, b->data, b->size, &err), &err);
}

/* Of sentencepiece_model.proto. */
static void defaults(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb__spiece_file f;
    put_piece(&b, "<unk>", 0.5f, 2);
    put_piece(&b, "<s>", 0, 3);
    put_piece(&b, "</s>", 0, 3);
    put_piece(&b, "\xE2\x96\x81", -2.25f, 1);
    put_bytes(&b, 1, "\x0A\x01z", 3); /* no score, no type */
    read_file(&f, &b);
    assert_true(f.n == 5 && f.model == PNB__SPIECE_UNIGRAM);
    assert_true(f.add_dummy_prefix && f.remove_extra_whitespaces && f.escape_whitespaces);
    assert_true(!f.byte_fallback && !f.whitespace_is_suffix && f.n_charsmap == 0);
    assert_true(f.unk_id == 0 && f.bos_id == 1 && f.eos_id == 2 && f.pad_id == -1);
    assert_true(f.pieces[3].n == 3 && f.pieces[3].score == -2.25f &&
                f.pieces[3].type == PNB__PIECE_NORMAL);
    assert_memory_equal(f.pieces[3].text, "\xE2\x96\x81", 3);
    assert_true(f.pieces[4].n == 1 && f.pieces[4].score == 0 &&
                f.pieces[4].type == PNB__PIECE_NORMAL);
    pnb__spiece_reset(&f);
    pnb__buf_reset(&b);
}

static void every_option(void **state)
{
    (void)state;
    static const struct {
        unsigned section, number;
        uint64_t value;
    } settings[] = {{2, 3, 2},          {2, 24, 1}, {2, 35, 1}, {2, 41, 4}, {2, 42, 3},
                    {2, 43, 1},         {3, 3, 0},  {3, 4, 0},  {3, 5, 0},  {2, 40, 3},
                    {2, 4, 99},         {9, 1, 1},  {2, 41, 9}, /* of no piece */
                    {2, 43, UINT64_MAX}};                       /* -1 */
    pnb__buf b = {0};
    pnb__spiece_file f;
    put_piece(&b, "a", 0, 1);
    put_piece(&b, "<pad>", 0, 3);
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "</s>", 0, 3);
    put_piece(&b, "<s>", 0, 3);
    for (size_t i = 0; i < 12; i++)
        put_setting(&b, settings[i].section, settings[i].number, settings[i].value);
    put_bytes(&b, 3,
              "\x12\x03"
              "map",
              5);
    put_varint(&b, 7 << 3); /* a number at the top, a field of eight bytes: passed over */
    put_varint(&b, 300);
    put_varint(&b, 8 << 3 | 1);
    pnb__buf_append(&b, "12345678", 8);
    read_file(&f, &b);
    assert_true(f.model == PNB__SPIECE_BPE && f.whitespace_is_suffix && f.byte_fallback);
    assert_false(f.add_dummy_prefix || f.remove_extra_whitespaces || f.escape_whitespaces);
    assert_true(f.bos_id == 4 && f.eos_id == 3 && f.pad_id == 1);
    assert_int_equal(f.unk_id, 2); /* its type says so, not trainer_spec */
    assert_true(f.n_charsmap == 3 && memcmp(f.charsmap, "map", 3) == 0);
    pnb__spiece_reset(&f);
    for (size_t i = 12; i < 14; i++)
        put_setting(&b, settings[i].section, settings[i].number, settings[i].value);
    put_setting(&b, 2, 42, 0); /* "a" is no control piece */
    read_file(&f, &b);
    assert_true(f.bos_id == -1 && f.pad_id == -1 && f.eos_id == -1);
    pnb__spiece_reset(&f);
    pnb__buf_reset(&b);
}

/* Cut at any byte it is damaged, or whole up to the pieces that are left. */
static void cut_anywhere(void **state)
{
    (void)state;
    pnb__buf b = {0};
    size_t n_whole = 0;
    put_piece(&b, "<unk>", 0, 2);
    put_piece(&b, "ab", 0, 1);
    put_setting(&b, 2, 3, 1);
    for (size_t n = 0; n < b.size; n++) {
        char *part = malloc(n + 1); /* so that ASan sees what is read behind it */
        char *end = realloc(part, n > 0 ? n : 1);
        memcpy(end, b.data, n);
        pnb__spiece_file f;
        pnb_error err = PNB_ERROR_INIT;
        pnb_status status = pnb__spiece_read(&f, end, n, &err);
        assert_true(status == PNB_OK || status == PNB_FORMAT);
        n_whole += status == PNB_OK;
        pnb__spiece_reset(&f);
        free(end);
    }
    assert_int_equal(n_whole, 2); /* behind the first piece and behind the second */
    pnb__buf_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spiece_faults_are_named),
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_option),
        cmocka_unit_test(cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
