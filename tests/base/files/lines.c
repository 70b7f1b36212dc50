/* Lines of a text in memory: ends, byte-order mark, an unended last line, a NUL byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"

/* Reads all lines of `text` (n bytes) joined with '|'; `text` is not changed. */
static pnb_status join(const char *text, size_t n, char out[64], pnb_error *err)
{
    char data[64];
    memcpy(data, text, n);
    data[n] = '\0';
    pnb__line_reader lines = {.at = data, .end = data + n, .path = "names.txt"};
    pnb__buf joined = {0};
    pnb_status status;
    out[0] = '\0';
    for (char *line;;) {
        PNB_TRY(pnb__line_next(&lines, &line, err));
        if (line == NULL)
            break;
        pnb__buf_printf(&joined, "%zu%s|", lines.number, line);
    }
    assert_false(joined.failed);
    snprintf(out, 64, "%s", joined.data != NULL ? joined.data : "");
done:
    pnb__buf_reset(&joined);
    return status;
}

static void lines_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {{"", ""},
                 {"\n", "1|"},
                 {"a", "1a|"},
                 {"a\nb\n", "1a|2b|"},
                 {"a\r\n\r\nb\r", "1a|2|3b|"},
                 {"\xEF\xBB\xBF"
                  "a\n\xEF\xBB\xBF"
                  "b",
                  "1a|2\xEF\xBB\xBF"
                  "b|"},
                 {"\xEF\xBB\xBF", "1|"}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        char got[64];
        assert_int_equal(join(cases[i].text, strlen(cases[i].text), got, NULL), PNB_OK);
        assert_string_equal(got, cases[i].want);
    }
}

static void a_nul_byte_is_no_text(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    char got[64];
    assert_int_equal(join("a\nb\0c\nd", 7, got, &err), PNB_FORMAT);
    assert_non_null(strstr(err.text, "names.txt line 2: holds a NUL byte"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_cut),
        cmocka_unit_test(a_nul_byte_is_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
