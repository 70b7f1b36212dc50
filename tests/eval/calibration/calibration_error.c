/* The calibration error without its bias: covers the truth as often as it says, is 0 for perfect
 * forecasts, and by hand where there is one bin. */
#include "penumbra/ece.h"
#include "tests/eval/resample/forecaster.h"
#include "tests/prob/support.h"

enum { TRIALS = 100, RESAMPLES = 120 };
static const pnb_bootstrap_opts BOOT = {.n_resamples = RESAMPLES, .level = 0.95, .seed = 3};

static void calibration_error(void **state)
{
    (void)state;
    static const forecaster_case cases[] = {{PERFECT, 200, 1},  {PERFECT, 200, 5},
                                            {TOO_HIGH, 200, 1}, {TOO_SURE, 1000, 1},
                                            {POWER, 200, 5},    {HIGH_END, 400, 5}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        forecaster_counts c = {0};
        double truth = forecaster_error(cases[i].forecaster);
        for (uint64_t r = 0; r < TRIALS; r++)
            assert_ok(forecaster_try(&cases[i], r, &BOOT, &c, err));
        if (c.covered / c.n < 0.87 || c.contains != c.n)
            fail_msg("case %zu: covers %.3f", i, c.covered / c.n);
        /* nearer to the truth than the plug-in, which is far off for a perfect forecaster */
        assert_true(fabs(c.estimate / c.n - truth) < fabs(c.plug_in / c.n - truth) + 0.012);
        if (cases[i].forecaster == PERFECT) {
            assert_true(c.zero / c.n > 0.35);
            assert_true(c.estimate < 0.5 * c.plug_in);
        }
    }
}

static void certain_and_right(void **state)
{
    (void)state;
    const double p[] = {1, 0, 1, 1, 0, 1}, right[] = {1, 0, 1, 1, 0, 1},
                 wrong[] = {0, 1, 0, 0, 1, 0};
    const double nan[] = {1, NAN, 1, 1, 0, 1};
    pnb_interval i;
    assert_ok(pnb_ece_debiased(p, right, 6, NULL, &i, err));
    assert_true(i.value == 0.0 && i.low == 0.0 && i.high == 0.0);
    assert_ok(pnb_ece_debiased(p, wrong, 6, NULL, &i, err));
    assert_true(i.low <= i.value && i.value <= i.high && i.high <= 1.0);
    assert_ok(pnb_ece_debiased(p, wrong, 1, NULL, &i, err));
    assert_true(isnan(i.low) && isnan(i.high));
    assert_fails(pnb_ece_debiased(p, nan, 6, NULL, &i, err), PNB_NUMERIC, "confidence 1");
    assert_fails(pnb_ece_debiased(p, right, 0, NULL, &i, err), PNB_ARG, "no forecasts");
}

/* E|N(mu, v)| by sums over a fine grid. */
static double folded(double mu, double v)
{
    double sum = 0, total = 0;
    for (double x = mu - 12 * sqrt(v); x <= mu + 12 * sqrt(v); x += sqrt(v) / 500) {
        double density = exp(-0.5 * (x - mu) * (x - mu) / v);
        sum += fabs(x) * density;
        total += density;
    }
    return sum / total;
}

/* Three forecasts are one bin: the estimate t solves E|N(t, v)| = |mean of right - p|. */
static void one_bin(void **state)
{
    (void)state;
    const double p[] = {0.5, 0.5, 0.5}, right[] = {1, 1, 1};
    pnb_bootstrap_opts none = {.n_resamples = 0, .level = 0.95};
    pnb_interval i;
    assert_ok(pnb_ece_debiased(p, right, 3, &none, &i, err));
    /* all gaps are 0.5, so clusters show no spread; the floor is that of the rate (3 + 0.5)/4 */
    double rate = 3.5 / 4, v = fmin(3 * 0.25, 3 * rate * (1 - rate)) / 9;
    assert_near(folded(i.value, v), 0.5, 1e-6, 0);
    assert_true(isnan(i.low) && isnan(i.high));
    const double odd[] = {0.2, 0.4, 0.9}, mixed[] = {1, 0, 1};
    assert_ok(pnb_ece_debiased(odd, mixed, 3, &none, &i, err));
    double c = (0.8 - 0.4 + 0.1) / 3, own = 0, spread = 0;
    const double gap[] = {0.8, -0.4, 0.1};
    for (int k = 0; k < 3; k++) {
        own += odd[k] * (1 - odd[k]);
        spread += pow((gap[k] - c) / 3, 2);
    }
    rate = (2 + 0.5) / 4;
    v = fmax(spread * 3 / 2, fmin(own, 3 * rate * (1 - rate)) / 9);
    if (folded(0, v) >= c)
        assert_true(i.value == 0);
    else
        assert_near(folded(i.value, v), c, 1e-6, 0);
}

/* The interval follows the seed alone, and forecasts in clusters are worth fewer. */
static void draws(void **state)
{
    (void)state;
    enum { N = 300 };
    double p[N], right[N];
    int64_t cluster[N];
    pnb_interval first, again, other, wide;
    pnb_bootstrap_opts boot = BOOT;
    pnb__rng rng;
    pnb__rng_init(&rng, 8, 0);
    for (size_t i = 0; i < N; i++) {
        cluster[i] = (int64_t)(i / 30);
        p[i] = 0.4 + 0.2 * pnb__rng_uniform(&rng);
        right[i] = i / 30 % 3 == 0; /* all of a cluster alike */
    }
    assert_ok(pnb_ece_debiased(p, right, N, &boot, &first, err));
    assert_ok(pnb_ece_debiased(p, right, N, &boot, &again, err));
    assert_memory_equal(&first, &again, sizeof first);
    boot.seed++;
    assert_ok(pnb_ece_debiased(p, right, N, &boot, &other, err));
    assert_true(other.value == first.value && other.high != first.high);
    boot.cluster = cluster;
    assert_ok(pnb_ece_debiased(p, right, N, &boot, &wide, err));
    assert_true(wide.high - wide.low > 1.5 * (other.high - other.low));
    boot.level = 2;
    assert_fails(pnb_ece_debiased(p, right, N, &boot, &wide, err), PNB_ARG, "level 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calibration_error),
        cmocka_unit_test(certain_and_right),
        cmocka_unit_test(one_bin),
        cmocka_unit_test(draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
