/* What lies in a page: the bytes of a data: link, and text that must or must not be there. */
#ifndef PNB_TESTS_REPORT_PAGE_H
#define PNB_TESTS_REPORT_PAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* Decodes the base64 behind the first `start` of a page up to the closing quote; how many bytes. */
static size_t decode_after(const char *page, const char *start, void *out, size_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    int n_bits = 0;
    size_t n = 0;
    const char *at = strstr(page, start);
    assert_non_null(at);
    for (at += strlen(start); *at != '"' && *at != '=' && *at != '\0'; at++) {
        const char *letter = strchr(letters, *at);
        assert_non_null(letter);
        bits = bits << 6 | (uint32_t)(letter - letters);
        n_bits += 6;
        if (n_bits >= 8 && n < size) {
            n_bits -= 8;
            ((unsigned char *)out)[n++] = (unsigned char)(bits >> n_bits & 255);
        }
    }
    return n;
}

/* The text behind `href="data:<type>;base64,` in the page. */
__attribute__((unused)) static void decode_link(const pnb__buf *page, const char *type, char *out,
                                                size_t size)
{
    char start[80];
    snprintf(start, sizeof start, "href=\"data:%s;base64,", type);
    out[decode_after(page->data, start, out, size - 1)] = '\0';
}

#endif
