/* Whether an id means the same to two tokenizers, and a text is the same ids.
 *
 * Files are no help: one tokenizer is written in several forms, and a tokenizer.json has fields
 * that change nothing. So the vocabularies are compared piece by piece, and rules (merges, splits,
 * cleaning) by what they make of the vocabulary's own pieces in a row and of a few sentences. */
#include "tokenizer/tokenizer_compare.h"

#include <string.h>

#include "base/base.h"

/* Capitals, accents, digits, marks, white space and what is no letter. */
static const char *const sentences[] = {
    ("A photo of TWO cats, 3 dogs & a caf\xc3\xa9: na\xc3\xafve Stra\xc3\x9f"
     "e \xf0\x9f\x98\x80!"),
    "don't  stop...\t#tag @name 12345 a_b (c) http://x.y/z?q=1",
    "  the quick-brown fox\njumps over the lazy dog's back; 50% of it  ",
};

static pnb_status compare_text(const pnb_tokenizer *first, const pnb_tokenizer *second,
                               const char *text, char why[PNB__TOKENIZER_WHY], pnb_error *err)
{
    int32_t *a = NULL, *b = NULL;
    size_t n_a = 0, n_b = 0;
    pnb_status status = pnb_tokenizer_encode_all(first, text, strlen(text), true, &a, &n_a, err);
    if (status == PNB_OK)
        status = pnb_tokenizer_encode_all(second, text, strlen(text), true, &b, &n_b, err);
    if (status == PNB_OK && (n_a != n_b || memcmp(a, b, n_a * sizeof *a) != 0))
        snprintf(why, PNB__TOKENIZER_WHY, "\"%.60s\" has other ids (%zu there, %zu here)", text,
                 n_a, n_b);
    pnb_tokenizer_ids_free(a);
    pnb_tokenizer_ids_free(b);
    return status;
}

/* Pieces in a row, so that what may be joined is. */
static pnb_status compare_rules(const pnb_tokenizer *first, const pnb_tokenizer *second,
                                char why[PNB__TOKENIZER_WHY], pnb_error *err)
{
    enum { IN_A_ROW = 64 };
    int n = pnb_tokenizer_vocab_size(first);
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < PNB_COUNT(sentences) && status == PNB_OK && why[0] == '\0'; i++)
        status = compare_text(first, second, sentences[i], why, err);
    for (int begin = 0; begin < n && status == PNB_OK && why[0] == '\0'; begin += IN_A_ROW) {
        pnb__buf text = {0};
        for (int id = begin; id < PNB_MIN(begin + IN_A_ROW, n); id++) {
            const char *piece = pnb_tokenizer_piece(first, id);
            if (piece != NULL)
                pnb__buf_printf(&text, "%s%s", id % 2 == 0 ? " " : "", piece);
        }
        status = pnb__buf_check(&text, err);
        if (status == PNB_OK && text.size > 0)
            status = compare_text(first, second, text.data, why, err);
        pnb__buf_reset(&text);
    }
    return status;
}

static const char *or_nothing(const char *piece)
{
    return piece != NULL ? piece : "(nothing)";
}

static void compare_pieces(const pnb_tokenizer *first, const pnb_tokenizer *second,
                           char why[PNB__TOKENIZER_WHY])
{
    int n = pnb_tokenizer_vocab_size(first);
    if (n != pnb_tokenizer_vocab_size(second)) {
        snprintf(why, PNB__TOKENIZER_WHY, "%d ids there, %d here", n,
                 pnb_tokenizer_vocab_size(second));
        return;
    }
    for (int32_t id = 0; id < n; id++) {
        const char *a = or_nothing(pnb_tokenizer_piece(first, id));
        const char *b = or_nothing(pnb_tokenizer_piece(second, id));
        if (strcmp(a, b) == 0)
            continue;
        snprintf(why, PNB__TOKENIZER_WHY, "id %d is \"%.60s\" there, \"%.60s\" here", (int)id, a,
                 b);
        return;
    }
}

pnb_status pnb__tokenizer_compare(const pnb_tokenizer *first, const pnb_tokenizer *second,
                                  char why[PNB__TOKENIZER_WHY], pnb_error *err)
{
    why[0] = '\0';
    compare_pieces(first, second, why);
    return why[0] == '\0' ? compare_rules(first, second, why, err) : PNB_OK;
}
