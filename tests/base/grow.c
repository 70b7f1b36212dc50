/* Growing arrays: what is there stays, capacities double, want of memory changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/grow.h"

typedef struct item {
    int first, second;
} item;

static void pushed_items_stay(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    item *items = NULL;
    size_t n = 0;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(PNB_PUSH(items, n, &err, (item){i, -i}), PNB_OK);
    assert_int_equal(n, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(items[i].first, i);
        assert_int_equal(items[i].second, -i);
    }
    pnb__free(items);
}

static void n_may_be_an_int_and_items_may_go(void **state)
{
    (void)state;
    char **items = NULL, text[] = "x";
    int n = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i <= round; i++)
            assert_int_equal(PNB_PUSH(items, n, NULL, text), PNB_OK);
        for (int i = 0; i < n; i++)
            assert_ptr_equal(items[i], text);
        n = round % 3 == 0 ? 0 : n / 2;
    }
    pnb__free(items);
}

static void room_is_made_and_doubled(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    uint16_t *items = NULL;
    size_t capacity = 0;
    size_t none = 0;
    assert_int_equal(PNB_GROW(items, capacity, none, &err), PNB_OK);
    assert_null(items);
    assert_int_equal(PNB_GROW(items, capacity, 100, &err), PNB_OK);
    assert_int_equal(capacity, 100);
    for (size_t i = 0; i < 100; i++)
        items[i] = (uint16_t)i;
    const uint16_t *before = items;
    assert_int_equal(PNB_GROW(items, capacity, 100, &err), PNB_OK);
    assert_ptr_equal(items, before);
    assert_int_equal(PNB_GROW(items, capacity, 101, &err), PNB_OK);
    assert_int_equal(capacity, 200);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(items[i], i);
    pnb__free(items);
}

static void a_size_that_overflows_is_want_of_memory(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    item *items = NULL;
    size_t capacity = 0;
    assert_int_equal(PNB_GROW(items, capacity, SIZE_MAX / 2, &err), PNB_NOMEM);
    assert_int_equal(err.status, PNB_NOMEM);
    assert_null(items);
    assert_int_equal(capacity, 0);
    size_t n = SIZE_MAX / 2 + 1; /* a power of two: full */
    assert_int_equal(pnb__grow_one(&items, n, 1, NULL), PNB_NOMEM);
    n = SIZE_MAX / 8 + 1;
    assert_int_equal(pnb__grow_one(&items, n, sizeof *items, NULL), PNB_NOMEM);
    assert_null(items);
}

static void want_of_memory_changes_nothing(void **state)
{
    (void)state;
#ifdef PNB_FAULTS
    pnb_error err = PNB_ERROR_INIT;
    int *items = NULL, *grown = NULL;
    size_t n = 0, capacity = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(PNB_PUSH(items, n, &err, i), PNB_OK);
    pnb__alloc_fail_after(0);
    assert_int_equal(PNB_PUSH(items, n, &err, 4), PNB_NOMEM);
    assert_int_equal(err.status, PNB_NOMEM);
    assert_int_equal(n, 4);
    assert_int_equal(items[3], 3);
    assert_int_equal(PNB_PUSH(items, n, NULL, 4), PNB_OK);
    assert_int_equal(items[4], 4);
    pnb__alloc_fail_after(0);
    assert_int_equal(PNB_GROW(grown, capacity, 3, NULL), PNB_NOMEM);
    assert_null(grown);
    assert_int_equal(capacity, 0);
    pnb__free(items);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushed_items_stay),
        cmocka_unit_test(n_may_be_an_int_and_items_may_go),
        cmocka_unit_test(room_is_made_and_doubled),
        cmocka_unit_test(a_size_that_overflows_is_want_of_memory),
        cmocka_unit_test(want_of_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
