/* Texts between a collection and Postgres.
 *
 * Ids and paths are bytes, as names of files are; Postgres has UTF-8. A byte b that is part of no
 * valid character becomes U+10FF00 + b, from the private use plane; so do the bytes of such
 * characters where they stand in a name themselves, so that the way back is one. */
#include <string.h>

#include "store/postgres/postgres.h"

/* F4 8F BE 80..BF and F4 8F BF 80..BF: U+10FF80 to U+10FFFF. */
static bool is_escape(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    return u[0] == 0xf4 && u[1] == 0x8f && (u[2] == 0xbe || u[2] == 0xbf) && (u[3] & 0xc0) == 0x80;
}

static void put_byte(pnb__buf *out, unsigned char byte)
{
    const char bytes[4] = {'\xf4', '\x8f', byte < 0xc0 ? '\xbe' : '\xbf',
                           (char)(0x80 | (byte & 0x3f))};
    pnb__buf_append(out, bytes, sizeof bytes);
}

/* Bytes of the valid character that s begins with, 0 where there is none. */
static size_t character(const char *s)
{
    size_t n = (unsigned char)*s < 0x80   ? 1
               : (unsigned char)*s < 0xe0 ? 2
               : (unsigned char)*s < 0xf0 ? 3
                                          : 4;
    return strnlen(s, n) == n && pnb__utf8_valid(s, n) && !(n == 4 && is_escape(s)) ? n : 0;
}

void pnb__pg_escape(pnb__buf *out, const char *bytes)
{
    for (const char *p = bytes; *p != '\0';) {
        size_t n = character(p);
        if (n > 0)
            pnb__buf_append(out, p, n);
        else
            put_byte(out, (unsigned char)*p);
        p += n > 0 ? n : 1;
    }
}

void pnb__pg_unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p != '\0';) {
        bool is_byte = strnlen(p, 4) == 4 && is_escape(p);
        unsigned low = is_byte ? (unsigned char)p[3] & 0x3fU : 0;
        *to++ = is_byte ? (char)(((unsigned char)p[2] == 0xbe ? 0x80U : 0xc0U) | low) : *p;
        p += is_byte ? 4 : 1;
    }
    *to = '\0';
}

void pnb__pg_text_array(pnb__buf *out, const char *const *texts, size_t n)
{
    pnb__buf one = {0};
    pnb__buf_putc(out, '{');
    for (size_t i = 0; i < n; i++) {
        pnb__buf_puts(out, i > 0 ? ",\"" : "\"");
        one.size = 0;
        pnb__pg_escape(&one, texts[i]);
        out->failed = out->failed || one.failed;
        for (size_t at = 0; !out->failed && at < one.size; at++) {
            if (one.data[at] == '"' || one.data[at] == '\\')
                pnb__buf_putc(out, '\\');
            pnb__buf_putc(out, one.data[at]);
        }
        pnb__buf_putc(out, '"');
    }
    pnb__buf_putc(out, '}');
    pnb__buf_reset(&one);
}
