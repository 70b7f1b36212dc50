/* Repairs of damaged captions, after ftfy's fix_text (Speer 2019), in front of open_clip's
 * cleaning:
 *
 *   every time     surrogate pairs in UTF-8, HTML references (where the text has no '<'),
 * ligatures, full and half width, curly quotes, line breaks, ANSI escapes, control characters, C1
 * controls as Windows-1252, NFC with evidence  UTF-8 that was read as Latin-1 or Windows-1252:
 * "cafÃ©" to "café"
 *
 * ftfy weighs dozens of character classes before it undoes a wrong encoding, and knows ten
 * encodings. Here one rule decides: a run of Windows-1252 characters is turned back when its bytes
 * are valid UTF-8 as a whole and hold a sequence that begins with C2, C3 or E0..F4, or three
 * others. Repeated until nothing changes, since damage is sometimes done twice. */
#include <string.h>

#include <utf8proc.h>

#include "tokenizer/clean/html_unescape.h"

#define MAX_ROUNDS 8

/* The upper half's first 32 bytes; 0: not assigned. */
static const uint16_t windows_1252[32] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

uint32_t pnb__windows_1252(unsigned char byte)
{
    if (byte < 0x80 || byte > 0x9F || windows_1252[byte - 0x80] == 0)
        return byte;
    return windows_1252[byte - 0x80];
}

/* The byte that a character was read from, -1 for none. */
static int byte_of(uint32_t c)
{
    if (c < 0x100)
        return (int)c;
    for (int i = 0; i < 32; i++)
        if (windows_1252[i] == c)
            return 0x80 + i;
    return -1;
}

/* ---- wrong encodings ---- */

static bool is_evidence(const char *bytes, size_t n)
{
    size_t n_pairs = 0;
    for (size_t i = 0; i < n;) {
        unsigned char lead = (unsigned char)bytes[i];
        uint32_t c;
        if (lead >= 0xE0 || lead == 0xC2 || lead == 0xC3)
            return true;
        n_pairs += lead >= 0x80;
        i += pnb__next_char(bytes + i, n - i, &c);
    }
    return n_pairs >= 3;
}

/* One run of characters that have a byte each. */
static void put_run(pnb__buf *out, pnb__buf *bytes, const char *s, size_t n)
{
    bool is_ascii = bytes->size == n;
    if (!is_ascii && pnb__utf8_valid(bytes->data, bytes->size) &&
        is_evidence(bytes->data, bytes->size))
        pnb__buf_append(out, bytes->data, bytes->size);
    else
        pnb__buf_append(out, s, n);
    bytes->size = 0;
}

static void put_decoded(pnb__buf *out, const char *s, size_t n)
{
    pnb__buf bytes = {0};
    size_t begin = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t used = pnb__next_char(s + i, n - i, &c);
        int byte = byte_of(c);
        if (byte >= 0)
            pnb__buf_putc(&bytes, (char)byte);
        if (byte < 0 || c == '\n') {
            size_t end = byte < 0 ? i : i + used;
            put_run(out, &bytes, s + begin, end - begin);
            pnb__buf_append(out, s + end, i + used - end);
            begin = i + used;
        }
        i += used;
    }
    put_run(out, &bytes, s + begin, n - begin);
    out->failed |= bytes.failed;
    pnb__buf_reset(&bytes);
}

/* ---- single characters ---- */

typedef struct ligature {
    uint16_t c;
    char text[6];
} ligature;

static const char *find_ligature(uint32_t c)
{
    static const ligature ligatures[] = {
        {0x132, "IJ"},         {0x133, "ij"},        {0x149, "'n"},   {0x1C4, "D\xC5\xBD"},
        {0x1C5, "D\xC5\xBE"},  {0x1C6, "d\xC5\xBE"}, {0x1C7, "LJ"},   {0x1C8, "Lj"},
        {0x1C9, "lj"},         {0x1CA, "NJ"},        {0x1CB, "Nj"},   {0x1CC, "nj"},
        {0x1F1, "DZ"},         {0x1F2, "Dz"},        {0x1F3, "dz"},   {0xFB00, "ff"},
        {0xFB01, "fi"},        {0xFB02, "fl"},       {0xFB03, "ffi"}, {0xFB04, "ffl"},
        {0xFB05, "\xC5\xBFt"}, {0xFB06, "st"},
    };
    for (size_t i = 0; i < PNB_COUNT(ligatures); i++)
        if (ligatures[i].c == c)
            return ligatures[i].text;
    return NULL;
}

static bool is_control(uint32_t c)
{
    return c <= 8 || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
           (c >= 0x206A && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFC);
}

/* Full and half width forms are those of NFKC. */
static void put_width(pnb__buf *out, uint32_t c)
{
    utf8proc_int32_t chars[16];
    char text[5] = {0};
    pnb__utf8_encode(c, text);
    utf8proc_option_t flags = (utf8proc_option_t)(UTF8PROC_NULLTERM | UTF8PROC_STABLE |
                                                  UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    utf8proc_ssize_t n = utf8proc_decompose((const utf8proc_uint8_t *)text, 0, chars, 16, flags);
    if (n < 0 || n > 16) {
        pnb__put_char(out, c);
        return;
    }
    n = utf8proc_normalize_utf32(chars, n, flags);
    for (utf8proc_ssize_t i = 0; i < n; i++)
        pnb__put_char(out, (uint32_t)chars[i]);
}

static void put_fixed(pnb__buf *out, uint32_t c)
{
    const char *text = find_ligature(c);
    if (c >= 0x80 && c <= 0x9F)
        c = pnb__windows_1252((unsigned char)c);
    if (text != NULL)
        pnb__buf_puts(out, text);
    else if (c >= 0xFF01 && c <= 0xFFEF)
        put_width(out, c);
    else if (c == 0x3000)
        pnb__buf_putc(out, ' ');
    else if (c == 0x2BC || (c >= 0x2018 && c <= 0x201B))
        pnb__buf_putc(out, '\'');
    else if (c >= 0x201C && c <= 0x201F)
        pnb__buf_putc(out, '"');
    else if (c == 0x2028 || c == 0x2029 || c == '\r')
        pnb__buf_putc(out, '\n');
    else if (!is_control(c))
        pnb__put_char(out, c);
}

/* Length of ESC [ 1;31 m at s, 0 for none. */
static size_t escape_length(const char *s, size_t n)
{
    size_t at = 2;
    if (n < 3 || s[0] != 0x1B || s[1] != '[')
        return 0;
    while (at < n && ((s[at] >= '0' && s[at] <= '9') || s[at] == ';'))
        at++;
    return at < n && (s[at] | 32) >= 'a' && (s[at] | 32) <= 'z' ? at + 1 : 0;
}

static void put_characters(pnb__buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t escape = escape_length(s + i, n - i);
        if (escape > 0) {
            i += escape;
            continue;
        }
        uint32_t c;
        if (s[i] == '\r' && i + 1 < n && s[i + 1] == '\n')
            i++;
        i += pnb__next_char(s + i, n - i, &c);
        put_fixed(out, c);
    }
}

/* ---- the whole ---- */

void pnb__put_joined_surrogates(pnb__buf *out, const char *s, size_t n)
{
    const unsigned char *b = (const unsigned char *)s;
    for (size_t i = 0; i < n;) {
        bool is_half =
            i + 3 <= n && b[i] == 0xED && (b[i + 1] & 0xE0) == 0xA0 && (b[i + 2] & 0xC0) == 0x80;
        bool is_pair = is_half && b[i + 1] < 0xB0 && i + 6 <= n && b[i + 3] == 0xED &&
                       (b[i + 4] & 0xF0) == 0xB0 && (b[i + 5] & 0xC0) == 0x80;
        if (is_pair)
            pnb__put_char(out, 0x10000 + ((b[i + 1] & 0xFu) << 16 | (b[i + 2] & 0x3Fu) << 10 |
                                          (b[i + 4] & 0xFu) << 6 | (b[i + 5] & 0x3Fu)));
        else if (is_half)
            pnb__put_char(out, 0xFFFD);
        else
            pnb__buf_append(out, s + i, 1);
        i += is_pair ? 6 : is_half ? 3 : 1;
    }
}

/* Plain ASCII without references, escapes and controls: nearly every caption. */
static bool is_sound(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x7F || c == '&' || c == '\r' || (c < ' ' && is_control(c)))
            return false;
    }
    return true;
}

static void put_strict_html(pnb__buf *out, const char *s, size_t n)
{
    if (memchr(s, '<', n) != NULL)
        pnb__buf_append(out, s, n);
    else
        pnb__html_unescape(out, s, n, true);
}

static void put_composed(pnb__buf *out, const char *s, size_t n)
{
    static const pnb__norm_step nfc = {.kind = PNB__NORM_FORM, .compose = true};
    if (pnb__normalize(&nfc, 1, s, n, out, NULL) != PNB_OK)
        out->failed = true;
}

void pnb__repair(pnb__buf *text)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        if (text->failed || is_sound(text->data, text->size))
            return;
        pnb__buf before = {0};
        pnb__buf_append(&before, text->data, text->size);
        pnb__run_stage(text, put_strict_html);
        pnb__run_stage(text, put_decoded);
        pnb__run_stage(text, put_characters);
        pnb__run_stage(text, put_composed);
        text->failed |= before.failed;
        bool is_same = !text->failed && before.size == text->size &&
                       memcmp(before.data, text->data, before.size) == 0;
        pnb__buf_reset(&before);
        if (is_same)
            return;
    }
}
