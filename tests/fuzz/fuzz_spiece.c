/* spiece.model from strangers: whatever opens must encode any text to ids of its vocabulary and
 * take them back, and what saving would write must open again. The last 32 bytes are also a text.
 */
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
        " It's 2  cats_and\tone D\xC3\x96G \xF0\x9F\x98\x80\xFF</s> \xE2\x96\x81";
    pnb_tokenizer *tok, *again;
    size_t n_tail = size < 32 ? size : 32;
    if (pnb__tok_from_spiece(&tok, (const char *)data, size, "spiece.model", NULL, NULL) != PNB_OK)
        return 0;
    encode(tok, sample, sizeof sample - 1);
    encode(tok, (const char *)data + size - n_tail, n_tail);
    if (tok->json != NULL) {
        if (pnb_tokenizer_parse(&again, tok->json, tok->n_json, NULL) != PNB_OK)
            abort();
        encode(again, sample, sizeof sample - 1);
        pnb_tokenizer_free(again);
    }
    pnb_tokenizer_free(tok);
    return 0;
}
