/* Rows as JSON: numbers that read back as the same floats, arrays of every family. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/set_json.h"

static void floats_there_and_back(void **state)
{
    const float x[] = {0.1f, -1e-30f, 3.4028235e38f, 1.0f / 3.0f, 0.0f, -2.5f};
    pnb__buf b = {0}, back = {0};
    size_t bad;
    (void)state;
    pnb__floats_put(&b, x, PNB_COUNT(x), false);
    const char *at = b.data + 1;
    for (size_t i = 0; i < PNB_COUNT(x); i++) {
        char *next;
        assert_true(strtof(at, &next) == x[i]);
        at = next + 1;
    }
    assert_string_equal(at - 1, "]");
    pnb__buf_reset(&b);
    pnb__floats_put(&b, x, PNB_COUNT(x), true);
    assert_true(b.data[0] == '"' && b.data[b.size - 1] == '"');
    assert_true(pnb__base64_decode(&back, b.data + 1, b.size - 2, &bad));
    assert_int_equal(back.size, sizeof x);
    assert_memory_equal(back.data, x, sizeof x);
    pnb__buf_reset(&b);
    pnb__buf_reset(&back);
}

static void parameters_of_each_family(void **state)
{
    static const struct {
        pnb_family family;
        const char *text;
    } cases[] = {{PNB_POINT, NULL},
                 {PNB_GAUSSIAN_DIAG, ",\"log_var\":[2,2]"},
                 {PNB_VMF, ",\"kappa\":[2]"},
                 {PNB_GEN_GAUSSIAN, ",\"inv_alpha\":[2,2],\"beta\":[2,2]"}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_embeddings *set = NULL;
        pnb__buf b = {0};
        assert_int_equal(pnb_embeddings_create(&set, cases[i].family, 2, 2, NULL), PNB_OK);
        float *arrays[] = {set->log_var, set->inv_alpha, set->beta};
        for (size_t k = 0; k < PNB_COUNT(arrays); k++)
            if (arrays[k] != NULL)
                arrays[k][2] = arrays[k][3] = 2;
        if (set->kappa != NULL)
            set->kappa[1] = 2;
        pnb__row_parameters_put(&b, set, 1, false);
        if (cases[i].text == NULL)
            assert_int_equal(b.size, 0);
        else
            assert_string_equal(b.data, cases[i].text);
        pnb__buf_reset(&b);
        pnb_embeddings_free(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats_there_and_back),
                                       cmocka_unit_test(parameters_of_each_family)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
