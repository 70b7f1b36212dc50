/* Measures by name, which families each takes, rows and blocks against single pairs, extremes, and
 * bad input. */
#include "tests/prob/support.h"

static void block_equals_pairs(void **state)
{
    (void)state;
    enum { A = 7, B = 71, D = 37 };
    double out[A * B];
    for (int range = 0; range < 2; range++) {
        double reach = range == 0 ? 3.0 : 30.0;
        gaussians a = random_gaussians(A, D, -reach, reach, 3);
        gaussians b = random_gaussians(B, D, -reach, reach, 4);
        pnb_measure_opts opts = pnb_measure_opts_default();
        opts.n_samples = 3;
        opts.inclusion_eps = -1.5;
        for (int m = 0; m < PNB_MEASURE_VMF; m++) {
            assert_ok(pnb_measure_block((pnb_measure)m, &a.view, &b.view, &opts, out, err));
            for (size_t i = 0; i < A; i++)
                for (size_t j = 0; j < B; j++) {
                    double want = pnb_measure_pair((pnb_measure)m, &a.view, i, &b.view, j, &opts);
                    if (!(fabs(out[i * B + j] - want) <= 1e-10 + 1e-11 * fabs(want)))
                        fail_msg("%s (%zu,%zu): block %.17g, pair %.17g",
                                 pnb_measure_name((pnb_measure)m), i, j, out[i * B + j], want);
                }
        }
        free_gaussians(&a);
        free_gaussians(&b);
    }
}

static void extremes_are_finite(void **state)
{
    (void)state;
    const float l[] = {-30, -10, 0, 10, 30}, delta[] = {0, 1e-6f, 1, 2};
    pnb_measure_opts opts = pnb_measure_opts_default();
    opts.n_samples = 2;
    for (int m = 0; m < PNB_MEASURE_VMF; m++)
        for (size_t c = 0; c < 100; c++) {
            float m1[2] = {1, 0}, m2[2] = {1.0f - delta[c % 4], 0};
            float l1[2] = {l[c / 4 % 5], -30}, l2[2] = {l[c / 20 % 5], 30};
            pnb_gaussians a = {.n = 1, .dim = 2, .mean = m1, .log_var = l1},
                          b = {.n = 1, .dim = 2, .mean = m2, .log_var = l2};
            double row, block, pair = pnb_measure_pair((pnb_measure)m, &a, 0, &b, 0, &opts);
            assert_ok(pnb_measure_rows((pnb_measure)m, &a, &b, &opts, &row, err));
            assert_ok(pnb_measure_block((pnb_measure)m, &a, &b, &opts, &block, err));
            assert_true(isfinite(pair) && row == pair);
            assert_near(block, pair, 1e-9, 1e-9);
        }
}

/* E|Z1-Z2|^2 from samples, whatever the family: the two Monte-Carlo measures at both ends of the
 * range stay finite and avg_l2 lies below sqrt(csd), its limit by Jensen, and near it for many
 * dimensions. */
static void sampled_measures_over_the_range(void **state)
{
    (void)state;
    for (int reach = -30; reach <= 30; reach += 15) {
        gaussians a = random_gaussians(1, 513, reach, reach, 5);
        gaussians b = random_gaussians(1, 513, reach, reach, 6);
        double avg = pnb_measure_pair(PNB_MEASURE_AVG_L2, &a.view, 0, &b.view, 0, NULL);
        double csd = pnb_measure_pair(PNB_MEASURE_CSD, &a.view, 0, &b.view, 0, NULL);
        double prob = pnb_measure_pair(PNB_MEASURE_MATCH_PROB, &a.view, 0, &b.view, 0, NULL);
        assert_near(avg, sqrt(csd), 0.0, 0.05);
        assert_true(prob >= 0.0 && prob <= 1.0);
        free_gaussians(&a);
        free_gaussians(&b);
    }
}

static void scores_and_names(void **state)
{
    (void)state;
    pnb_measure measure;
    for (int m = 0; m < PNB_N_MEASURES; m++) {
        assert_ok(pnb_measure_parse(&measure, pnb_measure_name((pnb_measure)m), err));
        assert_int_equal(measure, m);
        assert_true(strlen(pnb_measure_sentence((pnb_measure)m)) > 10);
    }
    assert_fails(pnb_measure_parse(&measure, "cosine", err), PNB_NOT_FOUND, "match_prob");
    assert_near(pnb_measure_score(PNB_MEASURE_CSD, 0.5), 0.75, 0, 0);
    assert_near(pnb_measure_score(PNB_MEASURE_KL, 0.5), -0.5, 0, 0);
    assert_near(pnb_measure_score(PNB_MEASURE_ELK, 0.5), 0.5, 0, 0);
}

static void bad_input(void **state)
{
    (void)state;
    gaussians a = random_gaussians(3, 4, -1, 1, 1), b = random_gaussians(2, 4, -1, 1, 2);
    pnb_gaussians narrow = {.n = 3, .dim = 3, .mean = a.mean, .log_var = a.log_var};
    pnb_measure_opts none = pnb_measure_opts_default();
    double out[9];
    none.n_samples = 0;
    assert_fails(pnb_measure_rows(PNB_MEASURE_CSD, &a.view, &b.view, NULL, out, err), PNB_SHAPE,
                 "3 rows");
    assert_fails(pnb_measure_block(PNB_MEASURE_CSD, &a.view, &narrow, NULL, out, err), PNB_SHAPE,
                 "width 4");
    assert_fails(pnb_measure_block(PNB_MEASURE_AVG_L2, &a.view, &b.view, &none, out, err), PNB_ARG,
                 "0 samples");
    a.mean[5] = NAN;
    assert_fails(pnb_measure_block(PNB_MEASURE_W2, &a.view, &b.view, NULL, out, err), PNB_NUMERIC,
                 "rows 1 and 0");
    assert_fails(pnb_measure_rows(PNB_MEASURE_MEAN, &a.view, &a.view, NULL, out, err), PNB_NUMERIC,
                 "row 1");
    free_gaussians(&a);
    free_gaussians(&b);
}

static void what_fits(void **state)
{
    (void)state;
    const float mean[2] = {1, 0}, log_var[2] = {0, 0}, kappa[1] = {5}, bad[1] = {-1};
    pnb_rows point = {.n = 1, .dim = 2, .mean = mean}, vmf = point, power = point, gaussian = point;
    pnb_rows generalised = point, broken = point;
    double out;
    vmf.kappa = power.kappa = kappa;
    power.is_power = true;
    gaussian.log_var = log_var;
    generalised.inv_alpha = generalised.beta = mean;
    broken.kappa = bad;
    pnb_measure_opts opts = pnb_measure_opts_default();
    const pnb_rows *all[] = {&point, &vmf, &power, &gaussian};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) { /* what takes every family */
            assert_ok(pnb_measure_rows(PNB_MEASURE_MEAN, all[i], all[j], &opts, &out, err));
            assert_ok(pnb_measure_rows(PNB_MEASURE_AVG_L2, all[i], all[j], &opts, &out, err));
            assert_ok(pnb_measure_block(PNB_MEASURE_MATCH_PROB, all[i], all[j], &opts, &out, err));
        }
#define REFUSED(measure, a, b, part)                                                               \
    assert_fails(pnb_measure_rows(measure, a, b, NULL, &out, err), PNB_ARG, part);                 \
    assert_fails(pnb_measure_block(measure, a, b, NULL, &out, err), PNB_ARG, part)
    REFUSED(PNB_MEASURE_CSD, &vmf, &vmf, "family vmf; use mean, avg_l2, match_prob, or vmf");
    REFUSED(PNB_MEASURE_KL, &gaussian, &power, "or power_spherical");
    REFUSED(PNB_MEASURE_VMF, &point, &point, "neither set has one");
    REFUSED(PNB_MEASURE_VMF, &vmf, &power, "family power_spherical");
    REFUSED(PNB_MEASURE_POWER_SPHERICAL, &vmf, &point, "family vmf");
    REFUSED(PNB_MEASURE_VMF, &gaussian, &point, "neither set has one");
    REFUSED(PNB_MEASURE_VMF, &gaussian, &power, "vmf sets beside points or Gaussians");
    REFUSED(PNB_MEASURE_CSD, &generalised, &point, "pnb_view_init");
    REFUSED((pnb_measure)PNB_N_MEASURES, &point, &point, "does not exist");
    assert_ok(pnb_measure_check_fit(PNB_MEASURE_VMF, &point, NULL, err));
    assert_ok(pnb_measure_check_fit(PNB_MEASURE_ELK, &point, NULL, err));
    assert_fails(pnb_measure_check_fit(PNB_MEASURE_KL, &point, NULL, err), PNB_ARG, "both sides");
    assert_ok(pnb_measure_check_fit(PNB_MEASURE_VMF, &gaussian, NULL, err));
    assert_fails(pnb_measure_check_fit(PNB_MEASURE_VMF, &power, NULL, err), PNB_ARG, "points");
    assert_fails(pnb_measure_rows(PNB_MEASURE_VMF, &broken, &point, NULL, &out, err), PNB_NUMERIC,
                 "kappa below 0");
    assert_fails(pnb_measure_block(PNB_MEASURE_VMF, &broken, &point, NULL, &out, err), PNB_NUMERIC,
                 "kappa below 0");
    pnb_rows narrow = {.n = 1, .dim = 1, .mean = mean, .kappa = kappa};
    assert_fails(pnb_measure_rows(PNB_MEASURE_VMF, &narrow, &narrow, NULL, &out, err), PNB_SHAPE,
                 "width 1");
    assert_string_equal(pnb_rows_family(&point), "point");
    assert_string_equal(pnb_rows_family(&generalised), "gen_gaussian");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_equals_pairs),
        cmocka_unit_test(extremes_are_finite),
        cmocka_unit_test(sampled_measures_over_the_range),
        cmocka_unit_test(scores_and_names),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
