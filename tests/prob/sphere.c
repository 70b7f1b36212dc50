/* Log-likelihoods on the sphere: densities integrate to one, values over the whole range, blocks
 * against pairs, both sides, opposite vectors. */
#include "tests/prob/sphere.h"

#include "penumbra/distributions.h"

static const pnb_measure LIKELIHOODS[] = {PNB_MEASURE_VMF, PNB_MEASURE_VMF_EXACT,
                                          PNB_MEASURE_POWER_SPHERICAL};

static void densities_integrate_to_one(void **state)
{
    (void)state;
    enum { N = 400 };
    const float mean[3] = {0.6f, 0, 0.8f};
    for (int m = 1; m < 3; m++)
        for (float kappa = 0; kappa < 50; kappa = 2 * kappa + 0.7f) {
            pnb_rows circle = {.n = 1, .dim = 2, .mean = mean, .kappa = &kappa, .is_power = m == 2};
            pnb_rows ball = circle;
            double sum2 = 0, sum3 = 0;
            ball.dim = 3;
            for (int i = 0; i < N; i++) { /* the circle; and the sphere by height and longitude */
                double angle = 2 * acos(-1.0) * i / N, height = -1 + (2.0 * i + 1) / N;
                const float on_circle[2] = {(float)cos(angle), (float)sin(angle)};
                pnb_rows x = {.n = 1, .dim = 2, .mean = on_circle};
                sum2 += exp(pnb_measure_pair(LIKELIHOODS[m], &circle, 0, &x, 0, NULL));
                for (int j = 0; j < N / 4; j++) {
                    double longitude = 8 * acos(-1.0) * j / N, r = sqrt(1 - height * height);
                    const float on_ball[3] = {(float)(r * cos(longitude)),
                                              (float)(r * sin(longitude)), (float)height};
                    pnb_rows y = {.n = 1, .dim = 3, .mean = on_ball};
                    sum3 += exp(pnb_measure_pair(LIKELIHOODS[m], &ball, 0, &y, 0, NULL));
                }
            }
            assert_near(sum2 * 2 * acos(-1.0) / N, 1.0, 1e-5, 0);
            assert_near(sum3 * 4 * acos(-1.0) / N / (N / 4), 1.0, 2e-3, 0);
        }
}

/* Unit vectors u and v with cosine c, in the plane of the first two axes of d. */
static void two_rows(float *u, float *v, size_t dim, double angle)
{
    memset(u, 0, dim * sizeof *u);
    memset(v, 0, dim * sizeof *v);
    u[0] = 1;
    v[0] = (float)cos(angle);
    v[dim - 1] = (float)sin(angle);
}

static void whole_range(void **state)
{
    (void)state;
    const double angles[] = {0, 1e-4, 0.3, 1.5, 2.7, 3.14, 4.0};
    float u[4096], v[4096];
    for (size_t i = 0; i < PNB_COUNT(SPHERE_DIMS); i++)
        for (size_t j = 0; j < PNB_COUNT(SPHERE_KAPPAS); j++)
            for (size_t a = 0; a < PNB_COUNT(angles); a++) {
                size_t dim = SPHERE_DIMS[i];
                float kappa = (float)SPHERE_KAPPAS[j];
                two_rows(u, v, dim, angles[a]);
                /* the vectors as they are stored, not the angle */
                long double x = v[0], y = v[dim - 1], cosine = x / sqrtl(x * x + y * y);
                long double plus_one = x >= 0 ? 1 + cosine : y * y / (x * x + y * y) / (1 - cosine);
                for (int m = 0; m < 3; m++) {
                    pnb_rows e = {.n = 1, .dim = dim, .mean = u, .kappa = &kappa};
                    pnb_rows z = {.n = 1, .dim = dim, .mean = v};
                    e.is_power = m == 2;
                    double norm = m == 0   ? pnb_vmf_log_norm_approx(dim, kappa)
                                  : m == 1 ? pnb_vmf_log_norm(dim, kappa)
                                           : pnb_power_spherical_log_norm(dim, kappa);
                    long double energy = m == 2 ? logl(plus_one) : cosine;
                    double want = (double)(kappa * energy + norm), block, row;
                    double pair = pnb_measure_pair(LIKELIHOODS[m], &e, 0, &z, 0, NULL);
                    double scale = 1 + kappa + fabs(norm);
                    assert_near(pair, want, 1e-14 * scale, 1e-13);
                    assert_ok(pnb_measure_block(LIKELIHOODS[m], &z, &e, NULL, &block, err));
                    assert_near(block, want, 1e-14 * scale, 1e-13);
                    assert_ok(pnb_measure_rows(LIKELIHOODS[m], &e, &z, NULL, &row, err));
                    assert_true(row == pair);
                }
            }
}

/* Exactly opposite vectors have density 0 under a power spherical: a finite floor instead. */
static void opposite_and_zero_rows(void **state)
{
    (void)state;
    const float u[4] = {1, 0, 0, 0}, v[4] = {-1, 0, 0, 0}, zero[4] = {0};
    const float kappas[2] = {1e6f, 0};
    for (size_t i = 0; i < 2; i++) {
        pnb_rows e = {.n = 1, .dim = 4, .mean = u, .kappa = &kappas[i], .is_power = true};
        pnb_rows z = {.n = 1, .dim = 4, .mean = v}, none = {.n = 1, .dim = 4, .mean = zero};
        double got, norm = pnb_power_spherical_log_norm(4, kappas[i]);
        assert_ok(pnb_measure_rows(PNB_MEASURE_POWER_SPHERICAL, &e, &z, NULL, &got, err));
        assert_near(got, norm - 53 * log(2.0) * kappas[i], 0, 1e-14);
        assert_ok(pnb_measure_block(PNB_MEASURE_POWER_SPHERICAL, &e, &z, NULL, &got, err));
        assert_near(got, norm - 53 * log(2.0) * kappas[i], 0, 1e-14);
        assert_ok(pnb_measure_block(PNB_MEASURE_POWER_SPHERICAL, &e, &none, NULL, &got, err));
        assert_near(got, norm, 0, 1e-14); /* cosine 0 */
        e.is_power = false;
        assert_ok(pnb_measure_rows(PNB_MEASURE_VMF_EXACT, &e, &none, NULL, &got, err));
        assert_near(got, pnb_vmf_log_norm(4, kappas[i]), 0, 1e-14);
    }
}

/* Random sets: block against pair, sides exchanged, length of the vectors irrelevant, and two
 * embeddings give the mean of their likelihoods of each other's mean. */
static void sets(void **state)
{
    (void)state;
    enum { A = 5, B = 41, D = 37 };
    gaussians a = random_gaussians(A, D, 0, 1, 3), b = random_gaussians(B, D, 0, 1, 4);
    float kappa_a[A], kappa_b[B];
    double ab[A * B], ba[B * A], both[A * B];
    for (size_t i = 0; i < A; i++)
        kappa_a[i] = 10.0f * (float)(i * i);
    for (size_t i = 0; i < B; i++)
        kappa_b[i] = 3.0f * (float)i;
    for (size_t d = 0; d < D; d++)
        b.mean[d] *= 7.5f;
    for (size_t m = 0; m < 3; m++) {
        pnb_rows ea = {.n = A, .dim = D, .mean = a.mean, .kappa = kappa_a, .is_power = m == 2};
        pnb_rows eb = {.n = B, .dim = D, .mean = b.mean, .kappa = kappa_b, .is_power = m == 2};
        pnb_rows za = {.n = A, .dim = D, .mean = a.mean}, zb = {.n = B, .dim = D, .mean = b.mean};
        assert_ok(pnb_measure_block(LIKELIHOODS[m], &ea, &zb, NULL, ab, err));
        assert_ok(pnb_measure_block(LIKELIHOODS[m], &eb, &za, NULL, ba, err));
        assert_ok(pnb_measure_block(LIKELIHOODS[m], &ea, &eb, NULL, both, err));
        for (size_t i = 0; i < A; i++)
            for (size_t j = 0; j < B; j++) {
                double pair = pnb_measure_pair(LIKELIHOODS[m], &ea, i, &zb, j, NULL);
                double back = pnb_measure_pair(LIKELIHOODS[m], &zb, j, &ea, i, NULL);
                assert_near(ab[i * B + j], pair, 1e-12, 1e-12);
                assert_near(back, pair, 1e-12, 1e-12);
                assert_near(both[i * B + j], 0.5 * (ab[i * B + j] + ba[j * A + i]), 1e-11, 1e-12);
                pair = pnb_measure_pair(LIKELIHOODS[m], &ea, i, &eb, j, NULL);
                assert_near(pair, both[i * B + j], 1e-12, 1e-12);
                pair = pnb_measure_pair(LIKELIHOODS[m], &ea, i, &b.view, j, NULL);
                assert_true(pair == pnb_measure_pair(LIKELIHOODS[m], &ea, i, &zb, j, NULL));
            }
        assert_ok(pnb_measure_block(LIKELIHOODS[m], &ea, &b.view, NULL, ba, err));
        assert_memory_equal(ab, ba, sizeof ab); /* of Gaussians the means */
        assert_true(pnb_measure_is_similarity(LIKELIHOODS[m]));
        assert_true(pnb_measure_is_symmetric(LIKELIHOODS[m]));
    }
    free_gaussians(&a);
    free_gaussians(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(densities_integrate_to_one),
        cmocka_unit_test(whole_range),
        cmocka_unit_test(opposite_and_zero_rows),
        cmocka_unit_test(sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
