/* Ranks of several processes are those of one, bit for bit: where one pass serves both directions,
 * where it does not, and with more processes than queries. */
#include "tests/peers/together.h"

#include "eval/retrieval/ranks.h"
#include "tests/eval/retrieval/ranking.h"

enum { A = 150, B = 340, D = 6, N = 380 };

static gaussians a, b;
static pnb_truth *truth, *few;
static pnb_measure measure;

static bool is_same(const pnb_ranks *x, const pnb_ranks *y)
{
    size_t n = x->n_queries;
    return n == y->n_queries && memcmp(x->best_rank, y->best_rank, n * sizeof *x->best_rank) == 0 &&
           memcmp(x->top1, y->top1, n * sizeof *x->top1) == 0 &&
           memcmp(x->top1_score, y->top1_score, n * sizeof *x->top1_score) == 0 &&
           memcmp(x->r_precision, y->r_precision, n * sizeof *x->r_precision) == 0 &&
           memcmp(x->map_at_r, y->map_at_r, n * sizeof *x->map_at_r) == 0;
}

static int rank_all(pnb_peers *peers)
{
    const pnb_gaussians x = {.n = A, .dim = D, .mean = a.mean, .log_var = a.log_var};
    const pnb_gaussians y = {.n = B, .dim = D, .mean = b.mean, .log_var = b.log_var};
    const pnb_gaussians three = {.n = 3, .dim = D, .mean = a.mean, .log_var = a.log_var};
    pnb_search_opts o = pnb_search_opts_default();
    o.measure = measure;
    for (int small = 0; small < 2; small++) {
        pnb_retrieval_job job = {
            .a = small ? &three : &x, .b = &y, .truth = small ? few : truth, .opts = &o};
        pnb_retrieval alone, together;
        pnb_ranks r[4];
        if (pnb_retrieval_compute(NULL, &job, &alone, &r[0], &r[1], NULL) != PNB_OK)
            return 1;
        job.ranks = peers;
        if (pnb_retrieval_compute(NULL, &job, &together, &r[2], &r[3], NULL) != PNB_OK)
            return 2;
        bool same = is_same(&r[0], &r[2]) && is_same(&r[1], &r[3]) && alone.rsum == together.rsum;
        for (int i = 0; i < 4; i++)
            pnb_ranks_reset(&r[i]);
        if (!same)
            return 3;
    }
    return 0;
}

static void ranks_of_several_are_those_of_one(void **state)
{
    int64_t pair[2 * N];
    pnb__rng rng;
    (void)state;
    a = random_gaussians(A, D, -6, -5, 41);
    b = random_gaussians(B, D, -6, -5, 42);
    pnb__rng_init(&rng, 6, 0);
    for (size_t i = 0; i < N; i++) {
        pair[2 * i] = (int64_t)pnb__rng_below(&rng, A - 9);
        pair[2 * i + 1] = (int64_t)pnb__rng_below(&rng, B - 20);
    }
    ASSERT_OK(pnb_truth_create_pairs(&truth, A, B, pair, N, &err));
    for (size_t i = 0; i < N; i++)
        pair[2 * i] %= 3;
    ASSERT_OK(pnb_truth_create_pairs(&few, 3, B, pair, N, &err));
    for (int m = 0; m < 2; m++) {
        measure = m == 0 ? PNB_MEASURE_CSD : PNB_MEASURE_INCLUSION;
        for (size_t n = 2; n <= 7; n += 5)
            play_together(n, 20, rank_all, NULL);
    }
    pnb_truth_free(truth);
    pnb_truth_free(few);
    free_gaussians(&a);
    free_gaussians(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_of_several_are_those_of_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
