/* Ranks by likelihoods on the sphere, out of bounds and out of the matrix of all scores. */
#include "penumbra/retrieval.h"
#include "tests/index/exact/sphere_rows.h"

static void ranks_of_all_scores(void **state)
{
    (void)state;
    enum { N = 90, M = 700, D = 20 };
    for (size_t m = 0; m < PNB_COUNT(MEASURES); m++)
        for (int sides = 0; sides < 3; sides++) {
            bool is_power = MEASURES[m] == PNB_MEASURE_POWER_SPHERICAL;
            sphere q = random_sphere(N, D, is_power, 1e3, 60),
                   x = random_sphere(M, D, is_power, 1e3, 61);
            pnb_search_opts o = pnb_search_opts_default();
            pnb_truth *truth = NULL;
            pnb_ranks fast, slow;
            int64_t pairs[2 * M];
            double *score = malloc(sizeof(double) * N * M);
            assert_non_null(score);
            choose_sides(sides, &q, &x);
            o.measure = MEASURES[m];
            assert_ok(pnb_measure_block(o.measure, &q.rows, &x.rows, NULL, score, err));
            for (size_t j = 0; j < M; j++) { /* 7 or 8 of a query; of query 0 many */
                pairs[2 * j] = j < 100 ? 0 : (int64_t)(j % N);
                pairs[2 * j + 1] = (int64_t)j;
            }
            assert_ok(pnb_truth_create_pairs(&truth, N, M, pairs, M, err));
            assert_ok(pnb_ranks_compute(NULL, &q.rows, &x.rows, truth, &o, &fast, err));
            assert_ok(pnb_ranks_from_scores(score, truth, &slow, err));
            assert_memory_equal(fast.best_rank, slow.best_rank, N * sizeof *fast.best_rank);
            assert_memory_equal(fast.top1, slow.top1, N * sizeof *fast.top1);
            assert_memory_equal(fast.map_at_r, slow.map_at_r, N * sizeof *fast.map_at_r);
            pnb_ranks_reset(&fast);
            pnb_ranks_reset(&slow);
            pnb_truth_free(truth);
            free(score);
            free_sphere(&q);
            free_sphere(&x);
        }
}

/* Both directions of captions with concentrations and pictures without, as AsymVLM has them. */
static void both_directions(void **state)
{
    (void)state;
    enum { N = 40, M = 200, D = 16 };
    sphere images = random_sphere(N, D, false, 300, 62),
           texts = random_sphere(M, D, false, 300, 63);
    pnb_search_opts o = pnb_search_opts_default();
    pnb_truth *truth = NULL, *back = NULL;
    pnb_retrieval figures;
    pnb_ranks forward, backward, want;
    int64_t pairs[2 * M];
    double *score = malloc(sizeof(double) * N * M);
    assert_non_null(score);
    choose_sides(1, &images, &texts);
    o.measure = PNB_MEASURE_VMF;
    for (size_t j = 0; j < M; j++) {
        pairs[2 * j] = (int64_t)(j / 5);
        pairs[2 * j + 1] = (int64_t)j;
    }
    assert_ok(pnb_truth_create_pairs(&truth, N, M, pairs, M, err));
    assert_ok(pnb_truth_transpose(&back, truth, err));
    const pnb_retrieval_job job = {&images.rows, &texts.rows, truth, &o, NULL, 0, NULL};
    assert_ok(pnb_retrieval_compute(NULL, &job, &figures, &forward, &backward, err));
    assert_ok(pnb_measure_block(o.measure, &images.rows, &texts.rows, NULL, score, err));
    assert_ok(pnb_ranks_from_scores(score, truth, &want, err));
    assert_memory_equal(forward.best_rank, want.best_rank, N * sizeof *want.best_rank);
    pnb_ranks_reset(&want);
    assert_ok(pnb_measure_block(o.measure, &texts.rows, &images.rows, NULL, score, err));
    assert_ok(pnb_ranks_from_scores(score, back, &want, err));
    assert_memory_equal(backward.best_rank, want.best_rank, M * sizeof *want.best_rank);
    pnb_ranks_reset(&want);
    pnb_ranks_reset(&forward);
    pnb_ranks_reset(&backward);
    pnb_truth_free(truth);
    pnb_truth_free(back);
    free(score);
    free_sphere(&images);
    free_sphere(&texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_all_scores),
        cmocka_unit_test(both_directions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
