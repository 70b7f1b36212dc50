/* The truth table: its stages are its methods, the twin first, and every control has a row. */
#include "tests/commands/reproduce/experiment.h"

#define X (&pnb__experiment_truth_table)

static void tables_hold_together(void **state)
{
    (void)state;
    check_tables(X);
    assert_int_equal(X->n_lines, 0); /* no paper prints such figures */
    assert_non_null(X->check);
}

/* What is learned from the twin's rows needs it trained: it is the first stage. */
static void every_method_is_a_stage_and_a_row(void **state)
{
    size_t n = 0;
    (void)state;
    for (; X->stages[n] != NULL; n++)
        assert_string_equal(X->stages[n], X->rows[n].key);
    assert_string_equal(X->stages[0], "deterministic");
    assert_true(n < X->n_rows);
    for (size_t i = n; i < X->n_rows; i++)
        assert_int_equal(strncmp(X->rows[i].label, "control: ", 9), 0);
}

/* Names of files and keys: no method stands there twice. */
static void rows_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < X->n_rows; i++)
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(X->rows[i].key, X->rows[k].key);
            assert_string_not_equal(X->rows[i].label, X->rows[k].label);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_hold_together),
                                       cmocka_unit_test(every_method_is_a_stage_and_a_row),
                                       cmocka_unit_test(rows_are_told_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
