/* Files of lines: what is an entry and what is not, and files that are no text. */
#include "io/tables/text_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/io/scratch.h"

static pnb_status load(pnb__lines *out, const void *bytes, size_t n, pnb_error *err)
{
    char path[] = "/tmp/pnb-lines-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    pnb_status status = pnb__lines_load(out, path, err);
    unlink(path);
    return status;
}

static void entries(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbf"
                               "first\r\n\n# a comment\n second \nlast";
    pnb__lines lines;
    assert_int_equal(load(&lines, text, sizeof text - 1, NULL), PNB_OK);
    assert_int_equal(lines.n, 3);
    assert_string_equal(lines.line[0], "first");
    assert_string_equal(lines.line[1], " second ");
    assert_string_equal(lines.line[2], "last");
    pnb__lines_reset(&lines);
    assert_int_equal(load(&lines, "", 0, NULL), PNB_OK);
    assert_int_equal(lines.n, 0);
    pnb__lines_reset(&lines);
    pnb__lines_reset(&lines); /* again is fine */
}

static void no_text(void **state)
{
    (void)state;
    pnb__lines lines;
    pnb_error err = {0};
    assert_int_equal(load(&lines, "a\n\xff\xfe\n", 5, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "not UTF-8"));
    assert_true(lines.n == 0 && lines.text == NULL && lines.line == NULL);
    assert_int_equal(pnb__lines_load(&lines, "/nowhere/list.txt", NULL), PNB_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(entries), cmocka_unit_test(no_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
