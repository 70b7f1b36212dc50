/* CLIP's merges, alone or behind a vocab.json and a 0 byte, from strangers: whatever opens must
 * encode any text to ids of its vocabulary and take them back, and open again as saved. */
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

static pnb_status open_input(pnb_tokenizer **tok, const char *data, size_t size)
{
    static const pnb__clip_names names = {"<start_of_text>", "<end_of_text>"};
    const char *zero = size > 0 ? memchr(data, 0, size) : NULL;
    if (zero == NULL)
        return pnb__tok_from_merges(tok, data, size, &names, "merges", NULL);
    size_t n_vocab = (size_t)(zero - data);
    const pnb__tok_pair pair = {data, zero + 1, n_vocab, size - n_vocab - 1};
    return pnb__tok_from_pair(tok, &pair, "vocab.json", NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char sample[] =
        "It's 2 cats_and\tone  D\xC3\x96G \xF0\x9F\x98\x80\xFF &amp;&notit; caf\xC3\x83\xC2\xA9 "
        "\xED\xA0\xBD\xED\xB8\x80 <start_of_text>\x1B[1m\xEF\xAC\x81";
    pnb_tokenizer *tok, *again;
    size_t n_tail = size < 64 ? size : 64;
    if (open_input(&tok, (const char *)data, size) != PNB_OK)
        return 0;
    for (int clean = PNB_CLEAN_NONE; clean <= PNB_CLEAN_CANONICALIZE; clean++) {
        pnb_tokenizer_set_clean(tok, (pnb_clean)clean);
        encode(tok, sample, sizeof sample - 1);
        encode(tok, (const char *)data + size - n_tail, n_tail);
    }
    if (pnb_tokenizer_parse(&again, tok->json, tok->n_json, NULL) != PNB_OK)
        abort();
    encode(again, sample, sizeof sample - 1);
    pnb_tokenizer_free(again);
    pnb_tokenizer_free(tok);
    return 0;
}
