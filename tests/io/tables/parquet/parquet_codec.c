/* Codecs: what unfolds to another size than it says is damage, and what is not read says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/tables/parquet/parquet_codec.h"

static const unsigned char gzipped[] = {0x1f, 0x8b, 8,    0,    0,    0,    0, 0, 0,
                                        3,    0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86,
                                        0xa6, 0x10, 0x36, 5,    0,    0,    0};
static const unsigned char snapped[] = {5, 4 << 2, 'h', 'e', 'l', 'l', 'o'};
static const unsigned char zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 5,   0x29,
                                     0,    0,    'h',  'e',  'l',  'l', 'o'};

static void sizes_must_be_right(void **state)
{
    static const struct {
        int codec;
        const unsigned char *bytes;
        size_t n;
    } packed[] = {{PNB__PARQUET_GZIP, gzipped, sizeof gzipped},
                  {PNB__PARQUET_SNAPPY, snapped, sizeof snapped},
                  {PNB__PARQUET_ZSTD, zstd, sizeof zstd}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(packed); i++) {
        char out[8] = "";
        const char *missing = NULL;
        bool ok =
            pnb__parquet_unpack(packed[i].codec, packed[i].bytes, packed[i].n, out, 5, &missing);
        if (missing != NULL) {
            assert_non_null(strstr(missing, "-dev")); /* a build without the library */
            continue;
        }
        assert_true(ok);
        assert_memory_equal(out, "hello", 5);
        for (size_t n = 4; n <= 6; n += 2)
            assert_false(pnb__parquet_unpack(packed[i].codec, packed[i].bytes, packed[i].n, out, n,
                                             &missing));
        assert_false(pnb__parquet_unpack(packed[i].codec, packed[i].bytes, packed[i].n - 1, out, 5,
                                         &missing));
    }
}

/* A page may be gzip's members one after the other, and what follows them is none of them. */
static void members_follow_each_other(void **state)
{
    unsigned char twice[2 * sizeof gzipped + 1] = {0};
    const char *missing = NULL;
    char out[11] = "";
    (void)state;
    memcpy(twice, gzipped, sizeof gzipped);
    memcpy(twice + sizeof gzipped, gzipped, sizeof gzipped);
    for (size_t n = 2 * sizeof gzipped; n <= sizeof twice; n++) {
        assert_true(pnb__parquet_unpack(PNB__PARQUET_GZIP, twice, n, out, 10, &missing));
        assert_memory_equal(out, "hellohello", 10);
        assert_false(pnb__parquet_unpack(PNB__PARQUET_GZIP, twice, n, out, 11, &missing));
    }
    assert_false(
        pnb__parquet_unpack(PNB__PARQUET_GZIP, twice, 2 * sizeof gzipped - 1, out, 10, &missing));
}

static void others_are_named(void **state)
{
    const char *missing = NULL;
    char out[8];
    (void)state;
    assert_false(pnb__parquet_unpack(4, "x", 1, out, 1, &missing));
    assert_string_equal(missing, "");
    assert_string_equal(pnb__parquet_codec_name(4), "BROTLI");
    assert_string_equal(pnb__parquet_codec_name(99), "of an unknown number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_must_be_right),
                                       cmocka_unit_test(members_follow_each_other),
                                       cmocka_unit_test(others_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
