/* PMRP against explicit truths, one a zeta, and by hand in folds; its intervals average as the
 * figure does. More of the intervals is in coco.c. */
#include "penumbra/pmrp.h"
#include "tests/eval/retrieval/ranking.h"

/* PMRP by explicit truths, one a zeta, through the ordinary ranks. */
static void plausible_matches(void **state)
{
    (void)state;
    enum { L = 70, ZETA = 3 };
    uint8_t query[TIED_Q * L] = {0}, item[TIED_M * L] = {0};
    double *score = tied_scores(9), per_query[TIED_Q * (ZETA + 1)];
    pnb__rng rng;
    pnb__rng_init(&rng, 7, 0);
    for (size_t q = 0; q < TIED_Q; q++)
        query[q * L + 69] = query[q * L + pnb__rng_below(&rng, 3)] = 1;
    for (size_t j = 0; j < TIED_M; j++)
        item[j * L + 69] = item[j * L + pnb__rng_below(&rng, 4)] = 1;
    const pnb_label_vectors labels = {TIED_Q, TIED_M, L, query, item, NULL, NULL};
    pnb_pmrp p;
    assert_ok(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, ZETA, &p, per_query, err));
    double mean = 0.0;
    for (int z = 0; z <= ZETA; z++) {
        int64_t pairs[2 * TIED_Q * TIED_M];
        size_t n = 0;
        pnb_truth *truth = NULL;
        pnb_ranks ranks;
        pnb_direction d;
        const size_t k[] = {1};
        for (size_t q = 0; q < TIED_Q; q++)
            for (size_t j = 0; j < TIED_M; j++) {
                int differ = 0;
                for (size_t l = 0; l < L; l++)
                    differ += query[q * L + l] != item[j * L + l];
                if (differ <= z) {
                    pairs[2 * n] = (int64_t)q;
                    pairs[2 * n++ + 1] = (int64_t)j;
                }
            }
        assert_ok(pnb_truth_create_pairs(&truth, TIED_Q, TIED_M, pairs, n, err));
        assert_ok(pnb_ranks_from_scores(score, truth, &ranks, err));
        assert_ok(pnb_direction_summarise(&ranks, k, 1, &d, err));
        assert_near(p.r_precision[z], d.r_precision, 1e-14, 0);
        assert_near(p.recall_1[z], d.recall[0], 1e-14, 0);
        assert_int_equal(p.n_queries[z], d.n_queries);
        for (size_t q = 0; q < TIED_Q; q++) {
            double own = per_query[q * (ZETA + 1) + (size_t)z];
            if (ranks.best_rank[q] == 0)
                assert_true(isnan(own));
            else
                assert_near(own, ranks.r_precision[q], 1e-14, 0);
        }
        mean += d.r_precision / (ZETA + 1);
        pnb_ranks_reset(&ranks);
        pnb_truth_free(truth);
    }
    assert_near(p.pmrp, mean, 1e-14, 0);
    free(score);
}

/* PMRP in folds: R-Precision under one truth a zeta inside each fold, averaged by hand. */
static void plausible_in_folds(void **state)
{
    (void)state;
    enum { L = 6, ZETA = 2 };
    uint8_t query[TIED_Q * L], item[TIED_M * L];
    int32_t query_fold[TIED_Q], item_fold[TIED_M];
    double *score = tied_scores(19), per_query[TIED_Q * (ZETA + 1)], pmrp = 0.0;
    pnb_pmrp p;
    pnb_pmrp_intervals bare;
    pnb__rng rng;
    pnb__rng_init(&rng, 17, 0);
    for (size_t i = 0; i < TIED_Q * L; i++)
        query[i] = (uint8_t)pnb__rng_below(&rng, 2);
    for (size_t i = 0; i < TIED_M * L; i++)
        item[i] = (uint8_t)pnb__rng_below(&rng, 2);
    for (size_t q = 0; q < TIED_Q; q++) /* folds of 4 to 12 queries, some queries in none */
        query_fold[q] = q < 12 ? 3 : (int32_t)(q % 4) - 1;
    for (size_t j = 0; j < TIED_M; j++)
        item_fold[j] = (int32_t)(j % 6) - 1;
    const pnb_label_vectors labels = {TIED_Q, TIED_M, L, query, item, query_fold, item_fold};
    assert_ok(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, ZETA, &p, per_query, err));
    for (size_t z = 0; z <= ZETA; z++) {
        double sum[5] = {0}, n[5] = {0}, mean = 0.0, n_folds = 0.0;
        for (size_t q = 0; q < TIED_Q; q++) {
            size_t r = 0, hits = 0;
            bool fits[TIED_M] = {false};
            for (size_t j = 0; j < TIED_M && query_fold[q] >= 0; j++) {
                size_t differ = 0;
                for (size_t l = 0; l < L; l++)
                    differ += query[q * L + l] != item[j * L + l];
                fits[j] = item_fold[j] == query_fold[q] && differ <= z;
                r += fits[j];
            }
            for (size_t j = 0; j < TIED_M; j++)
                hits += fits[j] && place(score + q * TIED_M, item_fold, query_fold[q], j) <= r;
            assert_true((r == 0) == (isnan(per_query[q * (ZETA + 1) + z]) != 0));
            if (r == 0)
                continue;
            sum[query_fold[q]] += (double)hits / (double)r;
            n[query_fold[q]] += 1.0;
        }
        for (size_t f = 0; f < 5; f++)
            if (n[f] > 0.0) {
                mean += sum[f] / n[f];
                n_folds += 1.0;
            }
        assert_true(n_folds == 4.0 || (z == 0 && n_folds > 1.0));
        assert_near(p.r_precision[z], mean / n_folds, 1e-14, 0);
        pmrp += mean / n_folds / (ZETA + 1);
    }
    assert_near(p.pmrp, pmrp, 1e-14, 0);
    /* the bootstrap averages as the figure does */
    const pnb_pmrp_values values = {per_query, query_fold, NULL, TIED_Q, ZETA};
    const pnb_bootstrap_opts none = {.n_resamples = 0, .level = 0.9};
    assert_ok(pnb_pmrp_bootstrap(NULL, &values, &none, &bare, err));
    assert_near(bare.pmrp.value, p.pmrp, 1e-14, 0);
    assert_true(isnan(bare.pmrp.low));
    pnb_label_vectors odd = labels;
    odd.item_fold = NULL;
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &odd, ZETA, &p, NULL, err), PNB_ARG,
                 "one side");
    odd = labels;
    query_fold[3] = 5;
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &odd, ZETA, &p, NULL, err), PNB_ARG,
                 "query 3 is in fold 5");
    free(score);
}

/* Between two sets: the scores are those of the measure. */
static void of_sets(void **state)
{
    (void)state;
    enum { D = 6, L = 5 };
    gaussians a = random_gaussians(TIED_Q, D, -3, 0, 3), b = random_gaussians(TIED_M, D, -3, 0, 4);
    uint8_t query[TIED_Q * L] = {0}, item[TIED_M * L] = {0};
    double score[TIED_Q * TIED_M];
    pnb_pmrp want, got;
    pnb_search_opts o = pnb_search_opts_default();
    for (size_t i = 0; i < TIED_Q; i++)
        query[i * L + i % L] = 1;
    for (size_t i = 0; i < TIED_M; i++)
        item[i * L + i % 3] = item[i * L + i % L] = 1;
    const pnb_label_vectors labels = {TIED_Q, TIED_M, L, query, item, NULL, NULL};
    pnb_pmrp_job job = {
        .queries = &a.view, .gallery = &b.view, .labels = &labels, .max_zeta = 2, .opts = &o};
    o.measure = PNB_MEASURE_W2;
    assert_ok(pnb_measure_block(o.measure, &a.view, &b.view, NULL, score, err));
    for (size_t i = 0; i < TIED_Q * TIED_M; i++)
        score[i] = pnb_measure_score(o.measure, score[i]);
    assert_ok(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 2, &want, NULL, err));
    assert_ok(pnb_pmrp_compute(NULL, &job, &got, NULL, err));
    assert_true(want.pmrp == got.pmrp && want.pm_r1 == got.pm_r1 && want.pmrp > 0);
    job.queries = &b.view;
    assert_fails(pnb_pmrp_compute(NULL, &job, &got, NULL, err), PNB_SHAPE,
                 "the sets have 47 and 47 rows, the labels are of 30 queries and 47 items");
    free_gaussians(&a);
    free_gaussians(&b);
}

static void bad_labels(void **state)
{
    (void)state;
    double *score = tied_scores(1);
    uint8_t two[2 * TIED_M] = {0, 2};
    pnb_pmrp p;
    pnb_label_vectors labels = {1, 1, 2, two, two, NULL, NULL};
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 2, &p, NULL, err), PNB_ARG,
                 "label 1 of row 0 is 2");
    two[1] = 1;
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 8, &p, NULL, err), PNB_ARG,
                 "zeta");
    labels = (pnb_label_vectors){1, TIED_M, 1, two + 1, two + 2, NULL, NULL};
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 0, &p, NULL, err), PNB_ARG,
                 "at most 0 places");
    labels.n_labels = 0;
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 0, &p, NULL, err), PNB_ARG,
                 "none may be 0");
    free(score);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plausible_matches),
        cmocka_unit_test(plausible_in_folds),
        cmocka_unit_test(of_sets),
        cmocka_unit_test(bad_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
