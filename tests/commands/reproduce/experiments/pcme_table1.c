/* PCME's Table 1 as the paper's text speaks of it (section 4.2). */
#include "tests/commands/reproduce/experiment.h"

#define X (&pnb__experiment_pcme_table1)

static void tables_hold_together(void **state)
{
    (void)state;
    check_tables(X);
}

/* "24.7% to 26.1% for i2t and 25.6% to 26.7%", "26.2% and 26.7%" of 2-Wasserstein, "26.3% and
 * 26.8%" of the match probability, which is best. */
static void figures_are_those_of_the_text(void **state)
{
    static const struct {
        const char *row;
        double i2t, t2i;
    } text[] = {{"mu_only", 24.7, 25.6},
                {"mean", 26.1, 26.7},
                {"w2", 26.2, 26.7},
                {"match_prob", 26.3, 26.8}};
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(text); i++) {
        assert_near(paper(X, text[i].row, "CUB", "i2t_r_precision"), text[i].i2t, 0.0501, 0);
        assert_near(paper(X, text[i].row, "CUB", "t2i_r_precision"), text[i].t2i, 0.0501, 0);
    }
    for (size_t l = 0; l < X->n_lines; l++)
        assert_true(X->lines[l].value[0] <= paper(X, "match_prob", "CUB", "i2t_r_precision"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_hold_together),
                                       cmocka_unit_test(figures_are_those_of_the_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
