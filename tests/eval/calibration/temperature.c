/* The temperature against a search over a line, planted temperatures, rows that any temperature
 * suits, bad input. */
#include "tests/eval/calibration/scored_cases.h"

static long double plain(const double *z, const int *label, size_t n, size_t k, double smoothing,
                         long double beta)
{
    long double total = 0;
    for (size_t i = 0; i < n; i++) {
        long double sum = 0, wanted = 0;
        for (size_t c = 0; c < k; c++) {
            long double q = (long double)smoothing / (long double)k;
            q += (int)c == label[i] ? 1.0L - (long double)smoothing : 0.0L;
            sum += expl(beta * (long double)z[i * k + c]);
            wanted += q * beta * (long double)z[i * k + c];
        }
        total += logl(sum) - wanted;
    }
    return total;
}

/* Golden-section search for the beta of the smallest f. */
static double line_search(const double *z, const int *label, size_t n, size_t k, double smoothing)
{
    long double low = 1e-4L, high = 50.0L, ratio = 0.6180339887498948482L;
    for (int step = 0; step < 120; step++) {
        long double x = high - ratio * (high - low), y = low + ratio * (high - low);
        if (plain(z, label, n, k, smoothing, x) < plain(z, label, n, k, smoothing, y))
            high = y;
        else
            low = x;
    }
    return (double)(2.0L / (low + high));
}

/* Labels drawn from softmax(z / t). */
static void draw(double *z, int *label, size_t n, size_t k, double t, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 9);
    for (size_t i = 0; i < n; i++) {
        double sum = 0, p[16];
        for (size_t c = 0; c < k; c++)
            sum += p[c] = exp((z[i * k + c] = 3 * pnb__rng_normal(&rng)) / t);
        double u = sum * pnb__rng_uniform(&rng);
        label[i] = 0;
        for (size_t c = 0; c + 1 < k && u >= p[c]; c++) {
            u -= p[c];
            label[i]++;
        }
    }
}

static void equals_line_search(void **state)
{
    (void)state;
    enum { N = 300, K = 6 };
    const double t[] = {0.5, 1, 2.5, 8};
    double *z = malloc(N * K * sizeof *z);
    int label[N];
    assert_non_null(z);
    for (size_t i = 0; i < PNB_COUNT(t); i++) {
        pnb_temperature fit, moved;
        draw(z, label, N, K, t[i], 20 + i);
        assert_ok(pnb_temperature_fit(z, label, N, K, &fit, err));
        assert_near(fit.t, line_search(z, label, N, K, 0.0), 0, 1e-6);
        assert_false(fit.is_smoothed);
        assert_near(fit.nll_before, (double)(plain(z, label, N, K, 0, 1) / N), 1e-12, 1e-12);
        assert_near(fit.nll_after,
                    (double)(plain(z, label, N, K, 0, 1.0L / (long double)fit.t) / N), 1e-12,
                    1e-12);
        assert_true(fit.nll_after <= fit.nll_before && fit.n == N && fit.n_classes == K);
        /* a constant added to a row changes nothing; a factor goes into t */
        for (size_t j = 0; j < N * K; j++)
            z[j] = 100 * z[j] + 1000 * (double)(j / K);
        assert_ok(pnb_temperature_fit(z, label, N, K, &moved, err));
        assert_near(moved.t, 100 * fit.t, 0, 1e-8);
    }
    free(z);
}

static void recovers_planted(void **state)
{
    (void)state;
    enum { N = 8000, K = 4 };
    double *z = malloc(N * K * sizeof *z);
    int *label = malloc(N * sizeof *label);
    pnb_temperature fit;
    assert_true(z != NULL && label != NULL);
    draw(z, label, N, K, 2.0, 4);
    assert_ok(pnb_temperature_fit(z, label, N, K, &fit, err));
    assert_near(fit.t, 2.0, 0.12, 0);
    free(z);
    free(label);
}

static void every_label_on_top(void **state)
{
    (void)state;
    const double z[] = {3, 1, 0, 0, 2, 1, 1, 0.5, 4};
    const int label[] = {0, 1, 2};
    pnb_temperature fit;
    assert_ok(pnb_temperature_fit(z, label, 3, 3, &fit, err));
    assert_true(fit.is_smoothed);
    assert_near(fit.t, line_search(z, label, 3, 3, 0.25), 0, 1e-6);
}

static void applies(void **state)
{
    (void)state;
    const double z[] = {1, 2, 3, 1e4, 0, -1e4};
    double p[6];
    assert_ok(pnb_temperature_apply(2.0, z, 2, 3, p, err));
    double sum = exp(0.5) + exp(1.0) + exp(1.5);
    assert_near(p[0], exp(0.5) / sum, 1e-15, 0);
    assert_near(p[2], exp(1.5) / sum, 1e-15, 0);
    assert_true(p[3] == 1.0 && p[4] == 0.0 && p[5] == 0.0);
    assert_ok(pnb_temperature_apply(1e6, z + 3, 1, 3, p, err));
    assert_near(p[0] + p[1] + p[2], 1.0, 1e-15, 0);
    assert_fails(pnb_temperature_apply(0.0, z, 2, 3, p, err), PNB_NUMERIC, "temperature 0");
    assert_fails(pnb_temperature_apply((double)NAN, z, 2, 3, p, err), PNB_NUMERIC, "temperature");
}

static void bad_input(void **state)
{
    (void)state;
    double z[] = {1, 2, 3, 0, 5, 1}, nan[] = {1, 2, 3, 0, INFINITY, 1}, flat[] = {1, 1, 1, 7, 7, 7};
    const int label[] = {0, 1}, low[] = {0, 0}, outside[] = {0, 3};
    pnb_temperature fit;
    assert_fails(pnb_temperature_fit(z, label, 0, 3, &fit, err), PNB_ARG, "0 rows");
    assert_fails(pnb_temperature_fit(z, label, 2, 1, &fit, err), PNB_ARG, "of 1 logits");
    assert_fails(pnb_temperature_fit(nan, label, 2, 3, &fit, err), PNB_NUMERIC, "logit 1 of row 1");
    assert_fails(pnb_temperature_fit(z, outside, 2, 3, &fit, err), PNB_ARG, "label 1 is 3");
    assert_fails(pnb_temperature_fit(flat, label, 2, 3, &fit, err), PNB_ARG, "equal within");
    assert_fails(pnb_temperature_fit(z, low, 2, 3, &fit, err), PNB_ARG, "average logit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_line_search), cmocka_unit_test(recovers_planted),
        cmocka_unit_test(every_label_on_top), cmocka_unit_test(applies),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
