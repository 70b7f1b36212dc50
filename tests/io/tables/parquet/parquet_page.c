/* Tables as others write them: both versions of pages, PLAIN and dictionary values, every codec,
 * nulls and structs. The files are those of tests/cli/common/parquet_tables.py, which also are the
 * fuzzer's first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/tables/parquet/parquet.h"
#include "io/tables/parquet/parquet_codec.h"
#include "io/tables/parquet/parquet_read.h"

#define CORPUS PNB_SOURCE_DIR "/tests/fuzz/corpus/parquet/"
enum { N = 23 };

static pnb__map map;
static pnb__parquet table;

static void open_table(const char *name)
{
    char path[300];
    pnb_error err = PNB_ERROR_INIT;
    snprintf(path, sizeof path, CORPUS "%s", name);
    assert_int_equal(pnb__map_open(&map, path, &err), PNB_OK);
    if (pnb__parquet_open(&table, map.data, map.size, name, &err) != PNB_OK)
        fail_msg("%s", err.text);
}

static void close_table(void)
{
    pnb__parquet_close(&table);
    pnb__map_close(&map);
}

typedef struct seen {
    const char *name;
    size_t first, n;
} seen;

static bool is_bytes(const pnb__parquet_value *v, const void *bytes, size_t n)
{
    return v->kind == PNB__PARQUET_BYTES && v->n_bytes == n && memcmp(v->bytes, bytes, n) == 0;
}

/* What parquet_tables.py puts into row i of a column. */
static bool is_right(const char *name, size_t i, const pnb__parquet_value *v)
{
    static const char *const words[] = {"a red star", "\xC3\xA9toile", "a blue\n\"square\""};
    char text[40];
    if (strcmp(name, "uid") == 0) {
        snprintf(text, sizeof text, "%032zx", i);
        return is_bytes(v, text, 32);
    }
    if (strcmp(name, "caption") == 0)
        return i % 5 == 4 ? v->kind == PNB__PARQUET_NULL
                          : is_bytes(v, words[i % 3], strlen(words[i % 3]));
    if (strcmp(name, "score") == 0)
        return i % 7 == 3 ? v->kind == PNB__PARQUET_NULL
                          : v->kind == PNB__PARQUET_REAL && v->real == (double)i * 0.25 - 1;
    if (strcmp(name, "half") == 0)
        return v->kind == PNB__PARQUET_REAL && v->real == (double)i * 0.5;
    if (strcmp(name, "width") == 0)
        return v->kind == PNB__PARQUET_INT && v->integer == (int64_t)i - 10;
    if (strcmp(name, "big") == 0)
        return v->kind == PNB__PARQUET_INT && v->integer == (int64_t)i * 10000000000 - 5;
    if (strcmp(name, "flag") == 0)
        return v->kind == PNB__PARQUET_FLAG && v->integer == (i % 3 == 0);
    if (strcmp(name, "image.bytes") == 0) {
        for (size_t k = 0; k <= i % 4; k++) {
            text[2 * k] = (char)0xFF;
            text[2 * k + 1] = (char)i;
        }
        return i % 6 == 5 ? v->kind == PNB__PARQUET_NULL : is_bytes(v, text, 2 * (i % 4 + 1));
    }
    return strcmp(name, "image.path") == 0 && v->kind == PNB__PARQUET_NULL;
}

static pnb_status look(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    seen *s = user;
    (void)err;
    if (row != s->n || !is_right(s->name, s->first + row, v))
        fail_msg("%s: row %zu of the group that begins at %zu", s->name, row, s->first);
    s->n++;
    return PNB_OK;
}

static bool lacks(int codec)
{
    const char *missing = NULL;
    unsigned char to[2];
    return !pnb__parquet_unpack(codec, "", 0, to, 2, &missing) && missing != NULL;
}

static void every_value_is_read(void **state)
{
    static const char *const names[] = {"none-1-0", "snappy-1-1", "gzip-2-0",
                                        "zstd-2-1", "none-2-1",   "zstd-1-0"};
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(names); k++) {
        if ((names[k][0] == 's' && lacks(PNB__PARQUET_SNAPPY)) ||
            (names[k][0] == 'z' && lacks(PNB__PARQUET_ZSTD)))
            continue; /* a build without the library */
        open_table(names[k]);
        assert_int_equal(table.n_rows, N);
        assert_int_equal(table.n_groups, 2);
        assert_int_equal(table.n_leaves, 9);
        for (size_t leaf = 0; leaf < table.n_leaves; leaf++)
            for (size_t g = 0; g < 2; g++) {
                seen s = {table.leaves[leaf].name, table.groups[g].first_row, 0};
                pnb_error err = PNB_ERROR_INIT;
                if (pnb__parquet_read(&table, g, leaf, look, &s, &err) != PNB_OK)
                    fail_msg("%s: %s", names[k], err.text);
                assert_int_equal(s.n, table.groups[g].n_rows);
            }
        assert_true(pnb__parquet_find(&table, "image") == SIZE_MAX);
        close_table();
    }
}

static pnb_status pass(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    (void)user, (void)row, (void)v, (void)err;
    return PNB_OK;
}

static void what_is_not_read_is_named(void **state)
{
    static const struct {
        const char *column, *text;
    } odd[] = {{"tags", "column tags: is a list"},
               {"bits", "column bits: its encoding, BIT_PACKED, is not read of such a column"},
               {"brotli", "column brotli: is packed by BROTLI, which is not read"},
               {"secret", "column secret: is encrypted"}};
    (void)state;
    open_table("odd");
    for (size_t i = 0; i < PNB_COUNT(odd); i++) {
        pnb_error err = PNB_ERROR_INIT;
        size_t leaf = pnb__parquet_find(&table, odd[i].column);
        assert_int_equal(pnb__parquet_read(&table, 0, leaf, pass, NULL, &err), PNB_UNSUPPORTED);
        if (strstr(err.text, odd[i].text) == NULL)
            fail_msg("%s", err.text);
    }
    assert_int_equal(
        pnb__parquet_read(&table, 0, pnb__parquet_find(&table, "caption"), pass, NULL, NULL),
        PNB_OK);
    close_table();
}

/* Cut, flipped and encrypted: an error that says so, or the same table. */
static void damage_is_told(void **state)
{
    char *bytes = NULL;
    size_t n = 0, n_told = 0;
    (void)state;
    assert_int_equal(pnb__read_file(CORPUS "none-1-0", 1 << 20, &bytes, &n, NULL), PNB_OK);
    for (size_t cut = 0; cut < n; cut += 37) {
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(pnb__parquet_open(&table, bytes, cut, "t", &err), PNB_FORMAT);
        assert_true(err.text[0] != '\0');
    }
    memcpy(bytes, "PARE", 4);
    assert_int_equal(pnb__parquet_open(&table, bytes, n, "t", NULL), PNB_UNSUPPORTED);
    memcpy(bytes, "PAR1", 4);
    for (size_t at = 4; at < n; at++) {
        bytes[at] ^= 0x15;
        pnb_status status = pnb__parquet_open(&table, bytes, n, "t", NULL);
        for (size_t leaf = 0; status == PNB_OK && leaf < table.n_leaves; leaf++)
            status = pnb__parquet_read(&table, 0, leaf, pass, NULL, NULL);
        n_told += status != PNB_OK;
        pnb__parquet_close(&table);
        bytes[at] ^= 0x15;
    }
    assert_true(n_told > n / 10);
    pnb__free(bytes);
}

/* Data that lost bytes before a whole footer: the last column would end a byte behind the file. */
static void columns_beyond_the_file_are_refused(void **state)
{
    char *bytes = NULL;
    size_t n = 0;
    uint32_t n_footer = 0;
    uint64_t end = 0;
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    assert_int_equal(pnb__read_file(CORPUS "none-1-0", 1 << 20, &bytes, &n, NULL), PNB_OK);
    assert_int_equal(pnb__parquet_open(&table, bytes, n, "t", NULL), PNB_OK);
    for (size_t g = 0; g < table.n_groups; g++)
        for (size_t i = 0; i < table.n_leaves; i++)
            end = PNB_MAX(end, table.groups[g].chunks[i].end);
    pnb__parquet_close(&table);
    memcpy(&n_footer, bytes + n - 8, sizeof n_footer);
    size_t tail = (size_t)n_footer + 8, kept = (size_t)end - 1 - tail;
    assert_true(kept >= 4 && kept + tail < n);
    memmove(bytes + kept, bytes + n - tail, tail);
    assert_int_equal(pnb__parquet_open(&table, bytes, kept + tail, "t", &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "lies beyond the end of the file"));
    pnb__free(bytes);
}

static pnb_status look_at_text(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    const char *text = ((const char *const *)user)[row];
    (void)err;
    assert_true(text == NULL ? v->kind == PNB__PARQUET_NULL : is_bytes(v, text, strlen(text)));
    return PNB_OK;
}

/* What our own writer leaves. */
static void our_own_tables_are_read(void **state)
{
    enum { ROWS = 20003 }; /* two pages */
    static const char *texts[ROWS];
    static double numbers[ROWS];
    char path[] = "/tmp/pnb_parquet_XXXXXX";
    pnb__out_file out = {0};
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < ROWS; i++) {
        texts[i] = i % 3 == 0 ? NULL : i % 3 == 1 ? "x" : "yy";
        numbers[i] = (double)i / 3;
    }
    const pnb__parquet_column columns[] = {{"t", PNB__PARQUET_TEXT, texts, NULL},
                                           {"d", PNB__PARQUET_DOUBLE, NULL, numbers}};
    assert_int_equal(pnb__out_open(&out, path, NULL), PNB_OK);
    assert_int_equal(pnb__parquet_write(&out, columns, 2, ROWS, NULL), PNB_OK);
    assert_int_equal(pnb__out_commit(&out, NULL), PNB_OK);
    assert_int_equal(pnb__map_open(&map, path, NULL), PNB_OK);
    assert_int_equal(pnb__parquet_open(&table, map.data, map.size, path, NULL), PNB_OK);
    assert_int_equal(table.n_rows, ROWS);
    for (size_t g = 0; g < table.n_groups; g++)
        assert_int_equal(pnb__parquet_read(&table, g, 0, look_at_text, texts, NULL), PNB_OK);
    close_table();
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_read), cmocka_unit_test(what_is_not_read_is_named),
        cmocka_unit_test(damage_is_told), cmocka_unit_test(columns_beyond_the_file_are_refused),
        cmocka_unit_test(our_own_tables_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
