/* Several truths, folds and precisions between two sets in one pass: those of rows of f64 scores,
 * for every way a measure is scanned. */
#include "tests/eval/retrieval/ranking.h"

/* Several truths, folds and precisions between two sets are those of rows of f64 scores. */
typedef struct block {
    double *score;
    size_t n_items;
} block;

static void block_row(void *user, size_t query, double *score)
{
    const block *b = user;
    memcpy(score, b->score + query * b->n_items, b->n_items * sizeof *score);
}

static void same_ranks(const pnb_ranks *a, const pnb_ranks *b, const char *what)
{
    size_t n = a->n_queries;
    assert_int_equal(b->n_queries, n);
    for (size_t q = 0; q < n; q++)
        if (a->best_rank[q] != b->best_rank[q] || a->top1[q] != b->top1[q] ||
            isnan(a->top1_score[q]) != isnan(b->top1_score[q]) ||
            isnan(a->map_at_r[q]) != isnan(b->map_at_r[q]) ||
            (!isnan(a->map_at_r[q]) &&
             (a->map_at_r[q] != b->map_at_r[q] || a->r_precision[q] != b->r_precision[q])))
            fail_msg("%s: query %zu has best rank %lld and first %lld, want %lld and %lld", what, q,
                     (long long)b->best_rank[q], (long long)b->top1[q], (long long)a->best_rank[q],
                     (long long)a->top1[q]);
}

enum { SET_Q = 90, SET_M = 210, SET_D = 24, N_TASKS = 4 };

static void tasks_of_sets(pnb_measure measure, bool reverse, const pnb_rows *a, const pnb_rows *b)
{
    static const size_t k[] = {1, 7};
    double precision[2][SET_Q * 2];
    int64_t pairs[2 * 500];
    int32_t query_fold[SET_Q], item_fold[SET_M];
    pnb_truth *truth[2] = {NULL, NULL};
    pnb_ranks want[N_TASKS], got[N_TASKS];
    pnb_search_opts opts = pnb_search_opts_default();
    block scores = {malloc(SET_Q * SET_M * sizeof(double)), SET_M};
    pnb__rng rng;
    pnb__rng_init(&rng, 11, (uint64_t)measure);
    for (size_t i = 0; i < 2 * 500; i++)
        pairs[i] = (int64_t)pnb__rng_below(&rng, i % 2 == 0 ? SET_Q - 5 : SET_M);
    for (size_t i = 0; i < 2 * 45; i += 2) /* more than are counted one by one */
        pairs[i] = 3;
    for (size_t q = 0; q < SET_Q; q++) /* -1 .. 5; fold 4 has no pair, fold 5 no item */
        query_fold[q] = q >= SET_Q - 4 ? 5 - (int32_t)(q % 2) : (int32_t)(q % 5) - 1;
    for (size_t j = 0; j < SET_M; j++)
        item_fold[j] = (int32_t)pnb__rng_below(&rng, 6) - 1;
    assert_ok(pnb_truth_create_pairs(&truth[0], SET_Q, SET_M, pairs, 250, err));
    assert_ok(pnb_truth_create_pairs(&truth[1], SET_Q, SET_M, pairs + 500, 250, err));
    truth[1]->n_outside = pnb__alloc_zero(SET_Q, sizeof *truth[1]->n_outside);
    truth[1]->n_outside[7] = 2;
    pnb_rank_task tasks[N_TASKS] = {
        {.truth = truth[0], .precision_k = k, .n_precision = 2, .precision = precision[0]},
        {.truth = truth[1], .query_fold = query_fold, .item_fold = item_fold},
        {.truth = truth[1]},
        {.truth = truth[0], .query_fold = query_fold, .item_fold = item_fold}};
    opts.measure = measure;
    opts.reverse = reverse;
    for (size_t q = 0; q < SET_Q; q++)
        for (size_t j = 0; j < SET_M; j++)
            scores.score[q * SET_M + j] = pnb_measure_score(
                measure, reverse ? pnb_measure_pair(measure, b, j, a, q, &opts.measure_opts)
                                 : pnb_measure_pair(measure, a, q, b, j, &opts.measure_opts));
    assert_ok(pnb_ranks_compute_tasks(NULL, a, b, tasks, N_TASKS, &opts, got, err));
    tasks[0].precision = precision[1];
    assert_ok(pnb_ranks_from_rows(NULL, block_row, &scores, tasks, N_TASKS, want, err));
    assert_memory_equal(precision[0], precision[1], sizeof precision[0]);
    for (size_t t = 0; t < N_TASKS; t++) {
        same_ranks(&want[t], &got[t], pnb_measure_name(measure));
        pnb_ranks_reset(&want[t]);
        pnb_ranks_reset(&got[t]);
    }
    pnb_truth_free(truth[0]);
    pnb_truth_free(truth[1]);
    free(scores.score);
}

static void tasks_of_sets_equal_scores(void **state)
{
    (void)state;
    gaussians a = random_gaussians(SET_Q, SET_D, -5, -1, 31);
    gaussians b = random_gaussians(SET_M, SET_D, -5, -1, 32);
    float kappa[SET_M];
    for (size_t i = 0; i < SET_M; i++)
        kappa[i] = 20.0f + (float)i;
    for (size_t j = 100; j < SET_M; j++) { /* ties: rows of the same content */
        memcpy(b.mean + j * SET_D, b.mean + (j % 100) * SET_D, SET_D * sizeof *b.mean);
        memcpy(b.log_var + j * SET_D, b.log_var + (j % 100) * SET_D, SET_D * sizeof *b.mean);
    }
    tasks_of_sets(PNB_MEASURE_CSD, false, &a.view, &b.view);
    tasks_of_sets(PNB_MEASURE_MEAN, true, &a.view, &b.view);
    tasks_of_sets(PNB_MEASURE_INCLUSION, false, &a.view, &b.view);
    tasks_of_sets(PNB_MEASURE_INCLUSION, true, &a.view, &b.view);
    tasks_of_sets(PNB_MEASURE_ELK, false, &a.view, &b.view);
    tasks_of_sets(PNB_MEASURE_AVG_L2, false, &a.view, &b.view);
    const pnb_rows x = {.n = SET_Q, .dim = SET_D, .mean = a.mean, .kappa = kappa};
    const pnb_rows y = {.n = SET_M, .dim = SET_D, .mean = b.mean, .kappa = kappa};
    tasks_of_sets(PNB_MEASURE_VMF, false, &x, &y);
    free_gaussians(&a);
    free_gaussians(&b);
}

static void bad_sets(void **state)
{
    (void)state;
    gaussians a = random_gaussians(4, 5, -3, 0, 6), b = random_gaussians(6, 5, -3, 0, 7);
    const int64_t pair[] = {1, 2};
    int32_t fold[4] = {0};
    pnb_truth *truth = NULL;
    pnb_ranks ranks[2];
    assert_ok(pnb_truth_create_pairs(&truth, 4, 6, pair, 1, err));
    pnb_rank_task tasks[2] = {{.truth = truth}, {.truth = truth, .query_fold = fold}};
    assert_fails(pnb_ranks_compute_tasks(NULL, &a.view, &b.view, tasks, 0, NULL, ranks, err),
                 PNB_ARG, "no ranking task");
    assert_fails(pnb_ranks_compute_tasks(NULL, &a.view, &b.view, tasks, 2, NULL, ranks, err),
                 PNB_ARG, "task 1 has folds for one side only");
    assert_fails(pnb_ranks_compute_tasks(NULL, &b.view, &a.view, tasks, 1, NULL, ranks, err),
                 PNB_SHAPE, "6 and 4 rows");
    b.log_var[3 * 5] = NAN;
    assert_fails(pnb_ranks_compute_tasks(NULL, &a.view, &b.view, tasks, 1, NULL, ranks, err),
                 PNB_NUMERIC, "item 3");
    assert_null(ranks[0].best_rank);
    pnb_truth_free(truth);
    free_gaussians(&a);
    free_gaussians(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_sets_equal_scores),
        cmocka_unit_test(bad_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
