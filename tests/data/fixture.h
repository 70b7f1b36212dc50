/* Shared by the tests of this folder: a scratch folder, small files, digests of folders. */
#ifndef PNB_TESTS_DATA_FIXTURE_H
#define PNB_TESTS_DATA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <ftw.h>
#include <unistd.h>

#include "base/base.h"
#include "penumbra/dataset.h"
#include "penumbra/synth.h"

/* Fails the test with the error's text unless `call`, which fills `err`, returns PNB_OK. */
#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        pnb_error err = PNB_ERROR_INIT;                                                            \
        if ((call) != PNB_OK)                                                                      \
            fail_msg("%s", err.text);                                                              \
    } while (0)

static inline char *scratch_create(void)
{
    const char *base = getenv("TMPDIR");
    char *path = pnb__format("%s/pnb-data-XXXXXX", base ? base : "/tmp");
    assert_non_null(path);
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int scratch_remove_one(const char *path, const struct stat *info, int flag,
                                     struct FTW *ftw)
{
    (void)info;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static inline void scratch_remove(char *path)
{
    assert_int_equal(nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    pnb__free(path);
}

/* dir/name with `text`; folders on the way are made. */
static inline void put_file(const char *dir, const char *name, const void *data, size_t n)
{
    char *path = pnb__path_join(dir, name);
    char *folder = pnb__path_dir(path);
    ASSERT_OK(pnb__make_dirs(folder, &err));
    ASSERT_OK(pnb__write_file(path, data, n, &err));
    pnb__free(folder);
    pnb__free(path);
}

static inline void put_text(const char *dir, const char *name, const char *text)
{
    put_file(dir, name, text, strlen(text));
}

/* A plain picture whose colour tells which one it is. */
static inline unsigned char *make_png(int width, int height, int value, size_t *n)
{
    pnb_image image = {0};
    unsigned char *bytes = NULL;
    ASSERT_OK(pnb_image_create(&image, width, height, 3, &err));
    for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++)
        image.pixels[i] = (unsigned char)(value + (int)(i % 3) * 20);
    ASSERT_OK(pnb_image_encode_png(&image, &bytes, n, &err));
    pnb_image_free(&image);
    return bytes;
}

static inline void put_png(const char *dir, const char *name, int value)
{
    size_t n;
    unsigned char *bytes = make_png(24, 16, value, &n);
    put_file(dir, name, bytes, n);
    pnb_image_bytes_free(bytes);
}

#endif
