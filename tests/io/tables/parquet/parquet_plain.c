/* Encodings by their bytes: the example of the format's description, numbers at the ends of their
 * ranges, bytes that keep some of the value before; cut, wrong and larger than they may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/tables/parquet/parquet_plain.h"

enum { PLAIN = 0, DELTA_BINARY_PACKED = 5, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, SPLIT = 9 };

static const pnb__parquet_leaf int32 = {.type = PNB__STORED_INT32};
static const pnb__parquet_leaf int64 = {.type = PNB__STORED_INT64};
static const pnb__parquet_leaf real = {.type = PNB__STORED_FLOAT};
static const pnb__parquet_leaf texts = {.type = PNB__STORED_BYTE_ARRAY, .is_bytes = true};
static const pnb__parquet_leaf pairs = {.type = PNB__STORED_FIXED, .type_length = 2};

/* In memory of its own length, so that a byte too many is seen. */
static pnb_status make(const pnb__parquet_leaf *leaf, int encoding, const void *bytes, size_t size,
                       unsigned char **out, size_t *n)
{
    unsigned char *own = malloc(size + 1);
    assert_non_null(own);
    memcpy(own + 1, bytes, size); /* not aligned */
    const pnb__parquet_coded from = {leaf, encoding, own + 1, own + 1 + size, 100};
    *out = NULL;
    pnb_status status = pnb__parquet_make_plain(&from, out, n);
    assert_true(status == PNB_OK || *out == NULL);
    free(own);
    return status;
}

static void expect(const pnb__parquet_leaf *leaf, int encoding, const void *bytes, size_t size,
                   const void *wanted, size_t n_wanted)
{
    unsigned char *out = NULL;
    size_t n = 0;
    assert_int_equal(make(leaf, encoding, bytes, size, &out, &n), PNB_OK);
    assert_int_equal(n, n_wanted);
    assert_memory_equal(out, wanted, n);
    pnb__free(out);
}

static void fails(const pnb__parquet_leaf *leaf, int encoding, const void *bytes, size_t size,
                  pnb_status wanted)
{
    unsigned char *out = NULL;
    size_t n = 0;
    assert_int_equal(make(leaf, encoding, bytes, size, &out, &n), wanted);
}

/* Blocks of 128 in 4, 5 numbers, 7 5 3 1 2: differences -2 -2 -2 1, of which -2 is the least. */
#define HEAD 128, 1, 4
static const unsigned char example[] = {HEAD, 5, 14, 3, 2, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0};

static void differences_add_up(void **state)
{
    static const int32_t five[] = {7, 5, 3, 1, 2};
    static const unsigned char one[] = {HEAD, 1, 5}, none[] = {HEAD, 0, 0};
    static const int32_t minus_three = -3;
    static const int64_t ends[] = {INT64_MIN, INT64_MAX, INT64_MIN};
    /* differences -1 and 1, of 64 bits: 0 and 2 above the least */
    static const unsigned char wide[14 + 5 + 256] = {
        HEAD, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 1,
        64,   0, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0, 2};
    (void)state;
    expect(&int32, DELTA_BINARY_PACKED, example, sizeof example, five, sizeof five);
    expect(&int32, DELTA_BINARY_PACKED, one, sizeof one, &minus_three, 4);
    expect(&int64, DELTA_BINARY_PACKED, none, sizeof none, "", 0);
    expect(&int64, DELTA_BINARY_PACKED, "", 0, "", 0);
    expect(&int64, DELTA_BINARY_PACKED, wide, sizeof wide, ends, sizeof ends);
}

/* 70 numbers, 0 1 2 ..., without a bit of their own, of a second block too. */
static void blocks_follow_each_other(void **state)
{
    static const unsigned char line[] = {32, 1, 70, 0, 2, 0, 2, 0, 2, 0};
    int32_t wanted[70];
    (void)state;
    for (int i = 0; i < 70; i++)
        wanted[i] = i;
    expect(&int32, DELTA_BINARY_PACKED, line, sizeof line, wanted, sizeof wanted);
    for (size_t n = 1; n < sizeof line; n++)
        fails(&int32, DELTA_BINARY_PACKED, line, n, PNB_FORMAT);
}

static void damaged_differences_are_refused(void **state)
{
    static const unsigned char many[] = {HEAD, 101, 0, 0, 0, 0, 0, 0}, no_block[] = {0, 4, 1, 0},
                               no_miniblock[] = {128, 1, 0, 1, 0}, uneven[] = {128, 1, 3, 1, 0},
                               small[] = {16, 1, 1, 0};
    unsigned char wrong[sizeof example];
    (void)state;
    for (size_t n = 1; n < 11; n++)
        fails(&int32, DELTA_BINARY_PACKED, example, n, PNB_FORMAT);
    fails(&int32, DELTA_BINARY_PACKED, many, sizeof many, PNB_FORMAT);
    fails(&int32, DELTA_BINARY_PACKED, no_block, sizeof no_block, PNB_FORMAT);
    fails(&int32, DELTA_BINARY_PACKED, no_miniblock, sizeof no_miniblock, PNB_FORMAT);
    fails(&int32, DELTA_BINARY_PACKED, uneven, sizeof uneven, PNB_FORMAT);
    fails(&int32, DELTA_BINARY_PACKED, small, sizeof small, PNB_FORMAT);
    memcpy(wrong, example, sizeof example);
    wrong[6] = 65; /* bits a difference */
    fails(&int32, DELTA_BINARY_PACKED, wrong, sizeof wrong, PNB_FORMAT);
}

/* Lengths 1 0 2, "a" "" "bc". */
static const unsigned char lengths[] = {HEAD, 3, 2, 1, 2, 0, 0,   0,   0x0C, 0,
                                        0,    0, 0, 0, 0, 0, 'a', 'b', 'c'};
/* "axis" "axle" "a": 0 2 1 kept, 4 2 0 their own. */
static const unsigned char kept[] = {HEAD, 3, 0, 1, 2, 0, 0, 0, 0x03, 0,   0,   0,   0,   0,  0, 0,
                                     HEAD, 3, 8, 3, 0, 0, 0, 0, 'a',  'x', 'i', 's', 'l', 'e'};

static void bytes_are_put_together(void **state)
{
    static const char three[] = "\1\0\0\0a\0\0\0\0\2\0\0\0bc",
                      words[] = "\4\0\0\0axis\4\0\0\0axle\1\0\0\0a";
    /* ab, ac: 0 1 kept, 2 1 their own */
    static const unsigned char twice[] = {HEAD, 2, 0, 2, 0, 0, 0,   0,   HEAD, 2,
                                          4,    1, 0, 0, 0, 0, 'a', 'b', 'c'};
    unsigned char wrong[sizeof kept];
    (void)state;
    expect(&texts, DELTA_LENGTH_BYTE_ARRAY, lengths, sizeof lengths, three, sizeof three - 1);
    for (size_t n = 1; n < sizeof lengths; n++)
        fails(&texts, DELTA_LENGTH_BYTE_ARRAY, lengths, n, PNB_FORMAT);
    expect(&texts, DELTA_BYTE_ARRAY, kept, sizeof kept, words, sizeof words - 1);
    for (size_t n = 1; n < sizeof kept; n++)
        fails(&texts, DELTA_BYTE_ARRAY, kept, n, PNB_FORMAT);
    expect(&pairs, DELTA_BYTE_ARRAY, twice, sizeof twice, "abac", 4);
    expect(&texts, DELTA_BYTE_ARRAY, "", 0, "", 0);
    memcpy(wrong, kept, sizeof kept);
    wrong[4] = 2; /* the first keeps one */
    fails(&texts, DELTA_BYTE_ARRAY, wrong, sizeof wrong, PNB_FORMAT);
    wrong[4] = 1; /* or minus one */
    fails(&texts, DELTA_BYTE_ARRAY, wrong, sizeof wrong, PNB_FORMAT);
    memcpy(wrong, kept, sizeof kept);
    wrong[21] = 2; /* other numbers of both */
    fails(&texts, DELTA_BYTE_ARRAY, wrong, sizeof wrong, PNB_FORMAT);
    fails(&pairs, DELTA_BYTE_ARRAY, kept, sizeof kept, PNB_FORMAT); /* not two bytes each */
}

static void streams_are_joined(void **state)
{
    static const unsigned char split[] = {1, 5, 2, 6, 3, 7, 4, 8},
                               joined[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const unsigned char many[404] = {0};
    (void)state;
    expect(&real, SPLIT, split, 8, joined, 8);
    expect(&int32, SPLIT, split, 8, joined, 8);
    expect(&int64, SPLIT, joined, 8, joined, 8);
    expect(&pairs, SPLIT, "adbe", 4, "abde", 4);
    fails(&real, SPLIT, split, 7, PNB_FORMAT);
    fails(&real, SPLIT, many, sizeof many, PNB_FORMAT); /* 101 values of 100 rows */
}

/* A value of 4 MiB, kept whole by 99 others: they would be 400 MiB. Differences of three bytes. */
static void pages_have_a_largest_size(void **state)
{
    /* 0 4M 4M ... are kept */
    static const unsigned char before[] = {HEAD, 100, 0, 0, 24, 24, 24, 24, 0, 0, 0x40};
    /* 4M 0 0 ... are their own: -4M is the least difference */
    static const unsigned char own[] = {HEAD, 100,  0x80, 0x80, 0x80, 0x04, 0xFF,
                                        0xFF, 0xFF, 0x03, 24,   24,   24,   24};
    enum { N_BITS = 4 * 32 * 3, N_HEADS = 10 + 16 + 2 * N_BITS, LARGE = 4 << 20 };
    unsigned char *bytes = calloc(1, N_HEADS + LARGE), *second = bytes + 10 + N_BITS, *out = NULL;
    size_t n = 0;
    (void)state;
    assert_non_null(bytes);
    memcpy(bytes, before, sizeof before);
    memcpy(second, own, sizeof own);
    for (size_t i = 1; i < 99; i++)
        second[sizeof own + 3 * i + 2] = 0x40;
    const pnb__parquet_coded from = {&texts, DELTA_BYTE_ARRAY, bytes, bytes + N_HEADS + LARGE, 100};
    assert_int_equal(pnb__parquet_make_plain(&from, &out, &n), PNB_LIMIT);
    free(bytes);
}

static void others_are_not_read(void **state)
{
    (void)state;
    fails(&texts, DELTA_BINARY_PACKED, example, sizeof example, PNB_UNSUPPORTED);
    fails(&int32, DELTA_LENGTH_BYTE_ARRAY, lengths, sizeof lengths, PNB_UNSUPPORTED);
    fails(&pairs, DELTA_LENGTH_BYTE_ARRAY, lengths, sizeof lengths, PNB_UNSUPPORTED);
    fails(&int64, DELTA_BYTE_ARRAY, kept, sizeof kept, PNB_UNSUPPORTED);
    fails(&texts, SPLIT, "abcd", 4, PNB_UNSUPPORTED);
    fails(&int32, 4, "abcd", 4, PNB_UNSUPPORTED);
    assert_string_equal(pnb__parquet_encoding_name(4), "BIT_PACKED");
    assert_string_equal(pnb__parquet_encoding_name(1), "of an unknown number");
    assert_string_equal(pnb__parquet_encoding_name(-1), "of an unknown number");
}

static void plain_values_are_what_the_column_says(void **state)
{
    static const unsigned char bytes[] = {0xFF, 0xFF, 0xFF, 0xFF};
    const pnb__parquet_leaf bare = {.type = PNB__STORED_INT32};
    const pnb__parquet_leaf whole = {.type = PNB__STORED_INT32, .meaning = PNB__PARQUET_UNSIGNED};
    const pnb__parquet_leaf half = {
        .type = PNB__STORED_FIXED, .type_length = 2, .meaning = PNB__PARQUET_HALF};
    const unsigned char *at = bytes;
    pnb__parquet_value v;
    (void)state;
    assert_true(pnb__parquet_take_plain(&bare, &at, bytes + 4, &v));
    assert_true(v.kind == PNB__PARQUET_INT && v.integer == -1 && at == bytes + 4);
    at = bytes;
    assert_true(pnb__parquet_take_plain(&whole, &at, bytes + 4, &v));
    assert_true(v.kind == PNB__PARQUET_INT && v.integer == UINT32_MAX);
    at = (const unsigned char *)"\x00\xC1";
    assert_true(pnb__parquet_take_plain(&half, &at, at + 2, &v));
    assert_true(v.kind == PNB__PARQUET_REAL && v.real == -2.5);
    at = bytes;
    assert_false(pnb__parquet_take_plain(&bare, &at, bytes + 3, &v));
    at = bytes;
    assert_false(pnb__parquet_take_plain(&texts, &at, bytes + 4, &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences_add_up),
                                       cmocka_unit_test(blocks_follow_each_other),
                                       cmocka_unit_test(damaged_differences_are_refused),
                                       cmocka_unit_test(bytes_are_put_together),
                                       cmocka_unit_test(streams_are_joined),
                                       cmocka_unit_test(pages_have_a_largest_size),
                                       cmocka_unit_test(others_are_not_read),
                                       cmocka_unit_test(plain_values_are_what_the_column_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
