/* SentencePiece's precompiled normaliser, "precompiled_charsmap" in tokenizer.json and
 * spiece.model, and what its Normalizer class does around it.
 *
 *   base64( u32 n | n bytes of a Darts-clone double array | zero-terminated replacements )
 *
 * At every position the longest key of the array is replaced by the string at its value's offset;
 * a character that starts no key stays. All numbers are little-endian; the array comes from a
 * stranger, so every step through it is checked. */
#include <string.h>

#include "tokenizer/text.h"

static uint32_t read_u32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

pnb_status pnb__charsmap_set(pnb__norm_step *step, const char *blob, size_t n, pnb_error *err)
{
    if (n == 0) /* SentencePiece's "identity" */
        return PNB_OK;
    size_t n_trie = n >= 4 ? read_u32(blob) : 0;
    if (n < 8 || n_trie < 4 || n_trie % 4 != 0 || n_trie > n - 4 || blob[n - 1] != '\0')
        return pnb__fail(err, PNB_FORMAT,
                         "precompiled_charsmap of %zu bytes: its array length %zu does not fit", n,
                         n_trie);
    step->n_trie = n_trie / 4;
    step->n_strings = n - 4 - n_trie;
    step->trie = pnb__alloc_array(step->n_trie, sizeof *step->trie);
    step->strings = pnb__alloc(step->n_strings + 1);
    if (step->trie == NULL || step->strings == NULL)
        return pnb__fail_nomem(err, n);
    for (size_t i = 0; i < step->n_trie; i++)
        step->trie[i] = read_u32(blob + 4 + 4 * i);
    memcpy(step->strings, blob + 4 + n_trie, step->n_strings);
    step->strings[step->n_strings] = '\0';
    return PNB_OK;
}

pnb_status pnb__charsmap_parse(pnb__norm_step *step, const char *base64, size_t n, pnb_error *err)
{
    pnb__buf blob = {0};
    step->kind = PNB__NORM_CHARSMAP;
    size_t bad = 0;
    if (!pnb__base64_decode(&blob, base64, n, &bad)) {
        pnb__buf_reset(&blob);
        return pnb__fail(err, PNB_FORMAT, "precompiled_charsmap: byte %zu is not base64", bad);
    }
    pnb_status status = pnb__buf_check(&blob, err);
    if (status == PNB_OK)
        status = pnb__charsmap_set(step, blob.data, blob.size, err);
    pnb__buf_reset(&blob);
    return status;
}

static uint32_t unit_offset(uint32_t unit)
{
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* Length of the longest key at s, its replacement in *value; 0 for none. */
static size_t longest_key(const pnb__norm_step *step, const char *s, size_t n, const char **value)
{
    size_t best = 0, at = unit_offset(step->trie[0]);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        at ^= c;
        if (c == 0 || at >= step->n_trie)
            break;
        uint32_t unit = step->trie[at];
        if ((unit & (1u << 31 | 0xFF)) != c)
            break;
        at ^= unit_offset(unit);
        if ((unit >> 8 & 1) != 0 && at < step->n_trie) {
            uint32_t offset = step->trie[at] & 0x7FFFFFFF;
            if (offset < step->n_strings) {
                *value = step->strings + offset;
                best = i + 1;
            }
        }
    }
    return best;
}

void pnb__charsmap_run(const pnb__norm_step *step, const char *text, size_t n, pnb__buf *out)
{
    for (size_t i = 0; i < n && out->size <= PNB_TOKENIZER_MAX_BYTES;) {
        const char *value = NULL;
        uint32_t c;
        size_t used = step->n_trie > 0 ? longest_key(step, text + i, n - i, &value) : 0;
        if (used > 0) {
            pnb__put_valid(out, value, strlen(value));
        } else {
            used = pnb__next_char(text + i, n - i, &c);
            pnb__buf_append(out, text + i, used);
        }
        i += used;
    }
}

/* What one step of the normaliser takes from s, and what stands for it. */
static size_t next_chunk(const pnb__norm_step *step, const char *s, size_t n, const char **chunk,
                         size_t *n_chunk)
{
    int32_t id;
    uint32_t c;
    const char *value = NULL;
    size_t used = step->symbols != NULL ? pnb__trie_longest(step->symbols, s, n, &id) : 0;
    *chunk = s;
    if (used == 0 && step->n_trie > 0) {
        used = longest_key(step, s, n, &value);
        if (used > 0) {
            *chunk = value;
            *n_chunk = strlen(value);
            return used;
        }
    }
    if (used == 0)
        used = pnb__next_char(s, n, &c);
    *n_chunk = used;
    return used;
}

static bool ends_with(const pnb__buf *b, size_t begin, const char *tail, size_t n)
{
    return b->size - begin >= n && memcmp(b->data + b->size - n, tail, n) == 0;
}

/* A chunk of the text, its leading spaces left out behind another space. */
static void put_chunk(const pnb__norm_step *step, const char *s, size_t n, bool *was_space,
                      pnb__buf *out)
{
    while (*was_space && n > 0 && *s == ' ') {
        s++;
        n--;
    }
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t used = pnb__next_char(s + i, n - i, &c);
        if (c == ' ' && step->escape_whitespaces)
            pnb__buf_puts(out, "\xE2\x96\x81");
        else
            pnb__put_char(out, c);
        i += used;
    }
    if (n > 0)
        *was_space = step->remove_extra_whitespaces && s[n - 1] == ' ';
}

void pnb__charsmap_run_whole(const pnb__norm_step *step, const char *text, size_t n, pnb__buf *out)
{
    const char *space = step->escape_whitespaces ? "\xE2\x96\x81" : " ", *chunk;
    size_t n_space = strlen(space), n_chunk, at = 0, begin = out->size;
    while (step->remove_extra_whitespaces && at < n) {
        size_t used = next_chunk(step, text + at, n - at, &chunk, &n_chunk);
        if (n_chunk != 1 || *chunk != ' ')
            break;
        at += used;
    }
    if (at == n)
        return;
    if (step->add_dummy_prefix && !step->whitespace_is_suffix)
        pnb__buf_puts(out, space);
    bool was_space = step->remove_extra_whitespaces;
    while (at < n && out->size <= PNB_TOKENIZER_MAX_BYTES) {
        at += next_chunk(step, text + at, n - at, &chunk, &n_chunk);
        put_chunk(step, chunk, n_chunk, &was_space, out);
    }
    while (step->remove_extra_whitespaces && ends_with(out, begin, space, n_space))
        out->data[out->size -= n_space] = '\0';
    if (step->add_dummy_prefix && step->whitespace_is_suffix)
        pnb__buf_puts(out, space);
}
