/* The `expected` block of a golden case. */
#ifndef PNB_TESTS_EVAL_EXPECTED_H
#define PNB_TESTS_EVAL_EXPECTED_H

#include "io/json/json.h"
#include "tests/prob/support.h"

static inline json_t *load_expected(const char *name)
{
    char path[512];
    json_t *root = NULL;
    snprintf(path, sizeof path, "%s/tests/golden/%s/case.json", PNB_SOURCE_DIR, name);
    assert_ok(pnb__json_load_file(&root, path, 0, err));
    json_t *expected = json_incref(json_object_get(root, "expected"));
    json_decref(root);
    assert_non_null(expected);
    return expected;
}

static inline double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        fail_msg("expected has no number %s", key);
    return json_number_value(value);
}

static inline double element(const json_t *object, const char *key, size_t i)
{
    const json_t *value = json_array_get(json_object_get(object, key), i);
    if (!json_is_number(value))
        fail_msg("expected has no number %s[%zu]", key, i);
    return json_number_value(value);
}

#endif
