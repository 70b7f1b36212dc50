/* Correlations and ranking statistics: golden values of SciPy and scikit-learn, brute force over
 * pairs, bad input. */
#include "penumbra/statistics.h"
#include "tests/eval/expected.h"

static void golden_calibration(void **state)
{
    (void)state;
    pnb_safetensors *file = open_case("metrics/calibration");
    json_t *want = load_expected("metrics/calibration");
    size_t n;
    double *confidence = case_values(file, "confidence", &n),
           *score = case_values(file, "score", NULL);
    double *y = case_values(file, "label", NULL), got;
    int label[80];
    assert_int_equal(n, 80);
    for (size_t i = 0; i < n; i++)
        label[i] = (int)y[i];
    assert_ok(pnb_auroc(score, label, n, &got, err));
    assert_near(got, number(want, "auroc"), 1e-12, 1e-12);
    assert_ok(pnb_average_precision(score, label, n, &got, err));
    assert_near(got, number(want, "average_precision"), 1e-12, 1e-12);
    assert_ok(pnb_spearman(confidence, score, n, &got, err));
    assert_near(got, number(want, "spearman"), 1e-12, 1e-12);
    assert_ok(pnb_spearman(score, y, n, &got, err));
    assert_near(got, number(want, "spearman_label"), 1e-12, 1e-12);
    assert_ok(pnb_kendall_tau_b(confidence, score, n, &got, err));
    assert_near(got, number(want, "kendall_tau_b"), 1e-12, 1e-12);
    assert_ok(pnb_pearson(confidence, score, n, &got, err));
    assert_near(got, number(want, "pearson"), 1e-12, 1e-12);
    free(confidence);
    free(score);
    free(y);
    json_decref(want);
    pnb_safetensors_free(file);
}

/* tau-b and AUROC by their definitions over all pairs, on data full of ties. */
static void pairwise_definitions(void **state)
{
    (void)state;
    enum { N = 200 };
    double x[N], y[N], got, concordant = 0, ties_x = 0, ties_y = 0, all = 0, above = 0, both = 0;
    int label[N];
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    for (size_t i = 0; i < N; i++) {
        x[i] = (double)pnb__rng_below(&rng, 12);
        y[i] = x[i] / 3 + (double)pnb__rng_below(&rng, 9);
        label[i] = (int)pnb__rng_below(&rng, 2);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            if (label[i] == 1 && label[j] == 0) {
                above += x[i] > x[j] ? 1.0 : x[i] == x[j] ? 0.5 : 0.0;
                both++;
            }
            if (j <= i)
                continue;
            double product = (x[i] - x[j]) * (y[i] - y[j]);
            concordant += product > 0 ? 1.0 : product < 0 ? -1.0 : 0.0;
            ties_x += x[i] == x[j];
            ties_y += y[i] == y[j];
            all++;
        }
    assert_ok(pnb_kendall_tau_b(x, y, N, &got, err));
    assert_near(got, concordant / sqrt((all - ties_x) * (all - ties_y)), 1e-13, 0);
    assert_ok(pnb_auroc(x, label, N, &got, err));
    assert_near(got, above / both, 1e-13, 0);
}

static void average_ranks(void **state)
{
    (void)state;
    const double x[] = {3, 1, 3, 2, 3}, want[] = {4, 1, 4, 2, 4};
    double rank[5];
    assert_ok(pnb_average_ranks(x, 5, rank, err));
    assert_memory_equal(rank, want, sizeof want);
}

/* Finite input has an answer, whatever its size: squares of these are beyond a double. */
static void any_size(void **state)
{
    (void)state;
    const double x[] = {1, 2, 4}, y[] = {3, 1, 0};
    double want, got, large[3], small[3];
    assert_ok(pnb_pearson(x, y, 3, &want, err));
    for (size_t i = 0; i < 3; i++) {
        large[i] = ldexp(x[i], 1000);
        small[i] = ldexp(y[i], -1000);
    }
    assert_ok(pnb_pearson(large, y, 3, &got, err));
    assert_true(got == want);
    assert_ok(pnb_pearson(large, small, 3, &got, err));
    assert_true(got == want);
}

static void bad_input(void **state)
{
    (void)state;
    const double flat[] = {0.1, 0.1, 0.1}, x[] = {1, 2, 3}, nan[] = {1, NAN, 2};
    const int ones[] = {1, 1, 1}, wrong[] = {0, 2, 1}, fine[] = {0, 1, 1};
    double out;
    assert_fails(pnb_pearson(flat, x, 3, &out, err), PNB_ARG, "equal");
    assert_fails(pnb_spearman(x, flat, 3, &out, err), PNB_ARG, "equal");
    assert_fails(pnb_kendall_tau_b(x, flat, 3, &out, err), PNB_ARG, "equal");
    assert_fails(pnb_pearson(x, x, 1, &out, err), PNB_ARG, "at least 2");
    assert_fails(pnb_spearman(nan, x, 3, &out, err), PNB_NUMERIC, "value 1");
    assert_fails(pnb_auroc(x, ones, 3, &out, err), PNB_ARG, "both classes");
    assert_fails(pnb_auroc(x, wrong, 3, &out, err), PNB_ARG, "label 1 is 2");
    assert_fails(pnb_average_precision(nan, fine, 3, &out, err), PNB_NUMERIC, "score 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_calibration), cmocka_unit_test(pairwise_definitions),
        cmocka_unit_test(average_ranks),      cmocka_unit_test(any_size),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
