/* ProLIP's Table C.3 as the paper's text speaks of it (appendix C.3). */
#include "tests/commands/reproduce/experiment.h"

#define X (&pnb__experiment_prolip_ablation)
#define C3(row, figure) paper(X, row, "C.3", figure)

static void tables_hold_together(void **state)
{
    size_t n = 0;
    (void)state;
    check_tables(X);
    for (; X->stages[n] != NULL; n++)
        assert_string_equal(X->stages[n], X->rows[n].key);
    assert_int_equal(n, X->n_rows);
    assert_int_equal(X->n_lines, 8); /* what varies "both" has no line of the paper */
}

/* (1) PCME++ is not trainable with [UNC]; (2) it is with the deterministic loss; (3) inclusion
 * makes image uncertainty smaller than text uncertainty; (4) masked inclusion improves recall. */
static void order_is_that_of_the_text(void **state)
{
    (void)state;
    assert_true(C3("pcmepp", "top1") < 1);
    assert_true(isnan(C3("pcmepp", "recall")));
    assert_true(C3("pcmepp_clip", "top1") > 30);
    assert_true(C3("prolip", "image_var") > C3("prolip", "text_var"));
    assert_true(C3("prolip_masked", "image_var") > C3("prolip_masked", "text_var"));
    assert_true(C3("prolip_pairs", "image_var") < C3("prolip_pairs", "text_var"));
    assert_true(C3("prolip_both", "image_var") < C3("prolip_both", "text_var"));
    assert_true(C3("prolip_masked", "recall") > C3("prolip", "recall"));
    assert_true(C3("prolip_both", "recall") > C3("prolip_pairs", "recall"));
    assert_true(isnan(C3("clip", "image_var")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_hold_together),
                                       cmocka_unit_test(order_is_that_of_the_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
