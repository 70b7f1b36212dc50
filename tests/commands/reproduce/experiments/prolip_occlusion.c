/* ProLIP's Tables C.8 and C.9: accuracy falls and deviations rise with what is done to pictures. */
#include "tests/commands/reproduce/experiment.h"

#define X (&pnb__experiment_prolip_occlusion)

static void tables_hold_together(void **state)
{
    (void)state;
    check_tables(X);
    assert_int_equal(X->n_lines, X->n_rows - 4); /* no noise in the paper */
}

static void lines_go_one_way(void **state)
{
    (void)state;
    for (size_t l = 1; l < X->n_lines; l++) {
        if (strcmp(X->lines[l].where, X->lines[l - 1].where) != 0)
            continue;
        assert_true(X->lines[l].value[0] < X->lines[l - 1].value[0]);
        assert_true(X->lines[l].value[1] >= X->lines[l - 1].value[1]);
    }
    says(X, "share_0", "share_100", "C.8", "top1", 74.6 - 73.2);
    says(X, "share_100", "share_0", "C.8", "sigma", 0.0153 - 0.0148);
    says(X, "pgd_0", "pgd_1", "C.9", "top1", 72.9 - 20.0);
    says(X, "pgd_40", "pgd_0", "C.9", "sigma", 0.0190 - 0.0147);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_hold_together),
                                       cmocka_unit_test(lines_go_one_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
