/* ProLIP's Table C.6: heads cost more than the token, which costs hardly anything. */
#include "tests/commands/reproduce/experiment.h"

#define X (&pnb__experiment_prolip_architectures)

static void tables_hold_together(void **state)
{
    (void)state;
    check_tables(X);
    assert_int_equal(X->n_rows, 3 * 6);
    assert_int_equal(X->n_lines, 3 * 5); /* the paper has no model for learning */
}

static void heads_cost_and_a_token_does_not(void **state)
{
    (void)state;
    for (size_t l = 0; l < X->n_lines; l += 3) {
        const double *heads = X->lines[l].value, *unc = X->lines[l + 1].value,
                     *points = X->lines[l + 2].value;
        assert_true(heads[0] > unc[0] && unc[0] > points[0]);
        assert_true(unc[0] - points[0] < 0.01 * points[0]);
        size_t more = figure_place(X, "more"), tokens = figure_place(X, "tokens");
        assert_true(heads[more] > 30 * unc[more]);
        assert_true(heads[tokens] == unc[tokens] && unc[tokens] == points[tokens]);
    }
    /* "even if we increase the input token length": 75.18 s and 76.68 s; ViT-L 137.77 and 176.95 */
    says(X, "b16_points", "b32_points", "C.6", "seconds", 76.68 - 75.18);
    says(X, "l14_points", "l16_points", "C.6", "seconds", 176.95 - 137.77);
    says(X, "l14_heads", "l14_points", "C.6", "seconds", 191.68 - 176.95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_hold_together),
                                       cmocka_unit_test(heads_cost_and_a_token_does_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
