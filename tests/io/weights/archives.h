/* Checkpoints opened byte for byte, and zip archives made member by member, true or not. */
#ifndef TESTS_IO_WEIGHTS_ARCHIVES_H
#define TESTS_IO_WEIGHTS_ARCHIVES_H

#include "tests/io/scratch.h"

#include <zlib.h>

#include "penumbra/checkpoint.h"

#define DATA PNB_SOURCE_DIR "/tests/io/data/checkpoint/"

/* Opens exactly n bytes, so that ASan sees any read behind them, and reads every array. */
static inline pnb_status open_exact(const void *bytes, size_t n, pnb_error *err)
{
    pnb_checkpoint *c = NULL;
    unsigned char *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    pnb_status status = pnb_checkpoint_open_bytes(&c, copy, n, err);
    if (status != PNB_OK) {
        assert_null(c);
        assert_true(err->text[0] != '\0');
    }
    unsigned sum = 0;
    for (size_t i = 0; c != NULL && i < pnb_checkpoint_count(c); i++) {
        const pnb_array_view *a = pnb_checkpoint_at(c, i);
        for (size_t j = 0; j < a->n_bytes; j++)
            sum += ((const unsigned char *)a->data)[j];
    }
    assert_true(sum < UINT32_MAX);
    pnb_checkpoint_free(c);
    free(copy);
    return status;
}

typedef struct archive {
    pnb__buf bytes, directory;
    size_t n;
} archive;

static inline void put(pnb__buf *b, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        pnb__buf_putc(b, (char)(unsigned char)(i < 8 ? value >> (8 * i) : 0));
}

typedef struct member {
    const char *name;
    const void *data;
    size_t n, n_unpacked;
    int method, flags;
    long place; /* -1: where it is written; else another local header's */
    uint32_t crc;
} member;

static inline void add_entry(archive *a, const member *m, size_t at)
{
    put(&a->directory, 0x02014b50, 4);
    put(&a->directory, 0, 4);
    put(&a->directory, (uint64_t)m->flags, 2);
    put(&a->directory, (uint64_t)m->method, 2);
    put(&a->directory, 0, 4);
    put(&a->directory, m->crc, 4);
    put(&a->directory, m->n, 4);
    put(&a->directory, m->n_unpacked, 4);
    put(&a->directory, strlen(m->name), 2);
    put(&a->directory, 0, 12);
    put(&a->directory, at, 4);
    pnb__buf_puts(&a->directory, m->name);
    a->n++;
}

static inline void add_raw(archive *a, const member *m)
{
    size_t at = m->place >= 0 ? (size_t)m->place : a->bytes.size;
    add_entry(a, m, at);
    if (m->place >= 0)
        return;
    put(&a->bytes, 0x04034b50, 4);
    put(&a->bytes, 0, 2);
    put(&a->bytes, (uint64_t)m->flags, 2);
    put(&a->bytes, (uint64_t)m->method, 2);
    put(&a->bytes, 0, 4);
    put(&a->bytes, m->crc, 4);
    put(&a->bytes, m->n, 4);
    put(&a->bytes, m->n_unpacked, 4);
    put(&a->bytes, strlen(m->name), 2);
    put(&a->bytes, 0, 2);
    pnb__buf_puts(&a->bytes, m->name);
    pnb__buf_append(&a->bytes, m->data, m->n);
}

static inline member stored(const char *name, const void *data, size_t n)
{
    return (member){name, data, n, n, 0, 0, -1, (uint32_t)crc32(0, data, (uInt)n)};
}

static inline void add_stored(archive *a, const char *name, const void *data, size_t n)
{
    member m = stored(name, data, n);
    add_raw(a, &m);
}

/* Directory and end record; free with archive_reset. */
static inline void end_archive(archive *a)
{
    size_t at = a->bytes.size;
    pnb__buf_append(&a->bytes, a->directory.data, a->directory.size);
    put(&a->bytes, 0x06054b50, 4);
    put(&a->bytes, 0, 4);
    put(&a->bytes, a->n, 2);
    put(&a->bytes, a->n, 2);
    put(&a->bytes, a->directory.size, 4);
    put(&a->bytes, at, 4);
    put(&a->bytes, 0, 2);
}

static inline void archive_reset(archive *a)
{
    pnb__buf_reset(&a->bytes);
    pnb__buf_reset(&a->directory);
    a->n = 0;
}

static inline pnb_status close_and_open(archive *a, pnb_error *err)
{
    end_archive(a);
    pnb_status status = open_exact(a->bytes.data, a->bytes.size, err);
    archive_reset(a);
    return status;
}

/* {"w": tensor of storage "0"}; the texts are pickled numbers and tuples. */
static inline size_t tensor_pickle(char *out, size_t size, const char *n_elements,
                                   const char *offset, const char *shape, const char *stride)
{
    int n = snprintf(out, size,
                     "}(U\001wctorch._utils\n_rebuild_tensor_v2\n((U\007storagectorch\n"
                     "FloatStorage\nU\0010U\003cpuI%s\ntQI%s\n(%st(%st\x89}tRu.",
                     n_elements, offset, shape, stride);
    assert_true(n > 0 && (size_t)n < size);
    return (size_t)n;
}

#endif
