/* Blocks of pairs: bits that do not depend on where in a block a pair lies. */
#include "tests/prob/support.h"

#include "prob/measure.h"

enum { A = 11, B = 43 };

/* The block's values are those of blocks of one pair, bit for bit, and equal rows of b, which lie
 * at all kinds of places, have equal values. */
static void expect_same_bits(pnb_measure measure, const pnb_rows *a, const pnb_rows *b,
                             const size_t *equal, size_t n_equal)
{
    double out[A * B], one;
    assert_ok(pnb_measure_block(measure, a, b, NULL, out, err));
    for (size_t i = 0; i < A; i++) {
        for (size_t j = 0; j < B; j++) {
            const pnb_rows x = pnb_rows_slice(a, i, 1), y = pnb_rows_slice(b, j, 1);
            assert_ok(pnb_measure_block(measure, &x, &y, NULL, &one, err));
            assert_memory_equal(&one, &out[i * B + j], sizeof one);
        }
        for (size_t e = 1; e < n_equal; e++)
            assert_memory_equal(&out[i * B + equal[0]], &out[i * B + equal[e]], sizeof one);
    }
}

static void place_does_not_matter(void **state)
{
    (void)state;
    const size_t equal[] = {0, 1, 6, 30, 31, 32, 33, 41, 42}, dims[] = {1, 2, 3, 16, 37};
    for (size_t s = 0; s < PNB_COUNT(dims); s++) {
        size_t dim = dims[s];
        gaussians a = random_gaussians(A, dim, -4, 1, 3), b = random_gaussians(B, dim, -4, 1, 4);
        float kappa_a[A], kappa_b[B];
        for (size_t i = 0; i < A; i++)
            kappa_a[i] = 3.5f + (float)i;
        for (size_t j = 0; j < B; j++)
            kappa_b[j] = 20.0f / (float)(j + 1);
        for (size_t e = 1; e < PNB_COUNT(equal); e++) {
            memcpy(b.mean + equal[e] * dim, b.mean, dim * sizeof(float));
            memcpy(b.log_var + equal[e] * dim, b.log_var, dim * sizeof(float));
            kappa_b[equal[e]] = kappa_b[0];
        }
        for (int m = 0; m < PNB_MEASURE_VMF; m++)
            if (!pnb__measure_is_sampled((pnb_measure)m))
                expect_same_bits((pnb_measure)m, &a.view, &b.view, equal, PNB_COUNT(equal));
        pnb_rows za = {.n = A, .dim = dim, .mean = a.mean, .kappa = kappa_a};
        pnb_rows zb = {.n = B, .dim = dim, .mean = b.mean, .kappa = kappa_b};
        pnb_rows points = {.n = B, .dim = dim, .mean = b.mean};
        if (dim > 1) {
            expect_same_bits(PNB_MEASURE_VMF, &za, &zb, equal, PNB_COUNT(equal));
            expect_same_bits(PNB_MEASURE_VMF_EXACT, &za, &points, equal, PNB_COUNT(equal));
            za.is_power = zb.is_power = true;
            expect_same_bits(PNB_MEASURE_POWER_SPHERICAL, &za, &zb, equal, PNB_COUNT(equal));
            expect_same_bits(PNB_MEASURE_POWER_SPHERICAL, &za, &points, equal, PNB_COUNT(equal));
        }
        free_gaussians(&a);
        free_gaussians(&b);
    }
}

/* mean, csd and w2 have the same bits both ways; csd of a row with its copy is its traces alone. */
static void symmetric_bits(void **state)
{
    (void)state;
    gaussians a = random_gaussians(9, 33, -4, 1, 3), b = random_gaussians(9, 33, -4, 1, 4);
    const pnb_measure measures[] = {PNB_MEASURE_MEAN, PNB_MEASURE_CSD, PNB_MEASURE_W2};
    double ab[81], ba[81];
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        assert_ok(pnb_measure_block(measures[m], &a.view, &b.view, NULL, ab, err));
        assert_ok(pnb_measure_block(measures[m], &b.view, &a.view, NULL, ba, err));
        for (size_t i = 0; i < 9; i++)
            for (size_t j = 0; j < 9; j++)
                assert_memory_equal(&ab[i * 9 + j], &ba[j * 9 + i], sizeof *ab);
    }
    assert_ok(pnb_measure_block(PNB_MEASURE_CSD, &a.view, &a.view, NULL, ab, err));
    for (size_t i = 0; i < 9; i++) {
        long double trace = 0;
        for (size_t d = 0; d < 33; d++)
            trace += expl((long double)a.log_var[i * 33 + d]);
        assert_near(ab[i * 10], (double)(2 * trace), 0, 1e-14);
    }
    free_gaussians(&a);
    free_gaussians(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(place_does_not_matter),
                                       cmocka_unit_test(symmetric_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
