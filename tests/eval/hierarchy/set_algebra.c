/* Mixed pictures in the intersection of their sources: shares by the test of single pairs, known
 * ends, and sets that do not belong together. */
#include "penumbra/hierarchy.h"
#include "tests/prob/support.h"

enum { N = 40, DIM = 5 };

static void by_single_tests(void **state)
{
    (void)state;
    gaussians m = random_gaussians(N, DIM, -3, -1, 1), a = random_gaussians(N, DIM, -3, -1, 2);
    gaussians b = random_gaussians(N, DIM, -3, -1, 3);
    for (int published = 0; published < 2; published++) {
        pnb_measure measure = published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
        double n_first = 0, n_second = 0, n_both = 0, n_holds = 0;
        pnb_mixed_share share;
        for (size_t i = 0; i < N; i++) {
            double in_a = pnb_measure_pair(measure, &m.view, i, &a.view, i, NULL);
            double in_b = pnb_measure_pair(measure, &m.view, i, &b.view, i, NULL);
            n_first += in_a > 0;
            n_second += in_b > 0;
            n_both += in_a > 0 && in_b > 0;
            n_holds += pnb_measure_pair(measure, &a.view, i, &m.view, i, NULL) > 0 &&
                       pnb_measure_pair(measure, &b.view, i, &m.view, i, NULL) > 0;
        }
        assert_ok(pnb_mixed_included(&m.view, &a.view, &b.view, published, &share, err));
        assert_near(share.in_first, n_first / N, 1e-15, 0);
        assert_near(share.in_second, n_second / N, 1e-15, 0);
        assert_near(share.in_both, n_both / N, 1e-15, 0);
        assert_near(share.holds_both, n_holds / N, 1e-15, 0);
        assert_true(n_first > 0 && n_both < n_first && n_holds > 0); /* worth comparing */
    }
    free_gaussians(&m);
    free_gaussians(&a);
    free_gaussians(&b);
}

/* Narrower than both at their place: inside both. Wider: it holds both. The same: neither. */
static void known_ends(void **state)
{
    (void)state;
    gaussians m = random_gaussians(N, DIM, -3, -1, 1), wide = random_gaussians(N, DIM, 0, 1, 2);
    pnb_mixed_share share;
    memcpy(wide.mean, m.mean, N * DIM * sizeof(float));
    assert_ok(pnb_mixed_included(&m.view, &wide.view, &wide.view, false, &share, err));
    assert_true(share.in_first == 1 && share.in_second == 1 && share.in_both == 1);
    assert_true(share.holds_both == 0);
    assert_ok(pnb_mixed_included(&wide.view, &m.view, &m.view, false, &share, err));
    assert_true(share.in_both == 0 && share.holds_both == 1);
    assert_ok(pnb_mixed_included(&m.view, &wide.view, &m.view, false, &share, err));
    assert_true(share.in_first == 1 && share.in_second == 0 && share.in_both == 0);
    assert_true(share.holds_both == 0);
    free_gaussians(&m);
    free_gaussians(&wide);
}

static void refuses(void **state)
{
    (void)state;
    gaussians m = random_gaussians(3, DIM, -3, -1, 1), a = random_gaussians(4, DIM, -3, -1, 2);
    pnb_mixed_share share = {.in_first = 7};
    assert_fails(pnb_mixed_included(&m.view, &a.view, &m.view, false, &share, err), PNB_SHAPE,
                 "3 mixed pictures of 4 and 3 sources");
    a.view.n = 0;
    assert_fails(pnb_mixed_included(&a.view, &a.view, &a.view, false, &share, err), PNB_SHAPE,
                 "no mixed pictures");
    a.view.n = 3;
    a.view.dim = 2;
    assert_fails(pnb_mixed_included(&m.view, &m.view, &a.view, false, &share, err), PNB_SHAPE, "");
    a.view.dim = DIM;
    a.log_var[DIM] = NAN;
    assert_fails(pnb_mixed_included(&m.view, &m.view, &a.view, false, &share, err), PNB_NUMERIC,
                 "1");
    assert_true(share.in_first == 7); /* outputs are untouched */
    free_gaussians(&m);
    free_gaussians(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_single_tests),
        cmocka_unit_test(known_ends),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
