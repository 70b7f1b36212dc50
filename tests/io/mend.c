/* What the fuzzers' mutators make of damaged files: their parsers read them again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "io/weights/zip.h"
#include "penumbra/image.h"
#include "tests/fuzz/mend/png.h"
#include "tests/fuzz/mend/zip.h"

static uint8_t *load(const char *name, size_t *size)
{
    char path[512], *bytes = NULL;
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", PNB_SOURCE_DIR, name);
    assert_int_equal(pnb__read_file(path, 1 << 20, &bytes, size, NULL), PNB_OK);
    return (uint8_t *)bytes;
}

static pnb_status decode(const uint8_t *data, size_t size)
{
    pnb_image_opts opts = pnb_image_opts_default();
    pnb_image image = {0};
    pnb_status status = pnb_image_decode(&image, data, size, &opts, NULL);
    pnb_image_free(&image);
    return status;
}

/* A chunk nobody asked for between header and pixels, with no checksum at all. */
static void png_checksums_are_mended(void **state)
{
    static const uint8_t chunk[] = {0, 0, 0, 2, 't', 'E', 'X', 't', 'a', 0, 0, 0, 0, 0};
    static const char *const names[] = {"image/rgb8.png", "image/pal4_i.png", "image/grey16.png"};
    enum { AFTER_HEADER = 33 };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        size_t size;
        uint8_t *whole = load(names[i], &size), *data = pnb__alloc(size + sizeof chunk);
        memcpy(data, whole, AFTER_HEADER);
        memcpy(data + AFTER_HEADER, chunk, sizeof chunk);
        memcpy(data + AFTER_HEADER + sizeof chunk, whole + AFTER_HEADER, size - AFTER_HEADER);
        data[0] = 0;
        data[AFTER_HEADER - 1] ^= 1; /* the header's checksum */
        assert_int_not_equal(decode(data, size + sizeof chunk), PNB_OK);
        mend_png(data, size + sizeof chunk);
        assert_int_equal(decode(data, size + sizeof chunk), PNB_OK);
        pnb__free(whole);
        pnb__free(data);
    }
}

static pnb_status read_zip(const uint8_t *data, size_t size, size_t *n)
{
    pnb__arena arena;
    pnb__zip zip = {0};
    pnb__arena_init(&arena, 4096);
    pnb_status status = pnb__zip_open(&zip, data, size, "test", &arena, NULL);
    for (size_t i = 0; status == PNB_OK && i < zip.n; i++) {
        const unsigned char *bytes;
        void *owned = NULL;
        status = pnb__zip_read(&zip, &zip.members[i], &bytes, &owned, NULL);
        pnb__free_aligned(owned);
    }
    *n = zip.n;
    pnb__arena_free(&arena);
    return status;
}

/* A byte more in the middle of a member moves all that follows; another one changes. */
static void zip_directories_are_mended(void **state)
{
    static const char *const names[] = {"checkpoint/strided_zip.pt", "checkpoint/dtypes_zip64.pt",
                                        "checkpoint/nested_zip.pt", "checkpoint/shell_zip.pt"};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        size_t size, n_before, n_after;
        uint8_t *whole = load(names[i], &size), *data = pnb__alloc(size + 1);
        assert_int_equal(read_zip(whole, size, &n_before), PNB_OK);
        size_t at = zip_next(whole, size, 1, 3, 4) - 1;
        memcpy(data, whole, at);
        data[at] = 0x55;
        memcpy(data + at + 1, whole + at, size - at);
        data[zip_next(data, size, 0, 1, 2) + 16] ^= 1;
        assert_int_not_equal(read_zip(data, size + 1, &n_after), PNB_OK);
        mend_zip(data, size + 1);
        assert_int_equal(read_zip(data, size + 1, &n_after), PNB_OK);
        assert_int_equal(n_after, n_before);
        pnb__free(whole);
        pnb__free(data);
    }
}

/* Nothing outside is touched, whatever the bytes are: the sanitizer looks on. */
static void any_bytes_can_be_mended(void **state)
{
    static const char *const names[] = {"image/rgb8.png", "checkpoint/dtypes_zip64.pt",
                                        "checkpoint/dtypes_deflated.pt"};
    uint32_t random = 1;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        size_t size;
        uint8_t *whole = load(names[round % 3], &size);
        random = random * 1664525U + 1013904223U;
        size_t kept = random % (size + 1);
        uint8_t *data = pnb__alloc(kept);
        memcpy(data, whole, kept);
        for (int k = 0; k < 4 && kept > 0; k++) {
            random = random * 1664525U + 1013904223U;
            data[random % kept] = (uint8_t)(random >> 24);
        }
        mend_png(data, kept);
        mend_zip(data, kept);
        pnb__free(whole);
        pnb__free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_checksums_are_mended),
        cmocka_unit_test(zip_directories_are_mended),
        cmocka_unit_test(any_bytes_can_be_mended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
