/* The inclusion integral against quadrature, the golden cases, and checkers that must reject
 * faults. */
#include "tests/prob/support.h"

#include "kernels/bf16.h"
#include "prob/inclusion.h"

/* log int p1^2 p2 dx by the trapezoid rule around the peak of the product; spectrally exact. */
static double quadrature(double delta, double l1, double l2)
{
    double v1 = exp(l1), v2 = exp(l2), precision = 2.0 / v1 + 1.0 / v2;
    double peak = (2.0 * delta / v1) / precision, step = 0.05 / sqrt(precision), sum = 0.0;
    double log_two_pi = log(2.0 * acos(-1.0));
    double top = 0.0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = -400; i <= 400; i++) {
            double x = peak + step * (double)i, a = x - delta;
            double log_p = -(a * a) / v1 - 0.5 * x * x / v2 - l1 - 0.5 * l2 - 1.5 * log_two_pi;
            if (pass == 0)
                top = i == -400 || log_p > top ? log_p : top;
            else
                sum += exp(log_p - top);
        }
    }
    return top + log(sum * step);
}

typedef double (*term_fn)(double delta, double l1, double l2);

/* Largest error of a candidate formula over a grid: the checker of this file. */
static double worst_error(term_fn f)
{
    const double l[] = {-30, -12, -3, 0, 0.7, 5, 30}, delta[] = {-2.0, -0.1, 0.0, 0.3, 1.7};
    double worst = 0.0;
    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < 7; j++)
            for (size_t k = 0; k < 5; k++) {
                double want = quadrature(delta[k], l[i], l[j]), got = f(delta[k], l[i], l[j]);
                double error = fabs(got - want) / (1.0 + fabs(want));
                worst = isfinite(got) && error <= worst ? worst : isfinite(got) ? error : INFINITY;
            }
    return worst;
}

static double exact(double delta, double l1, double l2)
{
    return pnb__inclusion_exact_term(delta, l1, l2);
}
static double planted_published(double delta, double l1, double l2)
{
    return pnb__inclusion_published_term(delta, l1, l2, 0.0);
}
static double planted_sign(double delta, double l1, double l2)
{
    return exact(delta, l1, l2) + 2.0 * delta * delta / (exp(l1) + 2.0 * exp(l2));
}
static double planted_swap(double delta, double l1, double l2)
{
    return exact(delta, l2, l1);
}
static double planted_factor(double delta, double l1, double l2)
{
    return exact(delta, l1, l2) - 0.5 * l1;
}
static double planted_constant(double delta, double l1, double l2)
{
    return exact(delta, l1, l2) + 0.01;
}
static double planted_nan(double delta, double l1, double l2)
{
    return l1 > 20.0 ? (double)NAN : exact(delta, l1, l2);
}

static void exact_equals_quadrature(void **state)
{
    (void)state;
    double worst = worst_error(exact);
    if (!(worst <= 1e-11))
        fail_msg("worst error %g", worst);
}

static void checker_rejects_faults(void **state)
{
    (void)state;
    const term_fn faults[] = {planted_published, planted_sign,     planted_swap,
                              planted_factor,    planted_constant, planted_nan};
    for (size_t i = 0; i < PNB_COUNT(faults); i++)
        if (worst_error(faults[i]) <= 1e-6)
            fail_msg("fault %zu passes", i);
}

/* H in one expression against the difference of the two integrals. */
static void h_is_the_difference(void **state)
{
    (void)state;
    const double l[] = {-30, -8, -1, 0, 2, 30}, delta[] = {-1.5, 0.0, 1e-3, 0.8};
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 6; j++)
            for (size_t k = 0; k < 4; k++) {
                double x = delta[k], eps = -2.5;
                double scale = 1e-12 * (1.0 + x * x * exp(-fmax(l[i], l[j])) + 100.0);
                double want = exact(x, l[i], l[j]) - exact(x, l[j], l[i]);
                assert_near(pnb__inclusion_h_term(x, l[i], l[j], 0.5, 1.0), want, scale, 1e-10);
                want = pnb__inclusion_published_term(x, l[i], l[j], eps) -
                       pnb__inclusion_published_term(x, l[j], l[i], eps);
                assert_near(pnb__inclusion_h_term(x, l[i], l[j], 1.0, exp(eps)), want, scale,
                            1e-10);
            }
}

static void h_sign_and_zero(void **state)
{
    (void)state;
    assert_true(pnb__inclusion_h_term(0.1, -3.0, 1.0, 0.5, 1.0) > 0.0); /* narrow in wide */
    assert_true(pnb__inclusion_h_term(0.1, 1.0, -3.0, 0.5, 1.0) < 0.0);
    assert_true(pnb__inclusion_h_term(0.7, -4.0, -4.0, 0.5, 1.0) == 0.0);
    assert_true(isfinite(pnb__inclusion_h_term(1.0, -300.0, 300.0, 1.0, 1.0)));
    assert_true(isfinite(pnb__inclusion_h_term(1.0, -300.0, -299.0, 1.0, 1.0)));
}

static void golden_integral_1d(void **state)
{
    (void)state;
    pnb_safetensors *file = open_case("prolip_loss/inclusion_integral_1d");
    size_t n;
    double *m1 = case_values(file, "mu1", &n), *m2 = case_values(file, "mu2", NULL);
    double *l1 = case_values(file, "logvar1", NULL), *l2 = case_values(file, "logvar2", NULL);
    double *quad = case_values(file, "log_integral_quad", NULL);
    double *closed = case_values(file, "log_integral_exact", NULL);
    double *published = case_values(file, "published_form", NULL);
    assert_int_equal(n, 24);
    for (size_t i = 0; i < n; i++) {
        double got = pnb_inclusion_exact(m1 + i, l1 + i, m2 + i, l2 + i, 1);
        assert_near(got, quad[i], 1e-9, 1e-9);
        assert_near(got, closed[i], 1e-9, 1e-9);
        got = pnb_inclusion_published(m1 + i, l1 + i, m2 + i, l2 + i, 1, 0.0);
        assert_near(got, published[i], 1e-9, 1e-9);
    }
    double *all[] = {m1, m2, l1, l2, quad, closed, published};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        free(all[i]);
    pnb_safetensors_free(file);
}

static void golden_csd_inclusion(void **state)
{
    (void)state;
    pnb_safetensors *file = open_case("prolip_loss/csd_inclusion");
    const size_t n = 6, m = 9, dim = 14;
    double *m1 = case_values(file, "mu1", NULL), *l1 = case_values(file, "logvar1", NULL);
    double *m2 = case_values(file, "mu2", NULL), *l2 = case_values(file, "logvar2", NULL);
    double *published = case_values(file, "inclusion_published", NULL);
    double *with_eps = case_values(file, "inclusion_published_eps", NULL);
    double *reverse = case_values(file, "inclusion_published_reverse", NULL);
    double *want_exact = case_values(file, "inclusion_exact", NULL);
    double *csd = case_values(file, "csd", NULL),
           *sim = case_values(file, "prolip_similarity", NULL);
    float *fm1 = to_floats(m1, n * dim), *fl1 = to_floats(l1, n * dim);
    float *fm2 = to_floats(m2, m * dim), *fl2 = to_floats(l2, m * dim);
    pnb_gaussians a = {.n = n, .dim = dim, .mean = fm1, .log_var = fl1},
                  b = {.n = m, .dim = dim, .mean = fm2, .log_var = fl2};
    pnb_measure_opts opts = pnb_measure_opts_default();
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            size_t at = i * m + j;
            const double *x = m1 + i * dim, *lx = l1 + i * dim, *y = m2 + j * dim,
                         *ly = l2 + j * dim;
            double forth = pnb_inclusion_published(x, lx, y, ly, dim, 0.0);
            double back = pnb_inclusion_published(y, ly, x, lx, dim, 0.0);
            double h = pnb_measure_pair(PNB_MEASURE_INCLUSION_PUBLISHED, &a, i, &b, j, &opts);
            double d = pnb_measure_pair(PNB_MEASURE_CSD, &a, i, &b, j, &opts);
            /* the released function is one direction; H is the difference of the two */
            assert_near(forth, published[at], 1e-6, 2e-5);
            assert_near(back, reverse[j * n + i], 1e-6, 2e-5);
            assert_near(h, published[at] - reverse[j * n + i], 1e-6, 2e-5);
            assert_near(pnb_inclusion_published(x, lx, y, ly, dim, -2.5), with_eps[at], 1e-6, 2e-5);
            assert_near(pnb_inclusion_exact(x, lx, y, ly, dim), want_exact[at], 1e-6, 2e-5);
            assert_near(d, csd[at], 1e-6, 2e-5);
            assert_near(pnb_measure_score(PNB_MEASURE_CSD, d), sim[at], 1e-6, 2e-5);
        }
    double *all[] = {m1, m2, l1, l2, published, with_eps, reverse, want_exact, csd, sim};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        free(all[i]);
    free(fm1);
    free(fm2);
    free(fl1);
    free(fl2);
    pnb_safetensors_free(file);
}

/* What a test of rows that differ by `spread` per dimension around -10 loses in bfloat16, where
 * numbers from 8 to 16 are 1/16 apart: the share of dimensions that become equal, the rms error of
 * a dimension's term over its rms, and how often the sum changes its sign. docs/numerics.md has
 * these figures. */
typedef struct drowned {
    double equal, error, turned;
} drowned;

static double halved(double x)
{
    return (double)pnb__bf16_widen(pnb__bf16_of((float)x));
}

static drowned drown(double spread)
{
    enum { N = 400, D = 512 };
    drowned d = {0};
    double square = 0;
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 1);
    for (size_t i = 0; i < N; i++) {
        double sum = 0, sum_halved = 0;
        for (size_t k = 0; k < D; k++) {
            double l1 = -10 + spread * pnb__rng_normal(&rng);
            double l2 = -10 + spread * pnb__rng_normal(&rng);
            double delta = 0.5 * pnb__rng_normal(&rng) / sqrt((double)D);
            double h = pnb__inclusion_h_term(delta, l1, l2, PNB__H_EXACT_LOG_WEIGHT, 1);
            double half =
                pnb__inclusion_h_term(delta, halved(l1), halved(l2), PNB__H_EXACT_LOG_WEIGHT, 1);
            d.equal += halved(l1) == halved(l2);
            d.error += (half - h) * (half - h);
            square += h * h;
            sum += h;
            sum_halved += half;
        }
        d.turned += (sum > 0) != (sum_halved > 0);
    }
    return (drowned){d.equal / N / D, sqrt(d.error / square), d.turned / N};
}

static void bfloat16_drowns_differences(void **state)
{
    (void)state;
    drowned near = drown(0.02), far = drown(0.2);
    print_message("spread 0.02: %.3f equal, error %.3f, %.3f turned; 0.2: %.3f, %.3f, %.3f\n",
                  near.equal, near.error, near.turned, far.equal, far.error, far.turned);
    assert_true(near.equal > 0.7 && near.error > 0.7 && near.turned > 0.15);
    assert_true(far.equal > 0.05 && far.error > 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_equals_quadrature),     cmocka_unit_test(checker_rejects_faults),
        cmocka_unit_test(h_is_the_difference),         cmocka_unit_test(h_sign_and_zero),
        cmocka_unit_test(golden_integral_1d),          cmocka_unit_test(golden_csd_inclusion),
        cmocka_unit_test(bfloat16_drowns_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
