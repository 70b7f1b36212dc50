/* Selection of a rank beside a sort. */
#include "index/hits.h"
#include "tests/prob/support.h"

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Random values, few distinct ones, rising, falling, with infinities. */
static double value_of(int kind, size_t i, size_t n, pnb__rng *rng)
{
    switch (kind) {
    case 0:
        return pnb__rng_normal(rng);
    case 1:
        return (double)pnb__rng_below(rng, 3);
    case 2:
        return (double)i;
    case 3:
        return (double)(n - i);
    default:
        return pnb__rng_below(rng, 4) == 0 ? -(double)INFINITY : pnb__rng_normal(rng);
    }
}

static void selects_every_rank(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 2, 3, 4, 7, 64, 257};
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 0);
    for (size_t s = 0; s < PNB_COUNT(sizes); s++)
        for (int kind = 0; kind < 5; kind++) {
            size_t n = sizes[s];
            double x[257], sorted[257], copy[257];
            for (size_t i = 0; i < n; i++)
                x[i] = sorted[i] = value_of(kind, i, n, &rng);
            qsort(sorted, n, sizeof *sorted, compare);
            for (size_t k = 1; k <= n; k++) {
                memcpy(copy, x, n * sizeof *x);
                assert_true(pnb__kth_largest(copy, n, k) == sorted[k - 1]);
            }
        }
}

static void sorts_ties_by_index(void **state)
{
    (void)state;
    pnb__hit hits[] = {{1.0, 7}, {2.0, 9}, {1.0, 3}, {2.0, 1}, {-1.0, 0}};
    const int64_t want[] = {1, 9, 3, 7, 0};
    pnb__hits_sort(hits, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(hits[i].index, want[i]);
    pnb__hits_sort(hits, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(selects_every_rank),
                                       cmocka_unit_test(sorts_ties_by_index)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
