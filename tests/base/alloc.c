/* The allocation wrapper: overflow checks, alignment, copies, and faults on demand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"

static void overflow_is_found(void **state)
{
    (void)state;
    size_t out = 0;
    assert_false(pnb__mul_overflows(6, 7, &out));
    assert_int_equal(out, 42);
    assert_true(pnb__mul_overflows(SIZE_MAX / 2 + 1, 2, &out));
    assert_false(pnb__add_overflows(SIZE_MAX - 1, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_true(pnb__add_overflows(SIZE_MAX, 1, &out));
    assert_null(pnb__alloc_array(SIZE_MAX / 4, 8));
    assert_null(pnb__alloc_zero(SIZE_MAX / 4, 8));
}

static void zero_bytes_give_a_pointer(void **state)
{
    (void)state;
    void *p[] = {pnb__alloc(0), pnb__alloc_zero(0, 8), pnb__alloc_array(8, 0),
                 pnb__realloc(NULL, 0)};
    for (size_t i = 0; i < PNB_COUNT(p); i++) {
        assert_non_null(p[i]);
        pnb__free(p[i]);
    }
    void *aligned = pnb__alloc_aligned(0);
    assert_non_null(aligned);
    pnb__free_aligned(aligned);
    pnb__free(NULL);
    pnb__free_aligned(NULL);
}

static void aligned_is_aligned(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 5000; bytes += 321) {
        void *p = pnb__alloc_aligned(bytes);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        memset(p, 1, bytes);
        pnb__free_aligned(p);
    }
}

static void zeroed_is_zero(void **state)
{
    (void)state;
    unsigned char *p = pnb__alloc_zero(100, 10);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(p[i], 0);
    p = pnb__realloc(p, 2000);
    assert_int_equal(p[999], 0);
    pnb__free(p);
}

static void copies_and_formats(void **state)
{
    (void)state;
    char *a = pnb__strdup("caption"), *b = pnb__strndup("caption", 3);
    char *c = pnb__strndup("ab", 10), *d = pnb__format("%s-%03d", "row", 7);
    assert_string_equal(a, "caption");
    assert_string_equal(b, "cap");
    assert_string_equal(c, "ab");
    assert_string_equal(d, "row-007");
    pnb__free(a);
    pnb__free(b);
    pnb__free(c);
    pnb__free(d);
}

#ifdef PNB_FAULTS
static void the_chosen_allocation_fails_once(void **state)
{
    (void)state;
    long before = pnb__alloc_count();
    pnb__alloc_fail_after(1);
    void *first = pnb__alloc(8), *second = pnb__alloc(8), *third = pnb__alloc(8);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    assert_int_equal(pnb__alloc_count() - before, 3);
    pnb__free(first);
    pnb__free(third);
}

/* Every entry point takes part, and realloc leaves the old memory as it was. */
static void every_entry_point_can_fail(void **state)
{
    (void)state;
    char *old = pnb__strdup("kept");
    pnb__alloc_fail_after(0);
    assert_null(pnb__realloc(old, 100));
    assert_string_equal(old, "kept");
    pnb__free(old);
    pnb__alloc_fail_after(0);
    assert_null(pnb__alloc_zero(1, 1));
    pnb__alloc_fail_after(0);
    assert_null(pnb__alloc_array(1, 1));
    pnb__alloc_fail_after(0);
    assert_null(pnb__alloc_aligned(1));
    pnb__alloc_fail_after(0);
    assert_null(pnb__strdup("x"));
    pnb__alloc_fail_after(0);
    assert_null(pnb__format("%d", 1));
    pnb__alloc_fail_after(0);
    assert_null(pnb__path_join("a", "b"));
    pnb__alloc_fail_after(-1);
}

static void callers_report_out_of_memory(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx *ctx = NULL;
    pnb__alloc_fail_after(0);
    assert_int_equal(pnb__ctx_create(&ctx, NULL, &err), PNB_NOMEM);
    assert_null(ctx);
    assert_int_equal(err.status, PNB_NOMEM);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_is_found),
        cmocka_unit_test(zero_bytes_give_a_pointer),
        cmocka_unit_test(aligned_is_aligned),
        cmocka_unit_test(zeroed_is_zero),
        cmocka_unit_test(copies_and_formats),
#ifdef PNB_FAULTS
        cmocka_unit_test(the_chosen_allocation_fails_once),
        cmocka_unit_test(every_entry_point_can_fail),
        cmocka_unit_test(callers_report_out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
