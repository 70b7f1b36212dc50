/* Reliability of weighted forecasts by hand, by the plain definitions, and beside the unweighted
 * figures of ece.c. */
#include "penumbra/ece.h"
#include "penumbra/uncertainty_calibration.h"
#include "tests/eval/calibration/scored_cases.h"

static void by_hand(void **state)
{
    (void)state;
    double p[] = {0.9, 0.1, 0.1, 0.6}, weight[] = {1, 4, 2, 1};
    int label[] = {1, 0, 1, 0};
    pnb_weighted_ece r;
    /* shares 1/8, 4/8, 2/8, 1/8; two bins: the 0.1 pass one half together */
    assert_ok(pnb_weighted_ece_compute(&(pnb_scored){4, p, label, weight}, 2, &r, err));
    assert_int_equal(r.n_bins, 2);
    assert_near(r.bin[0].weight, 0.75, 1e-15, 0);
    assert_near(r.bin[0].p_mean, 0.1, 1e-15, 0);
    assert_near(r.bin[0].rate, 1.0 / 3.0, 1e-15, 0);
    assert_true(r.bin[1].p_low == 0.6 && r.bin[1].p_high == 0.9);
    assert_near(r.bin[1].p_mean, 0.75, 1e-15, 0);
    assert_near(r.bin[1].rate, 0.5, 1e-15, 0);
    assert_near(r.ece, 0.75 * (1.0 / 3.0 - 0.1) + 0.25 * 0.25, 1e-15, 0);
    assert_near(r.base_rate, 3.0 / 8.0, 1e-15, 0);
    assert_near(r.p_mean, (0.9 + 0.6 + 0.6) / 8, 1e-15, 0);
    assert_near(r.brier, (0.01 + 4 * 0.01 + 2 * 0.81 + 0.36) / 8, 1e-15, 0);
    assert_near(r.nll, -(log(0.9) + 4 * log(0.9) + 2 * log(0.1) + log(0.4)) / 8, 1e-14, 0);
}

/* Without weights Brier is that of ece.c; bins hold n/bins each; a weight of 3 is three
 * rows.
 */
static void beside_other_figures(void **state)
{
    (void)state;
    enum { N = 600 };
    cases c = random_cases(N, 2, 0, 5), many = new_cases(3 * N);
    pnb_weighted_ece r, repeated;
    pnb_ece f;
    for (size_t i = 0; i < N; i++)
        c.score[i] = 1 / (1 + exp(-c.score[i]));
    assert_ok(pnb_weighted_ece_compute(&(pnb_scored){N, c.score, c.label, NULL}, 15, &r, err));
    assert_ok(pnb_ece_compute(c.score, c.label, N, 15, &f, err));
    assert_near(r.brier, f.brier, 1e-13, 0);
    assert_near(r.nll, f.nll, 1e-13, 0);
    assert_int_equal(r.n_bins, 15);
    double ece = 0;
    for (size_t b = 0; b < 15; b++) {
        assert_near(r.bin[b].weight, 1.0 / 15, 1e-12, 0);
        assert_true(b == 0 || r.bin[b].p_low > r.bin[b - 1].p_high);
        ece += r.bin[b].weight * fabs(r.bin[b].rate - r.bin[b].p_mean);
    }
    assert_near(r.ece, ece, 1e-13, 0);
    for (size_t i = 0; i < 3 * N; i++) {
        many.score[i] = c.score[i % N];
        many.label[i] = c.label[i % N];
        c.weight[i % N] = 3;
    }
    assert_ok(pnb_weighted_ece_compute(&c.view, 15, &r, err));
    assert_ok(pnb_weighted_ece_compute(&(pnb_scored){3 * N, many.score, many.label, NULL}, 15,
                                       &repeated, err));
    assert_near(repeated.ece, r.ece, 1e-12, 0);
    assert_near(repeated.nll, r.nll, 1e-12, 0);
    free_cases(&c);
    free_cases(&many);
}

/* Never more bins than asked for, whatever the weights; constant forecasts are one bin. */
static void odd_weights(void **state)
{
    (void)state;
    cases c = random_cases(3000, 1, 0, 6);
    pnb_weighted_ece r;
    for (size_t i = 0; i < 3000; i++) {
        c.weight[i] = pow(10.0, -(double)(i % 18));
        c.score[i] = (double)(i % 2999) / 3000.0;
    }
    assert_ok(pnb_weighted_ece_compute(&c.view, PNB_MAX_BINS, &r, err));
    assert_true(r.n_bins >= 1 && r.n_bins <= PNB_MAX_BINS);
    double total = 0;
    for (size_t b = 0; b < r.n_bins; b++)
        total += r.bin[b].weight;
    assert_near(total, 1.0, 1e-12, 0);
    for (size_t i = 0; i < 3000; i++)
        c.score[i] = 0.25;
    assert_ok(pnb_weighted_ece_compute(&c.view, 10, &r, err));
    assert_int_equal(r.n_bins, 1);
    assert_near(r.ece, fabs(r.base_rate - 0.25), 1e-12, 0);
    free_cases(&c);
}

static void bad_input(void **state)
{
    (void)state;
    double p[] = {0.5, 1.5}, weight[] = {1, -1}, fine[] = {0, 1};
    int label[] = {0, 1}, wrong[] = {0, 7};
    pnb_weighted_ece r;
    assert_fails(pnb_weighted_ece_compute(&(pnb_scored){2, p, label, NULL}, 5, &r, err),
                 PNB_NUMERIC, "forecast 1 is 1.5");
    assert_fails(pnb_weighted_ece_compute(&(pnb_scored){2, fine, label, weight}, 5, &r, err),
                 PNB_NUMERIC, "weight 1");
    assert_fails(pnb_weighted_ece_compute(&(pnb_scored){2, fine, wrong, NULL}, 5, &r, err), PNB_ARG,
                 "label 1 is 7");
    assert_fails(pnb_weighted_ece_compute(&(pnb_scored){0, fine, label, NULL}, 5, &r, err), PNB_ARG,
                 "0 forecasts");
    assert_fails(pnb_weighted_ece_compute(&(pnb_scored){2, fine, label, NULL}, 257, &r, err),
                 PNB_ARG, "257 bins");
    assert_ok(pnb_weighted_ece_compute(&(pnb_scored){2, fine, label, NULL}, 5, &r, err));
    assert_near(r.nll, 0, 1e-11, 0); /* clipped, not infinite */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(beside_other_figures),
        cmocka_unit_test(odd_weights),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
