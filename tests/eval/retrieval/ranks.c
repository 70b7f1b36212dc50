/* Ranks by counting, from rows of scores and from rankings: against a sort, the golden cases,
 * several truths and folds, positives that no row has, and what is refused. */
#include "eval/retrieval/ranks.h"

#include "tests/eval/retrieval/ranking.h"

/* Every query with a random number of positives, some with none; scores full of ties. */
static void ranks_equal_brute_force(void **state)
{
    (void)state;
    enum { Q = 40, N = 130 };
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    int64_t pairs[2 * Q * 20];
    size_t n_pairs = 0;
    double *score = malloc(Q * N * sizeof *score);
    assert_non_null(score);
    for (size_t q = 0; q < Q; q++)
        for (size_t i = pnb__rng_below(&rng, 20); i > 0; i--) {
            pairs[2 * n_pairs] = (int64_t)q;
            pairs[2 * n_pairs++ + 1] = (int64_t)pnb__rng_below(&rng, N);
        }
    for (size_t i = 0; i < Q * N; i++)
        score[i] = (double)pnb__rng_below(&rng, 30) / 7.0 - 2.0;
    pnb_truth *truth = NULL;
    pnb_ranks ranks;
    assert_ok(pnb_truth_create_pairs(&truth, Q, N, pairs, n_pairs, err));
    assert_ok(pnb_ranks_from_scores(score, truth, &ranks, err));
    for (size_t q = 0; q < Q; q++)
        expect_query(&ranks, truth, q, score + q * N);
    pnb_ranks_reset(&ranks);
    pnb_truth_free(truth);
    free(score);
}

static void golden_class_retrieval(void **state)
{
    (void)state;
    pnb_safetensors *file = open_case("metrics/pcme_rprecision_pmrp");
    json_t *want = load_expected("metrics/pcme_rprecision_pmrp");
    double *score = case_values(file, "similarity", NULL);
    double *qc = case_values(file, "query_class", NULL),
           *gc = case_values(file, "gallery_class", NULL);
    int64_t ql[25], il[60];
    for (size_t i = 0; i < 25; i++)
        ql[i] = (int64_t)qc[i];
    for (size_t i = 0; i < 60; i++)
        il[i] = (int64_t)gc[i];
    pnb_truth *truth = NULL;
    pnb_ranks ranks;
    pnb_direction d;
    const size_t k[] = {1, 5, 10};
    assert_ok(pnb_truth_create_labels(&truth, ql, 25, il, 60, err));
    assert_ok(pnb_ranks_from_scores(score, truth, &ranks, err));
    assert_ok(pnb_direction_summarise(&ranks, k, 3, &d, err));
    assert_near(d.recall[0], number(want, "recall_1"), 1e-12, 1e-12);
    assert_near(d.recall[1], number(want, "recall_5"), 1e-12, 1e-12);
    assert_near(d.recall[2], number(want, "recall_10"), 1e-12, 1e-12);
    assert_near(d.recall[0] + d.recall[1] + d.recall[2], number(want, "rsum"), 1e-12, 1e-12);
    assert_near(d.r_precision, number(want, "r_precision"), 1e-12, 1e-12);
    assert_near(d.map_at_r, number(want, "map_r"), 1e-12, 1e-12);
    assert_near(d.median_rank, number(want, "medr"), 1e-12, 1e-12);
    assert_near(d.mean_rank, number(want, "meanr"), 1e-12, 1e-12);
    pnb_ranks_reset(&ranks);
    pnb_truth_free(truth);
    free(score);
    free(qc);
    free(gc);
    json_decref(want);
    pnb_safetensors_free(file);
}

static void golden_rankings(void **state)
{
    (void)state;
    enum { Q = 20, N = 40 };
    pnb_safetensors *file = open_case("metrics/eccv_synth");
    json_t *want = load_expected("metrics/eccv_synth");
    size_t n_gt;
    double *rows = case_values(file, "ranking", NULL), *gt = case_values(file, "gt_flat", &n_gt);
    double *offset = case_values(file, "gt_offsets", NULL);
    /* ids need not be 0..N-1: an item's index is its place among the sorted ids of the first row */
    int64_t ids[N], ranking[Q * N], pairs[2 * 256];
    for (size_t j = 0; j < N; j++)
        ids[j] = (int64_t)rows[j];
    for (size_t i = 0; i < N; i++)
        for (size_t j = i + 1; j < N; j++)
            if (ids[j] < ids[i]) {
                int64_t id = ids[i];
                ids[i] = ids[j];
                ids[j] = id;
            }
    for (size_t i = 0; i < Q * N; i++)
        for (size_t j = 0; j < N; j++)
            if (ids[j] == (int64_t)rows[i])
                ranking[i] = (int64_t)j;
    size_t n_pairs = 0;
    for (size_t q = 0; q < Q; q++)
        for (size_t i = (size_t)offset[q]; i < (size_t)offset[q + 1]; i++)
            for (size_t j = 0; j < N; j++)
                if (ids[j] == (int64_t)gt[i]) {
                    pairs[2 * n_pairs] = (int64_t)q;
                    pairs[2 * n_pairs++ + 1] = (int64_t)j;
                }
    assert_int_equal(n_pairs, n_gt);
    pnb_truth *truth = NULL;
    pnb_ranks ranks;
    pnb_direction d;
    const size_t k[] = {1, 2, 5, 10};
    assert_ok(pnb_truth_create_pairs(&truth, Q, N, pairs, n_pairs, err));
    assert_ok(pnb_ranks_from_ranking(ranking, truth, &ranks, err));
    assert_ok(pnb_direction_summarise(&ranks, k, 4, &d, err));
    assert_near(d.recall[0], number(want, "r1"), 1e-12, 1e-12);
    assert_near(d.recall[1], number(want, "r2"), 1e-12, 1e-12);
    assert_near(d.recall[2], number(want, "r5"), 1e-12, 1e-12);
    assert_near(d.recall[3], number(want, "r10"), 1e-12, 1e-12);
    assert_near(d.r_precision, number(want, "rprecision"), 1e-12, 1e-12);
    assert_near(d.map_at_r, number(want, "map_at_r"), 1e-12, 1e-12);
    pnb_ranks_reset(&ranks);
    ranking[N + 3] = ranking[N + 4];
    assert_fails(pnb_ranks_from_ranking(ranking, truth, &ranks, err), PNB_ARG, "query 1");
    ranking[N + 3] = -1;
    assert_fails(pnb_ranks_from_ranking(ranking, truth, &ranks, err), PNB_ARG, "query 1");
    pnb_truth_free(truth);
    free(rows);
    free(gt);
    free(offset);
    json_decref(want);
    pnb_safetensors_free(file);
}

static void tasks_equal_counting(void **state)
{
    (void)state;
    double *score = tied_scores(1), precision[TIED_Q * 2];
    pnb_truth *truth[2] = {random_truth(2, 120), random_truth(3, 40)};
    int32_t query_fold[TIED_Q], item_fold[TIED_M];
    const size_t k[] = {3, 100};
    pnb_ranks ranks[3], direct;
    for (size_t q = 0; q < TIED_Q; q++)
        query_fold[q] = (int32_t)(q % 4) - 1;
    for (size_t j = 0; j < TIED_M; j++)
        item_fold[j] = (int32_t)(j % 4) - 1;
    const pnb_rank_task tasks[] = {
        {.truth = truth[0], .precision_k = k, .n_precision = 2, .precision = precision},
        {.truth = truth[1]},
        {.truth = truth[0], .query_fold = query_fold, .item_fold = item_fold}};
    assert_ok(pnb_ranks_from_rows(NULL, fill_row, score, tasks, 3, ranks, err));
    for (size_t q = 0; q < TIED_Q; q++) {
        const double *row = score + q * TIED_M;
        size_t best = 0, best_in_fold = 0, within = 0, n = truth[0]->offset[q + 1];
        for (size_t i = truth[0]->offset[q]; i < n; i++) {
            size_t item = truth[0]->item[i], r = place(row, NULL, 0, item);
            best = best == 0 || r < best ? r : best;
            within += r <= 3;
            if (query_fold[q] < 0 || item_fold[item] != query_fold[q])
                continue;
            r = place(row, item_fold, query_fold[q], item);
            best_in_fold = best_in_fold == 0 || r < best_in_fold ? r : best_in_fold;
        }
        assert_int_equal(ranks[0].best_rank[q], best);
        assert_int_equal(ranks[2].best_rank[q], best_in_fold);
        assert_near(precision[2 * q], (double)within / 3, 1e-15, 0);
        assert_near(precision[2 * q + 1], (double)(n - truth[0]->offset[q]) / 100, 1e-15, 0);
        int64_t top = ranks[2].top1[q];
        assert_true(query_fold[q] < 0 ? top == -1 : item_fold[top] == query_fold[q]);
    }
    assert_ok(pnb_ranks_from_scores(score, truth[1], &direct, err));
    assert_memory_equal(direct.best_rank, ranks[1].best_rank, TIED_Q * sizeof(int64_t));
    for (size_t t = 0; t < 3; t++)
        pnb_ranks_reset(&ranks[t]);
    pnb_ranks_reset(&direct);
    pnb_truth_free(truth[0]);
    pnb_truth_free(truth[1]);
    free(score);
}

/* R counts positives outside the gallery: precision falls, ranks do not change. */
static void positives_outside(void **state)
{
    (void)state;
    const double score[] = {3, 2, 1};
    const int64_t pairs[] = {0, 0, 0, 2};
    pnb_truth *truth = NULL, *back = NULL;
    pnb_ranks ranks;
    assert_ok(pnb_truth_create_pairs(&truth, 1, 3, pairs, 2, err));
    truth->n_outside = pnb__alloc_zero(1, sizeof *truth->n_outside);
    truth->n_outside[0] = 1;
    assert_ok(pnb_ranks_from_scores(score, truth, &ranks, err));
    assert_near(ranks.r_precision[0], 2.0 / 3, 1e-15, 0);
    assert_near(ranks.map_at_r[0], (1.0 + 2.0 / 3) / 3, 1e-15, 0);
    assert_int_equal(ranks.best_rank[0], 1);
    assert_ok(pnb_truth_transpose(&back, truth, err));
    assert_true(back->n_outside == NULL && back->n_outside_items[0] == 1);
    pnb_ranks_reset(&ranks);
    pnb_truth_free(truth);
    pnb_truth_free(back);
}

/* R-Precision and mAP@R of given ranks by their definitions, with positives that no place has. */
static void stored_figures(void **state)
{
    (void)state;
    const int64_t pairs[] = {0, 0, 0, 1, 0, 4};
    const size_t rank[] = {1, 4, 5};
    pnb_truth *truth = NULL;
    pnb_ranks ranks;
    assert_ok(pnb_truth_create_pairs(&truth, 2, 5, pairs, 3, err));
    assert_ok(pnb__ranks_alloc(&ranks, truth, err));
    pnb__ranks_store(&ranks, 0, rank, 3, 0); /* R = 3: the first alone */
    assert_near(ranks.r_precision[0], 1.0 / 3, 1e-15, 0);
    assert_near(ranks.map_at_r[0], 1.0 / 3, 1e-15, 0);
    pnb__ranks_store(&ranks, 0, rank, 3, 1); /* R = 4: the second too */
    assert_near(ranks.r_precision[0], 2.0 / 4, 1e-15, 0);
    assert_near(ranks.map_at_r[0], (1 + 2.0 / 4) / 4, 1e-15, 0);
    pnb__ranks_store(&ranks, 0, rank, 3, 7);
    assert_near(ranks.map_at_r[0], (1 + 2.0 / 4 + 3.0 / 5) / 10, 1e-15, 0);
    assert_int_equal(ranks.best_rank[0], 1);
    pnb__ranks_store(&ranks, 1, NULL, 0, 7); /* nothing here */
    assert_int_equal(ranks.best_rank[1], 0);
    assert_true(isnan(ranks.r_precision[1]) && isnan(ranks.map_at_r[1]));
    pnb_ranks_reset(&ranks);
    assert_null(ranks.best_rank);
    pnb_ranks_reset(NULL);
    pnb_truth_free(truth);
}

/* The first positive that a hit stands before: higher scores, of equal ones lower numbers. */
static void first_behind(void **state)
{
    (void)state;
    const pnb__hit positive[] = {{5, 3}, {2, 1}, {2, 8}, {-1, 0}};
    static const struct {
        pnb__hit hit;
        size_t want;
    } cases[] = {{{9, 9}, 0}, {{5, 2}, 0}, {{5, 3}, 1}, {{5, 4}, 1},  {{3, 0}, 1},
                 {{2, 1}, 2}, {{2, 5}, 2}, {{2, 9}, 3}, {{-1, 0}, 4}, {{-2, 0}, 4}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        assert_int_equal(pnb__ranks_first_behind(positive, 4, cases[i].hit), cases[i].want);
    assert_int_equal(pnb__ranks_first_behind(positive, 0, positive[0]), 0);
}

static void nan_row(void *user, size_t query, double *score)
{
    fill_row(user, query, score);
    if (query == 4)
        score[6] = NAN;
}

static void bad_tasks(void **state)
{
    (void)state;
    double *score = tied_scores(1);
    int32_t fold[TIED_M] = {0};
    const size_t zero[] = {0};
    double precision[TIED_Q];
    pnb_truth *truth = random_truth(2, 30), *other = NULL;
    pnb_ranks ranks[2];
    assert_ok(pnb_truth_create_aligned(&other, 3, err));
    pnb_rank_task tasks[2] = {{.truth = truth}, {.truth = other}};
    assert_fails(pnb_ranks_from_rows(NULL, fill_row, score, tasks, 0, ranks, err), PNB_ARG,
                 "no ranking task");
    assert_fails(pnb_ranks_from_rows(NULL, fill_row, score, tasks, 2, ranks, err), PNB_ARG,
                 "share both sides");
    assert_fails(pnb_ranks_from_rows(NULL, nan_row, score, tasks, 1, ranks, err), PNB_NUMERIC,
                 "query 4 and item 6");
    assert_null(ranks[0].best_rank);
    tasks[0].item_fold = fold;
    assert_fails(pnb_ranks_from_rows(NULL, fill_row, score, tasks, 1, ranks, err), PNB_ARG,
                 "one side");
    tasks[0] = (pnb_rank_task){
        .truth = truth, .precision_k = zero, .n_precision = 1, .precision = precision};
    assert_fails(pnb_ranks_from_rows(NULL, fill_row, score, tasks, 1, ranks, err), PNB_ARG,
                 "cut-off 0");
    pnb_truth_free(truth);
    pnb_truth_free(other);
    free(score);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_equal_brute_force),
        cmocka_unit_test(golden_class_retrieval),
        cmocka_unit_test(golden_rankings),
        cmocka_unit_test(tasks_equal_counting),
        cmocka_unit_test(positives_outside),
        cmocka_unit_test(stored_figures),
        cmocka_unit_test(first_behind),
        cmocka_unit_test(bad_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
