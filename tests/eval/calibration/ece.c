/* Forecasts against what happened: the golden case of ECE, MCE, Brier and NLL, edges of bins, and
 * bins of equal mass by the plain definition. */
#include "penumbra/ece.h"
#include "eval/weighted.h"
#include "tests/eval/expected.h"

static void golden_ece(void **state)
{
    (void)state;
    pnb_safetensors *file = open_case("metrics/calibration");
    json_t *want = load_expected("metrics/calibration");
    size_t n;
    double *confidence = case_values(file, "confidence", &n);
    double *y = case_values(file, "label", NULL);
    int label[80];
    pnb_ece f;
    assert_int_equal(n, 80);
    for (size_t i = 0; i < n; i++)
        label[i] = (int)y[i];
    assert_ok(pnb_ece_compute(confidence, label, n, 10, &f, err));
    assert_near(f.ece, number(want, "ece"), 1e-12, 1e-12);
    assert_near(f.mce, number(want, "mce"), 1e-12, 1e-12);
    assert_near(f.brier, number(want, "brier"), 1e-12, 1e-12);
    assert_near(f.nll, number(want, "nll_clipped_1e-7"), 1e-12, 1e-12);
    free(confidence);
    free(y);
    json_decref(want);
    pnb_safetensors_free(file);
}

static void ece_edges(void **state)
{
    (void)state;
    const double c[] = {0.0, 0.1, 0.3, 1.0};
    const int label[] = {0, 0, 1, 1};
    pnb_ece f;
    /* 0 and 0.1 share bin (0,0.1], 0.3 is the upper edge of (0.2,0.3] */
    assert_ok(pnb_ece_compute(c, label, 4, 10, &f, err));
    assert_near(f.ece, (0.1 + 0.7 + 0.0) / 4, 1e-15, 0);
    assert_near(f.mce, 0.7, 1e-15, 0);
    assert_near(f.nll, -(log1p(-1e-7) + log(0.9) + log(0.3) + log(1 - 1e-7)) / 4, 1e-12, 0);
}

/* Every multiple of 1/n_bins belongs to the bin below it, however it was rounded. */
static void every_edge(void **state)
{
    (void)state;
    for (size_t n_bins = 1; n_bins <= 40; n_bins++)
        for (size_t k = 1; k <= n_bins; k++) {
            double edge = (double)k / (double)n_bins;
            const double c[] = {edge, edge - 0.4 / (double)n_bins};
            const int label[] = {1, 0}; /* one bin: the gaps take each other back in part */
            pnb_ece f;
            assert_ok(pnb_ece_compute(c, label, 2, n_bins, &f, err));
            assert_near(f.ece, fabs(1 - c[0] - c[1]) / 2, 1e-14, 0);
            assert_near(f.mce, f.ece, 1e-14, 0);
        }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Bins of equal mass written down again: a bin ends with the first run that reaches its share. */
static double by_runs(const double *confidence, const double *correct, size_t n, size_t n_bins)
{
    double ece = 0, gap = 0;
    size_t passed = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i;
        for (; end < n && confidence[end] == confidence[i]; end++)
            gap += correct[end] - confidence[end];
        if (end == n || end * n_bins / n > passed) {
            ece += fabs(gap) / (double)n;
            gap = 0;
            passed = end * n_bins / n;
        }
        i = end;
    }
    return ece;
}

static void equal_mass(void **state)
{
    (void)state;
    enum { N = 157 };
    double confidence[N], correct[N];
    size_t order[N];
    pnb__rng rng;
    pnb__rng_init(&rng, 4, 0);
    for (size_t trial = 0; trial < 200; trial++) {
        size_t n = 1 + trial % N, n_bins = 1 + trial % 17;
        for (size_t i = 0; i < n; i++) /* few values: long runs */
            confidence[i] = (double)pnb__rng_below(&rng, 1 + trial % 60) / 60;
        qsort(confidence, n, sizeof *confidence, ascending);
        for (size_t i = 0; i < n; i++) {
            correct[i] = (double)pnb__rng_below(&rng, 2);
            order[i] = i;
        }
        const pnb__ece_cases f = {order, confidence, correct, n};
        assert_near(pnb__ece_mass(&f, n_bins), by_runs(confidence, correct, n, n_bins), 1e-13, 0);
    }
}

static void bad_input(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3}, nan[] = {0.5, NAN, 1};
    const int wrong[] = {0, 2, 1}, fine[] = {0, 1, 1};
    const double half[] = {0.5, 0.5, 0.5};
    pnb_ece f;
    assert_fails(pnb_ece_compute(x, fine, 3, 10, &f, err), PNB_NUMERIC, "confidence 1 is 2");
    assert_fails(pnb_ece_compute(nan, fine, 3, 10, &f, err), PNB_NUMERIC, "confidence 1 is");
    assert_fails(pnb_ece_compute(half, wrong, 3, 10, &f, err), PNB_ARG, "label 1 is 2");
    assert_fails(pnb_ece_compute(x, fine, 0, 10, &f, err), PNB_ARG, "0 forecasts");
    assert_fails(pnb_ece_compute(half, fine, 3, 0, &f, err), PNB_ARG, "in 0 bins");
    assert_fails(pnb_ece_compute(half, fine, 3, PNB_MAX_BINS + 1, &f, err), PNB_ARG, "257 bins");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_ece), cmocka_unit_test(ece_edges), cmocka_unit_test(every_edge),
        cmocka_unit_test(equal_mass), cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
