/* Logistic functions at both tails, against long double and against their identities. */
#include "tests/prob/support.h"

static void matches_long_double(void **state)
{
    (void)state;
    for (double x = -700.0; x <= 700.0; x += 0.37) {
        double want = (double)(1.0L / (1.0L + expl(-(long double)x)));
        assert_near(pnb_sigmoid(x), want, 0.0, 1e-14);
        assert_near(pnb_softplus(x), (double)log1pl(expl((long double)x)), 0.0, 1e-14);
        assert_near(pnb_log_sigmoid(x), (double)-log1pl(expl(-(long double)x)), 0.0, 1e-14);
    }
}

static void is_finite_everywhere(void **state)
{
    (void)state;
    const double far[] = {-1e308, -1e4, 1e4, 1e308};
    for (size_t i = 0; i < 4; i++) {
        assert_true(isfinite(pnb_sigmoid(far[i])));
        assert_true(isfinite(pnb_softplus(far[i])));
        assert_true(isfinite(pnb_log_sigmoid(far[i])));
    }
    assert_near(pnb_log_sigmoid(-1e308), -1e308, 0.0, 0.0);
    assert_near(pnb_softplus(1e308), 1e308, 0.0, 0.0);
    assert_true(isnan(pnb_sigmoid((double)NAN)));
}

static void match_probability_is_logistic(void **state)
{
    (void)state;
    assert_near(pnb_match_probability(0.3, 10.0, -3.0), 0.5, 1e-15, 0.0);
    assert_near(pnb_match_probability(0.8, 10.0, -10.0), 1.0 / (1.0 + exp(2.0)), 1e-15, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_long_double),
        cmocka_unit_test(is_finite_everywhere),
        cmocka_unit_test(match_probability_is_logistic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
