/* One pair of rows: every measure against quadrature of its definition and its formula in long
 * double, identities, points, Monte-Carlo convergence. */
#include "tests/prob/support.h"

/* ---- definitions by the trapezoid rule, one dimension ---- */

typedef struct normal {
    double mean, log_var;
} normal;

static double log_density(normal g, double x)
{
    double a = x - g.mean;
    return -0.5 * (a * a * exp(-g.log_var) + g.log_var + log(2.0 * acos(-1.0)));
}

typedef double (*integrand_fn)(normal g1, normal g2, double x);

/* Over the union of +-14 standard deviations, in pieces as fine as the narrower of the two. */
static double integrate(integrand_fn f, normal g1, normal g2)
{
    double s1 = exp(0.5 * g1.log_var), s2 = exp(0.5 * g2.log_var);
    double low = fmin(g1.mean - 14 * s1, g2.mean - 14 * s2);
    double high = fmax(g1.mean + 14 * s1, g2.mean + 14 * s2);
    double step = 0.1 * fmin(s1, s2), sum = 0.0;
    for (double x = low; x <= high; x += step)
        sum += f(g1, g2, x);
    return sum * step;
}

static double kl_integrand(normal g1, normal g2, double x)
{
    double l1 = log_density(g1, x);
    return exp(l1) * (l1 - log_density(g2, x));
}

static double elk_integrand(normal g1, normal g2, double x)
{
    return exp(log_density(g1, x) + log_density(g2, x));
}

static double overlap_integrand(normal g1, normal g2, double x)
{
    return exp(0.5 * (log_density(g1, x) + log_density(g2, x)));
}

static double inclusion_integrand(normal g1, normal g2, double x)
{
    return exp(2.0 * log_density(g1, x) + log_density(g2, x));
}

/* E (Z1-Z2)^2 over a grid of both, and the same with the optimal coupling z1(z), z2(z). */
static double expected_square(normal g1, normal g2, bool coupled)
{
    double sum = 0.0, step = 0.05;
    normal unit = {0.0, 0.0};
    for (double x = -10.0; x <= 10.0; x += step)
        for (double y = coupled ? x : -10.0; y <= (coupled ? x : 10.0); y += step) {
            double p = exp(log_density(unit, x) + (coupled ? 0.0 : log_density(unit, y)));
            double z1 = g1.mean + exp(0.5 * g1.log_var) * x;
            double z2 = g2.mean + exp(0.5 * g2.log_var) * y;
            sum += p * (z1 - z2) * (z1 - z2) * (coupled ? step : step * step);
        }
    return sum;
}

static double by_definition(pnb_measure measure, normal g1, normal g2)
{
    normal middle = {0.5 * (g1.mean + g2.mean), log(0.5 * (exp(g1.log_var) + exp(g2.log_var)))};
    switch (measure) {
    case PNB_MEASURE_CSD:
        return expected_square(g1, g2, false);
    case PNB_MEASURE_W2:
        return expected_square(g1, g2, true);
    case PNB_MEASURE_KL:
        return integrate(kl_integrand, g1, g2);
    case PNB_MEASURE_JEFFREYS:
        return integrate(kl_integrand, g1, g2) + integrate(kl_integrand, g2, g1);
    case PNB_MEASURE_JS:
        return 0.5 * (integrate(kl_integrand, g1, middle) + integrate(kl_integrand, g2, middle));
    case PNB_MEASURE_ELK:
        return log(integrate(elk_integrand, g1, g2));
    case PNB_MEASURE_BHATTACHARYYA:
        return -log(integrate(overlap_integrand, g1, g2));
    case PNB_MEASURE_INCLUSION:
        return log(integrate(inclusion_integrand, g1, g2)) -
               log(integrate(inclusion_integrand, g2, g1));
    default:
        return (double)NAN;
    }
}

static const pnb_measure CLOSED[] = {
    PNB_MEASURE_CSD,           PNB_MEASURE_W2,       PNB_MEASURE_KL,
    PNB_MEASURE_JEFFREYS,      PNB_MEASURE_JS,       PNB_MEASURE_ELK,
    PNB_MEASURE_BHATTACHARYYA, PNB_MEASURE_INCLUSION};

static void closed_forms_match_definitions(void **state)
{
    (void)state;
    enum { N = 6, D = 3 };
    gaussians a = random_gaussians(N, D, -3.0, 1.5, 1), b = random_gaussians(N, D, -3.0, 1.5, 2);
    for (size_t m = 0; m < PNB_COUNT(CLOSED); m++)
        for (size_t i = 0; i < N; i++) {
            double want = 0.0;
            for (size_t d = 0; d < D; d++)
                want += by_definition(CLOSED[m], (normal){a.mean[i * D + d], a.log_var[i * D + d]},
                                      (normal){b.mean[i * D + d], b.log_var[i * D + d]});
            double got = pnb_measure_pair(CLOSED[m], &a.view, i, &b.view, i, NULL);
            if (!(fabs(got - want) <= 1e-9 + 1e-9 * fabs(want)))
                fail_msg("%s: %.15g, by definition %.15g", pnb_measure_name(CLOSED[m]), got, want);
        }
    free_gaussians(&a);
    free_gaussians(&b);
}

/* Cosine from long double sums. */
static void mean_is_the_cosine(void **state)
{
    (void)state;
    gaussians a = random_gaussians(4, 33, -3, 1, 5), b = random_gaussians(4, 33, -3, 1, 6);
    for (size_t d = 0; d < 33; d++)
        b.mean[d] *= 7.5f; /* not a unit row */
    for (size_t i = 0; i < 4; i++) {
        long double xy = 0, xx = 0, yy = 0;
        for (size_t d = 0; d < 33; d++) {
            long double x = a.mean[i * 33 + d], y = b.mean[i * 33 + d];
            xy += x * y;
            xx += x * x;
            yy += y * y;
        }
        assert_near(pnb_measure_pair(PNB_MEASURE_MEAN, &a.view, i, &b.view, i, NULL),
                    (double)(xy / sqrtl(xx * yy)), 1e-15, 1e-14);
    }
    free_gaussians(&a);
    free_gaussians(&b);
}

/* ---- every closed form over the whole range, against its textbook formula in long double ---- */

static long double textbook(pnb_measure measure, long double delta, long double l1, long double l2)
{
    long double v1 = expl(l1), v2 = expl(l2), square = delta * delta, two_pi = 2 * acosl(-1.0L);
    long double s1 = expl(0.5L * l1), s2 = expl(0.5L * l2);
    long double kl12 = 0.5L * (v1 / v2 + square / v2 - 1 + l2 - l1);
    long double kl21 = 0.5L * (v2 / v1 + square / v1 - 1 + l1 - l2);
    long double inc12 =
        -logl(two_pi) - 0.5L * l1 - 0.5L * logl(v1 + 2 * v2) - square / (v1 + 2 * v2);
    long double inc21 =
        -logl(two_pi) - 0.5L * l2 - 0.5L * logl(v2 + 2 * v1) - square / (v2 + 2 * v1);
    switch (measure) {
    case PNB_MEASURE_CSD:
        return square + v1 + v2;
    case PNB_MEASURE_W2:
        return square + (s1 - s2) * (s1 - s2);
    case PNB_MEASURE_KL:
        return kl12;
    case PNB_MEASURE_JEFFREYS:
        return kl12 + kl21;
    case PNB_MEASURE_JS:
    case PNB_MEASURE_BHATTACHARYYA:
        return 0.25L * square / (v1 + v2) + 0.5L * logl((v1 + v2) / (2 * s1 * s2));
    case PNB_MEASURE_ELK:
        return -0.5L * (square / (v1 + v2) + logl(v1 + v2) + logl(two_pi));
    case PNB_MEASURE_INCLUSION:
        return inc12 - inc21;
    default: /* published: -3/2 l1 - l2/2 instead of -l1/2, and the other way round */
        return inc12 - inc21 + 0.5L * (l2 - l1);
    }
}

static void whole_range(void **state)
{
    (void)state;
    const size_t dims[] = {2, 3, 64, 513, 4096};
    for (size_t i = 0; i < PNB_COUNT(dims); i++)
        for (int reach = 0; reach <= 30; reach += 10) {
            size_t dim = dims[i];
            gaussians a = random_gaussians(1, dim, -reach, reach, 50 + (uint64_t)reach);
            gaussians b = random_gaussians(1, dim, -reach, reach, 90 + (uint64_t)reach);
            a.log_var[0] = 30;
            a.log_var[1] = -30;
            b.log_var[0] = -30;
            for (int m = 0; m < PNB_MEASURE_AVG_L2; m++) {
                if (m == PNB_MEASURE_MEAN)
                    continue;
                long double want = 0, size = 0;
                for (size_t d = 0; d < dim; d++) {
                    long double delta = (long double)a.mean[d] - b.mean[d];
                    long double t = textbook((pnb_measure)m, delta, a.log_var[d], b.log_var[d]);
                    want += t;
                    size += fabsl(t);
                }
                double pair = pnb_measure_pair((pnb_measure)m, &a.view, 0, &b.view, 0, NULL), block;
                assert_ok(pnb_measure_block((pnb_measure)m, &a.view, &b.view, NULL, &block, err));
                assert_near(pair, (double)want, 1e-13 * (double)size, 1e-13);
                assert_near(block, (double)want, 1e-13 * (double)size, 1e-13);
            }
            free_gaussians(&a);
            free_gaussians(&b);
        }
}

static void identities(void **state)
{
    (void)state;
    gaussians a = random_gaussians(5, 19, -20, 20, 8), b = random_gaussians(5, 19, -20, 20, 9);
    const pnb_measure zero[] = {PNB_MEASURE_W2,
                                PNB_MEASURE_KL,
                                PNB_MEASURE_JEFFREYS,
                                PNB_MEASURE_JS,
                                PNB_MEASURE_BHATTACHARYYA,
                                PNB_MEASURE_INCLUSION,
                                PNB_MEASURE_INCLUSION_PUBLISHED};
    for (size_t i = 0; i < 5; i++) {
        for (size_t m = 0; m < PNB_COUNT(zero); m++)
            assert_true(pnb_measure_pair(zero[m], &a.view, i, &a.view, i, NULL) == 0.0);
        for (int m = 0; m < PNB_MEASURE_AVG_L2; m++) {
            double ab = pnb_measure_pair((pnb_measure)m, &a.view, i, &b.view, i, NULL);
            double ba = pnb_measure_pair((pnb_measure)m, &b.view, i, &a.view, i, NULL);
            if (pnb_measure_is_symmetric((pnb_measure)m))
                assert_near(ab, ba, 0.0, 1e-13);
            else if (m != PNB_MEASURE_KL)
                assert_near(ab, -ba, 0.0, 1e-12);
            else
                assert_true(ab > 0.0 && fabs(ab - ba) > 1e-3);
        }
        double jeffreys = pnb_measure_pair(PNB_MEASURE_JEFFREYS, &a.view, i, &b.view, i, NULL);
        double both = pnb_measure_pair(PNB_MEASURE_KL, &a.view, i, &b.view, i, NULL) +
                      pnb_measure_pair(PNB_MEASURE_KL, &b.view, i, &a.view, i, NULL);
        assert_near(jeffreys, both, 0.0, 1e-12);
    }
    free_gaussians(&a);
    free_gaussians(&b);
}

/* KL of Gaussians whose log-variances differ by h is h^2/4 to leading order: no cancellation. */
static void near_equal_gaussians_do_not_cancel(void **state)
{
    (void)state;
    const float mean[1] = {1}, l1[1] = {0}, l2[1] = {0x1p-20f};
    pnb_gaussians a = {.n = 1, .dim = 1, .mean = mean, .log_var = l1},
                  b = {.n = 1, .dim = 1, .mean = mean, .log_var = l2};
    double h = 0x1p-20;
    assert_near(pnb_measure_pair(PNB_MEASURE_KL, &a, 0, &b, 0, NULL), h * h / 4, 0.0, 1e-6);
    assert_near(pnb_measure_pair(PNB_MEASURE_JEFFREYS, &a, 0, &b, 0, NULL), h * h / 2, 0.0, 1e-6);
    assert_near(pnb_measure_pair(PNB_MEASURE_JS, &a, 0, &b, 0, NULL), h * h / 16, 0.0, 1e-6);
}

static void points_count_as_zero_variance(void **state)
{
    (void)state;
    const float m1[2] = {1, 0}, m2[2] = {0, 1}, l2[2] = {0, 0};
    pnb_gaussians p = {.n = 1, .dim = 2, .mean = m1}, q = {.n = 1, .dim = 2, .mean = m2},
                  g = {.n = 1, .dim = 2, .mean = m2, .log_var = l2};
    double v;
    assert_near(pnb_measure_pair(PNB_MEASURE_CSD, &p, 0, &q, 0, NULL), 2.0, 0, 1e-15);
    assert_near(pnb_measure_pair(PNB_MEASURE_CSD, &p, 0, &g, 0, NULL), 4.0, 0, 1e-15);
    assert_near(pnb_measure_pair(PNB_MEASURE_W2, &p, 0, &g, 0, NULL), 4.0, 0, 1e-15);
    /* the likelihood of a point */
    double log_normal = -0.5 * 2.0 - log(2.0 * acos(-1.0));
    assert_near(pnb_measure_pair(PNB_MEASURE_ELK, &p, 0, &g, 0, NULL), log_normal, 0, 1e-14);
    assert_ok(pnb_measure_block(PNB_MEASURE_ELK, &p, &g, NULL, &v, err));
    assert_near(v, log_normal, 0, 1e-14);
    assert_fails(pnb_measure_rows(PNB_MEASURE_ELK, &p, &q, NULL, &v, err), PNB_ARG, "elk");
    assert_fails(pnb_measure_block(PNB_MEASURE_KL, &p, &g, NULL, &v, err), PNB_ARG, "both sides");
    assert_near(pnb_measure_pair(PNB_MEASURE_AVG_L2, &p, 0, &q, 0, NULL), sqrt(2.0), 0, 1e-15);
    pnb_measure_opts o = pnb_measure_opts_default();
    double l = o.match_b - o.match_a * sqrt(2.0 + 1e-6);
    assert_near(pnb_measure_pair(PNB_MEASURE_MATCH_PROB, &p, 0, &q, 0, &o),
                1.0 / (1.0 + exp(-2.0 * l)), 0, 1e-12);
    o.match_factor = 1.0;
    assert_near(pnb_measure_pair(PNB_MEASURE_MATCH_PROB, &p, 0, &q, 0, &o), 1.0 / (1.0 + exp(-l)),
                0, 1e-12);
}

/* E|Z1-Z2| of two normals is a folded normal; E s(2l) of it by quadrature. */
static void samples_converge(void **state)
{
    (void)state;
    const float m1[1] = {0.4f}, m2[1] = {-0.3f}, l1[1] = {-1.0f}, l2[1] = {-0.5f};
    pnb_gaussians a = {.n = 1, .dim = 1, .mean = m1, .log_var = l1},
                  b = {.n = 1, .dim = 1, .mean = m2, .log_var = l2};
    pnb_measure_opts o = pnb_measure_opts_default();
    o.n_samples = 600;
    double s = sqrt(exp(-1.0) + exp(-0.5)), distance = 0.0, match = 0.0, step = 1e-3;
    for (double z = -10; z <= 10; z += step) {
        double p = exp(-0.5 * z * z) / sqrt(2 * acos(-1.0)) * step, x = 0.7 + s * z;
        distance += p * fabs(x);
        match += p / (1.0 + exp(-2.0 * (5.0 - 5.0 * sqrt(x * x + 1e-6))));
    }
    double got = pnb_measure_pair(PNB_MEASURE_AVG_L2, &a, 0, &b, 0, &o);
    assert_near(got, distance, 0.06, 0.0);
    assert_near(pnb_measure_pair(PNB_MEASURE_MATCH_PROB, &a, 0, &b, 0, &o), match, 0.05, 0.0);
    assert_true(got == pnb_measure_pair(PNB_MEASURE_AVG_L2, &a, 0, &b, 0, &o));
    o.seed = 1;
    assert_true(got != pnb_measure_pair(PNB_MEASURE_AVG_L2, &a, 0, &b, 0, &o));
}

/* Constants outside the list, from a file say, have no value. */
static void no_such_measure(void **state)
{
    (void)state;
    gaussians a = random_gaussians(1, 4, -1, 1, 1);
    assert_true(isnan(pnb_measure_pair(PNB_N_MEASURES, &a.view, 0, &a.view, 0, NULL)));
    assert_true(isnan(pnb_measure_pair((pnb_measure)-1, &a.view, 0, &a.view, 0, NULL)));
    free_gaussians(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms_match_definitions),
        cmocka_unit_test(mean_is_the_cosine),
        cmocka_unit_test(whole_range),
        cmocka_unit_test(identities),
        cmocka_unit_test(near_equal_gaussians_do_not_cancel),
        cmocka_unit_test(points_count_as_zero_variance),
        cmocka_unit_test(samples_converge),
        cmocka_unit_test(no_such_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
