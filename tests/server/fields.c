/* Bodies against a table of fields, and the table as JSON schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/fields.h"

static const pnb__field fields[] = {
    PNB__VALUE("input", ANY, "What", .required = true, .schema = "{\"type\":[\"string\"]}"),
    PNB__VALUE("k", INT, "How many", .min = 1, .max = 100),
    PNB__VALUE("p", REAL, "Least", .min = 0, .max = 1),
    PNB__VALUE("how", TEXT, "Form", .choices = "float|base64"),
    PNB__VALUE("flag", FLAG, "Whether"),
    PNB__VALUE("list", LIST, "Some")};

static pnb_status read_body(const char *body, json_t **out, pnb_error *err)
{
    return pnb__fields_read(out, fields, PNB_COUNT(fields), body, strlen(body), err);
}

static void bodies_that_fit(void **state)
{
    json_t *v = NULL;
    (void)state;
    assert_int_equal(read_body("{\"input\":[1],\"k\":100,\"p\":0,\"how\":\"base64\",\"flag\":true,"
                               "\"list\":[]}",
                               &v, NULL),
                     PNB_OK);
    assert_int_equal(pnb__field_size(v, "k", 7), 100);
    assert_true(pnb__field_real(v, "p", 3) == 0);
    assert_true(pnb__field_flag(v, "flag", false));
    assert_string_equal(pnb__field_text(v, "how", "float"), "base64");
    json_decref(v);
    assert_int_equal(read_body("{\"input\":\"a\",\"k\":null}", &v, NULL), PNB_OK);
    assert_int_equal(pnb__field_size(v, "k", 7), 7);
    assert_true(pnb__field_real(v, "p", 3) == 3);
    assert_false(pnb__field_flag(v, "flag", false));
    assert_string_equal(pnb__field_text(v, "how", "float"), "float");
    assert_null(pnb__field_of(v, "k"));
    json_decref(v);
}

static void bodies_that_do_not(void **state)
{
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"", "no body"},
        {"{", "line 1"},
        {"[]", "object"},
        {"{}", "'input' is missing"},
        {"{\"input\":null}", "'input' is missing"},
        {"{\"input\":1,\"k\":\"5\"}", "'k' is a string; wanted is a whole number"},
        {"{\"input\":1,\"k\":1.5}", "'k' is a number; wanted is a whole number"},
        {"{\"input\":1,\"k\":0}", "from 1 to 100"},
        {"{\"input\":1,\"k\":101}", "from 1 to 100"},
        {"{\"input\":1,\"k\":999999999999999999999}", "the request"},
        {"{\"input\":1,\"p\":1.01}", "'p' is 1.01"},
        {"{\"input\":1,\"p\":-0.1}", "from 0 to 1"},
        {"{\"input\":1,\"how\":\"floa\"}", "one of float|base64"},
        {"{\"input\":1,\"how\":\"\"}", "one of float|base64"},
        {"{\"input\":1,\"how\":1}", "wanted is a string"},
        {"{\"input\":1,\"flag\":0}", "true or false"},
        {"{\"input\":1,\"list\":{}}", "wanted is an array"},
        {"{\"input\":1,\"inptu\":2}", "inptu"},
        {"{\"input\":1,\"input\":2}", "input"},
    };
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        json_t *v = NULL;
        pnb_error err = PNB_ERROR_INIT;
        assert_int_not_equal(read_body(cases[i].body, &v, &err), PNB_OK);
        assert_null(v);
        if (strstr(err.text, cases[i].says) == NULL)
            fail_msg("%s: '%s' does not say '%s'", cases[i].body, err.text, cases[i].says);
    }
}

static void a_table_is_a_schema(void **state)
{
    pnb__buf b = {0};
    json_t *v = NULL;
    (void)state;
    pnb__fields_schema(fields, PNB_COUNT(fields), &b);
    assert_int_equal(pnb__json_load_bytes(&v, b.data, b.size, "schema", NULL), PNB_OK);
    const json_t *properties = json_object_get(v, "properties");
    assert_int_equal(json_object_size(properties), PNB_COUNT(fields));
    const json_t *k = json_object_get(properties, "k");
    assert_string_equal(json_string_value(json_object_get(k, "type")), "integer");
    assert_true(json_number_value(json_object_get(k, "maximum")) == 100);
    assert_int_equal(json_array_size(json_object_get(json_object_get(properties, "how"), "enum")),
                     2);
    assert_true(json_is_array(json_object_get(json_object_get(properties, "input"), "type")));
    assert_int_equal(json_array_size(json_object_get(v, "required")), 1);
    json_decref(v);
    pnb__buf_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bodies_that_fit),
                                       cmocka_unit_test(bodies_that_do_not),
                                       cmocka_unit_test(a_table_is_a_schema)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
