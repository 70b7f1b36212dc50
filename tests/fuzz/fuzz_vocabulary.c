/* Lists of words from strangers, as a pickle or as lines (told by the first byte, which no list of
 * words begins with): whatever opens must encode any text to ids of its vocabulary and take them
 * back, and open again as saved. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/tokenizer_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const pnb_tokenizer *tok, const char *text, size_t n)
{
    int32_t row[24], *ids;
    size_t n_ids;
    char *back;
    (void)pnb_tokenizer_encode(tok, text, n, 24, row, NULL, NULL);
    if (pnb_tokenizer_encode_all(tok, text, n, true, &ids, &n_ids, NULL) != PNB_OK)
        return;
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || ids[i] >= pnb_tokenizer_vocab_size(tok))
            abort();
    if (pnb_tokenizer_decode(tok, ids, n_ids, &back, NULL) != PNB_OK)
        abort();
    pnb_text_free(back);
    pnb_tokenizer_ids_free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char sample[] =
        "A man's dog isn't \"here\"... it cannot, at 3:30 p.m. (gonna go?) "
        "\xE2\x80\x9C`` ''--'tis <pad>\xFF\xED\xA0\xBD.";
    pnb_tokenizer *tok, *again;
    pnb_error err = PNB_ERROR_INIT;
    const char *bytes = (const char *)data;
    bool is_pickle = size > 0 && (data[0] == 0x80 || data[0] == '(' || data[0] == '}');
    pnb_status status = is_pickle ? pnb__tok_from_vocabulary_pickle(&tok, bytes, size, "f", &err)
                                  : pnb__tok_from_vocabulary_lines(&tok, bytes, size, "f", &err);
    if (status != PNB_OK) {
        if (err.text[0] == '\0' || tok != NULL)
            abort();
        return 0;
    }
    encode(tok, sample, sizeof sample - 1);
    encode(tok, bytes, size < 256 ? size : 256);
    if (pnb_tokenizer_parse(&again, tok->json, tok->n_json, NULL) != PNB_OK)
        abort();
    encode(again, sample, sizeof sample - 1);
    pnb_tokenizer_free(again);
    pnb_tokenizer_free(tok);
    return 0;
}
