/* Parquet files taken apart by a reader of Thrift's compact protocol: pages, nulls, the footer and
 * what it points to. tests/cli/common/parquet.py reads them by the format description, too. */
#include "io/tables/parquet/parquet.h"

#include "tests/io/scratch.h"

/* ---- Thrift, compact protocol: a struct as (path, number) ---- */

typedef struct cursor {
    const unsigned char *at, *end;
} cursor;

static uint64_t varint(cursor *c)
{
    uint64_t x = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(c->at < c->end);
        x |= (uint64_t)(*c->at & 0x7F) << shift;
        if ((*c->at++ & 0x80) == 0)
            return x;
    }
}

static int64_t zigzag(cursor *c)
{
    uint64_t x = varint(c);
    return (int64_t)(x >> 1) ^ -(int64_t)(x & 1);
}

/* Writes a struct as "1:0 2:14 5:{1:3 ...} 4:'name' 2:[...]". */
static void show_struct(cursor *c, pnb__buf *out);

static void show_value(cursor *c, int type, pnb__buf *out)
{
    if (type == 5 || type == 6) {
        pnb__buf_printf(out, "%lld", (long long)zigzag(c));
    } else if (type == 8) {
        size_t n = (size_t)varint(c);
        assert_true(n <= (size_t)(c->end - c->at));
        pnb__buf_printf(out, "'%.*s'", (int)n, (const char *)c->at);
        c->at += n;
    } else if (type == 9) {
        unsigned head = *c->at++;
        size_t n = head >> 4 == 15 ? (size_t)varint(c) : head >> 4;
        pnb__buf_putc(out, '[');
        for (size_t i = 0; i < n; i++) {
            pnb__buf_puts(out, i > 0 ? " " : "");
            show_value(c, (int)(head & 15), out);
        }
        pnb__buf_putc(out, ']');
    } else {
        assert_int_equal(type, 12);
        pnb__buf_putc(out, '{');
        show_struct(c, out);
        pnb__buf_putc(out, '}');
    }
}

static void show_struct(cursor *c, pnb__buf *out)
{
    for (int number = 0, first = 1; *c->at != 0; first = 0) {
        number += *c->at >> 4;
        int type = *c->at++ & 15;
        pnb__buf_printf(out, "%s%d:", first ? "" : " ", number);
        show_value(c, type, out);
    }
    c->at++;
}

/* ---- files ---- */

static char *write_table(scratch *s, const pnb__parquet_column *columns, size_t n_columns,
                         size_t n_rows, size_t *n)
{
    pnb__out_file f;
    char *bytes = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__out_open(&f, scratch_path(s, "t.parquet"), &err), &err);
    assert_ok(pnb__parquet_write(&f, columns, n_columns, n_rows, &err), &err);
    assert_ok(pnb__out_commit(&f, &err), &err);
    assert_ok(pnb__read_file(s->path, 1 << 24, &bytes, n, &err), &err);
    assert_memory_equal(bytes, "PAR1", 4);
    assert_memory_equal(bytes + *n - 4, "PAR1", 4);
    return bytes;
}

/* The footer in words; where it begins is where the pages end. */
static size_t show_footer(const char *bytes, size_t n, pnb__buf *out)
{
    uint32_t length;
    memcpy(&length, bytes + n - 8, 4);
    assert_true(length <= n - 12); /* magic, footer, length, magic */
    const unsigned char *end = (const unsigned char *)bytes + n - 8;
    cursor c = {end - length, end};
    show_struct(&c, out);
    assert_ptr_equal(c.at, end);
    return n - 8 - length;
}

/* Header of the page at c; what it says must be how long the page is. */
static size_t page_bytes(cursor *c, size_t n_values)
{
    pnb__buf text = {0};
    char want[96];
    int n_bytes = 0, same = 0;
    show_struct(c, &text);
    assert_int_equal(sscanf(text.data, "1:0 2:%d 3:%d", &n_bytes, &same), 2);
    assert_int_equal(n_bytes, same);
    snprintf(want, sizeof want, "1:0 2:%d 3:%d 5:{1:%zu 2:0 3:3 4:3}", n_bytes, n_bytes, n_values);
    assert_string_equal(text.data, want);
    assert_true((size_t)n_bytes <= (size_t)(c->end - c->at));
    pnb__buf_reset(&text);
    return (size_t)n_bytes;
}

static const char *const TEXTS[] = {"a", NULL, NULL, "b\xC3\xA9", ""};
static const double NUMBERS[] = {0, -1.5, 1e300, 3, 4};

/* Levels as runs (1 one, 2 zeros, 2 ones), then the texts that are there, each behind its length.
 */
static void pages_by_hand(void **state)
{
    scratch *s = *state;
    const pnb__parquet_column columns[] = {{"caption", PNB__PARQUET_TEXT, TEXTS, NULL},
                                           {"score", PNB__PARQUET_DOUBLE, NULL, NUMBERS}};
    static const char page[] = "\6\0\0\0\2\1\4\0\4\1\1\0\0\0a\3\0\0\0b\xC3\xA9\0\0\0\0";
    size_t n = 0;
    char *bytes = write_table(s, columns, 2, 5, &n), want[512];
    pnb__buf footer = {0};
    size_t end = show_footer(bytes, n, &footer);
    cursor c = {(const unsigned char *)bytes + 4, (const unsigned char *)bytes + end};
    assert_int_equal(page_bytes(&c, 5), sizeof page - 1);
    assert_memory_equal(c.at, page, sizeof page - 1);
    c.at += sizeof page - 1;
    size_t second = (size_t)(c.at - (const unsigned char *)bytes);
    assert_int_equal(page_bytes(&c, 5), sizeof NUMBERS);
    assert_memory_equal(c.at, NUMBERS, sizeof NUMBERS);
    assert_ptr_equal(c.at + sizeof NUMBERS, c.end);
    snprintf(
        want, sizeof want,
        "1:1 2:[{4:'schema' 5:2} {1:6 3:1 4:'caption' 6:0} {1:5 3:0 4:'score'}] 3:5 4:[{1:["
        "{2:4 3:{1:6 2:[0 3] 3:['caption'] 4:0 5:5 6:%zu 7:%zu 9:4}} "
        "{2:%zu 3:{1:5 2:[0 3] 3:['score'] 4:0 5:5 6:%zu 7:%zu 9:%zu}}] 2:%zu 3:5}] 6:'penumbra'",
        second - 4, second - 4, second, end - second, end - second, second, end - 4);
    assert_string_equal(footer.data, want);
    pnb__buf_reset(&footer);
    pnb__free(bytes);
}

/* 20000 rows fill a page; every value is found again. */
static void many_rows_take_several_pages(void **state)
{
    scratch *s = *state;
    enum { N = 45001 };
    double *numbers = malloc(N * sizeof *numbers);
    for (int i = 0; i < N; i++)
        numbers[i] = i * 0.5;
    const pnb__parquet_column column = {"x", PNB__PARQUET_DOUBLE, NULL, numbers};
    static const size_t pages[] = {20000, 20000, 5001};
    size_t n = 0, first = 0;
    char *bytes = write_table(s, &column, 1, N, &n);
    pnb__buf footer = {0};
    cursor c = {(const unsigned char *)bytes + 4,
                (const unsigned char *)bytes + show_footer(bytes, n, &footer)};
    for (size_t p = 0; p < PNB_COUNT(pages); p++) {
        assert_int_equal(page_bytes(&c, pages[p]), 8 * pages[p]);
        assert_memory_equal(c.at, numbers + first, 8 * pages[p]);
        c.at += 8 * pages[p];
        first += pages[p];
    }
    assert_ptr_equal(c.at, c.end);
    pnb__buf_reset(&footer);
    pnb__free(bytes);
    free(numbers);
}

/* No rows: no pages. More than 14 columns: the long form of a list. */
static void edges(void **state)
{
    scratch *s = *state;
    pnb__parquet_column columns[16];
    for (size_t i = 0; i < 16; i++)
        columns[i] = (pnb__parquet_column){"c", PNB__PARQUET_TEXT, TEXTS, NULL};
    size_t n = 0;
    char *bytes = write_table(s, columns, 16, 0, &n);
    pnb__buf footer = {0};
    assert_int_equal(show_footer(bytes, n, &footer), 4);
    assert_non_null(strstr(footer.data, "{4:'schema' 5:16}"));
    assert_non_null(strstr(footer.data, "] 2:0 3:0}]"));
    pnb__buf_reset(&footer);
    pnb__free(bytes);
}

static void what_is_refused(void **state)
{
    scratch *s = *state;
    static const char *const bad[] = {"fine", "\xFF"};
    const pnb__parquet_column column = {"caption", PNB__PARQUET_TEXT, bad, NULL};
    pnb__out_file f;
    pnb_error err = PNB_ERROR_INIT;
    scratch_clear(s);
    assert_ok(pnb__out_open(&f, scratch_path(s, "bad.parquet"), &err), &err);
    assert_failed(pnb__parquet_write(&f, &column, 0, 1, &err), &err, PNB_ARG,
                  "a table without columns");
    err = (pnb_error)PNB_ERROR_INIT;
    assert_failed(pnb__parquet_write(&f, &column, 1, 2, &err), &err, PNB_ARG,
                  "row 1: caption is not valid UTF-8");
    pnb__out_abort(&f);
    assert_int_equal(scratch_count(s), 0);
}

#ifdef PNB_FAULTS
static pnb_status write_once(scratch *s, pnb_error *err)
{
    const pnb__parquet_column column = {"caption", PNB__PARQUET_TEXT, TEXTS, NULL};
    pnb__out_file f = {0};
    pnb_status status = pnb__out_open(&f, scratch_path(s, "f.parquet"), err);
    if (status == PNB_OK)
        status = pnb__parquet_write(&f, &column, 1, 5, err);
    pnb__out_abort(&f);
    return status;
}

static void out_of_memory(void **state)
{
    fail_every_allocation(write_once, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_by_hand), cmocka_unit_test(many_rows_take_several_pages),
        cmocka_unit_test(edges),         cmocka_unit_test(what_is_refused),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
