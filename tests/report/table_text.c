/* Tables as csv and Markdown: cells with commas, quotes and bars, tables that are not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/table_text.h"

static void check(const pnb__result *r, const char *key, bool is_markdown, const char *want)
{
    pnb__buf b = {0};
    pnb__buf_puts(&b, "");
    pnb__table_append(r, key, is_markdown, &b);
    assert_string_equal(b.data != NULL ? b.data : "", want);
    pnb__buf_reset(&b);
}

static void both_forms(void **state)
{
    (void)state;
    static const pnb__column columns[] = {{"name", "a name"}, {"n", "count"}};
    pnb__result *r = pnb__result_create();
    pnb__result_table(r, "rows", "table", columns, 2);
    pnb__result_cell_text(r, "x, \"y\" | z");
    pnb__result_cell_int(r, 7);
    pnb__result_cell_text(r, "b");
    pnb__result_cell_int(r, 12);
    check(r, "rows", false, "name,n\n\"x, \"\"y\"\" | z\",7\nb,12\n");
    check(r, "rows", true, "| a name | count |\n|---|---|\n| x, \"y\" / z | 7 |\n| b | 12 |\n\n");
    check(r, "nothing", false, "");
    pnb__result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
