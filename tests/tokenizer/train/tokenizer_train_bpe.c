/* Learned merges against a plain recount after every merge; what is written of them. */
#include "tests/tokenizer/support.h"
#include "tokenizer/train/tokenizer_train.h"

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

/* Three words by hand: "ab" 5 times, "abb" twice, a quote and a backslash once. */
static void what_is_written(void **state)
{
    (void)state;
    static char text[] = "ababb\"\\";
    pnb__word at[] = {{0, 2, 5}, {2, 3, 2}, {5, 2, 1}};
    const pnb__query words = {.text = {.data = text, .size = 7}, .at = at, .n = 3};
    pnb__buf vocab = {0}, merges = {0};
    pnb_error err = PNB_ERROR_INIT;
    pnb__bpe_goal goal = {.first_id = 10, .max_tokens = 300, .min_count = 1};
    assert_ok(pnb__train_bpe(&words, &goal, &vocab, &merges, &err), &err);
    assert_string_equal(merges.data, "    \"a b\",\n    \"ab b\",\n    \"\\\" \\\\\"\n");
    assert_true(pnb__starts_with(vocab.data, "    \"!\": 10,\n    \"\\\"\": 11,\n"));
    assert_true(pnb__ends_with(vocab.data,
                               ",\n    \"ab\": 266,\n    \"abb\": 267,\n    \"\\\"\\\\\": 268\n"));
    pnb__buf_reset(&vocab);
    pnb__buf_reset(&merges);
    goal.min_count = 2; /* the last pair is seen once */
    goal.max_tokens = 257;
    assert_ok(pnb__train_bpe(&words, &goal, &vocab, &merges, &err), &err);
    assert_string_equal(merges.data, "    \"a b\"\n"); /* room for one */
    pnb__buf_reset(&vocab);
    pnb__buf_reset(&merges);
    goal.max_tokens = 300;
    assert_ok(pnb__train_bpe(&words, &goal, &vocab, &merges, &err), &err);
    assert_string_equal(merges.data, "    \"a b\",\n    \"ab b\"\n");
    pnb__buf_reset(&vocab);
    pnb__buf_reset(&merges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_equal_a_recount),
        cmocka_unit_test(what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
