/* Samples of every family against the distribution functions of their densities (Kolmogorov and
 * Smirnov), moments and directions on the sphere, and what a sample is a function of. */
#include "tests/prob/sphere.h"

#include "penumbra/distributions.h"
#include "prob/measure.h"

enum { N = 20000 };
#define KS_LIMIT (2.4 / sqrt(N)) /* exceeded by chance once in 50,000 */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Largest gap between the values' steps and their distribution function, given at each of the
 * sorted values. Larger than 1 when a value is NaN. */
static double ks_gap(const double *cdf, size_t n)
{
    double gap = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (!(cdf[i] >= -1e-9 && cdf[i] <= 1.0 + 1e-9))
            return 2.0;
        gap = fmax(gap, fabs(cdf[i] - (double)i / (double)n));
        gap = fmax(gap, fabs(cdf[i] - (double)(i + 1) / (double)n));
    }
    return gap;
}

/* Distribution function of the angle to the mean, by the trapezoid rule between the sorted angles'
 * range; turns angles into probabilities in place. */
static void angle_cdf(const sphere *s, double *angle, size_t n)
{
    enum { STEPS = 10000 };
    long double peak = sphere_peak(s), top = sphere_log_integrand(s, peak);
    long double low = sphere_edge(s, peak, 0.0L), high = sphere_edge(s, peak, PI_L);
    long double step = (high - low) / STEPS, sum = 0.0L, before = 0.0L;
    size_t at = 0;
    double *total = malloc((STEPS + 1) * sizeof *total);
    assert_non_null(total);
    for (int i = 0; i <= STEPS; i++) {
        long double a = i == 0 ? low + 1e-9L * step : low + step * i - (i == STEPS) * 1e-9L * step;
        long double g = expl(sphere_log_integrand(s, a) - top);
        sum += i == 0 ? 0.0L : 0.5L * (g + before);
        total[i] = (double)sum;
        before = g;
    }
    for (; at < n; at++) {
        double x = (angle[at] - (double)low) / (double)step;
        size_t i = x <= 0 ? 0 : x >= STEPS ? STEPS - 1 : (size_t)x;
        double part = fmin(fmax(x - (double)i, 0.0), 1.0);
        angle[at] = isnan(x) ? x : (total[i] + part * (total[i + 1] - total[i])) / (double)sum;
    }
    free(total);
}

static double *draw_angles(const sphere *s, pnb__rng *rng)
{
    double *angle = malloc(N * sizeof *angle);
    assert_non_null(angle);
    for (size_t i = 0; i < N; i++) {
        double deficit = s->is_power ? pnb__power_spherical_deficit(rng, s->dim, s->kappa)
                                     : pnb__vmf_deficit(rng, s->dim, s->kappa);
        assert_true(deficit >= 0.0 && deficit <= 2.0);
        angle[i] = 2.0 * asin(sqrt(0.5 * deficit));
    }
    qsort(angle, N, sizeof *angle, ascending);
    return angle;
}

static void angles_have_their_distribution(void **state)
{
    (void)state;
    const size_t dims[] = {2, 3, 5, 64, 512, 4096};
    const double kappas[] = {0, 0.3, 4, 100, 1e4, 1e6};
    pnb__rng rng;
    pnb__rng_init(&rng, 11, 12);
    for (int power = 0; power < 2; power++)
        for (size_t i = 0; i < PNB_COUNT(dims); i++)
            for (size_t j = 0; j < PNB_COUNT(kappas); j++) {
                sphere s = {power != 0, dims[i], kappas[j]}, wrong = s;
                double *angle = draw_angles(&s, &rng), copy[N];
                memcpy(copy, angle, sizeof copy);
                angle_cdf(&s, angle, N);
                double gap = ks_gap(angle, N);
                if (!(gap < KS_LIMIT))
                    fail_msg("%s d %zu kappa %g: gap %g", power ? "power" : "vmf", s.dim, s.kappa,
                             gap);
                /* the checker sees another concentration, where that shows at all */
                wrong.kappa = 1.3 * s.kappa + 0.3;
                angle_cdf(&wrong, copy, N);
                if (s.kappa >= (double)s.dim)
                    assert_true(ks_gap(copy, N) > KS_LIMIT);
                free(angle);
            }
}

/* Lower incomplete gamma function P(a, x) by its series. */
static double gamma_cdf(double a, double x)
{
    double term = 1.0 / a, sum = term;
    int sign;
    if (!(x > 0.0))
        return 0.0;
    for (int n = 1; term > 1e-17 * sum; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return sum * exp(a * log(x) - x - lgamma_r(a, &sign));
}

static void gamma_draws(void **state)
{
    (void)state;
    const double shapes[] = {0.02, 0.5, 0.9, 1, 1.5, 31.5, 255.5};
    double value[N];
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 4);
    for (size_t s = 0; s < PNB_COUNT(shapes); s++) {
        for (size_t i = 0; i < N; i++)
            value[i] = pnb__gamma_draw(&rng, shapes[s]);
        qsort(value, N, sizeof *value, ascending);
        for (size_t i = 0; i < N; i++)
            value[i] = gamma_cdf(shapes[s], value[i]);
        double gap = ks_gap(value, N);
        if (!(gap < KS_LIMIT))
            fail_msg("shape %g: gap %g", shapes[s], gap);
    }
    assert_true(isnan(pnb__gamma_draw(&rng, 0.0)) && isnan(pnb__gamma_draw(&rng, NAN)));
}

/* Values of one dimension of a set, standardised by the caller. */
static void column(const pnb_rows *rows, size_t d, double *out)
{
    pnb_sample_opts opts = pnb_sample_opts_default();
    opts.n_samples = N;
    opts.seed = 5;
    double *all = malloc(N * rows->dim * sizeof *all);
    assert_non_null(all);
    assert_ok(pnb_sample_rows(rows, &opts, all, err));
    for (size_t i = 0; i < N; i++)
        out[i] = all[i * rows->dim + d];
    free(all);
}

static void gaussian_samples(void **state)
{
    (void)state;
    const float mean[4] = {0.5f, -3, 1, 0}, log_var[4] = {-30, 0, 30, 1};
    pnb_rows rows = {.n = 1, .dim = 4, .mean = mean, .log_var = log_var};
    double value[N];
    for (size_t d = 0; d < 4; d++) {
        column(&rows, d, value);
        qsort(value, N, sizeof *value, ascending);
        for (size_t i = 0; i < N; i++)
            value[i] = 0.5 * erfc(-(value[i] - (double)mean[d]) * exp(-0.5 * (double)log_var[d]) *
                                  sqrt(0.5));
        assert_true(ks_gap(value, N) < KS_LIMIT);
    }
    rows.log_var = NULL;
    column(&rows, 1, value);
    assert_true(value[0] == -3.0 && value[N - 1] == -3.0);
}

/* ((|x - mean|)/alpha)^beta is Gamma(1/beta), the sign a coin. */
static void generalised_samples(void **state)
{
    (void)state;
    const float mean[5] = {0.5f, -3, 1, 0, 0}, inv_alpha[5] = {1, 0.5f, 100, 1e-6f, 3};
    const float beta[5] = {0.3f, 1, 2, 5, 60};
    pnb_rows rows = {.n = 1, .dim = 5, .mean = mean, .inv_alpha = inv_alpha, .beta = beta};
    double value[N];
    for (size_t d = 0; d < 5; d++) {
        double n_above = 0, b = beta[d];
        column(&rows, d, value);
        for (size_t i = 0; i < N; i++) {
            n_above += value[i] > (double)mean[d];
            value[i] = pow(fabs(value[i] - (double)mean[d]) * (double)inv_alpha[d], b);
        }
        assert_near(n_above / N, 0.5, 4 * 0.5 / sqrt(N), 0);
        qsort(value, N, sizeof *value, ascending);
        for (size_t i = 0; i < N; i++)
            value[i] = gamma_cdf(1.0 / b, value[i]);
        double gap = ks_gap(value, N);
        if (!(gap < KS_LIMIT))
            fail_msg("beta %g: gap %g", b, gap);
    }
}

/* Vectors have length 1, their mean is A_d(kappa) mu, and they spread evenly around mu. */
static void directions(void **state)
{
    (void)state;
    enum { J = 4000 };
    const size_t dims[] = {2, 3, 40, 700};
    const float kappas[] = {0, 2, 300, 1e6f};
    for (size_t i = 0; i < PNB_COUNT(dims); i++)
        for (size_t c = 0; c < PNB_COUNT(kappas); c++)
            for (int power = 0; power < 2; power++) {
                size_t dim = dims[i], n = dim > 100 ? J / 8 : J;
                gaussians g = random_gaussians(2, dim, 0, 1, 7);
                pnb_rows rows = {.n = 1, .dim = dim, .mean = g.mean, .kappa = &kappas[c]};
                pnb_sample_opts opts = {.n_samples = n, .seed = 9};
                double *z = malloc(n * dim * sizeof *z), beta = 0.5 * (double)(dim - 1);
                double *sum = calloc(dim, sizeof *sum), along = 0, square = 0, uv = 0, across = 0;
                assert_true(z != NULL && sum != NULL);
                rows.is_power = power != 0;
                assert_ok(pnb_sample_rows(&rows, &opts, z, err));
                for (size_t d = 0; d < dim; d++)
                    uv += (double)g.mean[d] * g.mean[dim + d];
                for (size_t j = 0; j < n; j++) {
                    double length = 0, t = 0, s = 0;
                    for (size_t d = 0; d < dim; d++) {
                        double x = z[j * dim + d], u = g.mean[d];
                        length += x * x;
                        t += x * u;
                        s += x * (g.mean[dim + d] - uv * u); /* along some tangent */
                        sum[d] += x / (double)n;
                    }
                    assert_near(length, 1.0, 1e-9, 0);
                    along += t / (double)n;
                    square += t * t / (double)n;
                    across += s * s / (1 - uv * uv) / (double)n;
                }
                double kappa = kappas[c];
                double want =
                    power ? kappa / (2 * beta + kappa) : -pnb_vmf_log_norm_slope(dim, kappa);
                double spread = sqrt(fmax(square - along * along, 0.0) / (double)n);
                assert_near(along, want, 4.5 * spread + 1e-6, 0);
                /* variance of any tangent: (1 - E t^2)/(d-1), to sampling error */
                double tangent = (1 - square) / (double)(dim - 1);
                assert_near(across, tangent, 6 * tangent * sqrt(2.0 / (double)n) + 1e-12, 0);
                double rest = 0;
                for (size_t d = 0; d < dim; d++) {
                    double x = sum[d] - along * g.mean[d];
                    rest += x * x;
                }
                assert_true(rest < 20.0 * (1 - square) / (double)n + 1e-12);
                free(z);
                free(sum);
                free_gaussians(&g);
            }
}

/* E|z1 - z2|^2 = 2 - 2 A1 A2 cos for two von Mises-Fisher embeddings of unit means. */
static void expected_distance(void **state)
{
    (void)state;
    enum { D = 6, J = 300 };
    gaussians g = random_gaussians(2, D, 0, 1, 21);
    const float kappas[2] = {4, 9};
    double z[2][J * D], sum = 0, cosine = 0;
    for (unsigned side = 0; side < 2; side++) {
        pnb_rows rows = {.n = 1, .dim = D, .mean = g.mean + side * D, .kappa = &kappas[side]};
        pnb_sample_opts opts = {.n_samples = J, .seed = 2, .side = side};
        assert_ok(pnb_sample_rows(&rows, &opts, z[side], err));
    }
    for (size_t j = 0; j < J; j++)
        for (size_t k = 0; k < J; k++)
            for (size_t d = 0; d < D; d++) {
                double delta = z[0][j * D + d] - z[1][k * D + d];
                sum += delta * delta / J / J;
            }
    for (size_t d = 0; d < D; d++)
        cosine += (double)g.mean[d] * g.mean[D + d];
    double lengths = pnb_vmf_log_norm_slope(D, 4) * pnb_vmf_log_norm_slope(D, 9);
    assert_near(sum, 2 - 2 * lengths * cosine, 0.04, 0);
    free_gaussians(&g);
}

/* A sample depends on seed, side, row and its number alone; the measures' block and pair forms see
 * the same samples for every family. */
static void samples_are_functions(void **state)
{
    (void)state;
    enum { R = 3, D = 5, J = 4 };
    gaussians a = random_gaussians(R, D, -1, 1, 31), b = random_gaussians(R, D, -1, 1, 32);
    float kappa[R] = {0, 12, 1e4f}, beta[R * D], inv_alpha[R * D];
    for (size_t i = 0; i < R * D; i++) {
        beta[i] = 0.5f + 0.2f * (float)i;
        inv_alpha[i] = 1.0f + 0.1f * (float)i;
    }
    pnb_rows rows[4] = {a.view, a.view, a.view, a.view};
    rows[1].log_var = rows[2].log_var = NULL;
    rows[1].kappa = rows[2].kappa = kappa;
    rows[2].is_power = true;
    rows[3].inv_alpha = inv_alpha;
    rows[3].beta = beta;
    for (size_t f = 0; f < 4; f++) {
        double one[R * J * D], two[R * J * D], pair, block[R * R];
        pnb_sample_opts opts = {.n_samples = J, .seed = 8, .side = 1};
        assert_ok(pnb_sample_rows(&rows[f], &opts, one, err));
        assert_ok(pnb_sample_rows(&rows[f], &opts, two, err));
        assert_memory_equal(one, two, sizeof one);
        pnb_rows first = rows[f];
        first.n = 1;
        opts.n_samples = 2;
        assert_ok(pnb_sample_rows(&first, &opts, two, err));
        assert_memory_equal(one, two, 2 * D * sizeof *one);
        pnb_rows last = pnb_rows_slice(&rows[f], R - 1, 1);
        assert_true(last.n == 1 && last.dim == D && last.mean == rows[f].mean + (R - 1) * D);
        assert_near(pnb_measure_pair(PNB_MEASURE_MEAN, &last, 0, &rows[f], R - 1, NULL), 1, 1e-15,
                    0);
        if (last.kappa != NULL)
            assert_true(last.kappa[0] == kappa[R - 1]);
        else
            assert_true(last.log_var == rows[f].log_var + (R - 1) * D);
        if (last.beta != NULL)
            assert_true(last.beta == beta + (R - 1) * D && last.inv_alpha[0] == inv_alpha[D * 2]);
        for (size_t i = 0; i < R; i++)
            for (size_t j = 0; j < J; j++) {
                double whole[D];
                pnb__draw_fill(&rows[f], i, j, 1, 8, whole);
                assert_memory_equal(whole, one + (i * J + j) * D, sizeof whole);
                pnb__draw z = pnb__draw_init(&rows[f], i, j, 1, 8);
                for (size_t d = 0; d < D; d++)
                    assert_true(pnb__draw_at(&z, d) == one[(i * J + j) * D + d]);
            }
        opts = (pnb_sample_opts){.n_samples = J, .seed = 8, .side = 0};
        assert_ok(pnb_sample_rows(&rows[f], &opts, two, err));
        assert_memory_not_equal(one, two, sizeof one);
        opts = (pnb_sample_opts){.n_samples = J, .seed = 9, .side = 1};
        assert_ok(pnb_sample_rows(&rows[f], &opts, two, err));
        assert_memory_not_equal(one, two, sizeof one);
        assert_ok(
            pnb_measure_block(PNB_MEASURE_AVG_L2, &rows[f], &rows[(f + 1) % 4], NULL, block, err));
        for (size_t i = 0; i < R * R; i++) {
            pair = pnb_measure_pair(PNB_MEASURE_AVG_L2, &rows[f], i / R, &rows[(f + 1) % 4], i % R,
                                    NULL);
            assert_near(block[i], pair, 0, 1e-12);
        }
    }
    free_gaussians(&a);
    free_gaussians(&b);
}

static void bad_input(void **state)
{
    (void)state;
    const float mean[2] = {1, 0}, zero[2] = {0, 0}, bad[2] = {1, NAN}, minus[1] = {-1},
                one[1] = {1};
    pnb_rows gaussian = {.n = 1, .dim = 2, .mean = mean, .log_var = bad};
    pnb_rows vmf = {.n = 1, .dim = 2, .mean = mean, .kappa = minus}, empty = {.n = 1, .mean = mean};
    pnb_rows nowhere = {.n = 1, .dim = 2, .mean = zero, .kappa = one};
    pnb_rows gg = {.n = 1, .dim = 2, .mean = mean, .inv_alpha = mean, .beta = mean};
    pnb_sample_opts third = {.n_samples = 1, .side = 2};
    double out[2];
    assert_fails(pnb_sample_rows(&gaussian, NULL, out, err), PNB_NUMERIC, "dimension 1");
    assert_fails(pnb_sample_rows(&vmf, NULL, out, err), PNB_NUMERIC, "vmf");
    vmf.is_power = true;
    assert_fails(pnb_sample_rows(&vmf, NULL, out, err), PNB_NUMERIC, "power_spherical");
    assert_fails(pnb_sample_rows(&nowhere, NULL, out, err), PNB_NUMERIC, "no direction");
    pnb_rows narrow = {.n = 1, .dim = 1, .mean = mean, .kappa = one};
    assert_fails(pnb_sample_rows(&narrow, NULL, out, err), PNB_SHAPE, "width 1");
    narrow.is_power = true;
    assert_fails(pnb_sample_rows(&narrow, NULL, out, err), PNB_SHAPE, "width 1");
    assert_true(isnan(pnb_measure_pair(PNB_MEASURE_AVG_L2, &narrow, 0, &narrow, 0, NULL)));
    assert_fails(pnb_sample_rows(&gg, NULL, out, err), PNB_NUMERIC, "gen_gaussian");
    assert_fails(pnb_sample_rows(&empty, NULL, out, err), PNB_SHAPE, "width 0");
    assert_fails(pnb_sample_rows(&nowhere, &third, out, err), PNB_ARG, "side 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(angles_have_their_distribution),
        cmocka_unit_test(gamma_draws),
        cmocka_unit_test(gaussian_samples),
        cmocka_unit_test(generalised_samples),
        cmocka_unit_test(directions),
        cmocka_unit_test(expected_distance),
        cmocka_unit_test(samples_are_functions),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
