/* Training: what the files hold, that the result does not depend on the order of captions, that BPE
 * merges equal a plain recount after every merge, and encoding, decoding and masking with the
 * outcome. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/tokenizer.h"

static const char *const captions[] = {
    "a small red star left of a large blue ring",
    "A small blue star above a red ring.",
    "Stars and rings, and stars",
    "two GREEN squares below a caf\xC3\xA9",
    "it's a dog's ball; it's red",
    "snake_case and jack-o'-lantern",
};
enum { N_CAPTIONS = sizeof captions / sizeof captions[0] };

static pnb_tokenizer *train(pnb_tokenizer_kind kind, int vocab_size, int min_count, pnb_clean clean)
{
    pnb_tokenizer_opts opts = {kind, vocab_size, min_count, clean};
    pnb_tokenizer *tok;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_tokenizer_train(&tok, captions, N_CAPTIONS, &opts, &err) != PNB_OK)
        fail_msg("%s", err.text);
    return tok;
}

static void expect_ids(const pnb_tokenizer *tok, const char *text, int length, const int32_t *want,
                       pnb_token_count want_count)
{
    int32_t ids[64];
    pnb_token_count count;
    assert_int_equal(pnb_tokenizer_encode(tok, text, strlen(text), length, ids, &count, NULL),
                     PNB_OK);
    for (int i = 0; i < length; i++)
        if (ids[i] != want[i])
            fail_msg("\"%s\": id %d is %d, want %d", text, i, ids[i], want[i]);
    assert_int_equal(count.n_tokens, want_count.n_tokens);
    assert_int_equal(count.n_total, want_count.n_total);
    assert_int_equal(count.truncated, want_count.truncated);
}

static void words_are_ranked_by_count(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_WORD, 100, 1, PNB_CLEAN_CANONICALIZE);
    static const char *const first[] = {"[PAD]", "</s>", "[MASK]", "[UNK]", "a", "and", "red"};
    for (int i = 0; i < 7; i++)
        assert_string_equal(pnb_tokenizer_piece(tok, i), first[i]);
    assert_int_equal(pnb_tokenizer_pad_id(tok), 0);
    assert_int_equal(pnb_tokenizer_eos_id(tok), 1);
    assert_int_equal(pnb_tokenizer_mask_id(tok), 2);
    assert_int_equal(pnb_tokenizer_unk_id(tok), 3);
    assert_int_equal(pnb_tokenizer_bos_id(tok), -1);
    assert_true(pnb_tokenizer_find(tok, "jackolantern") > 3);
    assert_int_equal(pnb_tokenizer_find(tok, "snake_case"), -1);
    pnb_tokenizer_free(tok);
    tok = train(PNB_TOKENIZER_WORD, 100, 3, PNB_CLEAN_CANONICALIZE);
    assert_int_equal(pnb_tokenizer_find(tok, "ball"), -1);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 7); /* a, and, red are seen three times */
    pnb_tokenizer_free(tok);
    tok = train(PNB_TOKENIZER_WORD, 5, 1, PNB_CLEAN_NONE);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 5);
    assert_string_equal(pnb_tokenizer_piece(tok, 4), "a");
    pnb_tokenizer_free(tok);
}

static void rows_are_cut_and_padded(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_WORD, 7, 1, PNB_CLEAN_CANONICALIZE);
    expect_ids(tok, "A red, AND a", 8, (const int32_t[]){4, 6, 5, 4, 1, 0, 0, 0},
               (pnb_token_count){5, 5, false});
    expect_ids(tok, "a red zebra", 8, (const int32_t[]){4, 6, 3, 1, 0, 0, 0, 0},
               (pnb_token_count){4, 4, false});
    expect_ids(tok, "a a a a a", 4, (const int32_t[]){4, 4, 4, 1}, (pnb_token_count){4, 6, true});
    expect_ids(tok, "", 3, (const int32_t[]){1, 0, 0}, (pnb_token_count){1, 1, false});
    expect_ids(tok, "a", 1, (const int32_t[]){1}, (pnb_token_count){1, 2, true});
    expect_ids(tok, "a [MASK] red", 5, (const int32_t[]){4, 2, 6, 1, 0},
               (pnb_token_count){4, 4, false});
    int32_t id;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb_tokenizer_encode(tok, "a", 1, 0, &id, NULL, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "context length 0"));
    unsigned char mask[6];
    const int32_t row[] = {4, 3, 2, 1, 0, 99};
    assert_int_equal(pnb_tokenizer_text_mask(tok, row, 6, mask), 2);
    assert_memory_equal(mask, "\1\1\0\0\0\0", 6);
    assert_true(pnb_tokenizer_is_word_start(tok, 4));
    assert_false(pnb_tokenizer_is_word_start(tok, 2));
    char *text;
    assert_int_equal(pnb_tokenizer_decode(tok, row, 5, &text, NULL), PNB_OK);
    assert_string_equal(text, "a [UNK]");
    pnb_text_free(text);
    assert_int_equal(pnb_tokenizer_decode(tok, row, 6, &text, NULL), PNB_ARG);
    pnb_tokenizer_free(tok);
}

/* Any bytes come back from byte-level BPE, but for what is not UTF-8. */
static void bytes_survive_bpe(void **state)
{
    (void)state;
    pnb_tokenizer *tok = train(PNB_TOKENIZER_BYTE_BPE, 300, 2, PNB_CLEAN_NONE);
    assert_int_equal(pnb_tokenizer_unk_id(tok), -1);
    static const char *const texts[][2] = {
        {"a small red star", "a small red star"},
        {"it's  two   spaces\t\n and tabs ", "it's  two   spaces\t\n and tabs "},
        {"\xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 x",
         "\xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80 x"},
        {"bad \xFF\xC3", "bad \xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\x01\x7F \"quoted\\\"", "\x01\x7F \"quoted\\\""},
    };
    for (size_t i = 0; i < PNB_COUNT(texts); i++) {
        int32_t *ids;
        size_t n;
        char *back;
        assert_int_equal(
            pnb_tokenizer_encode_all(tok, texts[i][0], strlen(texts[i][0]), true, &ids, &n, NULL),
            PNB_OK);
        assert_int_equal(ids[n - 1], 1);
        assert_int_equal(pnb_tokenizer_decode(tok, ids, n, &back, NULL), PNB_OK);
        assert_string_equal(back, texts[i][1]);
        pnb_tokenizer_ids_free(ids);
        pnb_text_free(back);
    }
    int32_t a = pnb_tokenizer_find(tok, "\xC4\xA0"
                                        "a");
    assert_true(pnb_tokenizer_is_word_start(tok, a));
    assert_false(pnb_tokenizer_is_word_start(tok, pnb_tokenizer_find(tok, "a")));
    pnb_tokenizer_free(tok);
}

/* Plain reference: words of lower-case letters, recounted after every merge. */
typedef struct plain {
    char symbols[32][16][32];
    int n_symbols[32], count[32], n_words;
} plain;

static bool best_pair(const plain *p, char best[64])
{
    int best_count = 0;
    for (int w = 0; w < p->n_words; w++) {
        for (int i = 0; i + 1 < p->n_symbols[w]; i++) {
            int count = 0;
            for (int v = 0; v < p->n_words; v++)
                for (int k = 0; k + 1 < p->n_symbols[v]; k++)
                    if (strcmp(p->symbols[v][k], p->symbols[w][i]) == 0 &&
                        strcmp(p->symbols[v][k + 1], p->symbols[w][i + 1]) == 0)
                        count += p->count[v];
            char pair[72];
            snprintf(pair, sizeof pair, "%s\t%s", p->symbols[w][i], p->symbols[w][i + 1]);
            /* a tab sorts below every letter, so comparing the text compares left, then right */
            if (count > best_count || (count == best_count && strcmp(pair, best) < 0)) {
                best_count = count;
                strcpy(best, pair);
            }
        }
    }
    return best_count >= 2;
}

static void apply_pair(plain *p, const char *pair)
{
    char left[64], right[64];
    sscanf(pair, "%63[^\t]\t%63s", left, right);
    for (int w = 0; w < p->n_words; w++) {
        int kept = 0;
        for (int i = 0; i < p->n_symbols[w]; kept++) {
            bool joins = i + 1 < p->n_symbols[w] && strcmp(p->symbols[w][i], left) == 0 &&
                         strcmp(p->symbols[w][i + 1], right) == 0;
            char joined[64];
            snprintf(joined, sizeof joined, "%.30s%.30s", p->symbols[w][i],
                     joins ? p->symbols[w][i + 1] : "");
            i += joins ? 2 : 1;
            strcpy(p->symbols[w][kept], joined);
        }
        p->n_symbols[w] = kept;
    }
}

static void merges_equal_a_recount(void **state)
{
    (void)state;
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    for (int round = 0; round < 20; round++) {
        static plain p;
        char text[32][64];
        const char *lines[32];
        memset(&p, 0, sizeof p);
        p.n_words = 12;
        for (int w = 0; w < p.n_words; w++) {
            int n = 2 + (int)pnb__rng_below(&rng, 8);
            p.count[w] = 1;
            p.n_symbols[w] = n + 1;
            strcpy(p.symbols[w][0], " ");
            strcpy(text[w], " ");
            for (int i = 0; i < n; i++) {
                char c[2] = {(char)('a' + pnb__rng_below(&rng, 3)), 0};
                strcpy(p.symbols[w][i + 1], c);
                strcat(text[w], c);
            }
            lines[w] = text[w];
        }
        pnb_tokenizer_opts opts = {PNB_TOKENIZER_BYTE_BPE, 1000, 2, PNB_CLEAN_NONE};
        pnb_tokenizer *tok;
        assert_int_equal(pnb_tokenizer_train(&tok, lines, (size_t)p.n_words, &opts, NULL), PNB_OK);
        int next = 3 + 256;
        for (char pair[64] = ""; best_pair(&p, pair); pair[0] = '\0') {
            char piece[80] = "", *tab = strchr(pair, '\t');
            memmove(tab, tab + 1, strlen(tab));
            if (pair[0] == ' ')
                snprintf(piece, sizeof piece, "\xC4\xA0%s", pair + 1);
            else
                snprintf(piece, sizeof piece, "%s", pair);
            int32_t id = pnb_tokenizer_find(tok, piece);
            if (id != next && !(id >= 0 && id < next)) /* a token may be made in two ways */
                fail_msg("round %d: \"%s\" is %d, want %d", round, piece, id, next);
            next += id == next;
            char again[64] = "";
            best_pair(&p, again);
            apply_pair(&p, again);
        }
        assert_int_equal(pnb_tokenizer_vocab_size(tok), next);
        pnb_tokenizer_free(tok);
    }
}

static void file_text(const pnb_tokenizer *tok, char **text)
{
    char path[] = "/tmp/pnb_tokenizer_XXXXXX", file[64];
    size_t n;
    assert_non_null(mkdtemp(path));
    snprintf(file, sizeof file, "%s/tokenizer.json", path);
    assert_int_equal(pnb_tokenizer_save(tok, path, NULL), PNB_OK);
    assert_int_equal(pnb__read_file(file, 1 << 24, text, &n, NULL), PNB_OK);
    pnb_tokenizer *back;
    pnb_error err = PNB_ERROR_INIT;
    if (pnb_tokenizer_load(&back, path, &err) != PNB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(pnb_tokenizer_vocab_size(back), pnb_tokenizer_vocab_size(tok));
    pnb_tokenizer_free(back);
    unlink(file);
    rmdir(path);
}

static void order_of_captions_does_not_matter(void **state)
{
    (void)state;
    for (int kind = PNB_TOKENIZER_WORD; kind <= PNB_TOKENIZER_BYTE_BPE; kind++) {
        pnb_tokenizer_opts opts = {(pnb_tokenizer_kind)kind, 320, 1, PNB_CLEAN_LOWER};
        const char *turned[N_CAPTIONS];
        char *a, *b;
        pnb_tokenizer *tok;
        for (size_t i = 0; i < N_CAPTIONS; i++)
            turned[i] = captions[N_CAPTIONS - 1 - i];
        assert_int_equal(pnb_tokenizer_train(&tok, captions, N_CAPTIONS, &opts, NULL), PNB_OK);
        file_text(tok, &a);
        pnb_tokenizer_free(tok);
        assert_int_equal(pnb_tokenizer_train(&tok, turned, N_CAPTIONS, &opts, NULL), PNB_OK);
        file_text(tok, &b);
        pnb_tokenizer_free(tok);
        assert_string_equal(a, b);
        json_t *root;
        assert_int_equal(pnb__json_load_bytes(&root, a, strlen(a), "a", NULL), PNB_OK);
        json_decref(root);
        pnb__free(a);
        pnb__free(b);
    }
}

static void clean_modes_differ_as_told(void **state)
{
    (void)state;
    static const struct {
        pnb_clean clean;
        const char *want;
    } cases[] = {
        {PNB_CLEAN_NONE, "  A_b,\tC\xC3\x89 \xCE\x9F\xCE\xA3 \xFF "},
        {PNB_CLEAN_WHITESPACE, "A_b, C\xC3\x89 \xCE\x9F\xCE\xA3 \xEF\xBF\xBD"},
        {PNB_CLEAN_LOWER, "a_b, c\xC3\xA9 \xCE\xBF\xCF\x82 \xEF\xBF\xBD"},
        {PNB_CLEAN_CANONICALIZE, "a b c\xC3\xA9 \xCE\xBF\xCF\x82 \xEF\xBF\xBD"},
    };
    const char *text = cases[0].want;
    for (size_t i = 1; i < PNB_COUNT(cases); i++) {
        char *got;
        size_t n;
        pnb_clean named;
        assert_int_equal(pnb_clean_text(cases[i].clean, text, strlen(text), &got, &n, NULL),
                         PNB_OK);
        assert_string_equal(got, cases[i].want);
        assert_int_equal(n, strlen(cases[i].want));
        assert_true(pnb_clean_from_name(pnb_clean_name(cases[i].clean), &named));
        assert_int_equal(named, cases[i].clean);
        pnb_text_free(got);
    }
    pnb_clean other;
    assert_false(pnb_clean_from_name("upper", &other));
    assert_null(pnb_clean_name((pnb_clean)7));
    char *got;
    size_t n;
    assert_int_equal(pnb_clean_text((pnb_clean)7, "", 0, &got, &n, NULL), PNB_ARG);
    /* U+0130 becomes two characters; sigma is final only at the end of a word */
    assert_int_equal(pnb_clean_text(PNB_CLEAN_LOWER, "\xC4\xB0 \xCE\xA3 \xCE\x91\xCE\xA3\xCE\x91",
                                    12, &got, &n, NULL),
                     PNB_OK);
    assert_string_equal(got, "i\xCC\x87 \xCF\x83 \xCE\xB1\xCF\x83\xCE\xB1");
    pnb_text_free(got);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    static const pnb_tokenizer_opts bad[] = {
        {PNB_TOKENIZER_WORD, 4, 1, PNB_CLEAN_NONE},
        {PNB_TOKENIZER_BYTE_BPE, 258, 1, PNB_CLEAN_NONE},
        {(pnb_tokenizer_kind)9, 500, 1, PNB_CLEAN_NONE},
        {PNB_TOKENIZER_WORD, 500, 1, (pnb_clean)9},
        {PNB_TOKENIZER_WORD, INT32_MAX, 1, PNB_CLEAN_NONE},
    };
    pnb_tokenizer *tok;
    for (size_t i = 0; i < PNB_COUNT(bad); i++) {
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(pnb_tokenizer_train(&tok, captions, N_CAPTIONS, &bad[i], &err), PNB_ARG);
        assert_null(tok);
        assert_true(err.text[0] != '\0');
    }
    assert_int_equal(pnb_tokenizer_train(&tok, captions, 0, NULL, NULL), PNB_ARG);
    static const char *const empty[] = {""};
    assert_int_equal(pnb_tokenizer_train(&tok, empty, 1, NULL, NULL), PNB_OK);
    assert_int_equal(pnb_tokenizer_vocab_size(tok), 4);
    pnb_tokenizer_free(tok);
}

#ifdef PNB_FAULTS
static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    for (int kind = PNB_TOKENIZER_WORD; kind <= PNB_TOKENIZER_BYTE_BPE; kind++) {
        pnb_tokenizer_opts opts = {(pnb_tokenizer_kind)kind, 300, 1, PNB_CLEAN_LOWER};
        pnb_status status = PNB_NOMEM;
        for (long k = 0; status != PNB_OK && k < 100000; k++) {
            pnb_tokenizer *tok;
            int32_t row[8];
            pnb__alloc_fail_after(k);
            status = pnb_tokenizer_train(&tok, captions, N_CAPTIONS, &opts, NULL);
            if (status == PNB_OK)
                status = pnb_tokenizer_encode(tok, "a red", 5, 8, row, NULL, NULL);
            pnb__alloc_fail_after(-1);
            assert_true(status == PNB_OK || status == PNB_NOMEM);
            pnb_tokenizer_free(tok);
        }
        assert_int_equal(status, PNB_OK);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_ranked_by_count),
        cmocka_unit_test(rows_are_cut_and_padded),
        cmocka_unit_test(bytes_survive_bpe),
        cmocka_unit_test(merges_equal_a_recount),
        cmocka_unit_test(order_of_captions_does_not_matter),
        cmocka_unit_test(clean_modes_differ_as_told),
        cmocka_unit_test(bad_options_are_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(memory_may_run_out_anywhere),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
