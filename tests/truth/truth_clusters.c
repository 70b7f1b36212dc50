/* Connected components of queries and items, against a search that spreads labels until nothing
 * changes. */
#include "tests/truth/support.h"

/* Two pictures share caption 1; picture 2 has caption 3 alone; caption 2 and picture 3 have none.
 */
static void rows_that_reach_each_other(void **state)
{
    (void)state;
    const int64_t pairs[] = {0, 1, 1, 0, 1, 1, 2, 3}, queries[] = {0, 0, 1, 2};
    const int64_t items[] = {0, 0, 3, 1};
    int64_t q[4], x[4];
    size_t n = 0;
    pnb_truth *t = NULL;
    assert_ok(pnb_truth_create_pairs(&t, 4, 4, pairs, 4, err));
    assert_ok(pnb_truth_clusters(t, q, x, &n, err));
    assert_memory_equal(q, queries, sizeof q);
    assert_memory_equal(x, items, sizeof x);
    assert_int_equal(n, 2);
    pnb_truth_free(t);
}

enum { N = 23, M = 31 };

/* label[i] of all nodes, queries first: the lowest node that it reaches. */
static void spread(const pnb_truth *t, size_t label[N + M])
{
    for (size_t i = 0; i < N + M; i++)
        label[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t q = 0; q < N; q++)
            for (size_t p = t->offset[q]; p < t->offset[q + 1]; p++) {
                size_t *a = &label[q], *b = &label[N + t->item[p]];
                changed = changed || *a != *b;
                *a = *b = PNB_MIN(*a, *b);
            }
    }
}

static void random_truths(void **state)
{
    (void)state;
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    for (size_t n_pairs = 1; n_pairs < 60; n_pairs++) {
        int64_t pairs[120], q[N], x[M];
        size_t label[N + M], n = 0, n_wanted = 0, seen[N + M] = {0};
        for (size_t i = 0; i < n_pairs; i++) {
            pairs[2 * i] = (int64_t)pnb__rng_below(&rng, N);
            pairs[2 * i + 1] = (int64_t)pnb__rng_below(&rng, M);
        }
        pnb_truth *t = NULL;
        assert_ok(pnb_truth_create_pairs(&t, N, M, pairs, n_pairs, err));
        assert_ok(pnb_truth_clusters(t, q, x, &n, err));
        spread(t, label);
        int64_t next = 0, number[N + M]; /* labels count from 0 in the order of the rows */
        for (size_t i = 0; i < N + M; i++) {
            if (label[i] == i)
                number[i] = next++;
            assert_int_equal(i < N ? q[i] : x[i - N], number[label[i]]);
            seen[label[i]]++;
        }
        for (size_t i = 0; i < N + M; i++)
            n_wanted += seen[i] > 1; /* a pair makes two rows one label */
        assert_int_equal(n, n_wanted);
        pnb_truth_free(t);
    }
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    int64_t q[2] = {7, 7}, x[2] = {7, 7};
    size_t n = 9;
    pnb_truth *t = NULL;
    assert_ok(pnb_truth_create_aligned(&t, 2, err));
    pnb__alloc_fail_after(0);
    assert_fails(pnb_truth_clusters(t, q, x, &n, err), PNB_NOMEM, "out of memory");
    pnb__alloc_fail_after(-1);
    assert_true(q[0] == 7 && x[1] == 7 && n == 9);
    pnb_truth_free(t);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_reach_each_other),
        cmocka_unit_test(random_truths),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
