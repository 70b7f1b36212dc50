/* Rows as JSON: numbers come back to the bit, in digits and in base64; parameters under their names
 * in files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "io/json/json.h"
#include "server/set_json.h"

static void digits_come_back_to_the_bit(void **state)
{
    (void)state;
    const float x[] = {0.1f, -1.0f / 3, 1e-38f, 3.4e38f, 0};
    pnb__buf b = {0};
    pnb__floats_put(&b, x, PNB_COUNT(x), false);
    json_t *list = NULL;
    assert_int_equal(pnb__json_load_bytes(&list, b.data, b.size, "numbers", NULL), PNB_OK);
    assert_int_equal(json_array_size(list), PNB_COUNT(x));
    for (size_t i = 0; i < PNB_COUNT(x); i++) {
        float back = (float)json_number_value(json_array_get(list, i));
        assert_memory_equal(&back, &x[i], sizeof back);
    }
    json_decref(list);
    pnb__buf_reset(&b);
}

/* 1.0f is 00 00 80 3f, -2.0f is 00 00 00 c0, the lowest byte first. */
static void base64_is_of_the_bytes(void **state)
{
    (void)state;
    pnb__buf b = {0};
    pnb__floats_put(&b, (const float[]){1, -2}, 2, true);
    assert_string_equal(b.data, "\"AACAPwAAAMA=\"");
    pnb__buf_reset(&b);
}

static void parameters_of_the_row(void **state)
{
    (void)state;
    pnb_embeddings *set = NULL;
    pnb__buf b = {0};
    assert_int_equal(pnb_embeddings_create(&set, PNB_GAUSSIAN_DIAG, 2, 2, NULL), PNB_OK);
    for (int i = 0; i < 4; i++)
        set->log_var[i] = (float)-i;
    pnb__row_parameters_put(&b, set, 1, false);
    assert_string_equal(b.data, ",\"log_var\":[-2,-3]");
    pnb__buf_reset(&b);
    pnb_embeddings_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(digits_come_back_to_the_bit),
                                       cmocka_unit_test(base64_is_of_the_bytes),
                                       cmocka_unit_test(parameters_of_the_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
