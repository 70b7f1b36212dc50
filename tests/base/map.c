/* The hash table from keys to numbers: collisions, growth, keys of no byte and of zero bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/map.h"

typedef struct key {
    const char *bytes;
    size_t n;
} key;

static const key KEYS[] = {{"", 0},   {"a", 1},   {"b", 1},    {"ab", 2},   {"a\0", 2},
                           {"\0", 1}, {"\0a", 2}, {"\0\0", 2}, {"a\0b", 3}, {"abc", 3}};

static size_t find(const pnb__key_map *m, const key *k, uint64_t hash)
{
    size_t i, step = 0;
    while ((i = pnb__key_map_next(m, hash, &step)) != PNB__NO_KEY &&
           (KEYS[i].n != k->n || memcmp(KEYS[i].bytes, k->bytes, k->n) != 0)) {
    }
    return i;
}

static void check_keys(uint64_t (*hash)(const key *k))
{
    pnb__key_map map = {0};
    for (size_t i = 0; i < PNB_COUNT(KEYS); i++)
        assert_true(find(&map, &KEYS[i], hash(&KEYS[i])) == PNB__NO_KEY);
    for (size_t i = 0; i < PNB_COUNT(KEYS); i++) {
        assert_int_equal(pnb__key_map_add(&map, hash(&KEYS[i]), i, NULL), PNB_OK);
        for (size_t j = 0; j < PNB_COUNT(KEYS); j++)
            assert_true(find(&map, &KEYS[j], hash(&KEYS[j])) == (j <= i ? j : PNB__NO_KEY));
    }
    assert_int_equal(map.n, PNB_COUNT(KEYS));
    pnb__key_map_reset(&map);
}

static uint64_t good_hash(const key *k)
{
    return pnb__hash_bytes(k->bytes, k->n, 0);
}

static uint64_t same_hash(const key *k)
{
    (void)k;
    return 0xFFFFFFFF0000000Fu; /* the last slot of a small table: searches go round its end */
}

static uint64_t same_slot(const key *k)
{
    return (uint64_t)k->n << 20 | 15;
}

static void keys_of_any_bytes_are_found(void **state)
{
    (void)state;
    check_keys(good_hash);
}

static void keys_that_fall_together_are_found(void **state)
{
    (void)state;
    check_keys(same_hash);
    check_keys(same_slot);
}

static void many_numbers_are_found_while_it_grows(void **state)
{
    (void)state;
    enum { N = 20000 };
    pnb__key_map map = {0};
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(pnb__key_map_add(&map, pnb__hash_u64(i * i), i, NULL), PNB_OK);
        assert_true(map.n_slots >= 2 * map.n);
    }
    size_t n_candidates = 0;
    for (uint64_t i = 0; i < 2 * N; i++) {
        size_t found, step = 0;
        while ((found = pnb__key_map_next(&map, pnb__hash_u64(i * i), &step)) != PNB__NO_KEY &&
               found != i)
            n_candidates++;
        assert_true(found == (i < N ? i : PNB__NO_KEY));
        assert_true(step < 100);
    }
    assert_true(n_candidates < 10); /* 32 bits of the hash tell nearly all apart */
    pnb__key_map_reset(&map);
}

static void numbers_under_one_hash_come_one_after_the_other(void **state)
{
    (void)state;
    pnb__key_map map = {0};
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(pnb__key_map_add(&map, 7, i, NULL), PNB_OK);
    bool seen[100] = {false};
    size_t step = 0, found, n = 0;
    for (; (found = pnb__key_map_next(&map, 7, &step)) != PNB__NO_KEY; n++) {
        assert_false(seen[found]);
        seen[found] = true;
    }
    assert_int_equal(n, 100);
    pnb__key_map_reset(&map);
}

static void clearing_keeps_the_room(void **state)
{
    (void)state;
    pnb__key_map map = {0};
    pnb__key_map_clear(&map);
    assert_int_equal(pnb__key_map_reserve(&map, 1000, NULL), PNB_OK);
    const pnb__key_slot *slots = map.slots;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(pnb__key_map_add(&map, pnb__hash_u64(i), i, NULL), PNB_OK);
        assert_ptr_equal(map.slots, slots);
        pnb__key_map_clear(&map);
        size_t step = 0;
        assert_true(pnb__key_map_next(&map, pnb__hash_u64(1), &step) == PNB__NO_KEY);
    }
    pnb__key_map_reset(&map);
    assert_null(map.slots);
}

static void too_many_are_refused(void **state)
{
    (void)state;
    pnb_error err = PNB_ERROR_INIT;
    pnb__key_map map = {0};
    assert_int_equal(pnb__key_map_reserve(&map, (size_t)UINT32_MAX / 2 + 1, &err), PNB_LIMIT);
    assert_int_equal(pnb__key_map_add(&map, 1, UINT32_MAX, NULL), PNB_LIMIT);
    assert_null(map.slots);
    assert_int_equal(pnb__key_map_add(&map, 1, UINT32_MAX - 1, NULL), PNB_OK);
    size_t step = 0;
    assert_true(pnb__key_map_next(&map, 1, &step) == UINT32_MAX - 1);
    pnb__key_map_reset(&map);
}

static void want_of_memory_changes_nothing(void **state)
{
    (void)state;
#ifdef PNB_FAULTS
    pnb_error err = PNB_ERROR_INIT;
    pnb__key_map map = {0};
    pnb__alloc_fail_after(0);
    assert_int_equal(pnb__key_map_add(&map, 1, 1, &err), PNB_NOMEM);
    assert_int_equal(err.status, PNB_NOMEM);
    assert_int_equal(map.n, 0);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pnb__key_map_add(&map, pnb__hash_u64(i), i, NULL), PNB_OK);
    pnb__alloc_fail_after(0);
    assert_int_equal(pnb__key_map_add(&map, pnb__hash_u64(8), 8, NULL), PNB_NOMEM);
    for (size_t i = 0; i < 9; i++) {
        size_t step = 0;
        assert_true(pnb__key_map_next(&map, pnb__hash_u64(i), &step) == (i < 8 ? i : PNB__NO_KEY));
    }
    assert_int_equal(pnb__key_map_add(&map, pnb__hash_u64(8), 8, NULL), PNB_OK);
    pnb__key_map_reset(&map);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_any_bytes_are_found),
        cmocka_unit_test(keys_that_fall_together_are_found),
        cmocka_unit_test(many_numbers_are_found_while_it_grows),
        cmocka_unit_test(numbers_under_one_hash_come_one_after_the_other),
        cmocka_unit_test(clearing_keeps_the_room),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(want_of_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
