/* safetensors files made by hand, and six arrays of several types. */
#ifndef TESTS_IO_WEIGHTS_IMAGES_H
#define TESTS_IO_WEIGHTS_IMAGES_H

#include "io/weights/safetensors.h"
#include "tests/io/scratch.h"

typedef struct image {
    unsigned char bytes[4096];
    size_t size;
} image;

/* Length word, header text, n data bytes 0, 1, 2, ... */
static inline image make_image(const char *header, size_t n_data)
{
    image m = {.size = 8 + strlen(header) + n_data};
    uint64_t length = strlen(header);
    memcpy(m.bytes, &length, 8);
    memcpy(m.bytes + 8, header, (size_t)length);
    for (size_t i = 0; i < n_data; i++)
        m.bytes[8 + length + i] = (unsigned char)i;
    return m;
}

/* Opens a copy of exactly that many bytes, so that reading past them is seen by ASan. */
static inline pnb_status open_image(pnb_safetensors **st, const image *m, unsigned char **copy,
                                    pnb_error *err)
{
    *copy = malloc(m->size > 0 ? m->size : 1);
    assert_non_null(*copy);
    memcpy(*copy, m->bytes, m->size);
    return pnb_safetensors_open_bytes(st, *copy, m->size, err);
}

static inline void expect_refused(const image *m, pnb_status wanted, const char *words)
{
    pnb_safetensors *st = NULL;
    unsigned char *copy = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status found = open_image(&st, m, &copy, &err);
    assert_failed(found, &err, wanted, words);
    assert_null(st);
    free(copy);
}

enum { N_MIXED = 6 };

static const double mixed_f64[2] = {0.1, -2.0};
static const float mixed_f32[6] = {1, 2, 3, 4, 5, 6};
static const uint16_t mixed_f16[3] = {0x3c00, 0x7c00, 0x8001};
static const uint8_t mixed_bool[3] = {0, 1, 1};
static const int64_t mixed_i64[1] = {INT64_MIN};

static inline void mixed_arrays(pnb_array_view a[N_MIXED])
{
    a[0] = (pnb_array_view){"mask", PNB_BOOL, 1, {3}, mixed_bool, 3};
    a[1] = (pnb_array_view){"half \"quoted\" \xc3\xa9", PNB_F16, 1, {3}, mixed_f16, 6};
    a[2] = (pnb_array_view){"w", PNB_F32, 2, {2, 3}, mixed_f32, 24};
    a[3] = (pnb_array_view){"scalar", PNB_I64, 0, {0}, mixed_i64, 8};
    a[4] = (pnb_array_view){"d", PNB_F64, 1, {2}, mixed_f64, 16};
    a[5] = (pnb_array_view){"none", PNB_F32, 2, {4, 0}, NULL, 0};
}

static const char *const mixed_metadata[] = {"format", "pt", "note", "a\nb\t\"c\" \\", NULL};

#endif
