/* Bytes of file names in JSON.
 *
 * A name need not be UTF-8, a JSON text must: see the header for the two forms. */
#include "io/byte_names.h"

#include <string.h>

#include "io/json/json.h"

enum { FORM_BYTES = 6 }; /* of "\udcXX", and of two non-characters */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Code unit of "\uXXXX" at p (n bytes left), -1 if none is there. */
static int code_unit(const char *p, size_t n)
{
    int unit = 0;
    if (n < FORM_BYTES || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < FORM_BYTES; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        unit = 16 * unit + digit;
    }
    return unit;
}

/* The byte two non-characters at p stand for, 0 if there are none. */
static unsigned hidden_byte(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    bool is_pair = n >= FORM_BYTES && u[0] == 0xEF && u[1] == 0xB7 && u[2] >= 0x98 &&
                   u[2] <= 0x9F && u[3] == 0xEF && u[4] == 0xB7 && u[5] >= 0xA0 && u[5] <= 0xAF;
    return is_pair ? (u[2] - 0x90u) << 4 | (u[5] - 0xA0u) : 0;
}

static void hide_byte(char *p, unsigned byte)
{
    p[0] = p[3] = (char)0xEF;
    p[1] = p[4] = (char)0xB7;
    p[2] = (char)(0x90 + (byte >> 4));
    p[5] = (char)(0xA0 + (byte & 15));
}

void pnb__byte_name_hidden(pnb__buf *b, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n;) {
        char hidden[FORM_BYTES];
        uint32_t code_point;
        size_t length = pnb__utf8_decode(name + i, n - i, &code_point);
        if (length == 0)
            hide_byte(hidden, (unsigned char)name[i]);
        pnb__buf_append(b, length > 0 ? name + i : hidden, length > 0 ? length : FORM_BYTES);
        i += PNB_MAX(length, (size_t)1);
    }
}

void pnb__byte_name_append(pnb__buf *b, const char *name)
{
    size_t start = b->size;
    pnb__buf text = {0};
    pnb__byte_name_hidden(&text, name);
    b->failed |= text.failed;
    pnb__json_append_string(b, text.data != NULL ? text.data : "");
    if (!b->failed)
        pnb__byte_names_show(b->data + start, b->size - start);
    pnb__buf_reset(&text);
}

void pnb__byte_names_hide(char *json, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        if (json[i] != '\\')
            continue;
        int unit = code_unit(json + i, n - i);
        if (unit >= 0xD800 && unit <= 0xDBFF) {
            i += 2 * FORM_BYTES - 1; /* with the low surrogate that belongs to it */
        } else if (unit >= 0xDC80 && unit <= 0xDCFF) {
            hide_byte(json + i, (unsigned)unit & 0xFFu);
            i += FORM_BYTES - 1;
        } else {
            i++; /* what is escaped is no escape itself */
        }
    }
}

void pnb__byte_names_show(char *json, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i + FORM_BYTES <= n; i++) {
        unsigned byte = hidden_byte(json + i, n - i);
        if (byte == 0)
            continue;
        memcpy(json + i, "\\udc", 4);
        json[i + 4] = digits[byte >> 4];
        json[i + 5] = digits[byte & 15];
        i += FORM_BYTES - 1;
    }
}

void pnb__byte_name_restore(char *text)
{
    size_t n = strlen(text), to = 0;
    for (size_t i = 0; i < n;) {
        unsigned byte = hidden_byte(text + i, n - i);
        text[to++] = byte != 0 ? (char)byte : text[i];
        i += byte != 0 ? FORM_BYTES : 1;
    }
    text[to] = '\0';
}
