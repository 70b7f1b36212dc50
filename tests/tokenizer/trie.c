/* The longest piece at a place, against a search through all pieces. */
#include "tests/tokenizer/support.h"

enum { N_PIECES = 60, MOST = 6 };

static void longest_against_a_search(void **state)
{
    (void)state;
    pnb__rng rng;
    pnb__rng_init(&rng, 11, 0);
    for (int round = 0; round < 40; round++) {
        char pieces[N_PIECES][MOST], text[40];
        size_t n[N_PIECES], total = 0;
        pnb__trie t;
        pnb_error err = PNB_ERROR_INIT;
        for (size_t p = 0; p < N_PIECES; p++) {
            n[p] = 1 + (size_t)pnb__rng_below(&rng, MOST);
            for (size_t i = 0; i < n[p]; i++)
                pieces[p][i] = "\0a\xFF"[pnb__rng_below(&rng, 3)];
            total += n[p];
        }
        assert_ok(pnb__trie_init(&t, total, &err), &err);
        for (size_t p = 0; p < N_PIECES; p++)
            pnb__trie_add(&t, pieces[p], n[p], (int32_t)p);
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = "\0a\xFFz"[pnb__rng_below(&rng, 10) == 0 ? 3 : pnb__rng_below(&rng, 3)];
        for (size_t at = 0; at <= sizeof text; at++) {
            size_t left = sizeof text - at, want = 0;
            int32_t want_id = -7, id = -7;
            for (size_t p = 0; p < N_PIECES; p++)
                if (n[p] <= left && n[p] >= want && memcmp(pieces[p], text + at, n[p]) == 0) {
                    want = n[p];
                    want_id = (int32_t)p; /* of equal ones the last that was added */
                }
            assert_int_equal(pnb__trie_longest(&t, text + at, left, &id), want);
            assert_int_equal(id, want_id);
        }
        pnb__trie_reset(&t);
    }
}

static void steps_from_the_root(void **state)
{
    (void)state;
    pnb__trie t;
    int32_t id = -7;
    assert_int_equal(pnb__trie_init(&t, 5, NULL), PNB_OK);
    assert_int_equal(t.piece_at[0], -1);
    pnb__trie_add(&t, "ab", 2, 4);
    pnb__trie_add(&t, "abc", 3, 9);
    uint32_t a = pnb__trie_step(&t, 0, 'a'), b = pnb__trie_step(&t, a, 'b'),
             c = pnb__trie_step(&t, b, 'c');
    assert_true(a != 0 && b != 0 && c != 0);
    assert_true(t.piece_at[a] == -1 && t.piece_at[b] == 4 && t.piece_at[c] == 9);
    assert_int_equal(pnb__trie_step(&t, 0, 'b'), 0);
    assert_int_equal(pnb__trie_step(&t, c, 'a'), 0);
    assert_int_equal(pnb__trie_longest(&t, "abx", 3, &id), 2);
    pnb__trie_reset(&t);
    assert_int_equal(pnb__trie_longest(&t, "abc", 3, &id), 0); /* holds none */
    assert_int_equal(id, 4);
}

#ifdef PNB_FAULTS
static pnb_status make(scratch *s, pnb_error *err)
{
    (void)s;
    pnb__trie t;
    pnb_status status = pnb__trie_init(&t, 100, err);
    assert_true(status == PNB_OK || t.edges == NULL);
    pnb__trie_reset(&t);
    return status;
}

static void out_of_memory(void **state)
{
    fail_every_allocation(make, *state);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_against_a_search),
        cmocka_unit_test(steps_from_the_root),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
