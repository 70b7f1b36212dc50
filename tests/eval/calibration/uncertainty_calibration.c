/* Calibration of uncertainties: golden cases of the released code, hand cases, bad input. Bins are
 * bins.c's. */
#include "penumbra/uncertainty_calibration.h"
#include "tests/eval/expected.h"

static void expect_case(const char *name, size_t n_bins)
{
    static const struct {
        const char *key;
        pnb_binning binning;
    } forms[] = {{"clean_equal_count", PNB_BINS_EQUAL_COUNT},
                 {"clean_equal_width", PNB_BINS_EQUAL_WIDTH},
                 {"eq_samples", PNB_BINS_GROVE_SAMPLES},
                 {"eq_spacing", PNB_BINS_GROVE_SPACING}};
    pnb_safetensors *file = open_case(name);
    json_t *want = load_expected(name);
    size_t n;
    double *u = case_values(file, "uncertainty", &n), *y = case_values(file, "correct", NULL);
    for (size_t f = 0; f < PNB_COUNT(forms); f++) {
        const json_t *form = json_object_get(want, forms[f].key);
        pnb_uncertainty_calibration c;
        assert_ok(pnb_uncertainty_calibration_compute(u, y, n, forms[f].binning, n_bins, &c, err));
        assert_int_equal(c.n_bins, json_array_size(json_object_get(form, "per_bin")));
        for (size_t b = 0; b < c.n_bins; b++) {
            assert_near(c.bin[b].accuracy, element(form, "per_bin", b), 1e-10, 1e-10);
            if (json_object_get(form, "bins") != NULL)
                assert_int_equal(c.bin[b].index, (size_t)element(form, "bins", b));
        }
        assert_near(c.s, element(form, "S_R2_mSR2", 0), 1e-10, 1e-10);
        assert_near(c.r2, element(form, "S_R2_mSR2", 1), 1e-10, 1e-10);
        assert_near(c.minus_s_r2, element(form, "S_R2_mSR2", 2), 1e-10, 1e-10);
    }
    free(u);
    free(y);
    json_decref(want);
    pnb_safetensors_free(file);
}

static void golden_bins(void **state)
{
    (void)state;
    expect_case("metrics/bins_103_10", 10);
    expect_case("metrics/bins_ties", 5);
}

static void remainders(void **state)
{
    (void)state;
    double u[11], y[11];
    for (size_t i = 0; i < 11; i++) {
        u[i] = (double)(10 - i);
        y[i] = 1.0;
    }
    pnb_uncertainty_calibration c;
    assert_ok(pnb_uncertainty_calibration_compute(u, y, 11, PNB_BINS_EQUAL_COUNT, 4, &c, err));
    assert_true(c.is_degenerate && c.s == 0.0 && c.r2 == 0.0 && c.n_left_out == 3);
}

static void perfect_and_reversed(void **state)
{
    (void)state;
    double u[40], y[40];
    pnb_uncertainty_calibration c;
    for (size_t i = 0; i < 40; i++) {
        u[i] = (double)i;
        y[i] = 1.0 - (double)(i / 4) / 10.0;
    }
    assert_ok(pnb_uncertainty_calibration_compute(u, y, 40, PNB_BINS_EQUAL_COUNT, 10, &c, err));
    assert_near(c.s, -1.0, 1e-12, 0);
    assert_near(c.r2, 1.0, 1e-12, 0);
    assert_near(c.minus_s_r2, 1.0, 1e-12, 0);
    assert_true(c.bin[3].n == 4 && c.bin[3].u_min == 12.0 && c.bin[3].u_max == 15.0);
    assert_near(c.bin[3].u_mean, 13.5, 1e-12, 0);
    for (size_t i = 0; i < 40; i++)
        u[i] = -u[i];
    assert_ok(pnb_uncertainty_calibration_compute(u, y, 40, PNB_BINS_EQUAL_COUNT, 10, &c, err));
    assert_near(c.s, 1.0, 1e-12, 0);
}

static void equal_uncertainties(void **state)
{
    (void)state;
    const double u[6] = {2, 2, 2, 2, 2, 2}, y[6] = {1, 0, 1, 0, 1, 1};
    pnb_uncertainty_calibration c;
    assert_ok(pnb_uncertainty_calibration_compute(u, y, 6, PNB_BINS_EQUAL_WIDTH, 3, &c, err));
    assert_true(c.is_degenerate && c.n_bins == 1 && c.bin[0].n == 6);
    /* Bins by the order of the rows, which says nothing: accuracy 1/2, 1/2, 1 is no S of 0.87. */
    assert_ok(pnb_uncertainty_calibration_compute(u, y, 6, PNB_BINS_EQUAL_COUNT, 3, &c, err));
    assert_true(c.is_degenerate && c.n_bins == 3 && c.s == 0.0 && c.r2 == 0.0);
}

static void bad_input(void **state)
{
    (void)state;
    double u[3] = {1, 2, 3}, y[3] = {1, 0, 1};
    pnb_uncertainty_calibration c;
    assert_fails(pnb_uncertainty_calibration_compute(u, y, 3, PNB_BINS_EQUAL_COUNT, 4, &c, err),
                 PNB_ARG, "3 items for 4 bins");
    assert_fails(pnb_uncertainty_calibration_compute(u, y, 3, PNB_BINS_EQUAL_COUNT, 0, &c, err),
                 PNB_ARG, "0 bins");
    assert_fails(pnb_uncertainty_calibration_compute(u, y, 3, PNB_BINS_EQUAL_COUNT, 257, &c, err),
                 PNB_ARG, "257 bins");
    assert_fails(
        pnb_uncertainty_calibration_compute(u, y, 3, PNB_BINS_GROVE_SPACING, SIZE_MAX / 2, &c, err),
        PNB_ARG, "bins; 1 to 256");
    u[1] = NAN;
    assert_fails(pnb_uncertainty_calibration_compute(u, y, 3, PNB_BINS_EQUAL_COUNT, 2, &c, err),
                 PNB_NUMERIC, "uncertainty 1");
    y[2] = 1.5;
    assert_fails(pnb_uncertainty_calibration_compute(u, y, 3, PNB_BINS_EQUAL_COUNT, 2, &c, err),
                 PNB_NUMERIC, "correct 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_bins),
        cmocka_unit_test(remainders),
        cmocka_unit_test(perfect_and_reversed),
        cmocka_unit_test(equal_uncertainties),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
