/* Single rows: those of the whole column in any order, from pages that are kept, thrown out and
 * shared by threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "io/tables/parquet/parquet_rows.h"
#include "penumbra/ctx.h"

#define CORPUS PNB_SOURCE_DIR "/tests/fuzz/corpus/parquet/"
enum { N = 23, MANY = 400 };

static pnb__map map;
static pnb__parquet table;
static pnb__buf whole[N]; /* the values of the column; no memory where there is none */

static pnb_status put(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    pnb__buf *to = &whole[*(const size_t *)user + row];
    (void)err;
    if (v->kind == PNB__PARQUET_BYTES) {
        pnb__buf_append(to, v->bytes, v->n_bytes);
        pnb__buf_putc(to, '\0');
    }
    return PNB_OK;
}

static size_t open_column(const char *file, const char *column)
{
    char path[300];
    snprintf(path, sizeof path, CORPUS "%s", file);
    assert_int_equal(pnb__map_open(&map, path, NULL), PNB_OK);
    assert_int_equal(pnb__parquet_open(&table, map.data, map.size, path, NULL), PNB_OK);
    assert_int_equal(table.n_rows, N);
    size_t leaf = pnb__parquet_find(&table, column);
    for (size_t g = 0; g < table.n_groups; g++)
        assert_int_equal(pnb__parquet_read(&table, g, leaf, put, &table.groups[g].first_row, NULL),
                         PNB_OK);
    return leaf;
}

static void close_column(void)
{
    for (size_t i = 0; i < N; i++)
        pnb__buf_reset(&whole[i]);
    pnb__parquet_close(&table);
    pnb__map_close(&map);
}

static bool is_row(const pnb__parquet_rows *rows, size_t row)
{
    pnb__buf out = {0};
    bool found = true;
    bool ok = pnb__parquet_row(rows, row, &out, &found, NULL) == PNB_OK &&
              found == (whole[row].size > 0) &&
              (!found || (out.size + 1 == whole[row].size &&
                          memcmp(out.data, whole[row].data, out.size) == 0));
    pnb__buf_reset(&out);
    return ok;
}

static void rows_in_any_order(void **state)
{
    static const char *const files[] = {"none-1-0", "gzip-2-0", "none-2-1"};
    static const char *const columns[] = {"image.bytes", "caption"};
    static const size_t steps[] = {1, 7, 22};
    (void)state;
    for (size_t k = 0; k < PNB_COUNT(files) * PNB_COUNT(columns) * PNB_COUNT(steps); k++) {
        pnb__parquet_kept *kept = NULL;
        pnb__parquet_rows rows;
        size_t leaf = open_column(files[k % 3], columns[k / 3 % 2]), step = steps[k / 6];
        assert_int_equal(pnb__parquet_kept_create(&kept, step == 7 ? 1 : 1 << 20, NULL), PNB_OK);
        assert_int_equal(pnb__parquet_rows_open(&rows, &table, leaf, kept, NULL), PNB_OK);
        assert_int_equal(rows.n_places, 6);
        for (size_t i = 0; i < N; i++)
            if (!is_row(&rows, i * step % N))
                fail_msg("%s, row %zu", files[k % 3], i * step % N);
        if (step != 7) /* one way or the other: a page once */
            assert_int_equal(pnb__parquet_kept_opened(kept), 6);
        else /* one page at a time, and no two rows in a row of one */
            assert_true(pnb__parquet_kept_opened(kept) > 20);
        bool found = true;
        assert_int_equal(pnb__parquet_row(&rows, N, &whole[0], &found, NULL), PNB_OK);
        assert_false(found);
        pnb__parquet_kept_free(kept);
        pnb__parquet_rows_close(&rows);
        close_column();
    }
}

static void look(void *user, size_t begin, size_t end, int thread)
{
    bool *const *const both = user;
    (void)thread;
    for (size_t i = begin; i < end; i++)
        both[1][i] = is_row((const pnb__parquet_rows *)(const void *)both[0], i * 7 % N);
}

static void rows_by_threads(void **state)
{
    pnb__parquet_kept *kept = NULL;
    pnb__parquet_rows rows;
    bool is_right[MANY] = {false};
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    (void)state;
    opts.n_threads = 4;
    assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
    size_t leaf = open_column("gzip-2-0", "image.bytes");
    assert_int_equal(pnb__parquet_kept_create(&kept, 200, NULL), PNB_OK);
    assert_int_equal(pnb__parquet_rows_open(&rows, &table, leaf, kept, NULL), PNB_OK);
    void *both[] = {&rows, is_right};
    pnb__parallel_for(ctx, MANY, 1, look, both);
    for (size_t i = 0; i < MANY; i++)
        assert_true(is_right[i]);
    pnb__parquet_kept_free(kept);
    pnb__parquet_rows_close(&rows);
    close_column();
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_in_any_order),
                                       cmocka_unit_test(rows_by_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
