/* GroVE's Figure 4 has no figures in print: what is claimed is told by the claims' own sign. */
#include "tests/commands/reproduce/experiment.h"

#define X (&pnb__experiment_grove_active)

static void tables_hold_together(void **state)
{
    (void)state;
    check_tables(X);
}

/* Random choice stands first, is compared with, and has a row of its own name. */
static void every_way_has_its_row(void **state)
{
    size_t n = 0;
    (void)state;
    for (; X->stages[n] != NULL; n++)
        assert_string_equal(X->stages[n], X->rows[n].key);
    assert_int_equal(n, X->n_rows);
    assert_string_equal(X->stages[0], "random");
    for (size_t l = 0; l < X->n_lines; l++)
        for (size_t k = 0; k < X->n_figures; k++)
            assert_true(isnan(X->lines[l].value[k]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_hold_together),
                                       cmocka_unit_test(every_way_has_its_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
