/* The arena: alignment, zeroing, reuse without allocation, growth, overflow, out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    pnb__arena a;
    pnb__arena_init(&a, 1024);
    unsigned char *pieces[40];
    for (size_t i = 0; i < PNB_COUNT(pieces); i++) {
        size_t bytes = 1 + i * 7;
        pieces[i] = pnb__arena_alloc(&a, bytes);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 64, 0);
        for (size_t k = 0; k < bytes; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)i + 1, bytes);
    }
    for (size_t i = 0; i < PNB_COUNT(pieces); i++) {
        assert_int_equal(pieces[i][0], i + 1);
        assert_int_equal(pieces[i][i * 7], i + 1);
    }
    pnb__arena_free(&a);
    assert_null(a.first);
}

static void memory_is_zeroed_again_after_reset(void **state)
{
    (void)state;
    pnb__arena a;
    pnb__arena_init(&a, 0);
    unsigned char *p = pnb__arena_alloc(&a, 100);
    memset(p, 0xFF, 100);
    pnb__arena_reset(&a);
    unsigned char *q = pnb__arena_alloc(&a, 100);
    assert_ptr_equal(p, q);
    for (int i = 0; i < 100; i++)
        assert_int_equal(q[i], 0);
    pnb__arena_free(&a);
}

static size_t count_blocks_bytes(pnb__arena *a, size_t large)
{
    size_t n_failed = 0;
    pnb__arena_reset(a);
    for (int i = 0; i < 50; i++)
        n_failed += pnb__arena_alloc(a, 100) == NULL;
    n_failed += pnb__arena_alloc(a, large) == NULL;
    for (int i = 0; i < 50; i++)
        n_failed += pnb__arena_alloc(a, 100) == NULL;
    return n_failed;
}

static void a_steady_loop_allocates_nothing(void **state)
{
    (void)state;
    pnb__arena a;
    pnb__arena_init(&a, 1000);
    assert_int_equal(count_blocks_bytes(&a, 5000), 0);
#ifdef PNB_FAULTS
    long before = pnb__alloc_count();
#endif
    for (int turn = 0; turn < 5; turn++)
        assert_int_equal(count_blocks_bytes(&a, 5000), 0);
#ifdef PNB_FAULTS
    assert_int_equal(pnb__alloc_count(), before);
#endif
    pnb__arena_free(&a);
}

static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    pnb__arena a;
    pnb__arena_init(&a, 1000);
    assert_null(pnb__arena_alloc(&a, SIZE_MAX));
    assert_null(pnb__arena_alloc(&a, SIZE_MAX - 63));
    assert_null(pnb__arena_alloc(&a, SIZE_MAX - 200));
    assert_non_null(pnb__arena_alloc(&a, 10));
    pnb__arena_free(&a);
}

static void text_is_copied(void **state)
{
    (void)state;
    pnb__arena a;
    pnb__arena_init(&a, 64);
    char source[] = "a red circle";
    char *copy = pnb__arena_strdup(&a, source);
    source[0] = 'x';
    assert_string_equal(copy, "a red circle");
    assert_non_null(pnb__arena_alloc(&a, 0));
    pnb__arena_free(&a);
    pnb__arena_free(&a); /* as after init */
}

#ifdef PNB_FAULTS
static void out_of_memory_leaves_it_usable(void **state)
{
    (void)state;
    pnb__arena a;
    pnb__arena_init(&a, 256);
    pnb__alloc_fail_after(0);
    assert_null(pnb__arena_alloc(&a, 10));
    assert_null(a.first);
    assert_non_null(pnb__arena_alloc(&a, 10));
    pnb__alloc_fail_after(0);
    assert_null(pnb__arena_alloc(&a, 1000));
    assert_non_null(pnb__arena_alloc(&a, 10));
    pnb__arena_free(&a);
}
#endif

#if defined(__SANITIZE_ADDRESS__)
static void unused_memory_is_poisoned(void **state)
{
    (void)state;
    pnb__arena a;
    pnb__arena_init(&a, 4096);
    unsigned char *p = pnb__arena_alloc(&a, 100);
    assert_false(__asan_address_is_poisoned(p + 99));
    assert_true(__asan_address_is_poisoned(p + 104));
    unsigned char *q = pnb__arena_alloc(&a, 64);
    assert_true(__asan_address_is_poisoned(q + 64)); /* a gap also after a full unit */
    pnb__arena_reset(&a);
    assert_true(__asan_address_is_poisoned(p));
    pnb__arena_free(&a);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(memory_is_zeroed_again_after_reset),
        cmocka_unit_test(a_steady_loop_allocates_nothing),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(text_is_copied),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory_leaves_it_usable),
#endif
#if defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(unused_memory_is_poisoned),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
