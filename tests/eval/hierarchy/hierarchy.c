/* Means by level, shares of pairs and of inclusion tests, order of levels within an owner. */
#include "penumbra/hierarchy.h"
#include "tests/prob/support.h"

static void means_by_group(void **state)
{
    (void)state;
    const double v[] = {1, 2, NAN, 4, 8, 100};
    const int g[] = {0, 0, 0, 2, 2, -1}, wrong[] = {0, 3, 0, 0, 0, 0};
    double mean[3];
    size_t count[3];
    assert_ok(pnb_mean_by_group(v, g, 6, 3, mean, count, err));
    assert_true(mean[0] == 1.5 && isnan(mean[1]) && mean[2] == 6.0);
    assert_true(count[0] == 2 && count[1] == 0 && count[2] == 2);
    assert_fails(pnb_mean_by_group(v, wrong, 6, 3, mean, count, err), PNB_ARG, "row 1");
}

static void share_of_group_pairs(void **state)
{
    (void)state;
    const double u[] = {5, 3, 3, 1, 9};
    const int g[] = {0, 0, 3, 3, 1};
    double share;
    assert_ok(pnb_share_group_above(u, g, 5, 0, 3, &share, err));
    assert_near(share, (1 + 1 + 0.5 + 1) / 4.0, 1e-15, 0); /* 5>3, 5>1, 3=3, 3>1 */
    assert_ok(pnb_share_group_above(u, g, 5, 3, 0, &share, err));
    assert_near(share, 0.5 / 4.0, 1e-15, 0);
    assert_fails(pnb_share_group_above(u, g, 5, 0, 2, &share, err), PNB_ARG, "group 2 has 0");
}

static void share_of_rows(void **state)
{
    (void)state;
    const double x[] = {2, 1, 5}, y[] = {1, 1, 4}, bad[] = {1, NAN, 1};
    double share;
    assert_ok(pnb_share_above(x, y, 3, &share, err));
    assert_near(share, 2.0 / 3.0, 1e-15, 0);
    assert_fails(pnb_share_above(x, y, 0, &share, err), PNB_ARG, "no rows");
    assert_fails(pnb_share_above(x, bad, 3, &share, err), PNB_NUMERIC, "row 1");
}

static void share_of_inclusions(void **state)
{
    (void)state;
    gaussians a = random_gaussians(10, 6, -5, -4, 1), b = random_gaussians(10, 6, -2, -1, 2);
    double share;
    memcpy(b.mean, a.mean, 60 * sizeof(float));
    for (int published = 0; published < 2; published++) {
        assert_ok(pnb_share_included(&a.view, &b.view, published, NULL, &share, err));
        assert_near(share, 1.0, 0, 0); /* same centre, wider: included */
        assert_ok(pnb_share_included(&b.view, &a.view, published, NULL, &share, err));
        assert_near(share, 0.0, 0, 0);
        assert_ok(pnb_share_included(&a.view, &a.view, published, NULL, &share, err));
        assert_near(share, 0.0, 0, 0); /* equal: H is 0, not above */
    }
    a.view.n = b.view.n = 0;
    assert_fails(pnb_share_included(&a.view, &b.view, false, NULL, &share, err), PNB_ARG,
                 "no rows");
    free_gaussians(&a);
    free_gaussians(&b);
}

static void level_order(void **state)
{
    (void)state;
    /* owner 7: 9 > 5 > 1 in order; owner 3: 4, 6 (mean 5), 5, 2: not strictly; owner 5: ends only,
     * reversed; owner 1: no last level */
    const int64_t owner[] = {7, 3, 7, 3, 5, 7, 3, 3, 1, 5, 7};
    const int level[] = {2, 0, 0, 1, 0, 1, 2, 0, 0, 2, -1};
    const double u[] = {1, 4, 9, 5, 1, 5, 2, 6, 3, 2, 50};
    pnb_level_order o;
    assert_ok(pnb_level_order_compute(u, level, owner, 11, 3, &o, err));
    assert_int_equal(o.n_first_last, 3);
    assert_near(o.share_first_above_last, 2.0 / 3.0, 1e-15, 0);
    assert_int_equal(o.n_complete, 2);
    assert_near(o.share_in_order, 0.5, 1e-15, 0);
    assert_fails(pnb_level_order_compute(u, level, owner, 11, 1, &o, err), PNB_ARG, "1 levels");
    assert_fails(pnb_level_order_compute(u, level, owner, 11, 2, &o, err), PNB_ARG, "level 2");
    assert_fails(pnb_level_order_compute(u, level, owner, 1, 3, &o, err), PNB_ARG, "no owner");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_by_group), cmocka_unit_test(share_of_group_pairs),
        cmocka_unit_test(share_of_rows),  cmocka_unit_test(share_of_inclusions),
        cmocka_unit_test(level_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
