/* Results as text and as JSON, from the same calls. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/byte_names.h"
#include "io/json/json.h"
#include "report/result.h"

static char *printed(const pnb__result *r, bool json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    pnb_error err = PNB_ERROR_INIT;
    assert_non_null(out);
    assert_int_equal(pnb__result_print(r, out, json, &err), PNB_OK);
    fclose(out);
    return text;
}

static pnb__result *make(void)
{
    static const pnb__column columns[] = {{"name", "name"}, {"n", "count"}};
    pnb__result *r = pnb__result_create();
    pnb__result_text(r, "path", "path",
                     "a\xFF"
                     "b");
    pnb__result_int(r, "n", "rows", 3);
    pnb__result_real(r, "loss", "loss", NAN, 3);
    pnb__result_real(r, "tiny", "tiny", 1.5e-7, 3);
    pnb__result_flag(r, "reused", NULL, true);
    pnb__result_begin(r, "inner", "inside");
    pnb__result_int(r, "k", "k", 1);
    pnb__result_end(r);
    pnb__result_numbers(r, "list", (const double[]){1.5, NAN}, 2);
    pnb__result_repeat(r, "inner", "k");
    pnb__result_table(r, "rows", "table", columns, 2);
    pnb__result_cell_text(r, "\xC3\xA9t\xC3\xA9");
    pnb__result_cell_int(r, 7);
    pnb__result_cell_text(r, "b");
    pnb__result_cell_int(r, 1234);
    return r;
}

/* A table without rows is [] for programs and nothing for people, its heading too. */
static void test_table_without_rows(void **state)
{
    static const pnb__column columns[] = {{"name", "name"}, {"n", "count"}};
    (void)state;
    pnb__result *r = pnb__result_create();
    pnb__result_int(r, "n", "rows", 3);
    pnb__result_table(r, "absent", "without figures", columns, 2);
    pnb__result_table(r, "there", "with figures", columns, 2);
    pnb__result_row(r, "%s %zu", "a", (size_t)1);
    char *text = printed(r, false), *json = printed(r, true);
    assert_string_equal(text, "rows  3\n\nwith figures\nname  count\na         1\n");
    assert_non_null(strstr(json, "\"absent\": []"));
    free(text);
    free(json);
    pnb__result_free(r);
}

/* Columns without headings have no line of them. */
static void test_table_without_headings(void **state)
{
    static const pnb__column columns[] = {{"level", ""}, {"part", ""}};
    (void)state;
    pnb__result *r = pnb__result_create();
    pnb__result_table(r, "findings", "findings", columns, 2);
    pnb__result_row(r, "%s %s", "ok", "model");
    char *text = printed(r, false);
    assert_string_equal(text, "findings\nok  model\n");
    free(text);
    pnb__result_free(r);
}

static void test_text(void **state)
{
    (void)state;
    pnb__result *r = make();
    char *text = printed(r, false);
    assert_string_equal(text, "path  a\xFF"
                              "b\n"
                              "rows  3\n"
                              "loss  -\n"
                              "tiny  1.5e-07\n"
                              "\ninside\n"
                              "k  1\n"
                              "\ntable\n"
                              "name  count\n"
                              "\xC3\xA9t\xC3\xA9       7\n"
                              "b      1234\n");
    free(text);
    pnb__result_free(r);
}

static void test_json(void **state)
{
    (void)state;
    pnb__result *r = make();
    char *text = printed(r, true);
    json_t *root = NULL;
    assert_non_null(strstr(text, "\"path\": \"a\\udcffb\"")); /* a byte, as Python writes one */
    assert_non_null(strstr(text, "\xC3\xA9t\xC3\xA9"));
    pnb__byte_names_hide(text, strlen(text)); /* a reader of strict JSON refuses a lone surrogate */
    assert_int_equal(pnb__json_load_bytes(&root, text, strlen(text), "result", NULL), PNB_OK);
    assert_true(json_is_null(json_object_get(root, "loss")));
    assert_true(json_is_true(json_object_get(root, "reused")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "inner"), "k")), 1);
    assert_int_equal(json_integer_value(json_object_get(root, "k")), 1);
    const json_t *list = json_object_get(root, "list");
    assert_int_equal(json_array_size(list), 2);
    assert_true(json_real_value(json_array_get(list, 0)) == 1.5);
    assert_true(json_is_null(json_array_get(list, 1)));
    const json_t *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 1), "n")), 1234);
    json_decref(root);
    free(text);
    pnb__result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_without_rows),
        cmocka_unit_test(test_table_without_headings),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
