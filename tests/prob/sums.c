/* Sums over d of every shape of a tile against long double, and bits that depend on the two rows
 * alone. */
#include "tests/prob/support.h"

#include "prob/measure.h"

enum { MOST_A = 9, MOST_B = 6, MOST_D = 27, GUARD = 2 };

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

/* A pair of rows has the bits it has alone, wherever it stands among others. */
static void place_changes_no_bits(void **state)
{
    (void)state;
    gaussians a = random_gaussians(MOST_A, MOST_D, 0, 0, 3);
    double x[MOST_A * MOST_D], all[MOST_A * MOST_A], one;
    for (size_t i = 0; i < MOST_A * MOST_D; i++)
        x[i] = (double)a.mean[i] / 3;
    for (size_t dim = MOST_D - 1; dim <= MOST_D; dim++) { /* even and odd */
        for (int distances = 0; distances < 2; distances++) {
            void (*sum)(const pnb__sums *) = distances ? pnb__sum_distances2 : pnb__sum_products;
            sum(&(pnb__sums){.a = x,
                             .b = x,
                             .n_a = MOST_A,
                             .n_b = MOST_A,
                             .dim = dim,
                             .out = all,
                             .stride = {MOST_A, 1}});
            for (size_t i = 0; i < MOST_A; i++)
                for (size_t j = 0; j < MOST_A; j++) {
                    sum(&(pnb__sums){.a = x + i * dim,
                                     .b = x + j * dim,
                                     .n_a = 1,
                                     .n_b = 1,
                                     .dim = dim,
                                     .out = &one,
                                     .stride = {1, 1}});
                    assert_memory_equal(&one, &all[i * MOST_A + j], sizeof one);
                    assert_memory_equal(&one, &all[j * MOST_A + i], sizeof one);
                }
        }
    }
    free_gaussians(&a);
}

/* Every instruction set that this CPU has adds in the same order, whatever its tiles. */
static void instruction_sets_agree_to_the_bit(void **state)
{
    (void)state;
    enum { N = 11, D = 61 };
    static const pnb_isa ISAS[] = {PNB_ISA_GENERIC, PNB_ISA_AVX2, PNB_ISA_AVX512};
    gaussians a = random_gaussians(N, D, 0, 0, 5);
    double x[N * D], first[N * N], other[N * N];
    for (size_t i = 0; i < (size_t)N * D; i++)
        x[i] = (double)a.mean[i] / 3;
    for (size_t dim = 1; dim <= D; dim++)
        for (int distances = 0; distances < 2; distances++)
            for (size_t k = 0; k < PNB_COUNT(ISAS) && ISAS[k] <= pnb__sums_isa(); k++) {
                double *out = k == 0 ? first : other;
                pnb__sums_by(ISAS[k],
                             &(pnb__sums){.a = x,
                                          .b = x,
                                          .n_a = N,
                                          .n_b = N,
                                          .dim = dim,
                                          .out = out,
                                          .stride = {N, 1}},
                             distances == 1);
                assert_memory_equal(first, out, sizeof first);
            }
    free_gaussians(&a);
}

/* Near rows far from 0: |a|^2 + |b|^2 - 2 a.b would leave nothing of the distance. */
static void distances_do_not_cancel(void **state)
{
    (void)state;
    const double a[3] = {1e9, -1e9, 1e9}, b[3] = {1e9 + 1, -1e9 + 2, 1e9 - 3};
    double out = 0;
    pnb__sum_distances2(
        &(pnb__sums){.a = a, .b = b, .n_a = 1, .n_b = 1, .dim = 3, .out = &out, .stride = {1, 1}});
    assert_true(out == 14.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_every_shape),
        cmocka_unit_test(place_changes_no_bits),
        cmocka_unit_test(instruction_sets_agree_to_the_bit),
        cmocka_unit_test(distances_do_not_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
