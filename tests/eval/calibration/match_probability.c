/* The match probability of a set: the fit on all pairs against one made by hand, sampled against
 * exact, figures of the held-out part, coverage over many splits, data without an answer. */
#include "tests/eval/calibration/match_world.h"

static double pair_score(const world *w, size_t q, size_t x)
{
    return pnb_measure_score(PNB_MEASURE_CSD, pnb_measure_pair(PNB_MEASURE_CSD, &w->queries.view, q,
                                                               &w->gallery.view, x, NULL));
}

static pnb_match_assessment *new_assessment(void)
{
    pnb_match_assessment *a = calloc(1, sizeof *a);
    assert_non_null(a);
    return a;
}

/* With nearly nothing held out the fit is close to that on all pairs of all queries, and the mean
 * probability of the fitted pairs is their base rate exactly. */
static void near_the_fit_by_hand(void **state)
{
    (void)state;
    world w;
    pnb_match_probability_fit fit;
    pnb_match_assessment *a = new_assessment();
    make_world(&w, 600, 120, 0.8, 1);
    w.opts.holdout = 0.001;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
    size_t n_queries = 600 - 54, n = 0;
    double *score = malloc(n_queries * 120 * sizeof *score);
    int *label = malloc(n_queries * 120 * sizeof *label);
    assert_true(score != NULL && label != NULL);
    for (size_t q = 0; q < 600; q++)
        for (size_t x = 0; q % 11 != 10 && x < 120; x++) {
            score[n] = pair_score(&w, q, x);
            label[n++] = matches(w.truth, q, x);
        }
    pnb_platt want;
    assert_ok(pnb_platt_fit(&(pnb_scored){n, score, label, NULL}, false, &want, err));
    assert_near(fit.platt.a, want.a, 0, 0.01);
    assert_near(fit.platt.b, want.b, 0, 0.01);
    assert_int_equal(a->n_held, 2);
    assert_int_equal(a->n_fit, n_queries - 2);
    assert_int_equal(a->n_skipped, 54);
    assert_true(a->is_exact && fit.n_gallery == 120 && fit.n_queries == a->n_fit);
    assert_near(a->estimate[PNB_MATCH_ESTIMATOR_PLATT].fit.p_mean, fit.base_rate, 0, 1e-9);
    assert_near(a->estimate[PNB_MATCH_ESTIMATOR_PLATT].fit.base_rate, fit.base_rate, 0, 1e-9);
    pnb_match_probability_fit_reset(&fit);
    free(score);
    free(label);
    free(a);
    free_world(&w);
}

/* A tenth of the pairs gives nearly the same fit; the fit does not depend on threads. */
static void sampled_near_exact(void **state)
{
    (void)state;
    world w;
    pnb_match_probability_fit exact, sampled, again;
    pnb_match_assessment *a = new_assessment();
    pnb_ctx *ctx = threads(3);
    make_world(&w, 700, 300, 0.9, 2);
    w.opts.method = PNB_MATCH_PLATT;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &exact, NULL, err));
    w.opts.max_pairs = 21000;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &sampled, a, err));
    assert_false(a->is_exact);
    assert_true(a->n_fit_pairs + a->n_held_pairs <= 21000 + w.truth->n_pairs);
    assert_near(sampled.platt.a, exact.platt.a, 0, 0.05);
    assert_near(sampled.platt.b, exact.platt.b, 0, 0.05);
    assert_ok(pnb_match_probability_fit_compute(ctx, &w.job, &again, NULL, err));
    assert_true(again.platt.a == sampled.platt.a && again.platt.b == sampled.platt.b);
    assert_true(again.conformal.kind == sampled.conformal.kind);
    pnb_match_probability_fit_reset(&exact);
    pnb_match_probability_fit_reset(&sampled);
    pnb_match_probability_fit_reset(&again);
    pnb_ctx_free(ctx);
    free(a);
    free_world(&w);
}

/* On other queries: better than the base rate and than a wrong model, calibrated, and the first-hit
 * forecast is the one that knows how often first hits match. */
static void held_out_figures(void **state)
{
    (void)state;
    world w;
    pnb_match_probability_fit fit;
    pnb_match_assessment *a = new_assessment();
    make_world(&w, 1500, 100, 0.9, 3);
    w.opts.holdout = 0.5;
    w.opts.model_a = 20;
    w.opts.model_b = -10;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
    const pnb_match_ece *f = a->estimate;
    for (int i = PNB_MATCH_ESTIMATOR_PLATT; i <= PNB_MATCH_ESTIMATOR_ISOTONIC; i++) {
        assert_true(f[i].is_known && f[i].held.nll < f[PNB_MATCH_ESTIMATOR_BASE_RATE].held.nll);
        assert_true(f[i].held.nll < f[PNB_MATCH_ESTIMATOR_MODEL].held.nll);
        assert_true(f[i].held.brier < f[PNB_MATCH_ESTIMATOR_BASE_RATE].held.brier);
        /* second matches lie anywhere, so a sigmoid is not the true form: isotonic does better */
        assert_true(f[i].held.ece <
                    (i == PNB_MATCH_ESTIMATOR_PLATT ? 0.5 : 0.1) * a->held_base_rate);
        assert_near(f[i].held.p_mean, a->held_base_rate, 0, 0.1);
    }
    assert_true(fit.has_first && f[PNB_MATCH_ESTIMATOR_FIRST].is_known);
    assert_near(f[PNB_MATCH_ESTIMATOR_FIRST].first.p_mean,
                f[PNB_MATCH_ESTIMATOR_FIRST].first.base_rate, 0.05, 0);
    assert_true(f[PNB_MATCH_ESTIMATOR_FIRST].first.ece < 0.08);
    assert_true(fit.method ==
                (f[PNB_MATCH_ESTIMATOR_ISOTONIC].held.nll < f[PNB_MATCH_ESTIMATOR_PLATT].held.nll
                     ? PNB_MATCH_ISOTONIC
                     : PNB_MATCH_PLATT));
    double p = pnb_match_probability_fit_apply(&fit, 0.8, 0),
           half = pnb_match_probability_fit_apply(&fit, 0.8, 200);
    assert_near(half / (1 - half), 0.5 * p / (1 - p), 0, 1e-12);
    assert_true(pnb_match_probability_fit_apply(&fit, 0.8, 100) == p);
    pnb_match_probability_fit_reset(&fit);
    free(a);
    free_world(&w);
}

/* match_prob is the model's own probability: what is forecast are the scores of all pairs. */
static void model_is_the_score(void **state)
{
    (void)state;
    world w;
    pnb_match_probability_fit fit;
    pnb_match_assessment *a = new_assessment();
    make_world(&w, 120, 60, 0.9, 4);
    w.opts.n_folds = 2;
    w.opts.search.measure = PNB_MEASURE_MATCH_PROB;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
    assert_false(a->estimate[PNB_MATCH_ESTIMATOR_MODEL].is_known);
    pnb_match_probability_fit_reset(&fit);
    w.opts.model_is_score = true;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
    double *p = malloc(120 * 60 * sizeof *p), sum = 0, n = 0;
    assert_non_null(p);
    assert_ok(pnb_measure_block(PNB_MEASURE_MATCH_PROB, w.job.queries, w.job.gallery,
                                &w.opts.search.measure_opts, p, err));
    for (size_t i = 0; i < (size_t)120 * 60; i++) {
        n += i / 60 % 11 != 10; /* a query without a match is of no use to a fit */
        sum += i / 60 % 11 != 10 ? p[i] : 0;
    }
    assert_true(a->estimate[PNB_MATCH_ESTIMATOR_MODEL].is_known);
    assert_near(a->estimate[PNB_MATCH_ESTIMATOR_MODEL].held.p_mean, sum / n, 0, 1e-6);
    free(p);
    pnb_match_probability_fit_reset(&fit);
    free(a);
    free_world(&w);
}

/* Fitted to the first hits of each query: the same cases from search, and p that holds for them. */
static void fit_to_first_hits(void **state)
{
    (void)state;
    enum { DEPTH = 4 };
    world w;
    pnb_match_probability_fit fit, sampled;
    pnb_match_assessment *a = new_assessment();
    pnb_hits hits;
    pnb_search_opts top = pnb_search_opts_default();
    make_world(&w, 1500, 100, 0.9, 8);
    w.opts.depth = DEPTH;
    w.opts.holdout = 0.001;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, NULL, err));
    w.opts.max_pairs = 1; /* as few as may be: the first hits are there all the same */
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &sampled, NULL, err));
    assert_near(sampled.platt.a, fit.platt.a, 0, 1e-10); /* hits come in another order */
    assert_near(sampled.platt.b, fit.platt.b, 0, 1e-10);
    top.k = DEPTH;
    assert_ok(pnb_search(NULL, w.job.queries, w.job.gallery, &top, &hits, err));
    double *score = malloc(1500 * DEPTH * sizeof *score);
    int *label = malloc(1500 * DEPTH * sizeof *label);
    size_t n = 0;
    assert_true(score != NULL && label != NULL);
    for (size_t i = 0; i < 1500 * DEPTH; i++)
        if (i / DEPTH % 11 != 10) {
            score[n] = hits.score[i];
            label[n++] = matches(w.truth, i / DEPTH, (size_t)hits.index[i]);
        }
    pnb_platt want;
    assert_ok(pnb_platt_fit(&(pnb_scored){n, score, label, NULL}, false, &want, err));
    assert_near(fit.platt.a, want.a, 0, 0.01);
    assert_near(fit.platt.b, want.b, 0, 0.01);
    assert_int_equal(fit.depth, DEPTH);
    assert_true(isnan(pnb_match_probability_fit_apply(&fit, 0.5, 50)));
    w.opts.holdout = 0.5;
    pnb_match_probability_fit_reset(&fit);
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
    assert_int_equal(a->n_held_pairs, a->n_held * DEPTH);
    assert_true(a->estimate[PNB_MATCH_ESTIMATOR_ISOTONIC].held.ece < 0.03);
    pnb_match_probability_fit_reset(&fit);
    pnb_match_probability_fit_reset(&sampled);
    pnb_hits_reset(&hits);
    free(score);
    free(label);
    free(a);
    free_world(&w);
}

/* List sizes by search, and coverage over many splits of the same queries. */
static void conformal_lists(void **state)
{
    (void)state;
    enum { SPLITS = 60 };
    world w;
    pnb_match_assessment *a = new_assessment();
    double mean[4][PNB_N_CONFORMALS] = {{0}};
    make_world(&w, 220, 60, 0.9, 4);
    w.opts.method = PNB_MATCH_PLATT;
    w.opts.holdout = 0.5;
    for (uint64_t seed = 0; seed < SPLITS; seed++) {
        pnb_match_probability_fit fit;
        w.opts.seed = seed;
        assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
        for (size_t i = 0; i < 4; i++)
            for (int k = 0; k < PNB_N_CONFORMALS; k++) {
                mean[i][k] += a->at[i].coverage[k] / SPLITS;
                assert_true(a->at[i].mean_size[k] >= 0 && a->at[i].mean_size[k] <= 60);
                assert_true(a->at[2].mean_size[fit.conformal.kind] <= a->at[2].mean_size[k]);
            }
        pnb_match_probability_fit_reset(&fit);
    }
    /* held-out queries of a split share its cut-off and splits share queries: within one split the
     * coverage has a deviation below sqrt(alpha (1 - alpha) 2 / 100) */
    for (size_t i = 0; i < 4; i++)
        for (int k = 0; k < PNB_N_CONFORMALS; k++) {
            double alpha = a->at[i].alpha, error = sqrt(alpha * (1 - alpha) * 2 / 100 / SPLITS);
            assert_true(mean[i][k] >= 1 - alpha - 5 * error);
        }
    free(a);
    free_world(&w);
}

/* Half of 600 queries calibrate, the others are listed, 100 times: on average a list holds a match
 * as often as it was asked to, within one in a hundred. Margins and ranks tie where the first hit
 * is right, so that lists cut by them may hold one more often. */
static void coverage_is_nominal(void **state)
{
    (void)state;
    enum { SPLITS = 100 };
    world w;
    pnb_match_assessment *a = new_assessment();
    double mean[4][PNB_N_CONFORMALS] = {{0}};
    make_world(&w, 600, 24, 0.9, 6);
    w.opts.method = PNB_MATCH_PLATT;
    w.opts.holdout = 0.5;
    for (uint64_t seed = 0; seed < SPLITS; seed++) {
        pnb_match_probability_fit fit;
        w.opts.seed = seed;
        assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
        for (size_t i = 0; i < a->n_alphas; i++)
            for (int k = 0; k < PNB_N_CONFORMALS; k++)
                mean[i][k] += a->at[i].coverage[k] / SPLITS;
        pnb_match_probability_fit_reset(&fit);
    }
    for (size_t i = 0; i < a->n_alphas; i++)
        for (int k = 0; k < PNB_N_CONFORMALS; k++) {
            double over = mean[i][k] - (1 - a->at[i].alpha);
            if (over < -0.01 || (k == PNB_CONFORMAL_SCORE && over > 0.01))
                fail_msg("%s at %.2f: %.4f of the lists hold a match",
                         pnb_conformal_name((pnb_conformal_kind)k), a->at[i].alpha, mean[i][k]);
        }
    free(a);
    free_world(&w);
}

static void sizes_of_lists(void **state)
{
    (void)state;
    world w;
    pnb_match_probability_fit fit;
    pnb_match_assessment *a = new_assessment();
    pnb_hits hits;
    pnb_search_opts all = pnb_search_opts_default();
    make_world(&w, 120, 50, 0.9, 5);
    w.opts.alpha[0] = 0.4;
    w.opts.n_alphas = 1;
    w.opts.holdout = 0.5;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
    all.k = 50;
    assert_ok(pnb_search(NULL, w.job.queries, w.job.gallery, &all, &hits, err));
    double sizes[PNB_N_CONFORMALS] = {0};
    size_t n = 0;
    for (size_t q = 0; q < 120; q++) {
        if (q % 11 == 10)
            continue;
        n++;
        for (int k = 0; k < PNB_N_CONFORMALS; k++)
            sizes[k] += (double)pnb_conformal_list((pnb_conformal_kind)k, a->at[0].cutoff[k],
                                                   hits.score + q * 50, 50);
    }
    /* over all queries instead of the held-out half: equal up to sampling, exact for ranks */
    assert_near(a->at[0].mean_size[PNB_CONFORMAL_RANK], sizes[PNB_CONFORMAL_RANK] / (double)n,
                1e-12, 0);
    for (int k = 0; k < PNB_CONFORMAL_RANK; k++)
        assert_near(a->at[0].mean_size[k], sizes[k] / (double)n, 0.3, 0.3);
    pnb_hits_reset(&hits);
    pnb_match_probability_fit_reset(&fit);
    free(a);
    free_world(&w);
}

/* Every query is assessed by a fit that has not seen it, and the fit that is kept has seen all. */
static void folds(void **state)
{
    (void)state;
    world w;
    pnb_match_probability_fit fit;
    pnb_match_assessment *a = new_assessment();
    make_world(&w, 660, 120, 0.8, 11);
    size_t n_queries = 600, n = 0; /* with a match, as many in each of 5 folds */
    w.opts.n_folds = 5;
    assert_ok(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err));
    double *score = malloc(n_queries * 120 * sizeof *score);
    int *label = malloc(n_queries * 120 * sizeof *label);
    assert_true(score != NULL && label != NULL);
    for (size_t q = 0; q < 660; q++)
        for (size_t x = 0; q % 11 != 10 && x < 120; x++) {
            score[n] = pair_score(&w, q, x);
            label[n++] = matches(w.truth, q, x);
        }
    pnb_platt want;
    assert_ok(pnb_platt_fit(&(pnb_scored){n, score, label, NULL}, false, &want, err));
    assert_near(fit.platt.a, want.a, 0, 1e-6);
    assert_near(fit.platt.b, want.b, 0, 1e-6);
    assert_true(a->n_folds == 5 && a->n_fit == n_queries && a->n_held == n_queries);
    assert_true(fit.conformal.n == n_queries && a->n_held_pairs == n);
    /* the base rates of the five fits differ, and average to that of all */
    const pnb_weighted_ece *rate = &a->estimate[PNB_MATCH_ESTIMATOR_BASE_RATE].held;
    assert_near(rate->p_mean, fit.base_rate, 0, 1e-9);
    assert_true(rate->bin[0].p_low < rate->bin[rate->n_bins - 1].p_high);
    const pnb_match_ece *f = a->estimate;
    assert_true(f[PNB_MATCH_ESTIMATOR_ISOTONIC].held.nll > f[PNB_MATCH_ESTIMATOR_ISOTONIC].fit.nll);
    assert_true(f[PNB_MATCH_ESTIMATOR_ISOTONIC].held.nll <
                f[PNB_MATCH_ESTIMATOR_BASE_RATE].held.nll);
    /* scores have no ties: coverage is what was asked for, to a few queries of each fold */
    for (size_t i = 0; i < a->n_alphas; i++) {
        double wanted = 1.0 - a->at[i].alpha;
        assert_near(a->at[i].coverage[PNB_CONFORMAL_SCORE], wanted, 0.01, 0);
        assert_true(a->at[i].coverage[PNB_CONFORMAL_MARGIN] > wanted - 0.01);
    }
    pnb_match_probability_fit_reset(&fit);
    w.opts.n_folds = 1;
    assert_fails(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err), PNB_ARG, "1 folds");
    w.opts.n_folds = PNB_MAX_FOLDS + 1;
    assert_fails(pnb_match_probability_fit_compute(NULL, &w.job, &fit, a, err), PNB_ARG,
                 "21 folds");
    free(score);
    free(label);
    free(a);
    free_world(&w);
}

static void bad_input(void **state)
{
    (void)state;
    world w;
    pnb_match_probability_fit fit;
    pnb_truth *other, *everything;
    int64_t all[2 * 40 * 5];
    make_world(&w, 40, 5, 0.8, 6);
    pnb_match_job job = w.job;
    pnb_match_opts o = w.opts;
    job.opts = &o;
    assert_ok(pnb_truth_create_aligned(&other, 5, err));
    job.truth = other;
    assert_fails(pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, err), PNB_SHAPE,
                 "40 and 5 rows");
    job.queries = job.gallery;
    assert_fails(pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, err), PNB_ARG,
                 "at least 10");
    pnb_truth_free(other);
    for (int64_t i = 0; i < 200; i++) {
        all[2 * i] = i / 5;
        all[2 * i + 1] = i % 5;
    }
    assert_ok(pnb_truth_create_pairs(&everything, 40, 5, all, 200, err));
    job = (pnb_match_job){w.job.queries, w.job.gallery, everything, &o};
    assert_fails(pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, err), PNB_ARG,
                 "labels are 1");
    pnb_truth_free(everything);
    job.truth = w.truth;
    o.holdout = 1.0;
    assert_fails(pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, err), PNB_ARG,
                 "holdout 1");
    o.holdout = 0.3;
    o.alpha[1] = (double)NAN;
    assert_fails(pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, err), PNB_ARG,
                 "error rate");
    o = w.opts;
    o.n_bins = 0;
    assert_fails(pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, err), PNB_ARG, "0 bins");
    o = w.opts;
    w.gallery.mean[3] = NAN;
    assert_fails(pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, err), PNB_NUMERIC,
                 "item 0");
    for (size_t i = 0; i < 5 * 12; i++)
        w.gallery.mean[i] = w.gallery.mean[12 + i % 12];
    for (size_t i = 0; i < 5 * 12; i++)
        w.gallery.log_var[i] = -5;
    for (size_t i = 0; i < 40 * 12; i++) {
        w.queries.mean[i] = w.queries.mean[i % 12];
        w.queries.log_var[i] = -5;
    }
    assert_fails(pnb_match_probability_fit_compute(NULL, &job, &fit, NULL, err), PNB_ARG,
                 "equal scores");
    assert_true(fit.isotonic.score == NULL && fit.conformal.n == 0);
    pnb_match_probability_fit_reset(NULL);
    free_world(&w);
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    world w;
    pnb_status status = PNB_NOMEM;
    make_world(&w, 30, 8, 0.9, 7);
    w.opts.n_alphas = 1;
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_match_probability_fit fit;
        pnb__alloc_fail_after(n);
        status = pnb_match_probability_fit_compute(NULL, &w.job, &fit, NULL, &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (status == PNB_NOMEM && fit.conformal.n == 0));
        assert_true(n < 500);
        pnb_match_probability_fit_reset(&fit);
    }
    free_world(&w);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_the_fit_by_hand),
        cmocka_unit_test(sampled_near_exact),
        cmocka_unit_test(held_out_figures),
        cmocka_unit_test(model_is_the_score),
        cmocka_unit_test(conformal_lists),
        cmocka_unit_test(coverage_is_nominal),
        cmocka_unit_test(fit_to_first_hits),
        cmocka_unit_test(sizes_of_lists),
        cmocka_unit_test(folds),
        cmocka_unit_test(bad_input),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
