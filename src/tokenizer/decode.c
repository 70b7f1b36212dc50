/* From ids back to text, by the "decoder" section: pieces joined by spaces (word level), bytes
 * behind their printable stand-ins (byte level), or U+2581 for a space (SentencePiece). One space
 * in front, which encoding may have added, is taken off again. */
#include <string.h>

#include "tokenizer/text.h"

static void put_byte_level(pnb__buf *out, const char *piece, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t used = pnb__next_char(piece + i, n - i, &c);
        int byte = pnb__char_byte(c);
        if (byte >= 0)
            pnb__buf_putc(out, (char)byte);
        else
            pnb__buf_append(out, piece + i, used);
        i += used;
    }
}

static void put_metaspace(pnb__buf *out, const char *piece, size_t n)
{
    unsigned byte;
    char tail;
    if (n == 6 && sscanf(piece, "<0x%2X%c", &byte, &tail) == 2 && tail == '>') {
        pnb__buf_putc(out, (char)byte);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (n - i >= 3 && memcmp(piece + i, "\xE2\x96\x81", 3) == 0) {
            pnb__buf_putc(out, ' ');
            i += 2;
        } else {
            pnb__buf_putc(out, piece[i]);
        }
    }
}

static void put_piece(const pnb_tokenizer *tok, pnb__buf *out, const char *piece, size_t n)
{
    const char *suffix = tok->bpe.end_suffix;
    size_t n_suffix = suffix != NULL ? strlen(suffix) : 0;
    bool ends_word =
        n_suffix > 0 && n >= n_suffix && memcmp(piece + n - n_suffix, suffix, n_suffix) == 0;
    if (ends_word)
        n -= n_suffix;
    switch (tok->decoder) {
    case PNB__DECODE_SPACES:
        if (out->size > 0)
            pnb__buf_putc(out, ' ');
        pnb__buf_append(out, piece, n);
        break;
    case PNB__DECODE_BYTES:
        put_byte_level(out, piece, n);
        break;
    case PNB__DECODE_METASPACE:
        put_metaspace(out, piece, n);
        break;
    case PNB__DECODE_SUFFIX:
        pnb__buf_append(out, piece, n);
        break;
    }
    if (ends_word)
        pnb__buf_putc(out, ' ');
}

/* One piece as SentencePiece decodes it: while there is no text yet, the U+2581 that it begins with
 * is what encoding put there. `at_start` says so. */
static void put_spiece(const pnb_tokenizer *tok, pnb__buf *out, int32_t id, const char *piece,
                       size_t n, bool *at_start)
{
    if (id == tok->unk_id) {
        pnb__buf_puts(out, " \xE2\x81\x87 ");
        return;
    }
    *at_start = *at_start && out->size == 0 && tok->spiece_leading != PNB__LEADING_KEEP;
    if (*at_start && n >= 3 && memcmp(piece, "\xE2\x96\x81", 3) == 0) {
        piece += 3;
        n -= 3;
        *at_start = tok->spiece_leading == PNB__LEADING_ALL;
    }
    put_metaspace(out, piece, n);
}

pnb_status pnb_tokenizer_decode(const pnb_tokenizer *tok, const int32_t *ids, size_t n_ids,
                                char **out, pnb_error *err)
{
    pnb__buf raw = {0}, text = {0};
    bool at_start = true;
    *out = NULL;
    for (size_t i = 0; i < n_ids; i++) {
        size_t n = 0;
        if (ids[i] < 0 || ids[i] >= tok->vocab.n) {
            pnb__buf_reset(&raw);
            return pnb__fail(err, PNB_ARG, "id %d at %zu: the vocabulary has 0..%d", (int)ids[i], i,
                             tok->vocab.n - 1);
        }
        const char *piece = pnb__vocab_piece(&tok->vocab, ids[i], &n);
        if (ids[i] == tok->eos_id && !pnb_tokenizer_is_special(tok, tok->pad_id))
            break; /* the padding behind it looks like text */
        if (piece == NULL || pnb_tokenizer_is_special(tok, ids[i]))
            continue;
        if (tok->spiece_leading != PNB__LEADING_NO_SPIECE)
            put_spiece(tok, &raw, ids[i], piece, n, &at_start);
        else
            put_piece(tok, &raw, piece, n);
    }
    bool strips = tok->spiece_leading == PNB__LEADING_NO_SPIECE;
    size_t begin = strips && raw.size > 0 && raw.data[0] == ' ' ? 1 : 0, end = raw.size;
    if (tok->bpe.end_suffix != NULL && end > begin && raw.data[end - 1] == ' ')
        end--;
    pnb__buf_append(&text, "", 0);
    if (end > begin)
        pnb__put_valid(&text, raw.data + begin, end - begin);
    bool failed = raw.failed || text.failed;
    pnb__buf_reset(&raw);
    if (failed) {
        pnb__buf_reset(&text);
        return pnb__fail_nomem(err, n_ids);
    }
    *out = text.data;
    return PNB_OK;
}
