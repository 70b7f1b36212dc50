/* Tables that arrow-rs, DuckDB and hyparquet-writer wrote, as img2dataset and DataComp have them:
 * dictionaries that became too large, both versions of pages, differences, streams, page indexes,
 * bloom filters, nulls and lists. tests/cli/common/parquet_foreign.mjs made them, and has the same
 * values, which the writers' own readers gave back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "io/tables/parquet/parquet_codec.h"
#include "io/tables/parquet/parquet_rows.h"

#define CORPUS PNB_SOURCE_DIR "/tests/fuzz/corpus/parquet/"
enum { N = 24 };

static pnb__map map;
static pnb__parquet table;

static pnb_status open_as(const char *name, pnb_error *err)
{
    char path[300];
    snprintf(path, sizeof path, CORPUS "%s", name);
    assert_int_equal(pnb__map_open(&map, path, err), PNB_OK);
    return pnb__parquet_open(&table, map.data, map.size, name, err);
}

static void open_table(const char *name)
{
    pnb_error err = PNB_ERROR_INIT;
    if (open_as(name, &err) != PNB_OK)
        fail_msg("%s", err.text);
}

static void close_table(void)
{
    pnb__parquet_close(&table);
    pnb__map_close(&map);
}

static bool lacks(int codec)
{
    const char *missing = NULL;
    unsigned char to[2];
    return !pnb__parquet_unpack(codec, "", 0, to, 2, &missing) && missing != NULL;
}

/* ---- what row i has ---- */

static bool is_text(const pnb__parquet_value *v, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return v->kind == PNB__PARQUET_BYTES && v->n_bytes == (size_t)n &&
           memcmp(v->bytes, text, (size_t)n) == 0;
}

static bool is_integer(const pnb__parquet_value *v, int64_t x)
{
    return v->kind == PNB__PARQUET_INT && v->integer == x;
}

static bool is_real(const pnb__parquet_value *v, double x)
{
    return v->kind == PNB__PARQUET_REAL && v->real == x;
}

static bool is_null(const pnb__parquet_value *v)
{
    return v->kind == PNB__PARQUET_NULL;
}

/* i times 0x9E3779B97F4A7C15 as 128 bits. */
static bool is_sha256(const pnb__parquet_value *v, uint64_t i)
{
    const uint64_t low = 0x7F4A7C15, high = 0x9E3779B9;
    uint64_t a = i * low, b = i * high + (a >> 32);
    return is_text(v, "%056llx%08llx", (unsigned long long)b,
                   (unsigned long long)(a & 0xFFFFFFFFu));
}

static bool is_image(const pnb__parquet_value *v)
{
    return v->kind == PNB__PARQUET_BYTES && v->n_bytes > 60 &&
           memcmp(v->bytes, "\x89PNG\r\n\x1a\n", 8) == 0 &&
           memcmp(v->bytes + v->n_bytes - 8, "IEND\xae\x42\x60\x82", 8) == 0;
}

static bool is_usual(const char *name, size_t i, const pnb__parquet_value *v)
{
    static const char *const words[] = {"a red star", "\xC3\xA9toile", "a blue\n\"square\""};
    if (strcmp(name, "uid") == 0)
        return is_text(v, "%032zx", i);
    if (strcmp(name, "key") == 0)
        return is_text(v, "%09zu", i);
    if (strcmp(name, "url") == 0)
        return i % 11 == 10 ? is_null(v) : is_text(v, "https://x.example/%zu/%zu.jpg", i % 4, i);
    if (strcmp(name, "caption") == 0)
        return i % 5 == 4 ? is_null(v) : is_text(v, "%s", words[i % 3]);
    if (strcmp(name, "status") == 0)
        return is_text(v, "%s", i % 7 == 6 ? "failed_to_download" : "success");
    if (strcmp(name, "width") == 0 || strcmp(name, "image.size.w") == 0)
        return i % 6 == 5 ? is_null(v) : is_integer(v, (int64_t)i * 3 - 10);
    if (strcmp(name, "original_width") == 0)
        return i % 9 == 8 ? is_null(v) : is_integer(v, (int64_t)i * 10000000000 - 5);
    if (strcmp(name, "clip_b32_similarity_score") == 0)
        return i % 8 == 3 ? is_null(v) : is_real(v, (double)i * 0.5 - 1);
    if (strcmp(name, "clip_l14_similarity_score") == 0)
        return i % 7 == 3 ? is_null(v) : is_real(v, (double)i / 10);
    if (strcmp(name, "nsfw") == 0)
        return i % 4 == 2 ? is_null(v) : v->kind == PNB__PARQUET_FLAG && v->integer == (i % 3 == 0);
    if (strcmp(name, "sha256") == 0)
        return i % 13 == 12 ? is_null(v) : is_sha256(v, i);
    if (strcmp(name, "jpg") == 0)
        return i % 7 == 6 ? is_null(v) : is_image(v);
    return strcmp(name, "error_message") == 0 && is_null(v);
}

static bool is_uuid(const pnb__parquet_value *v, size_t i)
{
    static const unsigned char id[] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x80};
    return v->kind == PNB__PARQUET_BYTES && v->n_bytes == 16 && memcmp(v->bytes, id, 9) == 0 &&
           v->bytes[15] == i;
}

/* Columns of other types. */
static bool is_right(const char *name, size_t i, const pnb__parquet_value *v)
{
    if (strcmp(name, "uuid") == 0)
        return is_uuid(v, i);
    if (strcmp(name, "half") == 0)
        return i % 5 == 1 ? is_null(v) : is_real(v, (double)i / 8 - 1);
    if (strcmp(name, "price") == 0) /* of four digits */
        return is_integer(v, (int64_t)i * 2500 - 20000);
    if (strcmp(name, "sum") == 0) /* of two digits */
        return is_integer(v, (int64_t)i * 10000000000100);
    if (strcmp(name, "u32") == 0)
        return is_integer(v, (int64_t)UINT32_MAX - (int64_t)i);
    if (strcmp(name, "u64") == 0 || strcmp(name, "id") == 0) /* the upper half of its range */
        return is_integer(v, -1 - (int64_t)i);
    if (strcmp(name, "u8") == 0)
        return is_integer(v, 250 + (int64_t)(i % 6));
    if (strcmp(name, "i8") == 0)
        return is_integer(v, (int64_t)i - 12);
    if (strcmp(name, "day") == 0)
        return is_integer(v, 19723 + (int64_t)i); /* since 1970 */
    if (strcmp(name, "huge") == 0)
        return is_real(v, (double)i);
    if (strcmp(name, "image.path") == 0)
        return is_text(v, "a/%zu.png", i);
    if (strcmp(name, "exif") == 0)
        return is_text(v, "{\"a\": %zu}", i);
    if (strcmp(name, "wide") == 0 || strcmp(name, "span") == 0)
        return v->kind == PNB__PARQUET_BYTES;
    return is_usual(name, i, v);
}

typedef struct seen {
    const char *name;
    size_t first, n;
} seen;

static pnb_status look(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    seen *s = user;
    (void)err;
    if (row != s->n || !is_right(s->name, s->first + row, v))
        fail_msg("%s: row %zu of the group that begins at %zu", s->name, row, s->first);
    s->n++;
    return PNB_OK;
}

static pnb_status read_leaf(size_t leaf, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t g = 0; g < table.n_groups && status == PNB_OK; g++) {
        seen s = {table.leaves[leaf].name, table.groups[g].first_row, 0};
        status = pnb__parquet_read(&table, g, leaf, look, &s, err);
        assert_true(status != PNB_OK || s.n == table.groups[g].n_rows);
    }
    return status;
}

static void every_value_is_what_its_writer_meant(void **state)
{
    static const struct {
        const char *name;
        size_t n_groups, n_leaves;
        int codec;
    } tables[] = {{"arrow-rs-1-snappy", 2, 13, PNB__PARQUET_SNAPPY},
                  {"arrow-rs-2-zstd", 2, 14, PNB__PARQUET_ZSTD},
                  {"arrow-rs-1-fallback", 1, 10, PNB__PARQUET_GZIP},
                  {"arrow-rs-2-fallback", 1, 10, PNB__PARQUET_GZIP},
                  {"duckdb-1-types", 1, 18, PNB__PARQUET_SNAPPY},
                  {"duckdb-2-zstd", 1, 13, PNB__PARQUET_ZSTD},
                  {"hyparquet-index", 3, 11, PNB__PARQUET_SNAPPY},
                  {"hyparquet-delta", 3, 14, PNB__PARQUET_SNAPPY}};
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(tables); k++) {
        if (lacks(tables[k].codec))
            continue; /* a build without the library */
        open_table(tables[k].name);
        assert_int_equal(table.n_rows, N);
        assert_int_equal(table.n_groups, tables[k].n_groups);
        assert_int_equal(table.n_leaves, tables[k].n_leaves);
        for (size_t leaf = 0; leaf < table.n_leaves; leaf++) {
            pnb_error err = PNB_ERROR_INIT;
            if (!table.leaves[leaf].is_list && read_leaf(leaf, &err) != PNB_OK)
                fail_msg("%s: %s", tables[k].name, err.text);
        }
        close_table();
    }
}

static void types_say_what_values_are(void **state)
{
    static const struct {
        const char *column;
        pnb__parquet_meaning meaning;
        int scale;
    } types[] = {{"key", PNB__PARQUET_UTF8, 0},        {"width", PNB__PARQUET_BARE, 0},
                 {"uuid", PNB__PARQUET_UUID, 0},       {"price", PNB__PARQUET_DECIMAL, 4},
                 {"sum", PNB__PARQUET_DECIMAL, 2},     {"wide", PNB__PARQUET_DECIMAL, 3},
                 {"u32", PNB__PARQUET_UNSIGNED, 0},    {"u64", PNB__PARQUET_UNSIGNED, 0},
                 {"u8", PNB__PARQUET_UNSIGNED, 0},     {"i8", PNB__PARQUET_BARE, 0},
                 {"day", PNB__PARQUET_BARE, 0},        {"span", PNB__PARQUET_OTHER, 0},
                 {"image.path", PNB__PARQUET_UTF8, 0}, {"exif", PNB__PARQUET_UTF8, 0}};
    (void)state;
    open_table("duckdb-1-types");
    for (size_t i = 0; i < PNB_COUNT(types); i++) {
        size_t leaf = pnb__parquet_find(&table, types[i].column);
        assert_true(leaf < table.n_leaves);
        if (table.leaves[leaf].meaning != types[i].meaning ||
            table.leaves[leaf].scale != types[i].scale)
            fail_msg("%s", types[i].column);
    }
    close_table();
    open_table("hyparquet-index"); /* which says it in the new way alone */
    assert_int_equal(table.leaves[pnb__parquet_find(&table, "half")].meaning, PNB__PARQUET_HALF);
    assert_int_equal(table.leaves[pnb__parquet_find(&table, "uuid")].meaning, PNB__PARQUET_UUID);
    close_table();
}

static void what_is_not_read_is_named(void **state)
{
    static const struct {
        const char *column, *text;
    } odd[] = {{"url", "column url: is packed by BROTLI, which is not read"},
               {"sha256", "column sha256: is packed by LZ4_RAW, which is not read"},
               {"face_bboxes.list.item.list.item", "is a list, which is not read"}};
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    open_table("arrow-rs-codecs");
    for (size_t i = 0; i < PNB_COUNT(odd); i++) {
        pnb_error why = PNB_ERROR_INIT;
        size_t leaf = pnb__parquet_find(&table, odd[i].column);
        assert_true(leaf < table.n_leaves);
        assert_int_equal(read_leaf(leaf, &why), PNB_UNSUPPORTED);
        if (strstr(why.text, odd[i].text) == NULL)
            fail_msg("%s", why.text);
    }
    assert_int_equal(read_leaf(pnb__parquet_find(&table, "id"), NULL), PNB_OK);
    assert_int_equal(read_leaf(pnb__parquet_find(&table, "caption"), NULL), PNB_OK);
    assert_int_equal(read_leaf(pnb__parquet_find(&table, "width"), NULL), PNB_OK);
    close_table();
    assert_int_equal(open_as("duckdb-encrypted", &err), PNB_UNSUPPORTED);
    assert_string_equal(err.text, "duckdb-encrypted: an encrypted Parquet table");
    close_table();
}

/* ---- single rows, of pages that are made PLAIN ---- */

typedef struct kept_cells {
    pnb__buf bytes[N];
    bool found[N];
    size_t first;
} kept_cells;

static pnb_status keep(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    kept_cells *k = user;
    (void)err;
    k->found[k->first + row] = v->kind == PNB__PARQUET_BYTES;
    pnb__buf_append(&k->bytes[k->first + row], v->bytes, v->n_bytes);
    return PNB_OK;
}

static void single_rows_are_those_of_the_whole(void **state)
{
    static const char *const names[] = {"hyparquet-delta", "arrow-rs-2-zstd", "duckdb-2-zstd"};
    (void)state;
    for (size_t t = 0; t < PNB_COUNT(names); t++) {
        if (lacks(t == 0 ? PNB__PARQUET_SNAPPY : PNB__PARQUET_ZSTD))
            continue;
        kept_cells whole = {.first = 0};
        pnb__parquet_kept *kept = NULL;
        pnb__parquet_rows rows = {0};
        open_table(names[t]);
        size_t leaf = pnb__parquet_find(&table, "jpg");
        for (size_t g = 0; g < table.n_groups; g++) {
            whole.first = table.groups[g].first_row;
            assert_int_equal(pnb__parquet_read(&table, g, leaf, keep, &whole, NULL), PNB_OK);
        }
        assert_int_equal(pnb__parquet_kept_create(&kept, 1 << 20, NULL), PNB_OK);
        assert_int_equal(pnb__parquet_rows_open(&rows, &table, leaf, kept, NULL), PNB_OK);
        for (size_t i = 0; i < N; i++) {
            size_t row = i * 7 % N;
            pnb__buf out = {0};
            bool found = false;
            assert_int_equal(pnb__parquet_row(&rows, row, &out, &found, NULL), PNB_OK);
            assert_int_equal(found, whole.found[row]);
            assert_int_equal(out.size, whole.bytes[row].size);
            if (found)
                assert_memory_equal(out.data, whole.bytes[row].data, out.size);
            pnb__buf_reset(&out);
        }
        for (size_t i = 0; i < N; i++)
            pnb__buf_reset(&whole.bytes[i]);
        pnb__parquet_kept_free(kept);
        pnb__parquet_rows_close(&rows);
        close_table();
    }
}

#ifdef PNB_FAULTS
/* Whichever allocation fails, it is said so and nothing stays. */
static void memory_may_be_short(void **state)
{
    pnb_status status = PNB_NOMEM;
    (void)state;
    if (lacks(PNB__PARQUET_SNAPPY))
        return;
    for (int n = 0; n < 200 && status == PNB_NOMEM; n++) {
        pnb_error err = PNB_ERROR_INIT;
        char *bytes = NULL;
        size_t size = 0;
        assert_int_equal(pnb__read_file(CORPUS "hyparquet-delta", 1 << 20, &bytes, &size, NULL),
                         PNB_OK);
        pnb__alloc_fail_after(n);
        status = pnb__parquet_open(&table, bytes, size, "t", &err);
        for (size_t leaf = 0; leaf < table.n_leaves && status == PNB_OK; leaf++)
            status = read_leaf(leaf, &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (status == PNB_NOMEM && err.text[0] != '\0'));
        pnb__parquet_close(&table);
        pnb__free(bytes);
    }
    assert_int_equal(status, PNB_OK);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_what_its_writer_meant),
        cmocka_unit_test(types_say_what_values_are),
        cmocka_unit_test(what_is_not_read_is_named),
        cmocka_unit_test(single_rows_are_those_of_the_whole),
#ifdef PNB_FAULTS
        cmocka_unit_test(memory_may_be_short),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
