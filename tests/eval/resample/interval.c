/* From resampled values to an interval and a p: the parts by hand, symmetric and skewed samples,
 * and samples that say nothing. */
#include "eval/resample/interval.h"

#include "eval/resample/student.h"
#include "tests/prob/support.h"

enum { N = 2001 };

/* Quantiles of the normal around `value`: no bias, no acceleration. */
static pnb__replicates normal_sample(double *resample, double value, double spread)
{
    for (size_t i = 0; i < N; i++)
        resample[N - 1 - i] = value + spread * pnb__normal_quantile((double)(i + 1) / (N + 1));
    return (pnb__replicates){
        .value = value, .resample = resample, .n_resamples = N, .n_clusters = 20, .n_strata = 1};
}

static void symmetric(void **state)
{
    (void)state;
    double resample[N], low, high;
    double z = sqrt(20.0 / 19) * pnb__student_quantile(0.975, 19);
    assert_near(pnb__interval_reach(0.95, 20, 1), z, 0, 1e-14);
    assert_near(pnb__interval_reach(0.95, 5, 1), sqrt(5.0 / 4.0) * 2.7764451051977987, 0, 1e-9);
    assert_near(pnb__interval_reach(0.9, 20, 5), sqrt(20.0 / 15) * pnb__student_quantile(0.95, 15),
                0, 1e-14);
    pnb__replicates r = normal_sample(resample, 3, 0.5);
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_near(low, 3 - 0.5 * z, 0.02, 0);
    assert_near(high, 3 + 0.5 * z, 0.02, 0);
    for (size_t i = 1; i < N; i++) /* sorted now */
        assert_true(resample[i] >= resample[i - 1]);
}

/* z0 moves both ends where the value is not the median; a takes them apart. */
static void biased_and_skewed(void **state)
{
    (void)state;
    double resample[N], low, high;
    double jackknife[] = {1, 1, 1, 1, 0}; /* one group pulls the figure up */
    double z = pnb__interval_reach(0.95, 20, 1);
    pnb__replicates r = normal_sample(resample, 0, 1);
    r.value = pnb__normal_quantile(0.6); /* 60% of the resamples lie below */
    pnb__interval_settle(&r, 0.95, &low, &high);
    double z0 = pnb__normal_quantile(0.6);
    assert_near(low, 2 * z0 - z, 0.06, 0);
    assert_near(high, 2 * z0 + z, 0.06, 0);
    r = normal_sample(resample, 0, 1);
    r.jackknife = jackknife;
    r.n_jackknife = 5;
    pnb__interval_settle(&r, 0.95, &low, &high);
    double d[] = {-0.2, -0.2, -0.2, -0.2, 0.8}, squares = 0, cubes = 0;
    for (int i = 0; i < 5; i++) {
        squares += d[i] * d[i];
        cubes += d[i] * d[i] * d[i];
    }
    double a = cubes / (6 * pow(squares, 1.5));
    assert_true(a > 0.05);
    assert_near(low, -z / (1 + a * z), 0.03, 0);
    assert_near(high, z / (1 - a * z), 0.1, 0);
}

/* All alike: a point, Wilson's interval of a share at its ends, or nothing. */
static void agreement(void **state)
{
    (void)state;
    double resample[4] = {1, 1, 1, 1}, low, high, z = pnb__interval_reach(0.95, 9, 1);
    pnb__replicates r = {.value = 1,
                         .resample = resample,
                         .n_resamples = 4,
                         .n_clusters = 9,
                         .n_strata = 1,
                         .agreement = PNB__AGREE_POINT};
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(low == 1 && high == 1);
    r.agreement = PNB__AGREE_SHARE;
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(high == 1);
    assert_near(low, 9 / (9 + z * z), 1e-14, 0);
    r.agreement = PNB__AGREE_NONE;
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(isnan(low) && isnan(high));
    for (int i = 0; i < 4; i++)
        resample[i] = 0;
    r.value = 0;
    r.agreement = PNB__AGREE_SHARE;
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(low == 0);
    assert_near(high, z * z / (9 + z * z), 1e-14, 0);
}

/* Fewer than two clusters, or no number: nothing can be said. */
static void nothing_to_say(void **state)
{
    (void)state;
    double resample[3] = {1, NAN, 3}, low = 7, high = 7;
    pnb__replicates r = {
        .value = 2, .resample = resample, .n_resamples = 3, .n_clusters = 1, .n_strata = 1};
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(isnan(low) && isnan(high) && isnan(pnb__interval_p(&r)));
    assert_int_equal(r.n_resamples, 2); /* NaN is dropped */
    r.n_clusters = 4;
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(low >= 1 && high <= 3 && low < high);
    r.n_strata = 4;
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(isnan(low) && isnan(pnb__interval_p(&r)));
    double none[2] = {NAN, NAN};
    r = (pnb__replicates){
        .value = 2, .resample = none, .n_resamples = 2, .n_clusters = 4, .n_strata = 1};
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(r.n_resamples == 0 && isnan(low) && isnan(pnb__interval_p(&r)));
}

/* p is small where 0 lies far out, 1 in the middle, and the same both ways. */
static void p_values(void **state)
{
    (void)state;
    double resample[N], low, high;
    pnb__replicates r = normal_sample(resample, 2.5, 1);
    pnb__interval_settle(&r, 0.95, &low, &high);
    double p = pnb__interval_p(&r);
    /* the share below 0 is Phi(-2.5), taken back by the widening and by Student */
    double t = pnb__normal_quantile((1.0 + 12) / (N + 1)) * sqrt(19.0 / 20);
    assert_near(p, 2 * pnb__student_cdf(t, 19), 2e-3, 0);
    r = normal_sample(resample, -2.5, 1);
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_near(pnb__interval_p(&r), p, 1e-9, 0);
    r = normal_sample(resample, 0, 1);
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_near(pnb__interval_p(&r), 1, 0, 0);
    r = normal_sample(resample, 50, 1);
    pnb__interval_settle(&r, 0.95, &low, &high);
    assert_true(pnb__interval_p(&r) < 0.01 && pnb__interval_p(&r) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symmetric), cmocka_unit_test(biased_and_skewed),
        cmocka_unit_test(agreement), cmocka_unit_test(nothing_to_say),
        cmocka_unit_test(p_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
