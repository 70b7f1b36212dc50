/* Character references of HTML5 as Python's html.unescape reads them:
 *
 *   &#955; &#x3bb; &lambda;   also without the semicolon where HTML5 allows it, and then as the
 *   longest name that the text begins with: "&notit;" is U+00AC and "it;"
 *
 * Numbers of Windows-1252's upper half mean its characters, surrogates and numbers out of range are
 * U+FFFD, and numbers of other characters that HTML5 forbids are dropped. */
#include <string.h>

#include "tokenizer/clean/html_unescape.h"

#define MAX_NAME 32 /* characters behind '&' that can be part of a reference */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static bool is_forbidden(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || (c >= 0x7F && c <= 0x9F) ||
           (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

static void put_number(pnb__buf *out, uint32_t c)
{
    if (c == 0 || (c >= 0xD800 && c <= 0xDFFF) || c > 0x10FFFF)
        pnb__put_char(out, 0xFFFD);
    else if (c >= 0x80 && c <= 0x9F)
        pnb__put_char(out, pnb__windows_1252((unsigned char)c));
    else if (!is_forbidden(c))
        pnb__put_char(out, c);
}

/* "#123;" or "#x7b;" at s: bytes used, 0 when it is none. */
static size_t read_number(pnb__buf *out, const char *s, size_t n, bool strict)
{
    bool is_hex = n > 1 && (s[1] | 32) == 'x';
    size_t begin = is_hex ? 2 : 1, at = begin;
    uint32_t value = 0;
    for (; at < n; at++) {
        int digit = is_hex ? hex_value(s[at]) : is_digit(s[at]) ? s[at] - '0' : -1;
        if (digit < 0)
            break;
        if (value <= 0x10FFFF)
            value = value * (is_hex ? 16 : 10) + (uint32_t)digit;
    }
    bool is_closed = at < n && s[at] == ';';
    if (at == begin || (strict && !is_closed))
        return 0;
    put_number(out, value);
    return at + is_closed;
}

/* Characters that the reference takes at most, in bytes; the semicolon is not among them. */
static size_t extent(const char *s, size_t n)
{
    static const char ends[] = "\t\n\f <&#;";
    size_t at = 0;
    for (int i = 0; i < MAX_NAME && at < n; i++) {
        uint32_t c;
        if (memchr(ends, s[at], sizeof ends - 1) != NULL)
            break;
        at += pnb__next_char(s + at, n - at, &c);
    }
    return at;
}

typedef struct reference {
    const char *value;
    size_t n_value, used;
} reference;

/* The best entry for a run of letters and digits; `closed`: a semicolon follows the run. */
static reference find_name(const char *s, size_t n_run, bool closed)
{
    reference best = {0};
    char first = s[0];
    if (n_run < 2 || is_digit(first))
        return best;
    const char *at = pnb__html_entities[first >= 'a' ? first - 'a' + 26 : first - 'A'];
    while (*at != '\0') {
        const char *end = strchr(at, ' '), *value = end + 1, *next = strchr(value, ' ');
        bool is_loose = end[-1] == '?';
        size_t n_name = (size_t)(end - at) - is_loose;
        bool is_whole = n_name == n_run && closed;
        if ((is_whole || is_loose) && n_name <= n_run && n_name + is_whole > best.used &&
            memcmp(at, s, n_name) == 0)
            best = (reference){value, (size_t)(next - value), n_name + is_whole};
        at = next + 1;
    }
    return best;
}

static size_t read_name(pnb__buf *out, const char *s, size_t n, bool strict)
{
    size_t n_all = extent(s, n), n_run = 0;
    while (n_run < n_all && is_alnum(s[n_run]))
        n_run++;
    bool closed = n_run == n_all && n_all < n && s[n_all] == ';';
    if (n_run == 0 || (strict && !closed))
        return 0;
    reference r = find_name(s, n_run, closed);
    if (r.used == 0 || (strict && r.used != n_run + 1))
        return 0;
    pnb__buf_append(out, r.value, r.n_value);
    return r.used;
}

void pnb__html_unescape(pnb__buf *out, const char *s, size_t n, bool strict)
{
    for (size_t i = 0; i < n;) {
        const char *mark = memchr(s + i, '&', n - i);
        size_t plain = mark != NULL ? (size_t)(mark - s) - i : n - i;
        pnb__buf_append(out, s + i, plain);
        i += plain;
        if (i == n)
            break;
        i++;
        size_t used = i < n && s[i] == '#' ? read_number(out, s + i, n - i, strict)
                      : i < n              ? read_name(out, s + i, n - i, strict)
                                           : 0;
        if (used == 0)
            pnb__buf_putc(out, '&');
        i += used;
    }
}
