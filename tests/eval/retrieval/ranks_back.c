/* The other direction out of the pass of the first: what each direction gives alone, ties, near
 * ties and rows without a match included. */
#include "eval/retrieval/ranks.h"

#include "tests/eval/retrieval/ranking.h"

/* Both directions at once give what each gives alone, ties, near ties and rows without a match
 * included. */
static void both_ways_equal_each_way(void **state)
{
    (void)state;
    enum { A = 700, B = 1900, D = 14, N = 2100 };
    gaussians a = random_gaussians(A, D, -6, -5, 41), b = random_gaussians(B, D, -6, -5, 42);
    int64_t pair[2 * N];
    pnb_truth *truth = NULL, *back = NULL;
    pnb__rng rng;
    pnb__rng_init(&rng, 6, 0);
    for (size_t i = 0; i < N; i++) {
        pair[2 * i] = (int64_t)pnb__rng_below(&rng, A - 30);
        pair[2 * i + 1] = (int64_t)pnb__rng_below(&rng, B - 60);
    }
    for (size_t i = 1; i < B; i += 2) { /* twins, some a unit in the last place apart */
        memcpy(b.mean + i * D, b.mean + (i - 1) * D, D * sizeof(float));
        memcpy(b.log_var + i * D, b.log_var + (i - 1) * D, D * sizeof(float));
        if (i % 3 == 0)
            b.mean[i * D] = nextafterf(b.mean[i * D], 2.0f);
    }
    for (size_t i = 1; i < A; i += 2) {
        memcpy(a.mean + i * D, a.mean + (i - 1) * D, D * sizeof(float));
        memcpy(a.log_var + i * D, a.log_var + (i - 1) * D, D * sizeof(float));
    }
    assert_ok(pnb_truth_create_pairs(&truth, A, B, pair, N, err));
    assert_ok(pnb_truth_transpose(&back, truth, err));
    for (int m = 0; m < PNB_MEASURE_AVG_L2; m++)
        for (int t = 1; t <= 5; t += 2) {
            pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
            pnb_search_opts o = pnb_search_opts_default();
            pnb_ctx *ctx = NULL;
            pnb_retrieval r;
            pnb_ranks both[2], alone[2];
            if (m > PNB_MEASURE_KL && (t > 1 || m != PNB_MEASURE_INCLUSION))
                continue;
            ctx_opts.n_threads = t;
            o.measure = (pnb_measure)m;
            assert_ok(pnb_ctx_create(&ctx, &ctx_opts, err));
            pnb_retrieval_job job = {.a = &a.view, .b = &b.view, .truth = truth, .opts = &o};
            assert_ok(pnb_retrieval_compute(ctx, &job, &r, &both[0], &both[1], err));
            assert_ok(pnb_ranks_compute(ctx, &a.view, &b.view, truth, &o, &alone[0], err));
            o.reverse = true;
            assert_ok(pnb_ranks_compute(ctx, &b.view, &a.view, back, &o, &alone[1], err));
            for (int way = 0; way < 2; way++) {
                size_t n = way == 0 ? A : B;
                assert_int_equal(both[way].n_queries, n);
                assert_memory_equal(both[way].best_rank, alone[way].best_rank, n * 8);
                assert_memory_equal(both[way].top1, alone[way].top1, n * 8);
                assert_memory_equal(both[way].top1_score, alone[way].top1_score, n * 8);
                assert_memory_equal(both[way].map_at_r, alone[way].map_at_r, n * 8);
                pnb_ranks_reset(&both[way]);
                pnb_ranks_reset(&alone[way]);
            }
            pnb_ctx_free(ctx);
        }
    pnb_truth_free(truth);
    pnb_truth_free(back);
    free_gaussians(&a);
    free_gaussians(&b);
}

/* Asymmetric measures rank both ways by the same pair values. */
static void backward_uses_the_transposed_matrix(void **state)
{
    (void)state;
    enum { A = 17, B = 23, D = 6 };
    gaussians a = random_gaussians(A, D, -3, 0, 3), b = random_gaussians(B, D, -3, 0, 4);
    double value[A * B], score[B * A];
    int64_t pairs[2 * B];
    for (size_t j = 0; j < B; j++) {
        pairs[2 * j] = (int64_t)(j % A);
        pairs[2 * j + 1] = (int64_t)j;
    }
    pnb_truth *truth = NULL, *back = NULL;
    pnb_retrieval r;
    pnb_ranks backward;
    pnb_search_opts o = pnb_search_opts_default();
    o.measure = PNB_MEASURE_INCLUSION;
    assert_ok(pnb_truth_create_pairs(&truth, A, B, pairs, B, err));
    assert_ok(pnb_truth_transpose(&back, truth, err));
    assert_ok(pnb_measure_block(o.measure, &a.view, &b.view, NULL, value, err));
    for (size_t i = 0; i < A; i++)
        for (size_t j = 0; j < B; j++)
            score[j * A + i] = value[i * B + j];
    pnb_retrieval_job job = {.a = &a.view, .b = &b.view, .truth = truth, .opts = &o};
    assert_ok(pnb_retrieval_compute(NULL, &job, &r, NULL, &backward, err));
    for (size_t j = 0; j < B; j++)
        expect_query(&backward, back, j, score + j * A);
    pnb_ranks_reset(&backward);
    pnb_truth_free(truth);
    pnb_truth_free(back);
    free_gaussians(&a);
    free_gaussians(&b);
}

/* Sets whose terms floats would not tell apart, and items with many positives, are ranked the long
 * way: the results do not show it. */
static void where_one_pass_does_not_do(void **state)
{
    (void)state;
    enum { A = 80, B = 60, D = 5 };
    for (int many = 0; many < 2; many++) {
        gaussians a = random_gaussians(A, D, many ? -3 : -9, many ? 0 : 8, 11);
        gaussians b = random_gaussians(B, D, many ? -3 : -9, many ? 0 : 8, 12);
        int64_t la[A], lb[B];
        double value[A * B], score[A * B];
        pnb_truth *truth = NULL, *back = NULL;
        pnb_ranks ranks[2];
        for (size_t i = 0; i < A; i++)
            la[i] = many ? (int64_t)(i % 2) : (int64_t)(i % 23); /* 40 of a label, or 4 */
        for (size_t i = 0; i < B; i++)
            lb[i] = many ? (int64_t)(i % 2) : (int64_t)(i % 23);
        assert_ok(pnb_truth_create_labels(&truth, la, A, lb, B, err));
        assert_ok(pnb_truth_transpose(&back, truth, err));
        pnb_search_opts o = pnb_search_opts_default();
        const pnb__both both = {&a.view, &b.view, truth, back, &o, NULL};
        assert_ok(pnb__ranks_both(NULL, &both, &ranks[0], &ranks[1], err));
        assert_ok(pnb_measure_block(o.measure, &a.view, &b.view, NULL, value, err));
        for (size_t i = 0; i < A; i++)
            for (size_t j = 0; j < B; j++) {
                value[i * B + j] = pnb_measure_score(o.measure, value[i * B + j]);
                score[j * A + i] = value[i * B + j];
            }
        for (size_t i = 0; i < A; i++)
            expect_query(&ranks[0], truth, i, value + i * B);
        for (size_t j = 0; j < B; j++)
            expect_query(&ranks[1], back, j, score + j * A);
        for (int way = 0; way < 2; way++)
            pnb_ranks_reset(&ranks[way]);
        pnb_truth_free(truth);
        pnb_truth_free(back);
        free_gaussians(&a);
        free_gaussians(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_equal_each_way),
        cmocka_unit_test(backward_uses_the_transposed_matrix),
        cmocka_unit_test(where_one_pass_does_not_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
