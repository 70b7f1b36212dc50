/* Pictures of tests/io/data/image: what Pillow makes of them, as hashes (expected.txt), and what
 * must hold of every decoder when they are cut short, damaged, or memory runs out. */
#ifndef TESTS_IO_IMAGE_SUPPORT_H
#define TESTS_IO_IMAGE_SUPPORT_H

#include "io/image/formats/codec.h"
#include "tests/io/scratch.h"

#define DATA PNB_SOURCE_DIR "/tests/io/data/image/"

/* ---- data/image/expected.txt ---- */

static inline uint64_t fnv1a(const unsigned char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

typedef struct pillow_line {
    char file[64], op[32];
    int width, height;
    unsigned long long hash;
} pillow_line;

static inline pnb_filter filter_of(const char *name)
{
    for (int f = PNB_FILTER_NEAREST; f <= PNB_FILTER_HAMMING; f++)
        if (strcmp(name, pnb_filter_name((pnb_filter)f)) == 0)
            return (pnb_filter)f;
    fail_msg("filter %s", name);
    return PNB_FILTER_NEAREST;
}

/* The picture that one line of the table describes. */
static inline void make(const pillow_line *l, pnb_image *out)
{
    char path[512];
    pnb_error err = PNB_ERROR_INIT;
    pnb_image in, resized;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.exif = strcmp(l->op, "exif") == 0;
    opts.native = strncmp(l->op, "native-", 7) == 0;
    snprintf(path, sizeof path, DATA "%s", l->file);
    if (pnb_image_load(&in, path, &opts, &err) != PNB_OK)
        fail_msg("%s", err.text);
    if (strchr(l->op, '-') == NULL) {
        *out = in;
        return;
    }
    pnb_box box = {3.5, 2.25, 30.75, 28};
    const pnb_box *used = strncmp(l->op, "box-", 4) == 0 ? &box : NULL;
    pnb_filter filter = filter_of(strchr(l->op, '-') + 1);
    if (pnb_image_resize(&resized, &in, l->width, l->height, filter, used, &err) != PNB_OK)
        fail_msg("%s %s: %s", l->file, l->op, err.text);
    assert_int_equal(pnb_image_to_rgb(out, &resized, NULL), PNB_OK);
    pnb_image_free(&resized);
    pnb_image_free(&in);
}

/* The lines for files of this ending (NULL: of all) that resize or do not; at least so many. */
static inline void expect_pillow(const char *ending, bool resizes, int least)
{
    char text[256];
    int n_lines = 0, n_wrong = 0;
    FILE *f = fopen(DATA "expected.txt", "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f) != NULL) {
        pillow_line l;
        pnb_image got;
        const char *formats = pnb_image_formats();
        if (sscanf(text, "%63s %31s %d %d %llx", l.file, l.op, &l.width, &l.height, &l.hash) != 5)
            continue;
        bool is_readable = pnb__ends_with(l.file, ".gif")
                               ? strstr(formats, "GIF") != NULL
                               : !pnb__ends_with(l.file, ".tif") || strstr(formats, "TIFF") != NULL;
        if (!is_readable || (strchr(l.op, '-') != NULL) != resizes ||
            (ending != NULL && !pnb__ends_with(l.file, ending)))
            continue;
        make(&l, &got);
        size_t n = (size_t)got.width * (size_t)got.height * 3;
        bool same =
            got.width == l.width && got.height == l.height && fnv1a(got.pixels, n) == l.hash;
        if (!same)
            print_error("differs: %s", text);
        n_wrong += !same;
        n_lines++;
        pnb_image_free(&got);
    }
    fclose(f);
    assert_true(n_lines >= least);
    assert_int_equal(n_wrong, 0);
}

/* ---- files that are cut short, damaged, or lie ---- */

static inline unsigned char *read_file(const char *name, size_t *n)
{
    char path[512], *bytes;
    snprintf(path, sizeof path, DATA "%s", name);
    assert_int_equal(pnb__read_file(path, 1 << 20, &bytes, n, NULL), PNB_OK);
    return (unsigned char *)bytes;
}

/* Decodes a copy of exactly n bytes, so that ASan sees any read behind it. */
static inline pnb_status decode_exact(const unsigned char *bytes, size_t n, pnb_error *err)
{
    pnb_image image;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.exif = true;
    opts.max_pixels = 1 << 24;
    unsigned char *copy = malloc(n > 0 ? n : 1);
    memcpy(copy, bytes, n);
    pnb_status status = pnb_image_decode(&image, copy, n, &opts, err);
    if (status != PNB_OK)
        assert_null(image.pixels);
    pnb_image_free(&image);
    free(copy);
    return status;
}

/* Cut anywhere but in the last `spare` bytes: FORMAT or LIMIT with a text. */
static inline void expect_truncation(const char *const *files, size_t n_files, size_t spare)
{
    for (size_t f = 0; f < n_files; f++) {
        size_t n;
        unsigned char *bytes = read_file(files[f], &n);
        for (size_t cut = 0; cut + spare < n; cut += cut < 64 || cut + 64 > n ? 1 : 7) {
            pnb_error err = PNB_ERROR_INIT;
            pnb_status status = decode_exact(bytes, cut, &err);
            bool is_refused = status == PNB_FORMAT || status == PNB_LIMIT;
            if (!is_refused || err.text[0] == '\0')
                fail_msg("%s cut at %zu of %zu: %s", files[f], cut, n, pnb_status_name(status));
        }
        pnb__free(bytes);
    }
}

static inline void expect_no_harm(const char *const *files, size_t n_files)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 11, 0);
    for (size_t f = 0; f < n_files; f++) {
        size_t n;
        unsigned char *bytes = read_file(files[f], &n);
        for (int round = 0; round < 60; round++) {
            unsigned char old[3];
            size_t at[3];
            for (int k = 0; k < 3; k++) {
                at[k] = (size_t)pnb__rng_below(&rng, n);
                old[k] = bytes[at[k]];
                bytes[at[k]] = (unsigned char)pnb__rng_u32(&rng);
            }
            pnb_error err = PNB_ERROR_INIT;
            if (decode_exact(bytes, n, &err) != PNB_OK)
                assert_true(err.text[0] != '\0');
            for (int k = 2; k >= 0; k--)
                bytes[at[k]] = old[k];
        }
        pnb__free(bytes);
    }
}

static inline void expect_refusal(const unsigned char *bytes, size_t n, int64_t max_pixels,
                                  pnb_status want, const char *text)
{
    pnb_image image;
    pnb_error err = PNB_ERROR_INIT;
    pnb_image_opts opts = pnb_image_opts_default();
    opts.max_pixels = max_pixels;
    pnb_status status = pnb_image_decode(&image, bytes, n, &opts, &err);
    if (status != want)
        fail_msg("%s instead of %s: %s", pnb_status_name(status), pnb_status_name(want), err.text);
    if (strstr(err.text, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

#ifdef PNB_FAULTS
static inline void expect_memory_faults(const char *const *files, size_t n_files)
{
    for (size_t f = 0; f < n_files; f++) {
        size_t n;
        unsigned char *bytes = read_file(files[f], &n);
        pnb_status status = PNB_NOMEM;
        for (long k = 0; status != PNB_OK; k++) {
            pnb_image image, out = {0};
            pnb_preprocess pp = pnb_preprocess_default();
            pnb_image_opts opts = pnb_image_opts_default();
            opts.native = opts.exif = pp.resize_first = true;
            pnb__alloc_fail_after(k);
            status = pnb_image_decode(&image, bytes, n, &opts, NULL);
            if (status == PNB_OK)
                status = pnb_preprocess_pixels(&pp, &image, &out, NULL);
            pnb__alloc_fail_after(-1);
            assert_true(status == PNB_OK || status == PNB_NOMEM || status == PNB_FORMAT);
            assert_true(k < 200);
            pnb_image_free(&image);
            pnb_image_free(&out);
        }
        pnb__free(bytes);
    }
}
#endif

/* The three of them over the file-scope list FILES. */
#define HOSTILE_TESTS(spare)                                                                       \
    static void truncated_everywhere(void **state)                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        expect_truncation(FILES, PNB_COUNT(FILES), spare);                                         \
    }                                                                                              \
    static void damaged_bytes_do_no_harm(void **state)                                             \
    {                                                                                              \
        (void)state;                                                                               \
        expect_no_harm(FILES, PNB_COUNT(FILES));                                                   \
    }                                                                                              \
    static void memory_may_run_out_anywhere(void **state)                                          \
    {                                                                                              \
        (void)state;                                                                               \
        EXPECT_MEMORY_FAULTS(FILES, PNB_COUNT(FILES));                                             \
    }
#ifdef PNB_FAULTS
#define EXPECT_MEMORY_FAULTS(files, n) expect_memory_faults(files, n)
#else
#define EXPECT_MEMORY_FAULTS(files, n) skip()
#endif

#endif
