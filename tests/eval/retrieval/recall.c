/* Ranks and retrieval figures against a brute-force sort, the golden cases and bad input. */
#include "penumbra/retrieval.h"
#include "tests/eval/expected.h"

typedef struct scored {
    double score;
    size_t index;
} scored;

static int compare_scored(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool is_positive(const pnb_truth *t, size_t q, size_t item)
{
    for (size_t i = t->offset[q]; i < t->offset[q + 1]; i++)
        if (t->item[i] == item)
            return true;
    return false;
}

/* All figures of one query by sorting everything. */
static void expect_query(const pnb_ranks *r, const pnb_truth *t, size_t q, const double *score)
{
    scored *all = malloc(t->n_items * sizeof *all);
    assert_non_null(all);
    size_t n_positive = t->offset[q + 1] - t->offset[q], seen = 0, in_r = 0, best = 0;
    double map = 0.0;
    for (size_t j = 0; j < t->n_items; j++)
        all[j] = (scored){score[j], j};
    qsort(all, t->n_items, sizeof *all, compare_scored);
    for (size_t j = 0; j < t->n_items; j++) {
        if (!is_positive(t, q, all[j].index))
            continue;
        seen++;
        best = best == 0 ? j + 1 : best;
        if (j < n_positive) {
            in_r++;
            map += (double)seen / (double)(j + 1);
        }
    }
    assert_int_equal(r->best_rank[q], best);
    assert_int_equal(r->top1[q], all[0].index);
    if (n_positive == 0) {
        assert_true(isnan(r->r_precision[q]) && isnan(r->map_at_r[q]));
    } else {
        assert_near(r->r_precision[q], (double)in_r / (double)n_positive, 1e-15, 0.0);
        assert_near(r->map_at_r[q], map / (double)n_positive, 1e-14, 0.0);
    }
    free(all);
}

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

/* A perfect and a reversed retrieval, both ways, with hand-known figures. */
static void both_ways(void **state)
{
    (void)state;
    enum { N = 12 };
    float mean[N * N] = {0};
    pnb_truth *truth = NULL;
    pnb_retrieval r;
    pnb_ranks forward, backward;
    for (size_t i = 0; i < N; i++)
        mean[i * N + i] = 1.0f;
    pnb_gaussians g = {.n = N, .dim = N, .mean = mean};
    const size_t k[] = {1, 3, 50};
    assert_ok(pnb_truth_create_aligned(&truth, N, err));
    pnb_retrieval_job job = {.a = &g, .b = &g, .truth = truth};
    assert_ok(pnb_retrieval_compute(NULL, &job, &r, &forward, &backward, err));
    assert_int_equal(r.n_k, 3);
    assert_true(r.rsum == 6.0 && r.forward.median_rank == 1.0 && r.backward.r_precision == 1.0);
    assert_true(r.k[0] == 1 && r.k[1] == 5 && r.k[2] == 10);
    for (size_t i = 0; i < N; i++)
        assert_true(forward.best_rank[i] == 1 && backward.top1[i] == (int64_t)i);
    pnb_ranks_reset(&forward);
    pnb_ranks_reset(&backward);
    pnb_truth_free(truth);
    /* query i matches item i+1: everything but its own item ties at cosine 0, lower index first */
    int64_t pairs[2 * N];
    for (size_t i = 0; i < N; i++) {
        pairs[2 * i] = (int64_t)i;
        pairs[2 * i + 1] = (int64_t)((i + 1) % N);
    }
    assert_ok(pnb_truth_create_pairs(&truth, N, N, pairs, N, err));
    job = (pnb_retrieval_job){.a = &g, .b = &g, .truth = truth, .k = k, .n_k = 3};
    assert_ok(pnb_retrieval_compute(NULL, &job, &r, NULL, NULL, err));
    /* forward ranks: item i+1 is at i+2 for i < N-1; item 0 at 2 for the last query */
    assert_near(r.forward.recall[0], 0.0, 0, 0);
    assert_near(r.forward.recall[1], 3.0 / N, 1e-15, 0);
    assert_near(r.forward.recall[2], 1.0, 0, 0);
    assert_near(r.forward.mean_rank, (2.0 + 77.0) / N, 1e-14, 0);
    pnb_truth_free(truth);
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

static void golden_recall(void **state)
{
    (void)state;
    enum { I = 15, T = 75, D = 8 };
    pnb_safetensors *file = open_case("metrics/recall");
    json_t *want = load_expected("metrics/recall");
    double *zi = case_values(file, "z_image", NULL), *zt = case_values(file, "z_text", NULL);
    double *i2t = case_values(file, "i2t_top10", NULL), *t2i = case_values(file, "t2i_top10", NULL);
    float *fi = to_floats(zi, I * D), *ft = to_floats(zt, T * D);
    pnb_gaussians images = {.n = I, .dim = D, .mean = fi}, texts = {.n = T, .dim = D, .mean = ft};
    int64_t pairs[2 * T];
    for (size_t t = 0; t < T; t++) {
        pairs[2 * t] = (int64_t)(t / 5);
        pairs[2 * t + 1] = (int64_t)t;
    }
    pnb_truth *truth = NULL;
    pnb_retrieval r;
    pnb_hits hits;
    pnb_search_opts o = pnb_search_opts_default();
    o.measure = PNB_MEASURE_MEAN;
    assert_ok(pnb_truth_create_pairs(&truth, I, T, pairs, T, err));
    pnb_retrieval_job job = {.a = &images, .b = &texts, .truth = truth, .opts = &o};
    assert_ok(pnb_retrieval_compute(NULL, &job, &r, NULL, NULL, err));
    for (size_t i = 0; i < 3; i++) {
        assert_near(r.forward.recall[i], element(want, "i2t", i), 1e-12, 1e-12);
        assert_near(r.backward.recall[i], element(want, "t2i_exact", i), 1e-12, 1e-12);
    }
    assert_ok(pnb_search(NULL, &images, &texts, &o, &hits, err));
    for (size_t i = 0; i < I * 10; i++)
        assert_int_equal(hits.index[i], (int64_t)i2t[i]);
    pnb_hits_reset(&hits);
    assert_ok(pnb_search(NULL, &texts, &images, &o, &hits, err));
    for (size_t i = 0; i < T * 10; i++)
        assert_int_equal(hits.index[i], (int64_t)t2i[i]);
    pnb_hits_reset(&hits);
    double *all[] = {zi, zt, i2t, t2i};
    for (size_t i = 0; i < 4; i++)
        free(all[i]);
    free(fi);
    free(ft);
    pnb_truth_free(truth);
    json_decref(want);
    pnb_safetensors_free(file);
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

static void bad_input(void **state)
{
    (void)state;
    gaussians a = random_gaussians(4, 5, -3, 0, 6), b = random_gaussians(6, 5, -3, 0, 7);
    const int64_t pair[] = {1, 2};
    double score[24] = {0};
    size_t zero[] = {1, 0}, many[PNB_MAX_RECALLS + 1] = {1};
    pnb_truth *truth = NULL;
    pnb_ranks ranks;
    pnb_direction d;
    pnb_retrieval r;
    assert_ok(pnb_truth_create_pairs(&truth, 4, 6, pair, 1, err));
    assert_fails(pnb_ranks_compute(NULL, &b.view, &a.view, truth, NULL, &ranks, err), PNB_SHAPE,
                 "6 and 4 rows");
    score[13] = NAN;
    assert_fails(pnb_ranks_from_scores(score, truth, &ranks, err), PNB_NUMERIC,
                 "query 2 and item 1");
    score[13] = 0;
    assert_ok(pnb_ranks_from_scores(score, truth, &ranks, err));
    assert_fails(pnb_direction_summarise(&ranks, zero, 2, &d, err), PNB_ARG, "cut-off 1");
    assert_fails(pnb_direction_summarise(&ranks, many, PNB_MAX_RECALLS + 1, &d, err), PNB_ARG,
                 "cut-offs");
    assert_ok(pnb_direction_summarise(&ranks, zero, 1, &d, err));
    assert_true(d.n_queries == 1 && d.n_skipped == 3 && d.mean_rank == 3.0);
    for (size_t i = 0; i < 4; i++)
        ranks.best_rank[i] = 0;
    assert_fails(pnb_direction_summarise(&ranks, zero, 1, &d, err), PNB_ARG, "none of the 4");
    pnb_ranks_reset(&ranks);
    b.mean[4 * 5] = NAN;
    pnb_retrieval_job job = {.a = &a.view, .b = &b.view, .truth = truth};
    assert_fails(pnb_retrieval_compute(NULL, &job, &r, NULL, NULL, err), PNB_NUMERIC, "item 4");
    pnb_truth_free(truth);
    free_gaussians(&a);
    free_gaussians(&b);
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    gaussians a = random_gaussians(4, 5, -3, 0, 6), b = random_gaussians(4, 5, -3, 0, 7);
    pnb_truth *truth = NULL;
    pnb_status status = PNB_NOMEM;
    assert_ok(pnb_truth_create_aligned(&truth, 4, err));
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_retrieval r;
        pnb_ranks forward = {0}, backward = {0};
        pnb_retrieval_job job = {.a = &a.view, .b = &b.view, .truth = truth};
        pnb__alloc_fail_after(n);
        status = pnb_retrieval_compute(NULL, &job, &r, &forward, &backward, &err);
        pnb__alloc_fail_after(-1);
        assert_true(status == PNB_OK || (status == PNB_NOMEM && forward.best_rank == NULL));
        assert_true(n < 200);
        pnb_ranks_reset(&forward);
        pnb_ranks_reset(&backward);
    }
    pnb_truth_free(truth);
    free_gaussians(&a);
    free_gaussians(&b);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_equal_brute_force),
        cmocka_unit_test(embeddings_equal_their_scores),
        cmocka_unit_test(ranks_do_not_round),
        cmocka_unit_test(both_ways_equal_each_way),
        cmocka_unit_test(both_ways),
        cmocka_unit_test(backward_uses_the_transposed_matrix),
        cmocka_unit_test(golden_recall),
        cmocka_unit_test(golden_class_retrieval),
        cmocka_unit_test(golden_rankings),
        cmocka_unit_test(bad_input),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
