/* What replies say of a row beside its id: fields that mean something to others, never where the
 * row lies on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "commands/serve/gallery_side.h"

static void check(const char *extra, bool has_caption, const char *want)
{
    pnb__buf b = {0};
    pnb__buf_puts(&b, "{");
    pnb__gallery_put_extra(extra, has_caption, &b);
    assert_string_equal(b.data, want);
    pnb__buf_reset(&b);
}

static void fields_for_others(void **state)
{
    (void)state;
    check("{\"path\":\"/home/x.png\",\"shard\":\"a.tar\",\"url\":\"http://a/b\",\"level\":2}",
          false, "{,\"url\":\"http://a/b\",\"level\":2");
    check("{\"caption\":\"of its own\",\"uid\":\"7\"}", false,
          "{,\"caption\":\"of its own\",\"uid\":\"7\"");
    check("{\"caption\":\"of its own\",\"uid\":\"7\"}", true, "{,\"uid\":\"7\"");
    check("not JSON", false, "{");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields_for_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
