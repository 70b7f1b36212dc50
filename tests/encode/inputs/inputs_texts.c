/* Captions of text files: rows are lines, whatever ends them; what is no text is refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "encode/inputs/inputs.h"
#include "penumbra/tokenizer.h"

#define BOM "\xEF\xBB\xBF"

static char folder[64], path[96];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pnb-captions-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(folder);
}

static pnb_status read_bytes(pnb__text_inputs *c, const char *name, const char *bytes, size_t n,
                             pnb_error *err)
{
    *c = (pnb__text_inputs){0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(pnb__write_file(path, bytes, n, NULL), PNB_OK);
    pnb_status status = pnb__text_inputs_add(c, path, "title", stdin, err);
    unlink(path);
    return status;
}

/* The same bytes by name and by standard input. */
static void assert_rows(const char *bytes, const char *const *want, size_t n)
{
    for (int by_stream = 0; by_stream < 2; by_stream++) {
        pnb__text_inputs c = {0};
        pnb_error err = PNB_ERROR_INIT;
        if (by_stream) {
            FILE *in = fmemopen((void *)(uintptr_t)bytes, strlen(bytes), "rb");
            assert_int_equal(pnb__text_inputs_add(&c, "-", "title", in, &err), PNB_OK);
            fclose(in);
        } else {
            assert_int_equal(read_bytes(&c, "a.txt", bytes, strlen(bytes), &err), PNB_OK);
        }
        assert_int_equal(c.n, n);
        assert_int_equal(c.n_bad, 0);
        for (size_t i = 0; i < n; i++)
            assert_string_equal(c.items[i].text, want[i]);
        pnb__text_inputs_reset(&c);
    }
}

#define ROWS(bytes, ...)                                                                           \
    do {                                                                                           \
        static const char *const want[] = {__VA_ARGS__};                                           \
        assert_rows(bytes, want, sizeof want / sizeof *want);                                      \
    } while (0)

static void rows_are_lines(void **state)
{
    (void)state;
    ROWS("a\nb\n", "a", "b");
    ROWS("a\nb", "a", "b");
    ROWS("a\n\nb\n", "a", "", "b");
    ROWS("\n\na\n\n", "", "", "a", "");
    ROWS("\n", "");
    ROWS("a\r\n\r\nb\r\n", "a", "", "b");
    ROWS("a\r\r\n", "a\r");
    ROWS(BOM "a\nb\n", "a", "b");
    ROWS(BOM "\nb\n", "", "b");
    ROWS("a\n" BOM "b\n", "a", BOM "b");
    ROWS(" \n\tx \n", " ", "\tx ");
}

static void empty_fields_are_texts(void **state)
{
    (void)state;
    pnb__text_inputs c;
    static const char csv[] = BOM "filepath,title\r\na.png,\r\nb.png,two\r\n";
    static const char jsonl[] = BOM "{\"text\":\"\"}\r\n\r\n{\"caption\":\"two\"}";
    assert_int_equal(read_bytes(&c, "a.csv", csv, strlen(csv), NULL), PNB_OK);
    assert_int_equal(c.n, 2);
    assert_string_equal(c.items[0].text, "");
    assert_string_equal(c.items[1].text, "two");
    pnb__text_inputs_reset(&c);
    assert_int_equal(read_bytes(&c, "a.jsonl", jsonl, strlen(jsonl), NULL), PNB_OK);
    assert_int_equal(c.n, 2);
    assert_string_equal(c.items[0].text, "");
    assert_string_equal(c.items[1].text, "two");
    pnb__text_inputs_reset(&c);
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes;
        size_t n;
        const char *says;
    } cases[] = {
        {"a.txt", "a\0b\n", 4, "NUL bytes"},
        {"a.parquet", "PAR1\x15\0\0\0PAR1", 12, "a.parquet: a footer of 21 bytes in a file of 12"},
        {"b.parquet", "PAR1\xFF\xFE\xFF\xFE", 8, "b.parquet: is no Parquet table"},
        {"a.txt", "\x1F\x8B\x08\xFF\xFF", 5, "gunzip"},
        {"a.txt", "PK\x03\x04\0\0", 6, "zip archive"},
        {"a.txt", "\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16, "PNG picture"},
        {"a.txt", "caf\xE9\n", 5, "more than 1%"},
        {"a.txt", "caf\xE9\nfine\n\xE9t\xE9\n", 14, "more than 1%"},
        {"a.csv", "PAR1\x15\0\0\0PAR1", 12, "Parquet"},
        {"a.jsonl", "PAR1\x15\0\0\0PAR1", 12, "Parquet"},
        {"a.txt", "version https://git-lfs.github.com/spec/v1\n", 43, "Git LFS pointer"},
        {"a.jsonl", "<!doctype html>", 15, "web page"},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__text_inputs c;
        pnb_error err = PNB_ERROR_INIT;
        pnb_status status = read_bytes(&c, cases[i].name, cases[i].bytes, cases[i].n, &err);
        if (status != PNB_FORMAT || strstr(err.text, cases[i].says) == NULL)
            fail_msg("case %zu: %s", i, err.text);
        assert_int_equal(c.n_bad, 0);
        pnb__text_inputs_reset(&c);
    }
    pnb__text_inputs c = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__text_inputs_add(&c, "https://x.org/a.txt", "title", stdin, &err),
                     PNB_NOT_FOUND);
    assert_non_null(strstr(err.text, "this is a URL"));
    pnb__text_inputs_reset(&c);
}

/* One bad line among many is left out and named; so is one that no caption is long as. */
static void single_bad_lines_are_left_out(void **state)
{
    (void)state;
    pnb__text_inputs c;
    pnb__buf b = {0};
    for (int i = 0; i < 200; i++)
        pnb__buf_puts(&b, "a caption\n");
    pnb__buf_puts(&b, "caf\xE9\n");
    for (int i = 0; i <= PNB_TOKENIZER_MAX_BYTES; i++)
        pnb__buf_putc(&b, 'x');
    pnb__buf_puts(&b, "\nlast\n");
    assert_int_equal(read_bytes(&c, "a.txt", b.data, b.size, NULL), PNB_OK);
    assert_int_equal(c.n, 201);
    assert_int_equal(c.n_bad, 2);
    assert_non_null(strstr(c.bad[0], "line 201: not valid UTF-8"));
    assert_non_null(strstr(c.bad[1], "line 202: longer than the 1048576 bytes"));
    assert_string_equal(c.items[200].text, "last");
    pnb__text_inputs_reset(&c);
    pnb__buf_reset(&b);
    assert_int_equal(read_bytes(&c, "a.txt", "two\n\xFF\xFE\n", 7, NULL), PNB_OK);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.n_bad, 1);
    pnb__text_inputs_reset(&c);
}

/* So is a line that is no record, with what it gave before that was seen; others keep their places.
 * A file without any record is refused by its first line. */
static void bad_records_are_left_out(void **state)
{
    (void)state;
    static const char lines[] = "{\"text\":\"a\"}\n{broken\n{\"captions\":[\"b\",3]}\n"
                                "{\"text\":\"c\",\"level\":-7}\n[1]\n\n{\"captions\":[\"d\"]}\n";
    static const char none[] = "{broken\n{\"captions\":[\"b\",3]}\n";
    static const char *const says[] = {"line 2", "line 3: captions[1]", "line 4: a level",
                                       "line 5"};
    pnb__text_inputs c;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(read_bytes(&c, "a.jsonl", lines, sizeof lines - 1, &err), PNB_OK);
    assert_int_equal(c.n, 2);
    assert_string_equal(c.items[1].text, "d");
    assert_int_equal(c.items[1].place, 5);
    assert_int_equal(c.n_bad, PNB_COUNT(says));
    for (size_t i = 0; i < PNB_COUNT(says); i++)
        assert_non_null(strstr(c.bad[i], says[i]));
    pnb__text_inputs_reset(&c);
    assert_int_equal(read_bytes(&c, "a.jsonl", none, sizeof none - 1, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "line 1"));
    assert_true(c.n == 0 && c.n_bad == 0);
    pnb__text_inputs_reset(&c);
}

/* A record's class goes with every caption of it; what is neither text nor number does not. */
static void classes_of_records(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"text\":\"a\",\"class\":\"red \\\"star\\\"\",\"label\":4,\"other\":1}\n"
        "{\"id\":\"x\",\"captions\":[\"b\",\"c\"],\"label\":7}\n"
        "{\"text\":\"d\",\"class\":[1]}\n";
    static const char *const want[] = {"{\"class\":\"red \\\"star\\\"\",\"label\":4}",
                                       "{\"label\":7}", "{\"label\":7}", NULL};
    pnb__text_inputs c;
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(read_bytes(&c, "a.jsonl", lines, sizeof lines - 1, &err), PNB_OK);
    assert_int_equal(c.n, 4);
    for (size_t i = 0; i < 4; i++) {
        if (want[i] == NULL)
            assert_null(c.items[i].extra);
        else
            assert_string_equal(c.items[i].extra, want[i]);
    }
    pnb__text_inputs_reset(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_of_records),
        cmocka_unit_test(rows_are_lines),
        cmocka_unit_test(empty_fields_are_texts),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(single_bad_lines_are_left_out),
        cmocka_unit_test(bad_records_are_left_out),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
