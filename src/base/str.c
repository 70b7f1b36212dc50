/* Growing byte buffer, prefix tests, ends trimmed, UTF-8.
 *
 * The buffer is sticky: after a failed allocation it keeps what it had and ignores further appends,
 * so a writer of many small pieces checks `failed` once at its end. UTF-8 follows RFC 3629: no
 * overlong forms, no surrogates, nothing above U+10FFFF. Case, width and normal forms are left to
 * the tokenizers (utf8proc). */
#include <string.h>

#include "base/base.h"

/* Room for n more bytes and the terminator. */
static bool buf_reserve(pnb__buf *b, size_t n)
{
    if (b->failed)
        return false;
    size_t needed;
    if (pnb__add_overflows(b->size, n, &needed) || pnb__add_overflows(needed, 1, &needed)) {
        b->failed = true;
        return false;
    }
    if (needed <= b->capacity)
        return true;
    size_t capacity = PNB_MAX(needed, (size_t)64);
    if (b->capacity <= SIZE_MAX / 2)
        capacity = PNB_MAX(capacity, b->capacity * 2);
    char *data = pnb__realloc(b->data, capacity);
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

void pnb__buf_append(pnb__buf *b, const void *bytes, size_t n)
{
    if (!buf_reserve(b, n))
        return;
    if (n > 0)
        memcpy(b->data + b->size, bytes, n);
    b->size += n;
    b->data[b->size] = '\0';
}

void pnb__buf_puts(pnb__buf *b, const char *s)
{
    pnb__buf_append(b, s, strlen(s));
}

void pnb__buf_putc(pnb__buf *b, char c)
{
    pnb__buf_append(b, &c, 1);
}

void pnb__buf_printf(pnb__buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
    } else if (buf_reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->size, (size_t)n + 1, fmt, again);
        b->size += (size_t)n;
    }
    va_end(again);
}

pnb_status pnb__buf_check(const pnb__buf *b, pnb_error *err)
{
    return b->failed ? pnb__fail_nomem(err, b->size) : PNB_OK;
}

void pnb__buf_reset(pnb__buf *b)
{
    pnb__free(b->data);
    *b = (pnb__buf){0};
}

/* White space of ASCII whatever the locale: in UTF-8 other bytes are parts of letters. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

const char *pnb__trimmed(const char *text, size_t n, size_t *n_out)
{
    while (n > 0 && is_blank(text[n - 1]))
        n--;
    while (n > 0 && is_blank(*text)) {
        text++;
        n--;
    }
    *n_out = n;
    return text;
}

bool pnb__starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool pnb__ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), n_suffix = strlen(suffix);
    return n >= n_suffix && memcmp(s + n - n_suffix, suffix, n_suffix) == 0;
}

/* Sequence length a lead byte announces and the payload bits it carries; 0 for a byte that cannot
 * lead (continuation bytes, 0xC0 and 0xC1, which could only be overlong, and 0xF5 and up). */
static size_t lead_length(unsigned char lead, uint32_t *bits)
{
    if (lead < 0x80) {
        *bits = lead;
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        *bits = lead & 0x1Fu;
        return 2;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        *bits = lead & 0x0Fu;
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        *bits = lead & 0x07u;
        return 4;
    }
    return 0;
}

static bool is_scalar_value(uint32_t code_point)
{
    return code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
}

size_t pnb__utf8_decode(const char *s, size_t n, uint32_t *code_point)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value = 0;
    size_t length = n == 0 ? 0 : lead_length((unsigned char)s[0], &value);
    if (length == 0 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)s[i];
        if ((byte & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (byte & 0x3Fu);
    }
    if (value < smallest[length] || !is_scalar_value(value))
        return 0;
    *code_point = value;
    return length;
}

size_t pnb__utf8_encode(uint32_t code_point, char out[4])
{
    uint32_t c = is_scalar_value(code_point) ? code_point : 0xFFFD;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

bool pnb__utf8_valid(const char *s, size_t n)
{
    uint32_t code_point;
    while (n > 0) {
        size_t length = pnb__utf8_decode(s, n, &code_point);
        if (length == 0)
            return false;
        s += length;
        n -= length;
    }
    return true;
}

void pnb__base64(pnb__buf *out, const void *bytes, size_t n)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t block = (uint32_t)p[i] << 16;
        block |= i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0;
        block |= i + 2 < n ? (uint32_t)p[i + 2] : 0;
        const char quad[4] = {letters[block >> 18], letters[block >> 12 & 63],
                              i + 1 < n ? letters[block >> 6 & 63] : '=',
                              i + 2 < n ? letters[block & 63] : '='};
        pnb__buf_append(out, quad, 4);
    }
}

static int base64_value(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool pnb__base64_decode(pnb__buf *out, const char *s, size_t n, size_t *bad)
{
    char block[1024];
    uint32_t bits = 0;
    size_t n_block = 0;
    int n_bits = 0;
    for (int i = 0; i < 2 && n > 0 && s[n - 1] == '='; i++)
        n--;
    for (size_t i = 0; i < n; i++) {
        int v = base64_value((unsigned char)s[i]);
        *bad = i;
        if (v < 0 || (n % 4 == 1 && i == n - 1))
            return false;
        bits = bits << 6 | (uint32_t)v;
        n_bits += 6;
        if (n_bits < 8)
            continue;
        n_bits -= 8;
        block[n_block++] = (char)(bits >> n_bits & 0xFF);
        if (n_block == sizeof block) {
            pnb__buf_append(out, block, n_block);
            n_block = 0;
        }
    }
    pnb__buf_append(out, block, n_block);
    return true;
}
