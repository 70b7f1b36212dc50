/* Forms in which clients send captions and pictures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/batching/inputs.h"

static pnb_status read_text(const char *text, bool messages, pnb__inputs *in, json_t **v,
                            pnb_error *err)
{
    assert_int_equal(pnb__json_load_bytes(v, text, strlen(text), "test", err), PNB_OK);
    const json_t *value = json_object_get(*v, "x");
    return messages ? pnb__inputs_read_messages(in, value, err)
                    : pnb__inputs_read(in, value, "input", err);
}

static void forms_that_are_read(void **state)
{
    static const struct {
        const char *text, *kinds; /* t: caption, i: picture */
        bool messages;
    } cases[] = {
        {"{\"x\":\"a\"}", "t", false},
        {"{\"x\":\"\"}", "t", false},
        {"{\"x\":[\"a\",\"data:image/png;base64,AA\",\"data:b\"]}", "tit", false},
        {"{\"x\":{\"image\":\"AAAA\"}}", "i", false},
        {"{\"x\":{\"text\":\"data\"}}", "t", false},
        {"{\"x\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\",\"image_url\":"
         "{\"url\":\"DATA:IMAGE/PNG;base64,AA\"}},{\"image_url\":\"u\"}]}",
         "tii", false},
        {"{\"x\":[{\"role\":\"user\",\"content\":\"a\"},{\"content\":[{\"text\":\"b\"},{\"image\":"
         "{\"url\":\"c\"}}]}]}",
         "tti", true},
    };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__inputs in = {0};
        json_t *v = NULL;
        assert_int_equal(read_text(cases[i].text, cases[i].messages, &in, &v, NULL), PNB_OK);
        assert_int_equal(in.n, strlen(cases[i].kinds));
        for (size_t k = 0; k < in.n; k++) {
            assert_int_equal(in.items[k].is_image, cases[i].kinds[k] == 'i');
            assert_int_equal(in.items[k].n_bytes, strlen(in.items[k].text));
        }
        pnb__inputs_reset(&in);
        json_decref(v);
    }
}

static void forms_that_are_not(void **state)
{
    static const struct {
        const char *text, *says;
        bool messages;
    } cases[] = {
        {"{\"x\":[]}", "holds nothing", false},
        {"{\"x\":1}", "ids of tokens are not taken", false},
        {"{\"x\":[[1,2]]}", "ids of tokens are not taken", false},
        {"{\"x\":[null]}", "null where a string is wanted", false},
        {"{\"x\":true}", "true where a string is wanted", false},
        {"{\"x\":{}}", "wants one of", false},
        {"{\"x\":{\"text\":\"a\",\"image\":\"b\"}}", "wants one of", false},
        {"{\"x\":{\"text\":1}}", "a number where a string is wanted", false},
        {"{\"x\":{\"image_url\":{}}}", "nothing where a string is wanted", false},
        {"{\"x\":[]}", "holds nothing", true},
        {"{\"x\":[{\"role\":\"user\"}]}", "message 0 has no", true},
        {"{\"x\":[3]}", "message 0 has no", true},
    };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__inputs in = {0};
        json_t *v = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_int_equal(read_text(cases[i].text, cases[i].messages, &in, &v, &err), PNB_FORMAT);
        if (strstr(err.text, cases[i].says) == NULL)
            fail_msg("%s: %s", cases[i].text, err.text);
        pnb__inputs_reset(&in);
        json_decref(v);
    }
}

static void not_more_than_openai(void **state)
{
    pnb__buf b = {0};
    (void)state;
    for (size_t n = PNB__MAX_INPUTS; n <= PNB__MAX_INPUTS + 1; n++) {
        pnb__inputs in = {0};
        json_t *v = NULL;
        pnb__buf_puts(&b, "{\"x\":[\"a\"");
        for (size_t i = 1; i < n; i++)
            pnb__buf_puts(&b, ",\"a\"");
        pnb__buf_puts(&b, "]}");
        assert_int_equal(read_text(b.data, false, &in, &v, NULL),
                         n > PNB__MAX_INPUTS ? PNB_ARG : PNB_OK);
        pnb__inputs_reset(&in);
        pnb__buf_reset(&b);
        json_decref(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms_that_are_read),
                                       cmocka_unit_test(forms_that_are_not),
                                       cmocka_unit_test(not_more_than_openai)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
