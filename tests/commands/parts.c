/* The list of libraries that a build may lack: each row says what it gives and what to install. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "commands/commands.h"
#include "penumbra/store.h"

static void every_row_is_whole(void **state)
{
    (void)state;
    size_t n = 0;
    for (const pnb__part *p = pnb__parts; p->library != NULL; p++, n++) {
        assert_true(p->gives[0] != '\0' && p->version != NULL);
        assert_non_null(strstr(p->package, "-dev"));
        if (strcmp(p->library, "SQLite") == 0)
            assert_int_equal(p->version() != NULL, strstr(pnb_store_kinds(), "SQLite") != NULL);
        if (strcmp(p->library, "libpq") == 0)
            assert_int_equal(p->version() != NULL, strstr(pnb_store_kinds(), "Postgres") != NULL);
    }
    assert_int_equal(n, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
