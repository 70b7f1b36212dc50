/* Rows that are drawn together: clusters from labels, draws, and what a jackknife leaves out. */
#include "eval/resample/clusters.h"

#include "tests/prob/support.h"

static void draws_and_groups(void **state)
{
    (void)state;
    const int64_t label[] = {7, -2, 7, 9, -2, 7};
    uint32_t weight[6];
    pnb__clusters c;
    assert_ok(pnb__clusters_init(&c, label, 6, err));
    assert_int_equal(c.n, 3);
    const size_t rows[] = {0, 2, 5, 1, 4, 3}, offsets[] = {0, 3, 5, 6};
    assert_memory_equal(c.row, rows, sizeof rows);
    assert_memory_equal(c.offset, offsets, sizeof offsets);
    for (size_t r = 0; r < 20; r++) {
        pnb__clusters_draw(&c, 4, r, weight);
        assert_true(weight[0] == weight[2] && weight[2] == weight[5] && weight[1] == weight[4]);
        assert_int_equal(weight[0] + weight[1] + weight[3], 3);
    }
    assert_int_equal(pnb__clusters_groups(&c), 3);
    pnb__clusters_leave_out(&c, 1, weight);
    const uint32_t without[] = {1, 0, 1, 1, 0, 1};
    assert_memory_equal(weight, without, sizeof without);
    pnb__clusters_reset(&c);
}

/* Without labels every row is a cluster; a draw follows seed and number alone, and is even. */
static void draws(void **state)
{
    (void)state;
    enum { N = 20, DRAWS = 3000 };
    pnb__clusters c;
    uint32_t weight[N], again[N];
    size_t total[N] = {0};
    assert_ok(pnb__clusters_init(&c, NULL, N, err));
    assert_int_equal(c.n, N);
    for (size_t i = 0; i < N; i++)
        assert_true(c.row[i] == i && c.offset[i] == i);
    for (size_t r = 0; r < DRAWS; r++) {
        size_t n = 0;
        pnb__clusters_draw(&c, 9, r, weight);
        for (size_t i = 0; i < N; i++) {
            n += weight[i];
            total[i] += weight[i];
        }
        assert_int_equal(n, N);
    }
    for (size_t i = 0; i < N; i++) /* 3,000 each, five standard deviations are 267 */
        assert_in_range(total[i], DRAWS - 267, DRAWS + 267);
    pnb__clusters_draw(&c, 9, 5, weight);
    pnb__clusters_draw(&c, 9, 5, again);
    assert_memory_equal(weight, again, sizeof weight);
    pnb__clusters_draw(&c, 9, 6, again);
    assert_memory_not_equal(weight, again, sizeof weight);
    pnb__clusters_draw(&c, 8, 5, again);
    assert_memory_not_equal(weight, again, sizeof weight);
    pnb__clusters_reset(&c);
    assert_null(c.row);
    assert_ok(pnb__clusters_init(&c, NULL, 0, err));
    assert_true(c.n == 0 && pnb__clusters_groups(&c) == 0);
    pnb__clusters_reset(&c);
}

/* Every cluster is left out once, in groups that differ by one at most. */
static void groups(void **state)
{
    (void)state;
    enum { N = 1234 };
    int64_t *label = malloc(N * sizeof *label);
    uint32_t *weight = malloc(N * sizeof *weight);
    size_t n_out[N] = {0}, least = N, most = 0;
    pnb__clusters c;
    assert_true(label != NULL && weight != NULL);
    for (size_t i = 0; i < N; i++)
        label[i] = (int64_t)(i / 2) * -5;
    assert_ok(pnb__clusters_init(&c, label, N, err));
    assert_int_equal(c.n, N / 2);
    size_t n_groups = pnb__clusters_groups(&c);
    assert_int_equal(n_groups, PNB__MAX_JACKKNIFE);
    for (size_t g = 0; g < n_groups; g++) {
        size_t n = 0;
        pnb__clusters_leave_out(&c, g, weight);
        for (size_t i = 0; i < N; i++) {
            assert_true(weight[i] <= 1 && weight[i] == weight[i ^ 1]);
            n_out[i] += weight[i] == 0;
            n += weight[i] == 0;
        }
        least = PNB_MIN(least, n);
        most = PNB_MAX(most, n);
    }
    for (size_t i = 0; i < N; i++)
        assert_int_equal(n_out[i], 1);
    assert_true(least == 12 && most == 14);
    pnb__clusters_reset(&c);
    free(label);
    free(weight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_and_groups),
        cmocka_unit_test(draws),
        cmocka_unit_test(groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
