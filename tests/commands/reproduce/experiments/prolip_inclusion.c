/* ProLIP's Figure 3 has no figures in print; both tests have a row for each kind of pairs. */
#include "tests/commands/reproduce/experiment.h"

#define X (&pnb__experiment_prolip_inclusion)

static void tables_hold_together(void **state)
{
    (void)state;
    check_tables(X);
    for (size_t l = 0; l < X->n_lines; l++)
        for (size_t k = 0; k < X->n_figures; k++)
            assert_true(isnan(X->lines[l].value[k]));
}

/* A row is PAIRS_TEST_STAGE, H and KL side by side. */
static void both_tests_are_asked_of_all_pairs(void **state)
{
    size_t n = 0;
    char other[64];
    (void)state;
    for (size_t s = 0; X->stages[s] != NULL; s++)
        for (size_t i = 0; i < X->n_rows; i++) {
            const char *key = X->rows[i].key, *test = strstr(key, "_h_");
            if (test == NULL || strcmp(test + 3, X->stages[s]) != 0)
                continue;
            snprintf(other, sizeof other, "%.*s_kl_%s", (int)(test - key), key, X->stages[s]);
            assert_true(has_row(X, other));
            n += 2;
        }
    assert_int_equal(n, X->n_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_hold_together),
                                       cmocka_unit_test(both_tests_are_asked_of_all_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
