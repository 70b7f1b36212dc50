/* Tables: RFC 4180, what other readers tolerate, positions, and damage. */
#include "tests/io/scratch.h"

#include "io/tables/csv.h"

static pnb_status open_text(pnb__csv *c, const char *text, char separator, pnb_error *err)
{
    return pnb__csv_open_bytes(c, text, strlen(text), separator, "t.csv", err);
}

/* All rows as "a|b;c|d;" */
static void expect_rows(const char *text, char separator, const char *wanted)
{
    pnb__csv c;
    pnb__buf found = {0};
    bool more = true;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(open_text(&c, text, separator, &err), &err);
    for (;;) {
        assert_ok(pnb__csv_next(&c, &more, &err), &err);
        if (!more)
            break;
        for (size_t i = 0; i < c.n_columns; i++)
            pnb__buf_printf(&found, "%s%s", i > 0 ? "|" : "", c.fields[i]);
        pnb__buf_putc(&found, ';');
    }
    assert_string_equal(found.data != NULL ? found.data : "", wanted);
    pnb__buf_reset(&found);
    pnb__csv_close(&c);
}

static void rows_are_split(void **state)
{
    (void)state;
    expect_rows("a,b\n1,2\n3,4\n", ',', "1|2;3|4;");
    expect_rows("a,b\r\n1,2\r\n3,4", ',', "1|2;3|4;");
    expect_rows("a,b\r1,2\r3,4\r", ',', "1|2;3|4;");
    expect_rows("a\tb\nx, y\tz\n", '\t', "x, y|z;");
    expect_rows("\xef\xbb\xbf"
                "a,b\n1,2\n",
                ',', "1|2;");
    expect_rows("\n\na,b\n\n1,2\n\r\n\n3,4\n\n", ',', "1|2;3|4;");
    expect_rows("a,b\n,\n", ',', "|;");
    expect_rows("a,b\n1,", ',', "1|;");
    expect_rows("a\n\"\"\nx\n", ',', ";x;");
    expect_rows("a,b\n", ',', "");
    expect_rows("a,b", ',', "");
}

static void quotes_are_understood(void **state)
{
    (void)state;
    expect_rows("a,b\n\"1,\"\"2\"\"\",3\n", ',', "1,\"2\"|3;");
    expect_rows("a,b\n\"two\nlines\",3\n", ',', "two\nlines|3;");
    expect_rows("a,b\nit is 5\" long,3\n", ',', "it is 5\" long|3;");
    expect_rows("a,b\n\"hello\" said he,3\n", ',', "hello said he|3;");
    expect_rows("\"a\",\"b\"\n\"\",\"x\"", ',', "|x;");
}

static void columns_are_found_by_name(void **state)
{
    scratch *s = *state;
    pnb__csv c;
    size_t column = 9;
    pnb_error err = PNB_ERROR_INIT;
    const char text[] = "filepath\ttitle\nx.png\ta cat\n";
    scratch_file(s, "t.csv", text, strlen(text));
    assert_ok(pnb__csv_open(&c, s->path, '\t', &err), &err);
    assert_ok(pnb__csv_column(&c, "title", &column, &err), &err);
    assert_int_equal(column, 1);
    assert_failed(pnb__csv_column(&c, "caption", &column, &err), &err, PNB_NOT_FOUND,
                  "it has \"filepath\", \"title\"");
    pnb__csv_close(&c);
    pnb__csv_close(&c);
    pnb_error_reset(&err);
    assert_failed(pnb__csv_open(&c, scratch_path(s, "none"), ',', &err), &err, PNB_NOT_FOUND,
                  "none");
}

static void rows_are_found_by_position(void **state)
{
    (void)state;
    const char text[] = "a,b\n1,2\n\n\"3\n\",4\n5,6\n";
    pnb__csv c;
    bool more = false;
    size_t offsets[3];
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(open_text(&c, text, ',', &err), &err);
    for (int i = 0; i < 3; i++) {
        assert_ok(pnb__csv_next(&c, &more, &err), &err);
        offsets[i] = c.row_offset;
    }
    assert_int_equal(offsets[0], 4);
    assert_int_equal(offsets[1], 9);
    static const char *const wanted[] = {"2", "4", "6"};
    for (int i = 2; i >= 0; i--) {
        pnb__csv_seek(&c, offsets[i]);
        assert_ok(pnb__csv_next(&c, &more, &err), &err);
        assert_true(more);
        assert_string_equal(c.fields[1], wanted[i]);
    }
    pnb__csv_seek(&c, 1 << 20);
    assert_ok(pnb__csv_next(&c, &more, &err), &err);
    assert_false(more);
    pnb__csv_close(&c);
}

static void rows_of_another_length_are_named(void **state)
{
    (void)state;
    pnb__csv c;
    bool more = false;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(open_text(&c, "a,b\n1,2\n1,2,3,4,5\n1\n3,4\n", ',', &err), &err);
    assert_ok(pnb__csv_next(&c, &more, &err), &err);
    assert_failed(pnb__csv_next(&c, &more, &err), &err, PNB_SHAPE,
                  "line 3: 5 fields, the header has 2");
    pnb_error_reset(&err);
    assert_failed(pnb__csv_next(&c, &more, &err), &err, PNB_SHAPE, "line 4: 1 fields");
    pnb_error_reset(&err);
    assert_ok(pnb__csv_next(&c, &more, &err), &err);
    assert_string_equal(c.fields[0], "3");
    pnb__csv_close(&c);
}

static void damage_is_named(void **state)
{
    (void)state;
    pnb__csv c;
    bool more = false;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(open_text(&c, "", ',', &err), &err, PNB_FORMAT, "empty");
    pnb_error_reset(&err);
    assert_failed(open_text(&c, "\n\n", ',', &err), &err, PNB_FORMAT, "empty");
    pnb_error_reset(&err);
    assert_failed(open_text(&c, "a,\"b\n1,2\n", ',', &err), &err, PNB_FORMAT,
                  "line 1: a quote is opened");
    pnb_error_reset(&err);
    assert_failed(open_text(&c, "a", '"', &err), &err, PNB_ARG, "separator");
    pnb_error_reset(&err);
    assert_ok(pnb__csv_open_bytes(&c, "a,b\n1,\0002\n", 9, ',', "t.csv", &err), &err);
    for (int i = 0; i < 2; i++) { /* stays where it is */
        pnb_error_reset(&err);
        assert_failed(pnb__csv_next(&c, &more, &err), &err, PNB_FORMAT, "line 2: zero byte");
    }
    pnb__csv_close(&c);
    pnb_error_reset(&err);
    assert_ok(open_text(&c, "a,b\n1,2\n\"x\ny,2\n", ',', &err), &err);
    assert_ok(pnb__csv_next(&c, &more, &err), &err);
    assert_failed(pnb__csv_next(&c, &more, &err), &err, PNB_FORMAT, "line 3: a quote");
    pnb__csv_close(&c);
}

/* More columns than the first allocation holds, and rows that make the text move. */
static void wide_and_long_tables(void **state)
{
    (void)state;
    enum { COLUMNS = 300, ROWS = 50 };
    pnb__buf text = {0};
    pnb__csv c;
    bool more = false;
    pnb_error err = PNB_ERROR_INIT;
    for (int row = 0; row <= ROWS; row++) {
        for (int i = 0; i < COLUMNS; i++)
            pnb__buf_printf(&text, "%s%0*d", i > 0 ? ";" : "", row + 1, i);
        pnb__buf_putc(&text, '\n');
    }
    assert_ok(pnb__csv_open_bytes(&c, text.data, text.size, ';', "wide", &err), &err);
    assert_int_equal(c.n_columns, COLUMNS);
    for (int row = 1; row <= ROWS; row++) {
        assert_ok(pnb__csv_next(&c, &more, &err), &err);
        for (int i = 0; i < COLUMNS; i++)
            assert_int_equal(strtol(c.fields[i], NULL, 10), i);
    }
    assert_ok(pnb__csv_next(&c, &more, &err), &err);
    assert_false(more);
    pnb__csv_close(&c);
    pnb__buf_reset(&text);
}

#ifdef PNB_FAULTS
static pnb_status read_table(scratch *s, pnb_error *err)
{
    static const char text[] =
        "a,b,c\n1,\"2\",3\n4,5,a rather long field that makes the text grow so "
        "that it has to move somewhere else in memory\n";
    pnb__csv c;
    bool more = true;
    pnb_status status = pnb__csv_open(&c, scratch_file(s, "f.csv", text, strlen(text)), ',', err);
    if (status != PNB_OK)
        return status;
    while (more && status == PNB_OK)
        status = pnb__csv_next(&c, &more, err);
    pnb__csv_close(&c);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    fail_every_allocation(read_table, *state);
}
#endif

static void fields_written_are_read_again(void **state)
{
    (void)state;
    static const char *const fields[] = {"plain", "a,b", "say \"no\"", "two\nlines", "a\rb", ""};
    pnb__buf b = {0};
    pnb__csv c;
    bool more = false;
    pnb_error err = PNB_ERROR_INIT;
    pnb__buf_puts(&b, "a,b,c,d,e,f\n");
    for (size_t i = 0; i < PNB_COUNT(fields); i++) {
        pnb__buf_puts(&b, i > 0 ? "," : "");
        pnb__csv_put_field(&b, fields[i]);
    }
    assert_non_null(strstr(b.data, "\nplain,\"a,b\",\"say \"\"no\"\"\","));
    assert_ok(open_text(&c, b.data, ',', &err), &err);
    assert_ok(pnb__csv_next(&c, &more, &err), &err);
    assert_true(more);
    for (size_t i = 0; i < PNB_COUNT(fields); i++)
        assert_string_equal(c.fields[i], fields[i]);
    pnb__csv_close(&c);
    pnb__buf_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_written_are_read_again),
        cmocka_unit_test(rows_are_split),
        cmocka_unit_test(quotes_are_understood),
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(rows_are_found_by_position),
        cmocka_unit_test(rows_of_another_length_are_named),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(wide_and_long_tables),
#ifdef PNB_FAULTS
        cmocka_unit_test(every_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
