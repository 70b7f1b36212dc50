/* Shared by the tests of this folder: data sets opened from a scratch folder, or refused, and what
 * their samples are. */
#ifndef PNB_TESTS_DATA_SOURCES_OPENED_H
#define PNB_TESTS_DATA_SOURCES_OPENED_H

#include "io/tables/tar.h"
#include "tests/data/fixture.h"

/* Fails with a text that holds `part`. */
#define ASSERT_FAILS(call, want, part)                                                             \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        assert_int_equal((call), want);                                                            \
        if (strstr(err.text, part) == NULL)                                                        \
            fail_msg("'%s' does not say '%s'", err.text, part);                                    \
    } while (0)

static char *scratch;

static inline int setup(void **state)
{
    (void)state;
    scratch = scratch_create();
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    scratch_remove(scratch);
    return 0;
}

static inline char *in_scratch(const char *name)
{
    char *path = pnb__path_join(scratch, name);
    assert_non_null(path);
    return path;
}

/* Opens scratch/spec. */
static inline pnb_dataset *open_ok(const char *spec, const pnb_dataset_opts *opts)
{
    pnb_dataset *ds = NULL;
    char *path = in_scratch(spec);
    ASSERT_OK(pnb_dataset_open(&ds, path, opts, &err));
    pnb__free(path);
    return ds;
}

static inline void open_fails(const char *spec, const pnb_dataset_opts *opts, pnb_status wanted,
                              const char *text)
{
    pnb_dataset *ds = NULL;
    pnb_error error = PNB_ERROR_INIT;
    char *path = in_scratch(spec);
    assert_int_equal(pnb_dataset_open(&ds, path, opts, &error), wanted);
    assert_null(ds);
    if (!strstr(error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
    pnb__free(path);
}

static inline void expect_texts(const pnb_dataset *ds, size_t i, const char *key,
                                const char *joined)
{
    pnb_sample s = {0};
    pnb__buf b = {0};
    ASSERT_OK(pnb_dataset_get(ds, i, &s, &err));
    for (size_t k = 0; k < s.n_texts; k++)
        pnb__buf_printf(&b, "%s%s", k ? "|" : "", s.texts[k]);
    assert_string_equal(s.key, key);
    assert_string_equal(b.data ? b.data : "", joined);
    pnb__buf_reset(&b);
    pnb_sample_reset(&s);
}

static inline void expect_image(const pnb_dataset *ds, size_t i, int value)
{
    pnb_image image;
    ASSERT_OK(pnb_dataset_image(ds, i, &image, &err));
    assert_int_equal(image.width, 24);
    assert_int_equal(image.pixels[0], value);
    pnb_image_free(&image);
}

static inline void get_fails(const pnb_dataset *ds, size_t i, pnb_status wanted, const char *text)
{
    pnb_sample s = {0};
    pnb_error error = PNB_ERROR_INIT;
    assert_int_equal(pnb_dataset_get(ds, i, &s, &error), wanted);
    assert_null(s.memory);
    if (!strstr(error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
}

/* ---- shards ---- */

static inline void add(pnb__tar_writer *w, const char *name, const char *text)
{
    ASSERT_OK(pnb__tar_writer_add(w, name, text, strlen(text), &err));
}

static inline void add_png(pnb__tar_writer *w, const char *name, int value)
{
    size_t n;
    unsigned char *bytes = make_png(24, 16, value, &n);
    ASSERT_OK(pnb__tar_writer_add(w, name, bytes, n, &err));
    pnb_image_bytes_free(bytes);
}

static inline void start_tar(pnb__tar_writer *w, const char *name)
{
    char *path = in_scratch(name);
    ASSERT_OK(pnb__tar_writer_open(w, path, &err));
    pnb__free(path);
}

static inline void write_shard(const char *name, int first, int n)
{
    pnb__tar_writer w;
    start_tar(&w, name);
    for (int i = first; i < first + n; i++) {
        char member[32];
        snprintf(member, sizeof member, "s%03d.png", i);
        add_png(&w, member, i);
        snprintf(member, sizeof member, "s%03d.txt", i);
        add(&w, member, member);
    }
    ASSERT_OK(pnb__tar_writer_commit(&w, &err));
}

/* Keys of the samples, joined by spaces. */
static inline void keys_of(const pnb_dataset *ds, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < pnb_dataset_size(ds); i++) {
        pnb_sample sample;
        ASSERT_OK(pnb_dataset_get(ds, i, &sample, &err));
        used += (size_t)snprintf(text + used, size - used, "%s ", sample.key);
        pnb_sample_reset(&sample);
    }
}

/* ---- sets of classes, in a folder of the test ---- */

static inline char *at(const char *dir, const char *name)
{
    char *path = pnb__path_join(dir, name);
    assert_non_null(path);
    return path;
}

static inline pnb_dataset *open_set(const char *dir, const char *name)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    char *path = at(dir, name);
    opts.allow_no_caption = true;
    ASSERT_OK(pnb_dataset_open(&ds, path, &opts, &err));
    pnb__free(path);
    return ds;
}

static inline void expect_refused(const char *dir, const char *name, pnb_status want,
                                  const char *part)
{
    pnb_dataset_opts opts = pnb_dataset_opts_default();
    pnb_dataset *ds = NULL;
    char *path = at(dir, name);
    opts.allow_no_caption = true;
    ASSERT_FAILS(pnb_dataset_open(&ds, path, &opts, &err), want, part);
    assert_null(ds);
    pnb__free(path);
}

static inline void expect_sample(const pnb_dataset *ds, size_t i, int64_t label, const char *name)
{
    pnb_sample s = {0};
    ASSERT_OK(pnb_dataset_get(ds, i, &s, &err));
    assert_int_equal(s.label, label);
    if (name == NULL)
        assert_null(s.class_name);
    else
        assert_string_equal(s.class_name, name);
    pnb_sample_reset(&s);
}

static inline void expect_pixel(const pnb_dataset *ds, size_t i, int x, int y, const int rgb[3])
{
    pnb_image image;
    ASSERT_OK(pnb_dataset_image(ds, i, &image, &err));
    assert_int_equal(image.channels, 3);
    for (int c = 0; c < 3; c++)
        assert_int_equal(image.pixels[(y * image.width + x) * 3 + c], rgb[c]);
    pnb_image_free(&image);
}

static inline void expect_split(const char *dir, const char *split, const char *want)
{
    char *path, *full = want[0] != 0 ? at(dir, want) : pnb__strdup(dir);
    ASSERT_OK(pnb_dataset_split(&path, dir, split, &err));
    assert_string_equal(path, full);
    pnb_dataset_path_free(path);
    pnb__free(full);
}

#endif
