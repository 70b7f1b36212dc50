/* What is sorted with its place: equal keys keep their order, and a key is found where it begins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/order.h"

static void equal_keys_keep_their_order(void **state)
{
    (void)state;
    pnb__valued up[] = {{2, 0}, {-1, 1}, {2, 2}, {0, 3}, {2, 4}}, down[5];
    for (size_t i = 0; i < 5; i++)
        down[i] = up[4 - i];
    qsort(up, 5, sizeof *up, pnb__by_value);
    qsort(down, 5, sizeof *down, pnb__by_value_down);
    const size_t ascending[] = {1, 3, 0, 2, 4}, descending[] = {0, 2, 4, 3, 1};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(up[i].place, ascending[i]);
        assert_int_equal(down[i].place, descending[i]);
    }
}

static void labels_are_sorted_and_found(void **state)
{
    (void)state;
    const int64_t label[] = {7, INT64_MIN, 7, INT64_MAX, -3};
    pnb__labelled *sorted = NULL;
    assert_int_equal(pnb__labels_sort(&sorted, label, 5, NULL), PNB_OK);
    const size_t place[] = {1, 4, 0, 2, 3};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(sorted[i].place, place[i]);
    assert_int_equal(pnb__labels_find(sorted, 5, 7), 2);
    assert_int_equal(pnb__labels_find(sorted, 5, 8), 4);
    assert_int_equal(pnb__labels_find(sorted, 5, INT64_MIN), 0);
    assert_int_equal(pnb__labels_find(sorted, 0, 7), 0);
    pnb__free(sorted);
    assert_int_equal(pnb__labels_sort(&sorted, label, 0, NULL), PNB_OK);
    pnb__free(sorted);
}

static void names_give_their_lowest_place(void **state)
{
    (void)state;
    pnb__named names[] = {{"b", 0}, {"a", 1}, {"b", 2}, {"", 3}};
    qsort(names, 4, sizeof *names, pnb__by_name);
    assert_int_equal(pnb__names_find(names, 4, "b"), 0);
    assert_int_equal(pnb__names_find(names, 4, "a"), 1);
    assert_int_equal(pnb__names_find(names, 4, ""), 3);
    assert_true(pnb__names_find(names, 4, "ab") == SIZE_MAX);
    assert_true(pnb__names_find(names, 4, "c") == SIZE_MAX);
    assert_true(pnb__names_find(names, 0, "a") == SIZE_MAX);
}

static void single_values_have_their_order(void **state)
{
    (void)state;
    const double d[] = {-0.5, 1e-300};
    const int64_t i[] = {INT64_MIN, INT64_MAX};
    const size_t s[] = {1, SIZE_MAX};
    const char *const t[] = {"Z", "a"};
    assert_true(pnb__compare_doubles(&d[0], &d[1]) < 0 && pnb__compare_doubles(&d[1], &d[0]) > 0);
    assert_true(pnb__compare_int64(&i[0], &i[1]) < 0 && pnb__compare_int64(&i[1], &i[0]) > 0);
    assert_true(pnb__compare_sizes(&s[0], &s[1]) < 0 && pnb__compare_sizes(&s[1], &s[0]) > 0);
    assert_true(pnb__compare_texts(&t[0], &t[1]) < 0 && pnb__compare_texts(&t[1], &t[0]) > 0);
    assert_int_equal(pnb__compare_int64(&i[0], &i[0]), 0);
}

static void distinct_values_stand_once(void **state)
{
    uint64_t x[] = {7, UINT64_MAX, 0, 7, 3, 0, UINT64_MAX}, none = 5;
    static const uint64_t want[] = {0, 3, 7, UINT64_MAX};
    (void)state;
    assert_int_equal(pnb__sort_distinct(x, PNB_COUNT(x)), PNB_COUNT(want));
    assert_memory_equal(x, want, sizeof want);
    assert_int_equal(pnb__sort_distinct(&none, 0), 0);
    assert_int_equal(pnb__sort_distinct(&none, 1), 1);
    assert_true(none == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_keys_keep_their_order),
        cmocka_unit_test(labels_are_sorted_and_found),
        cmocka_unit_test(names_give_their_lowest_place),
        cmocka_unit_test(single_values_have_their_order),
        cmocka_unit_test(distinct_values_stand_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
