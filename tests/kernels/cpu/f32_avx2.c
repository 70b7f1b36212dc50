/* The kernels of AVX2, eight numbers at a time. */
#include "tests/kernels/cpu/isa.h"

static const isa_table *const table = &all_isas[1];

static void test_slots(void **state)
{
    (void)state;
    check_slots(table);
    check_own(table);
}

static void test_lengths(void **state)
{
    (void)state;
    check_tails(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slots),
                                       cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
