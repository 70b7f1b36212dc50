/* GroVE's Tables 1 and 7: the third figure is made of the other two, and who is best is known. */
#include "tests/commands/reproduce/experiment.h"

#define X (&pnb__experiment_grove_table)

static void tables_hold_together(void **state)
{
    (void)state;
    check_tables(X);
    assert_int_equal(X->n_lines, 7 * 4);
}

/* Means over seeds of a product are not the product of means, but near: a digit typed wrong is
 * farther off. */
static void minus_s_r2_is_the_product(void **state)
{
    static const char *const sides[][3] = {{"i2t_s", "i2t_r2", "i2t_minus_s_r2"},
                                           {"t2i_s", "t2i_r2", "t2i_minus_s_r2"}};
    (void)state;
    for (size_t l = 0; l < X->n_lines; l++)
        for (size_t d = 0; d < 2; d++) {
            const double *v = X->lines[l].value;
            double s = v[figure_place(X, sides[d][0])], r2 = v[figure_place(X, sides[d][1])];
            double product = v[figure_place(X, sides[d][2])];
            if (fabs(-s * r2 - product) > 0.045)
                fail_msg("%s, %s: -%g %g is not %g", X->lines[l].row, X->lines[l].where, s, r2,
                         product);
            assert_in_range((int)(1000 * r2), 0, 1000);
        }
}

/* Tables 1 and 7: GroVE retrieves best on CUB and Flowers from captions, frozen rows on the others;
 * its -S R^2 is best of pictures on all four. */
static void the_best_are_those_in_bold(void **state)
{
    static const char *const data[] = {"Flickr30k", "MS-COCO", "CUB", "Flowers"};
    (void)state;
    for (size_t l = 0; l < X->n_lines; l++)
        for (size_t i = 0; i < PNB_COUNT(data); i++) {
            if (strstr(X->lines[l].where, data[i]) == NULL)
                continue;
            double best = paper(X, i < 2 ? "frozen" : "grove", data[i], "t2i_r1");
            assert_true(X->lines[l].value[figure_place(X, "t2i_r1")] <= best);
            assert_true(X->lines[l].value[figure_place(X, "i2t_minus_s_r2")] <=
                        paper(X, "grove", data[i], "i2t_minus_s_r2"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_hold_together),
                                       cmocka_unit_test(minus_s_r2_is_the_product),
                                       cmocka_unit_test(the_best_are_those_in_bold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
