/* Coverage of conformal lists over many random splits, the quantile by hand, and a quantile without
 * its correction, which must be seen. */
#include "penumbra/calibrate.h"
#include "tests/prob/support.h"

enum { N_CALIBRATION = 19, N_NEW = 40, N_SPLITS = 3000 };

/* One query: what its best match has, as score, margin and rank; queries differ in level. */
typedef struct query {
    double coordinate[PNB_N_CONFORMALS];
} query;

static query draw(pnb__rng *rng)
{
    double level = pnb__rng_normal(rng), margin = fabs(pnb__rng_normal(rng));
    bool is_first = pnb__rng_uniform(rng) < 0.4;
    return (query){{level - (is_first ? 0.0 : margin), is_first ? 0.0 : margin,
                    is_first ? 1.0 : 2.0 + floor(4.0 * margin)}};
}

static bool holds(pnb_conformal_kind kind, double cutoff, const query *q)
{
    return kind == PNB_CONFORMAL_SCORE ? q->coordinate[kind] >= cutoff
                                       : q->coordinate[kind] <= cutoff;
}

typedef double (*quantile_fn)(const pnb_conformal *c, pnb_conformal_kind kind, double alpha);

static double corrected(const pnb_conformal *c, pnb_conformal_kind kind, double alpha)
{
    double cutoff;
    assert_ok(pnb_conformal_cutoff(c, kind, alpha, &cutoff, err));
    return cutoff;
}

/* What one would write without thinking of the new query: n instead of n + 1, one too short. */
static double uncorrected(const pnb_conformal *c, pnb_conformal_kind kind, double alpha)
{
    size_t n_missed = (size_t)floor(alpha * (double)(c->n + 1));
    return kind == PNB_CONFORMAL_SCORE ? c->value[kind][n_missed]
                                       : c->value[kind][c->n - 1 - n_missed];
}

/* Mean coverage of new queries over the splits, and its standard error. */
static double coverage(quantile_fn quantile, pnb_conformal_kind kind, double alpha, double *error)
{
    double sum = 0, square = 0;
    for (uint64_t split = 0; split < N_SPLITS; split++) {
        double value[PNB_N_CONFORMALS][N_CALIBRATION], share = 0;
        pnb_conformal c;
        pnb__rng rng;
        pnb__rng_init(&rng, 77, split);
        for (size_t i = 0; i < N_CALIBRATION; i++) {
            query q = draw(&rng);
            for (int k = 0; k < PNB_N_CONFORMALS; k++)
                value[k][i] = q.coordinate[k];
        }
        assert_ok(pnb_conformal_create(&c, value[0], value[1], value[2], N_CALIBRATION, err));
        double cutoff = quantile(&c, kind, alpha);
        for (size_t i = 0; i < N_NEW; i++) {
            query q = draw(&rng);
            share += holds(kind, cutoff, &q) ? 1.0 / N_NEW : 0.0;
        }
        sum += share / N_SPLITS;
        square += share * share / N_SPLITS;
        pnb_conformal_reset(&c);
    }
    *error = sqrt((square - sum * sum) / N_SPLITS);
    return sum;
}

/* The checker: not below 1 - alpha by more than 4 standard errors. */
static bool covers(quantile_fn quantile, pnb_conformal_kind kind, double alpha, double *mean)
{
    double error;
    *mean = coverage(quantile, kind, alpha, &error);
    return *mean >= 1.0 - alpha - 4.0 * error;
}

static void covers_new_queries(void **state)
{
    (void)state;
    const double alphas[] = {0.05, 0.1, 0.25};
    for (int k = 0; k < PNB_N_CONFORMALS; k++)
        for (size_t a = 0; a < PNB_COUNT(alphas); a++) {
            double mean;
            assert_true(covers(corrected, (pnb_conformal_kind)k, alphas[a], &mean));
            /* scores have no ties: not more than one query too generous */
            if (k == PNB_CONFORMAL_SCORE)
                assert_near(mean, 1.0 - alphas[a], 0.01 + 1.0 / (N_CALIBRATION + 1), 0);
        }
}

static void sees_a_fault(void **state)
{
    (void)state;
    double mean;
    assert_false(covers(uncorrected, PNB_CONFORMAL_SCORE, 0.1, &mean));
    assert_false(covers(uncorrected, PNB_CONFORMAL_MARGIN, 0.1, &mean));
}

static void by_hand(void **state)
{
    (void)state;
    const double score[] = {0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4, 0.6};
    const double margin[] = {0, 3, 1, 2, 0, 5, 4, 0, 6}, rank[] = {1, 3, 2, 2, 1, 7, 4, 1, 9};
    pnb_conformal c;
    double cutoff;
    assert_ok(pnb_conformal_create(&c, score, margin, rank, 9, err));
    assert_ok(pnb_conformal_cutoff(&c, PNB_CONFORMAL_SCORE, 0.1, &cutoff, err));
    assert_true(cutoff == 0.1); /* floor(0.1 * 10) = 1: the smallest */
    assert_ok(pnb_conformal_cutoff(&c, PNB_CONFORMAL_SCORE, 0.39, &cutoff, err));
    assert_true(cutoff == 0.3);
    assert_ok(pnb_conformal_cutoff(&c, PNB_CONFORMAL_MARGIN, 0.2, &cutoff, err));
    assert_true(cutoff == 5);
    assert_ok(pnb_conformal_cutoff(&c, PNB_CONFORMAL_RANK, 0.1, &cutoff, err));
    assert_true(cutoff == 9);
    assert_ok(pnb_conformal_cutoff(&c, PNB_CONFORMAL_RANK, 0.9999, &cutoff, err));
    assert_true(cutoff == 1);
    assert_ok(pnb_conformal_cutoff(&c, PNB_CONFORMAL_SCORE, 0.09, &cutoff, err));
    assert_true(cutoff == -INFINITY);
    assert_ok(pnb_conformal_cutoff(&c, PNB_CONFORMAL_RANK, 0.09, &cutoff, err));
    assert_true(cutoff == INFINITY);
    pnb_conformal_reset(&c);
    const double hits[] = {0.9, 0.8, 0.8, 0.5};
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_SCORE, 0.8, hits, 4), 3);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_SCORE, 0.95, hits, 4), 0);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_SCORE, -INFINITY, hits, 4), 4);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_MARGIN, 0.9 - 0.8, hits, 4), 3);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_MARGIN, 0, hits, 4), 1);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_MARGIN, INFINITY, hits, 4), 4);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_RANK, 2, hits, 4), 2);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_RANK, INFINITY, hits, 4), 4);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_RANK, -2, hits, 4), 0);
    for (int k = 0; k < PNB_N_CONFORMALS; k++)
        assert_int_equal(pnb_conformal_list((pnb_conformal_kind)k, (double)NAN, hits, 4), 0);
    assert_int_equal(pnb_conformal_list(PNB_CONFORMAL_MARGIN, 1, hits, 0), 0);
}

static void bad_input(void **state)
{
    (void)state;
    const double fine[] = {1, 2}, nan[] = {1, NAN}, low[] = {0, -1}, zero[] = {0, 1};
    pnb_conformal c;
    pnb_conformal_kind kind;
    double cutoff;
    assert_fails(pnb_conformal_create(&c, fine, fine, fine, 0, err), PNB_ARG, "no queries");
    assert_fails(pnb_conformal_create(&c, nan, fine, fine, 2, err), PNB_NUMERIC, "query 1");
    assert_fails(pnb_conformal_create(&c, fine, low, fine, 2, err), PNB_NUMERIC, "query 1");
    assert_fails(pnb_conformal_create(&c, fine, fine, zero, 2, err), PNB_NUMERIC, "query 0");
    assert_ok(pnb_conformal_create(&c, fine, fine, fine, 2, err));
    assert_fails(pnb_conformal_cutoff(&c, PNB_CONFORMAL_SCORE, 0.0, &cutoff, err), PNB_ARG,
                 "rate 0");
    assert_fails(pnb_conformal_cutoff(&c, PNB_CONFORMAL_SCORE, 1.0, &cutoff, err), PNB_ARG,
                 "rate 1");
    assert_fails(pnb_conformal_cutoff(&c, PNB_CONFORMAL_SCORE, (double)NAN, &cutoff, err), PNB_ARG,
                 "error rate");
    pnb_conformal_reset(&c);
    pnb_conformal_reset(NULL);
    assert_ok(pnb_conformal_parse(&kind, "margin", err));
    assert_int_equal(kind, PNB_CONFORMAL_MARGIN);
    assert_fails(pnb_conformal_parse(&kind, "best", err), PNB_NOT_FOUND, "score, margin, rank");
    assert_string_equal(pnb_conformal_name((pnb_conformal_kind)9), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_new_queries),
        cmocka_unit_test(sees_a_fault),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
