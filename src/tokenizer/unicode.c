/* Character classes, lower case and the byte alphabet that tokenizers are defined over.
 *
 * Classes are those of the regular expression engines of the reference implementations, from
 * utf8proc's categories. Lower case agrees with Python 3.11 for every character; next to a capital
 * sigma 111 marks that are newer than its Unicode 14 differ. ASCII, nearly all of a caption, takes
 * a short way. */
#include <string.h>

#include <utf8proc.h>

#include "tokenizer/text.h"

bool pnb__is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool pnb__is_python_space(uint32_t c)
{
    return pnb__is_space(c) || (c >= 0x1C && c <= 0x1F);
}

static bool is_ascii_letter(uint32_t c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

bool pnb__is_letter(uint32_t c)
{
    if (c < 0x80)
        return is_ascii_letter(c);
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool pnb__is_number(uint32_t c)
{
    if (c < 0x80)
        return c >= '0' && c <= '9';
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

/* Alphabetic, marks, decimal digits, connectors and joiners (UTS 18). */
bool pnb__is_word(uint32_t c)
{
    if (c < 0x80)
        return is_ascii_letter(c) || (c >= '0' && c <= '9') || c == '_';
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    bool is_circled = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                      (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC ||
           c == 0x200C || c == 0x200D || is_circled;
}

size_t pnb__next_char(const char *s, size_t n, uint32_t *c)
{
    if ((unsigned char)s[0] < 0x80) {
        *c = (unsigned char)s[0];
        return 1;
    }
    size_t used = pnb__utf8_decode(s, n, c);
    if (used > 0)
        return used;
    *c = 0xFFFD;
    return 1;
}

void pnb__put_char(pnb__buf *b, uint32_t c)
{
    char bytes[4];
    pnb__buf_append(b, bytes, pnb__utf8_encode(c, bytes));
}

void pnb__put_valid(pnb__buf *b, const char *s, size_t n)
{
    if (pnb__utf8_valid(s, n)) {
        pnb__buf_append(b, s, n);
        return;
    }
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += pnb__next_char(s + i, n - i, &c);
        pnb__put_char(b, c);
    }
}

/* Between the letters of a word without ending it: marks, format controls, modifiers, and the
 * MidLetter, MidNumLet and Single_Quote characters. */
static bool is_case_ignorable(uint32_t c)
{
    static const uint32_t inner[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,
                                     0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                     0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < PNB_COUNT(inner); i++)
        if (inner[i] == c)
            return true;
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK;
}

static bool is_cased(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    bool is_other = c == 0xAA || c == 0xBA || (c >= 0x2160 && c <= 0x217F) ||
                    (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                    (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
           is_other;
}

/* First character at or before `at` (moving back) that does not belong inside a word. */
static bool cased_before(const char *s, size_t at)
{
    while (at > 0) {
        uint32_t c;
        do
            at--;
        while (at > 0 && ((unsigned char)s[at] & 0xC0) == 0x80);
        (void)pnb__utf8_decode(s + at, 4, &c);
        if (!is_case_ignorable(c))
            return is_cased(c);
    }
    return false;
}

static bool cased_after(const char *s, size_t n, size_t at)
{
    while (at < n) {
        uint32_t c;
        at += pnb__next_char(s + at, n - at, &c);
        if (!is_case_ignorable(c))
            return is_cased(c);
    }
    return false;
}

void pnb__put_lower(pnb__buf *b, const char *s, size_t n, bool final_sigma)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t used = pnb__next_char(s + i, n - i, &c);
        if (c < 0x80)
            pnb__buf_putc(b, (char)(c >= 'A' && c <= 'Z' ? c | 32 : c));
        else if (c == 0x130)
            pnb__buf_puts(b, "i\xCC\x87"); /* i and COMBINING DOT ABOVE */
        else if (c == 0x3A3 && final_sigma && cased_before(s, i) && !cased_after(s, n, i + used))
            pnb__put_char(b, 0x3C2);
        else
            pnb__put_char(b, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
        i += used;
    }
}

/* Printable Latin-1 bytes stand for themselves, the other 68 for U+0100 on, in order. */
static bool is_printable(unsigned c)
{
    return (c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c != 0xAD && c <= 0xFF);
}

uint32_t pnb__byte_char(unsigned char byte)
{
    if (is_printable(byte))
        return byte;
    uint32_t n_before = byte;
    if (byte > 0x7E)
        n_before = byte == 0xAD ? 0x43 : (uint32_t)byte - 0x5E;
    return 0x100 + n_before;
}

int pnb__char_byte(uint32_t c)
{
    if (c < 0x100)
        return is_printable(c) ? (int)c : -1;
    if (c > 0x143)
        return -1;
    uint32_t k = c - 0x100;
    if (k <= 0x20)
        return (int)k;
    return k == 0x43 ? 0xAD : (int)(k + 0x5E);
}
