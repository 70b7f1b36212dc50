/* Ranks between two sets by bounds: the same as from all f64 scores, where f32 cannot tell too,
 * with any number of threads. */
#include "eval/retrieval/ranks.h"

#include "tests/eval/retrieval/ranking.h"

static void embeddings_equal_their_scores(void **state)
{
    (void)state;
    enum { Q = 150, N = 1111, D = 10 };
    gaussians q = random_gaussians(Q, D, -4, 0, 1), x = random_gaussians(N, D, -4, 0, 2);
    int64_t ql[Q], il[N];
    for (size_t i = 0; i < Q; i++)
        ql[i] = (int64_t)(i % 40);
    for (size_t i = 0; i < N; i++)
        il[i] = (int64_t)(i % 37);
    double *score = malloc(Q * N * sizeof *score);
    assert_non_null(score);
    pnb_truth *truth = NULL;
    assert_ok(pnb_truth_create_labels(&truth, ql, Q, il, N, err));
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2,
                                    PNB_MEASURE_INCLUSION, PNB_MEASURE_KL};
    for (size_t m = 0; m < PNB_COUNT(measures); m++)
        for (int threads = 1; threads < 4; threads += 2) {
            pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
            pnb_search_opts o = pnb_search_opts_default();
            pnb_ranks ranks;
            pnb_ctx *ctx = NULL;
            ctx_opts.n_threads = threads;
            o.measure = measures[m];
            assert_ok(pnb_ctx_create(&ctx, &ctx_opts, err));
            assert_ok(pnb_measure_block(o.measure, &q.view, &x.view, NULL, score, err));
            for (size_t i = 0; i < Q * N; i++)
                score[i] = pnb_measure_score(o.measure, score[i]);
            assert_ok(pnb_ranks_compute(ctx, &q.view, &x.view, truth, &o, &ranks, err));
            for (size_t i = 0; i < Q; i++) {
                expect_query(&ranks, truth, i, score + i * N);
                assert_near(ranks.top1_score[i], score[i * N + (size_t)ranks.top1[i]], 1e-5, 1e-5);
            }
            pnb_ranks_reset(&ranks);
            pnb_ctx_free(ctx);
        }
    pnb_truth_free(truth);
    free(score);
    free_gaussians(&q);
    free_gaussians(&x);
}

/* Queries with many positives beside queries with few, and items nearer to each other than f32 can
 * tell: the ranks are those of the f64 scores, however many threads there are. */
static void ranks_do_not_round(void **state)
{
    (void)state;
    enum { Q = 30, N = 5000, D = 12 };
    gaussians q = random_gaussians(Q, D, -6, -5, 31), x = random_gaussians(N, D, -6, -5, 32);
    int64_t ql[Q], il[N];
    double *score = malloc((size_t)Q * N * sizeof *score);
    pnb_truth *truth = NULL;
    assert_non_null(score);
    for (size_t i = 0; i < Q; i++)
        ql[i] = (int64_t)(i % 3);
    for (size_t i = 0; i < N; i++) {
        il[i] = i % 50 == 0 ? 0 : i % 400 == 1 ? 1 : 2; /* 100, 13 and many positives */
        if (i % 2 == 0)
            continue;
        memcpy(x.mean + i * D, x.mean + (i - 1) * D, D * sizeof(float));
        memcpy(x.log_var + i * D, x.log_var + (i - 1) * D, D * sizeof(float));
        if (i % 6 == 1) /* the others are ties */
            x.mean[i * D + i % D] = nextafterf(x.mean[i * D + i % D], 0.0f);
    }
    assert_ok(pnb_truth_create_labels(&truth, ql, Q, il, N, err));
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_KL};
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = pnb_search_opts_default();
        pnb_ranks first = {0};
        o.measure = measures[m];
        assert_ok(pnb_measure_block(o.measure, &q.view, &x.view, NULL, score, err));
        for (int t = 1; t <= 4; t++) {
            pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
            pnb_ctx *ctx = NULL;
            pnb_ranks ranks;
            ctx_opts.n_threads = t;
            assert_ok(pnb_ctx_create(&ctx, &ctx_opts, err));
            assert_ok(pnb_ranks_compute(ctx, &q.view, &x.view, truth, &o, &ranks, err));
            for (size_t i = 0; i < Q; i++) {
                double top = pnb_measure_score(o.measure, score[i * N + (size_t)ranks.top1[i]]);
                assert_near(ranks.top1_score[i], top, 1e-12, 1e-11);
                size_t above = 0, level = 0; /* scores apart by less than f64 rounding: either */
                double best = -INFINITY;
                for (size_t j = 0; j < N; j++)
                    if (il[j] == ql[i])
                        best = fmax(best, pnb_measure_score(o.measure, score[i * N + j]));
                for (size_t j = 0; j < N; j++) {
                    double s = pnb_measure_score(o.measure, score[i * N + j]);
                    above += s > best + 1e-12 * fabs(best) + 1e-13;
                    level += fabs(s - best) <= 1e-12 * fabs(best) + 1e-13;
                }
                assert_true((size_t)ranks.best_rank[i] > above);
                assert_true((size_t)ranks.best_rank[i] <= above + level);
            }
            if (t == 1) {
                first = ranks;
            } else {
                assert_memory_equal(ranks.best_rank, first.best_rank, Q * sizeof(int64_t));
                assert_memory_equal(ranks.top1, first.top1, Q * sizeof(int64_t));
                assert_memory_equal(ranks.map_at_r, first.map_at_r, Q * sizeof(double));
                assert_memory_equal(ranks.r_precision, first.r_precision, Q * sizeof(double));
                pnb_ranks_reset(&ranks);
            }
            pnb_ctx_free(ctx);
        }
        pnb_ranks_reset(&first);
    }
    pnb_truth_free(truth);
    free(score);
    free_gaussians(&q);
    free_gaussians(&x);
}

typedef struct told {
    const pnb_truth *truth;
    const double *score;
    size_t n_items, n_queries;
} told;

/* Every positive of the query with its rank, best first. */
static void check_told(void *user, size_t q, const pnb__hit *positive, const size_t *rank, size_t n)
{
    told *t = user;
    assert_int_equal(q, t->n_queries++);
    assert_int_equal(n, t->truth->offset[q + 1] - t->truth->offset[q]);
    const double *row = t->score + q * t->n_items;
    for (size_t i = 0; i < n; i++) {
        size_t item = (size_t)positive[i].index, before = 1;
        assert_true(is_positive(t->truth, q, item));
        assert_near(positive[i].score, row[item], 1e-12, 1e-12);
        for (size_t j = 0; j < t->n_items; j++)
            before += row[j] > row[item] || (row[j] == row[item] && j < item);
        assert_int_equal(rank[i], before);
        assert_true(i == 0 || rank[i] > rank[i - 1]);
    }
}

static void tells_every_rank(void **state)
{
    (void)state;
    enum { A = 21, B = 160, D = 7 };
    gaussians a = random_gaussians(A, D, -4, 0, 8), b = random_gaussians(B, D, -4, 0, 9);
    int64_t la[A], lb[B];
    double score[A * B];
    pnb_truth *truth = NULL;
    pnb_ranks ranks;
    for (size_t i = 0; i < A; i++)
        la[i] = (int64_t)(i % 9);
    for (size_t i = 0; i < B; i++) /* label 0 has many positives, label 8 none */
        lb[i] = i % 2 == 0 ? 0 : (int64_t)(i % 8);
    assert_ok(pnb_truth_create_labels(&truth, la, A, lb, B, err));
    assert_ok(pnb_measure_block(PNB_MEASURE_CSD, &a.view, &b.view, NULL, score, err));
    for (size_t i = 0; i < A * B; i++)
        score[i] = pnb_measure_score(PNB_MEASURE_CSD, score[i]);
    told t = {.truth = truth, .score = score, .n_items = B};
    const pnb__both both = {.a = &a.view, .b = &b.view, .forward = truth};
    const pnb__ranked ranked = {check_told, &t};
    assert_ok(pnb__ranks_tell(NULL, &both, &ranked, &ranks, err));
    assert_int_equal(t.n_queries, A);
    for (size_t q = 0; q < A; q++)
        expect_query(&ranks, truth, q, score + q * B);
    pnb_ranks_reset(&ranks);
    pnb_truth_free(truth);
    free_gaussians(&a);
    free_gaussians(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embeddings_equal_their_scores),
        cmocka_unit_test(ranks_do_not_round),
        cmocka_unit_test(tells_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
