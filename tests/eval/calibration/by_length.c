/* Values by length, and the set algebra of mixed pictures. */
#include "penumbra/hierarchy.h"
#include "tests/prob/support.h"

static void bins_never_split_a_length(void **state)
{
    (void)state;
    const size_t length[] = {3, 1, 2, 1, 1, 9, 2, 5};
    const double value[] = {4, 9, 6, 8, 7, 1, 6, 2};
    pnb_length_bin bin[3];
    size_t n = 0;
    double rho = 0;
    assert_ok(pnb_length_bins(value, length, 8, bin, 3, &n, &rho, err));
    assert_int_equal(n, 3);
    assert_true(bin[0].low == 1 && bin[0].high == 1 && bin[0].n == 3 && bin[0].mean == 8);
    assert_true(bin[1].low == 2 && bin[1].high == 3 && bin[1].n == 3);
    assert_near(bin[1].mean, 16.0 / 3.0, 1e-15, 0);
    assert_true(bin[2].low == 5 && bin[2].high == 9 && bin[2].n == 2 && bin[2].mean == 1.5);
    assert_true(rho < -0.9);
}

static void bins_at_the_edges(void **state)
{
    (void)state;
    const size_t same[] = {4, 4, 4}, two[] = {7, 2, 7};
    const double value[] = {1, 2, 3}, bad[] = {1, INFINITY, 3};
    pnb_length_bin bin[5];
    size_t n = 0;
    double rho = 0;
    assert_ok(pnb_length_bins(value, same, 3, bin, 5, &n, &rho, err));
    assert_true(n == 1 && bin[0].n == 3 && bin[0].mean == 2 && isnan(rho));
    assert_ok(pnb_length_bins(value, two, 3, bin, 5, &n, NULL, err)); /* fewer lengths than bins */
    assert_true(n == 2 && bin[0].low == 2 && bin[0].mean == 2 && bin[1].n == 2);
    assert_ok(pnb_length_bins(value, two, 3, bin, 1, &n, NULL, err));
    assert_true(n == 1 && bin[0].low == 2 && bin[0].high == 7 && bin[0].n == 3);
    assert_fails(pnb_length_bins(value, same, 0, bin, 5, &n, NULL, err), PNB_ARG, "0 rows");
    assert_fails(pnb_length_bins(value, same, 3, bin, 0, &n, NULL, err), PNB_ARG, "0 bins");
    assert_fails(pnb_length_bins(bad, same, 3, bin, 5, &n, &rho, err), PNB_NUMERIC, "row 1");
}

/* Same means: the narrower is included. */
static void mixtures(void **state)
{
    (void)state;
    enum { D = 4 };
    gaussians a = random_gaussians(4, D, -3, -3, 1), b = random_gaussians(4, D, -3, -3, 1);
    gaussians m = random_gaussians(4, D, -5, -5, 1);
    pnb_mixed_share share;
    for (size_t d = 0; d < D; d++) {
        b.log_var[1 * D + d] = -7; /* row 1: between its sources */
        m.log_var[2 * D + d] = -1; /* row 2: wider than both */
        m.log_var[3 * D + d] = -3; /* row 3: equal to both, H = 0 */
    }
    assert_ok(pnb_mixed_included(&m.view, &a.view, &b.view, false, &share, err));
    assert_near(share.in_first, 0.5, 0, 0);
    assert_near(share.in_second, 0.25, 0, 0);
    assert_near(share.in_both, 0.25, 0, 0);
    assert_near(share.holds_both, 0.25, 0, 0);
    m.view.n = 3;
    assert_fails(pnb_mixed_included(&m.view, &a.view, &b.view, false, &share, err), PNB_SHAPE,
                 "3 mixed");
    m.view.n = 0;
    assert_fails(pnb_mixed_included(&m.view, &a.view, &b.view, true, &share, err), PNB_SHAPE,
                 "no mixed");
    m.view.n = 4;
    m.view.log_var = NULL;
    assert_fails(pnb_mixed_included(&m.view, &a.view, &b.view, true, &share, err), PNB_ARG,
                 "variances");
    free_gaussians(&a);
    free_gaussians(&b);
    free_gaussians(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bins_never_split_a_length),
                                       cmocka_unit_test(bins_at_the_edges),
                                       cmocka_unit_test(mixtures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
