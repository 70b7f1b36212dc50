/* Bins of uncertainty: every form by hand or by its definition, the released code's items, ties,
 * extreme values, and what is refused. */
#include "penumbra/uncertainty_calibration.h"
#include "tests/eval/expected.h"

/* Items of the released code's own two forms. */
static void expect_items(const char *name, size_t n_bins)
{
    static const struct {
        const char *key;
        pnb_binning binning;
    } forms[] = {{"eq_samples", PNB_BINS_GROVE_SAMPLES}, {"eq_spacing", PNB_BINS_GROVE_SPACING}};
    pnb_safetensors *file = open_case(name);
    size_t n;
    double *u = case_values(file, "uncertainty", &n);
    for (size_t f = 0; f < 2; f++) {
        char key[64];
        size_t n_want, offset[PNB_MAX_BINS + 1], *item = malloc(n * n_bins * sizeof *item);
        assert_non_null(item);
        snprintf(key, sizeof key, "%s.items", forms[f].key);
        double *items = case_values(file, key, &n_want);
        snprintf(key, sizeof key, "%s.offsets", forms[f].key);
        double *offsets = case_values(file, key, NULL);
        assert_ok(pnb_bins_assign(forms[f].binning, u, n, n_bins, item, offset, err));
        assert_int_equal(offset[n_bins], n_want);
        for (size_t b = 0; b <= n_bins; b++)
            assert_int_equal(offset[b], (size_t)offsets[b]);
        for (size_t i = 0; i < n_want; i++)
            assert_int_equal(item[i], (size_t)items[i]);
        free(item);
        free(items);
        free(offsets);
    }
    free(u);
    pnb_safetensors_free(file);
}

static void golden_items(void **state)
{
    (void)state;
    expect_items("metrics/bins_103_10", 10);
    expect_items("metrics/bins_ties", 5);
}

static void remainders(void **state)
{
    (void)state;
    double u[11];
    size_t item[11], offset[5];
    for (size_t i = 0; i < 11; i++)
        u[i] = (double)(10 - i);
    assert_ok(pnb_bins_assign(PNB_BINS_EQUAL_COUNT, u, 11, 4, item, offset, err));
    assert_true(offset[4] == 8 && item[0] == 10 && item[7] == 3); /* 0, 1, 2 are most uncertain */
    assert_ok(pnb_bins_assign(PNB_BINS_EQUAL_COUNT_ALL, u, 11, 4, item, offset, err));
    assert_true(offset[1] == 2 && offset[2] == 5 && offset[3] == 8 && offset[4] == 11);
    const double same[6] = {2, 2, 2, 2, 2, 2};
    assert_ok(pnb_bins_assign(PNB_BINS_EQUAL_COUNT, same, 6, 3, item, offset, err));
    for (size_t i = 0; i < 6; i++) /* ties: lower index first */
        assert_int_equal(item[i], i);
    assert_ok(pnb_bins_assign(PNB_BINS_EQUAL_WIDTH, same, 6, 3, item, offset, err));
    assert_true(offset[1] == 6 && offset[3] == 6); /* no width at all: the first bin */
}

/* Bins of equal width: every item once, in the interval that its value lies in. */
static void equal_widths(void **state)
{
    (void)state;
    enum { N = 120 };
    double u[N];
    size_t item[N], offset[33];
    pnb__rng rng;
    pnb__rng_init(&rng, 2, 0);
    for (size_t n_bins = 1; n_bins <= 32; n_bins++) {
        bool seen[N] = {false};
        for (size_t i = 0; i < N; i++) /* eighths: many lie on edges */
            u[i] = (double)pnb__rng_below(&rng, 65) / 8 - 3;
        u[7] = -3;
        u[9] = 5;
        assert_ok(pnb_bins_assign(PNB_BINS_EQUAL_WIDTH, u, N, n_bins, item, offset, err));
        assert_true(offset[0] == 0 && offset[n_bins] == N);
        for (size_t b = 0; b < n_bins; b++)
            for (size_t i = offset[b]; i < offset[b + 1]; i++) {
                double low = -3 + 8.0 * (double)b / (double)n_bins;
                double high = -3 + 8.0 * (double)(b + 1) / (double)n_bins, x = u[item[i]];
                assert_false(seen[item[i]]);
                seen[item[i]] = true;
                assert_true(x <= high + 1e-12 && (b == 0 || x > low - 1e-12));
                if (n_bins % 8 == 0 || n_bins == 1) /* edges that are numbers */
                    assert_true(x <= high && (b == 0 || x > low));
            }
    }
    const double far[] = {-1e308, 0, 5e307, 1e308}; /* the width overflows, the halves do not */
    assert_ok(pnb_bins_assign(PNB_BINS_EQUAL_WIDTH, far, 4, 2, item, offset, err));
    assert_true(offset[1] == 2 && offset[2] == 4);
}

/* One bin holds all of every form but the one that loses its remainder, which has none here. */
static void one_bin(void **state)
{
    (void)state;
    const double u[] = {3, 1, 2};
    static const size_t rising[] = {1, 2, 0}, falling[] = {1, 2, 0};
    for (int b = 0; b < PNB_N_BINNINGS; b++) {
        size_t item[3], offset[2];
        assert_ok(pnb_bins_assign((pnb_binning)b, u, 3, 1, item, offset, err));
        if (b == PNB_BINS_GROVE_SPACING) { /* up to the least value */
            assert_true(offset[1] == 1 && item[0] == 1);
            continue;
        }
        assert_int_equal(offset[1], 3);
        assert_memory_equal(item, b == PNB_BINS_GROVE_SAMPLES ? falling : rising, sizeof item);
    }
}

static void refused(void **state)
{
    (void)state;
    double u[] = {1, 2, 3};
    size_t item[3], offset[5];
    assert_fails(pnb_bins_assign(PNB_BINS_EQUAL_COUNT, u, 3, 4, item, offset, err), PNB_ARG,
                 "3 items for 4 bins");
    assert_fails(pnb_bins_assign(PNB_BINS_EQUAL_COUNT, u, 3, 0, item, offset, err), PNB_ARG,
                 "0 bins");
    assert_fails(pnb_bins_assign(PNB_BINS_EQUAL_COUNT, u, 3, PNB_MAX_BINS + 1, item, offset, err),
                 PNB_ARG, "257 bins");
    assert_fails(pnb_bins_assign(PNB_N_BINNINGS, u, 3, 2, item, offset, err), PNB_ARG,
                 "does not exist");
    u[1] = NAN;
    assert_fails(pnb_bins_assign(PNB_BINS_EQUAL_WIDTH, u, 3, 2, item, offset, err), PNB_NUMERIC,
                 "uncertainty 1");
    assert_string_equal(pnb_binning_name(PNB_BINS_GROVE_SPACING), "grove_spacing");
    assert_string_equal(pnb_binning_name(PNB_N_BINNINGS), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_items), cmocka_unit_test(remainders),
        cmocka_unit_test(equal_widths), cmocka_unit_test(one_bin),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
