/* The page: one document, and a policy that lets nothing else run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/page/page_document.h"
#include "server/page/page_files.h"

static void it_is_whole(void **state)
{
    pnb__buf b = {0};
    char policy[512];
    (void)state;
    assert_true(pnb__page_put(&b, policy, sizeof policy));
    assert_int_equal(strlen(b.data), b.size);
    assert_true(pnb__starts_with(b.data, "<!doctype html>"));
    assert_true(pnb__ends_with(b.data, "</html>\n"));
    assert_non_null(strstr(b.data, pnb__page_css));
    assert_non_null(strstr(b.data, pnb__page_js));
    /* nothing from elsewhere: not a link, not a source */
    assert_null(strstr(b.data, "page.css"));
    assert_null(strstr(b.data, " src=\""));
    assert_null(strstr(b.data, "https:"));
    assert_null(strstr(pnb__page_css, "url("));
    assert_null(strstr(pnb__page_css, "@import"));
    assert_null(strstr(pnb__page_js, "innerHTML"));
    assert_null(strstr(pnb__page_html, "style=\""));
    pnb__buf_reset(&b);
}

static void its_policy_is_strict(void **state)
{
    pnb__buf b = {0};
    char policy[512], small[64];
    (void)state;
    assert_true(pnb__page_put(&b, policy, sizeof policy));
    assert_true(pnb__starts_with(policy, "default-src 'none'; script-src 'sha256-"));
    assert_null(strstr(policy, "unsafe"));
    assert_null(strchr(policy, '*'));
    assert_non_null(strstr(policy, "connect-src 'self'"));
    assert_non_null(strstr(policy, "frame-ancestors 'none'"));
    assert_false(pnb__page_put(&b, small, sizeof small));
    pnb__buf_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_whole),
                                       cmocka_unit_test(its_policy_is_strict)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
