/* tokenizer.json from strangers: whatever opens must encode any text to ids of its vocabulary and
 * take them back. The first 0 byte of the input, if any, divides the file from the text. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "penumbra/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const pnb_tokenizer *tok, const char *text, size_t n)
{
    int32_t row[24], *ids;
    size_t n_ids;
    char *back;
    unsigned char mask[24];
    if (pnb_tokenizer_encode(tok, text, n, 24, row, NULL, NULL) == PNB_OK)
        (void)pnb_tokenizer_text_mask(tok, row, 24, mask);
    if (pnb_tokenizer_encode_all(tok, text, n, true, &ids, &n_ids, NULL) != PNB_OK)
        return;
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || ids[i] >= pnb_tokenizer_vocab_size(tok))
            abort();
    if (pnb_tokenizer_decode(tok, ids, n_ids, &back, NULL) == PNB_OK)
        pnb_text_free(back);
    pnb_tokenizer_ids_free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char sample[] = "It's 2 cats_and\tone  D\xC3\x96G \xF0\x9F\x98\x80\xFF [MASK]</s>";
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    size_t n_json = end != NULL ? (size_t)(end - data) : size;
    pnb_tokenizer *tok;
    if (pnb_tokenizer_parse(&tok, (const char *)data, n_json, NULL) != PNB_OK)
        return 0;
    encode(tok, sample, sizeof sample - 1);
    if (end != NULL)
        encode(tok, (const char *)end + 1, size - n_json - 1);
    pnb_tokenizer_set_clean(tok, PNB_CLEAN_CANONICALIZE);
    encode(tok, sample, sizeof sample - 1);
    pnb_tokenizer_free(tok);
    return 0;
}
