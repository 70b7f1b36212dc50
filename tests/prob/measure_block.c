/* Blocks of pairs: sums over d against long double, and bits that do not depend on where in a block
 * a pair lies. */
#include "tests/prob/support.h"

#include "prob/measure.h"

enum { MOST_A = 9, MOST_B = 6, MOST_D = 19, GUARD = 2 };

/* Every shape of a tile and its edges, d odd and even, rows and columns of the output exchanged. */
static void sums_of_every_shape(void **state)
{
    (void)state;
    gaussians a = random_gaussians(MOST_A, MOST_D, 0, 0, 1),
              b = random_gaussians(MOST_B, MOST_D, 0, 0, 2);
    double x[MOST_A * MOST_D], y[MOST_B * MOST_D], out[(MOST_A + GUARD) * (MOST_B + GUARD)];
    for (size_t i = 0; i < MOST_A * MOST_D; i++)
        x[i] = (double)a.mean[i] / 3;
    for (size_t i = 0; i < MOST_B * MOST_D; i++)
        y[i] = (double)b.mean[i] / 7;
    for (size_t shape = 0; shape < (MOST_A + 1) * (MOST_B + 1) * MOST_D * 4; shape++) {
        size_t n_a = shape / 4 % (MOST_A + 1), n_b = shape / 4 / (MOST_A + 1) % (MOST_B + 1);
        size_t dim = shape / 4 / (MOST_A + 1) / (MOST_B + 1) + 1;
        bool distances = shape % 2 == 1, crossed = shape / 2 % 2 == 1;
        pnb__sums s = {.a = x, .b = y, .n_a = n_a, .n_b = n_b, .dim = dim, .out = out};
        s.stride[0] = crossed ? 1 : MOST_B + GUARD;
        s.stride[1] = crossed ? MOST_A + GUARD : 1;
        for (size_t i = 0; i < PNB_COUNT(out); i++)
            out[i] = -77;
        (distances ? pnb__sum_distances2 : pnb__sum_products)(&s);
        size_t n_written = 0;
        for (size_t i = 0; i < PNB_COUNT(out); i++)
            n_written += out[i] != -77;
        assert_int_equal(n_written, n_a * n_b);
        for (size_t i = 0; i < n_a; i++)
            for (size_t j = 0; j < n_b; j++) {
                long double want = 0;
                for (size_t d = 0; d < dim; d++) {
                    long double u = x[i * dim + d], v = y[j * dim + d];
                    want += distances ? (u - v) * (u - v) : u * v;
                }
                assert_near(out[i * s.stride[0] + j * s.stride[1]], (double)want, 1e-16, 1e-15);
            }
    }
    free_gaussians(&a);
    free_gaussians(&b);
}

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_of_every_shape),
                                       cmocka_unit_test(place_does_not_matter),
                                       cmocka_unit_test(symmetric_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
