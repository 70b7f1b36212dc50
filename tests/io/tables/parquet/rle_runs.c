/* Runs of the RLE hybrid: repeated, packed at every width, empty ones, and bytes that end early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/tables/parquet/rle_runs.h"

static uint32_t value_at(size_t i, unsigned width)
{
    return (uint32_t)(i * 2654435761U) >> (32 - width);
}

/* Two packed groups of eight, then a run of five. */
static void every_width_is_read(void **state)
{
    (void)state;
    for (unsigned width = 1; width <= 32; width++) {
        unsigned char bytes[200] = {2 << 1 | 1};
        size_t n = 1 + 2 * width;
        for (size_t i = 0; i < 16; i++)
            for (unsigned b = 0; b < width; b++)
                if (value_at(i, width) >> b & 1) {
                    size_t bit = i * width + b;
                    bytes[1 + bit / 8] |= (unsigned char)(1U << bit % 8);
                }
        bytes[n++] = 5 << 1;
        for (unsigned b = 0; b < (width + 7) / 8; b++)
            bytes[n++] = (unsigned char)(value_at(3, width) >> (8 * b));
        pnb__runs r = {.at = bytes, .end = bytes + n, .width = width};
        uint32_t v = 0;
        for (size_t i = 0; i < 21; i++) {
            assert_true(pnb__runs_next(&r, &v));
            assert_int_equal(v, value_at(i < 16 ? i : 3, width));
        }
        assert_false(pnb__runs_next(&r, &v));
    }
}

static void bytes_may_end(void **state)
{
    static const unsigned char bytes[] = {2 << 1 | 1, 0xFF, 0x80};
    static const unsigned char empty[200] = {0};
    uint32_t v = 1;
    (void)state;
    pnb__runs r = {.at = bytes, .end = bytes + 2, .width = 4};
    assert_true(pnb__runs_next(&r, &v) && v == 15);
    assert_true(pnb__runs_next(&r, &v) && v == 15);
    assert_false(pnb__runs_next(&r, &v));
    r = (pnb__runs){.at = bytes + 2, .end = bytes + 3, .width = 4};
    assert_false(pnb__runs_next(&r, &v)); /* a count that goes on */
    r = (pnb__runs){.at = empty, .end = empty + sizeof empty, .width = 1};
    assert_false(pnb__runs_next(&r, &v)); /* nothing but empty runs */
    r = (pnb__runs){0};
    assert_true(pnb__runs_next(&r, &v) && v == 0); /* no bits, no bytes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_width_is_read),
                                       cmocka_unit_test(bytes_may_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
