/* Pictures in texts, and what is never fetched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "io/image/data_url.h"

static void images_in_texts(void **state)
{
    static const char *const texts[] = {
        "data:image/png;base64,aGk=", "DATA:image/svg+xml;charset=x;BASE64,aGk", "aGk=", "aGk"};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(texts); i++) {
        pnb__buf out = {0};
        assert_int_equal(pnb__image_text_read(&out, texts[i], strlen(texts[i]), NULL), PNB_OK);
        assert_int_equal(out.size, 2);
        assert_memory_equal(out.data, "hi", 2);
        pnb__buf_reset(&out);
    }
    assert_true(pnb__is_image_url("data:image/"));
    assert_false(pnb__is_image_url("data:text/plain;base64,"));
    assert_false(pnb__is_image_url("a data:image/"));
}

static void what_is_none(void **state)
{
    static const struct {
        const char *text;
        pnb_status status;
    } cases[] = {{"http://localhost/a.png", PNB_ARG},
                 {"file:///etc/passwd", PNB_ARG},
                 {"data:text/plain;base64,aGk=", PNB_ARG},
                 {"data:image/png,aGk=", PNB_ARG},
                 {"data:image/png;base64", PNB_ARG},
                 {":,", PNB_ARG},
                 {"data:image/png;base64,", PNB_FORMAT},
                 {"", PNB_FORMAT},
                 {"../secret.png", PNB_FORMAT},
                 {"data:image/png;base64,a b", PNB_FORMAT}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__buf out = {0};
        pnb_error err = PNB_ERROR_INIT;
        pnb_status status = pnb__image_text_read(&out, cases[i].text, strlen(cases[i].text), &err);
        if (status != cases[i].status)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_true(err.text[0] != '\0');
        pnb__buf_reset(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(images_in_texts),
                                       cmocka_unit_test(what_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
