/* Ranks under several truths and folds, plausible matches and the COCO table, against counting. */
#include "penumbra/bootstrap.h"
#include "penumbra/coco.h"
#include "penumbra/pmrp.h"
#include "penumbra/retrieval.h"
#include "tests/eval/expected.h"

enum { Q = 30, M = 47 };

static void fill_row(void *user, size_t query, double *score)
{
    memcpy(score, (const double *)user + query * M, M * sizeof *score);
}

static double *tied_scores(uint64_t seed)
{
    double *score = malloc(Q * M * sizeof *score);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    assert_non_null(score);
    for (size_t i = 0; i < Q * M; i++)
        score[i] = (double)pnb__rng_below(&rng, 25);
    return score;
}

/* Place of an item among those of a fold (or all), from 1. */
static size_t place(const double *score, const int32_t *fold, int32_t own, size_t item)
{
    size_t n = 1;
    for (size_t j = 0; j < M; j++)
        if (fold == NULL || fold[j] == own)
            n += score[j] > score[item] || (score[j] == score[item] && j < item);
    return n;
}

static pnb_truth *random_truth(uint64_t seed, size_t n_pairs)
{
    int64_t pairs[2 * 200];
    pnb_truth *truth = NULL;
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 1);
    assert_true(n_pairs <= 200);
    for (size_t i = 0; i < n_pairs; i++) {
        pairs[2 * i] = (int64_t)pnb__rng_below(&rng, Q);
        pairs[2 * i + 1] = (int64_t)pnb__rng_below(&rng, M);
    }
    assert_ok(pnb_truth_create_pairs(&truth, Q, M, pairs, n_pairs, err));
    return truth;
}

static void tasks_equal_counting(void **state)
{
    (void)state;
    double *score = tied_scores(1), precision[Q * 2];
    pnb_truth *truth[2] = {random_truth(2, 120), random_truth(3, 40)};
    int32_t query_fold[Q], item_fold[M];
    const size_t k[] = {3, 100};
    pnb_ranks ranks[3], direct;
    for (size_t q = 0; q < Q; q++)
        query_fold[q] = (int32_t)(q % 4) - 1;
    for (size_t j = 0; j < M; j++)
        item_fold[j] = (int32_t)(j % 4) - 1;
    const pnb_rank_task tasks[] = {
        {.truth = truth[0], .precision_k = k, .n_precision = 2, .precision = precision},
        {.truth = truth[1]},
        {.truth = truth[0], .query_fold = query_fold, .item_fold = item_fold}};
    assert_ok(pnb_ranks_from_rows(NULL, fill_row, score, tasks, 3, ranks, err));
    for (size_t q = 0; q < Q; q++) {
        const double *row = score + q * M;
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
    assert_memory_equal(direct.best_rank, ranks[1].best_rank, Q * sizeof(int64_t));
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

/* PMRP by explicit truths, one a zeta, through the ordinary ranks. */
static void plausible_matches(void **state)
{
    (void)state;
    enum { L = 70, ZETA = 3 };
    uint8_t query[Q * L] = {0}, item[M * L] = {0};
    double *score = tied_scores(9), per_query[Q * (ZETA + 1)];
    pnb__rng rng;
    pnb__rng_init(&rng, 7, 0);
    for (size_t q = 0; q < Q; q++)
        query[q * L + 69] = query[q * L + pnb__rng_below(&rng, 3)] = 1;
    for (size_t j = 0; j < M; j++)
        item[j * L + 69] = item[j * L + pnb__rng_below(&rng, 4)] = 1;
    const pnb_label_vectors labels = {Q, M, L, query, item, NULL, NULL};
    pnb_pmrp p;
    assert_ok(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, ZETA, &p, per_query, err));
    double mean = 0.0;
    for (int z = 0; z <= ZETA; z++) {
        int64_t pairs[2 * Q * M];
        size_t n = 0;
        pnb_truth *truth = NULL;
        pnb_ranks ranks;
        pnb_direction d;
        const size_t k[] = {1};
        for (size_t q = 0; q < Q; q++)
            for (size_t j = 0; j < M; j++) {
                int differ = 0;
                for (size_t l = 0; l < L; l++)
                    differ += query[q * L + l] != item[j * L + l];
                if (differ <= z) {
                    pairs[2 * n] = (int64_t)q;
                    pairs[2 * n++ + 1] = (int64_t)j;
                }
            }
        assert_ok(pnb_truth_create_pairs(&truth, Q, M, pairs, n, err));
        assert_ok(pnb_ranks_from_scores(score, truth, &ranks, err));
        assert_ok(pnb_direction_summarise(&ranks, k, 1, &d, err));
        assert_near(p.r_precision[z], d.r_precision, 1e-14, 0);
        assert_near(p.recall_1[z], d.recall[0], 1e-14, 0);
        assert_int_equal(p.n_queries[z], d.n_queries);
        for (size_t q = 0; q < Q; q++) {
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

/* ---- the COCO table ---- */

enum { IMAGES = 10, TEXTS = 50 };

static void i2t_row(void *user, size_t image, double *score)
{
    for (size_t t = 0; t < TEXTS; t++)
        score[t] = ((const double *)user)[image * TEXTS + t];
}

static void t2i_row(void *user, size_t text, double *score)
{
    for (size_t i = 0; i < IMAGES; i++)
        score[i] = ((const double *)user)[i * TEXTS + text];
}

static void coco_table(void **state)
{
    (void)state;
    double score[IMAGES * TEXTS], hits = 0.0;
    int64_t pairs[2 * TEXTS];
    int32_t image_fold[IMAGES], text_fold[TEXTS];
    size_t order[TEXTS];
    pnb_truth *t2i = NULL, *i2t = NULL;
    pnb_coco_figures f;
    pnb__rng rng;
    pnb__rng_init(&rng, 21, 0);
    for (size_t t = 0; t < TEXTS; t++) {
        pairs[2 * t] = (int64_t)t;
        pairs[2 * t + 1] = (int64_t)(t % IMAGES); /* captions of a picture are scattered */
        order[t] = (t % 5) * 10 + t / 5;          /* so that this order gathers them */
    }
    for (size_t i = 0; i < IMAGES * TEXTS; i++)
        score[i] = pnb__rng_uniform(&rng) + (i % IMAGES == i / TEXTS ? 0.5 : 0.0);
    assert_ok(pnb_truth_create_pairs(&t2i, TEXTS, IMAGES, pairs, TEXTS, err));
    assert_ok(pnb_truth_transpose(&i2t, t2i, err));
    assert_fails(pnb_coco_folds(t2i, NULL, 0, image_fold, text_fold, err), PNB_ARG, "in folds");
    assert_ok(pnb_coco_folds(t2i, order, TEXTS, image_fold, text_fold, err));
    for (size_t i = 0; i < IMAGES; i++)
        assert_int_equal(image_fold[i], i / 2);
    const pnb_coco_rows rows = {i2t_row, t2i_row, score};
    pnb_coco_truth truth = {
        .original_i2t = i2t, .original_t2i = t2i, .image_fold = image_fold, .text_fold = text_fold};
    assert_ok(pnb_coco_from_rows(NULL, &rows, &truth, &f, err));
    /* a fold has two pictures: caption t is right when its own scores above the other */
    for (size_t t = 0; t < TEXTS; t++) {
        size_t own = t % IMAGES, other = own ^ 1;
        hits += score[own * TEXTS + t] > score[other * TEXTS + t];
    }
    assert_near(f.coco_1k_r[0].t2i, hits / TEXTS, 1e-14, 0);
    assert_near(f.coco_1k_r[1].t2i, 1.0, 1e-14, 0);
    assert_true(f.coco_5k_r[0].t2i < f.coco_1k_r[0].t2i && isnan(f.cxc_r[0].i2t));
    truth.cxc_i2t = truth.eccv_i2t = i2t;
    truth.cxc_t2i = truth.eccv_t2i = t2i;
    assert_ok(pnb_coco_from_rows(NULL, &rows, &truth, &f, err));
    assert_true(f.cxc_r[1].i2t == f.coco_5k_r[1].i2t && f.eccv_r[0].t2i == f.coco_5k_r[0].t2i);
    assert_near(f.eccv_rprecision.t2i, f.coco_5k_r[0].t2i, 1e-14, 0); /* R is 1 */
    assert_near(f.eccv_map_at_r.t2i, f.coco_5k_r[0].t2i, 1e-14, 0);
    truth.cxc_t2i = NULL;
    assert_fails(pnb_coco_from_rows(NULL, &rows, &truth, &f, err), PNB_ARG, "one direction");
    pnb_truth_free(t2i);
    pnb_truth_free(i2t);
}

/* PMRP in folds: R-Precision under one truth a zeta inside each fold, averaged by hand. */
static void plausible_in_folds(void **state)
{
    (void)state;
    enum { L = 6, ZETA = 2 };
    uint8_t query[Q * L], item[M * L];
    int32_t query_fold[Q], item_fold[M];
    double *score = tied_scores(19), per_query[Q * (ZETA + 1)], pmrp = 0.0;
    pnb_pmrp p;
    pnb_pmrp_intervals bare;
    pnb__rng rng;
    pnb__rng_init(&rng, 17, 0);
    for (size_t i = 0; i < Q * L; i++)
        query[i] = (uint8_t)pnb__rng_below(&rng, 2);
    for (size_t i = 0; i < M * L; i++)
        item[i] = (uint8_t)pnb__rng_below(&rng, 2);
    for (size_t q = 0; q < Q; q++) /* folds of 4 to 12 queries, some queries in none */
        query_fold[q] = q < 12 ? 3 : (int32_t)(q % 4) - 1;
    for (size_t j = 0; j < M; j++)
        item_fold[j] = (int32_t)(j % 6) - 1;
    const pnb_label_vectors labels = {Q, M, L, query, item, query_fold, item_fold};
    assert_ok(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, ZETA, &p, per_query, err));
    for (size_t z = 0; z <= ZETA; z++) {
        double sum[5] = {0}, n[5] = {0}, mean = 0.0, n_folds = 0.0;
        for (size_t q = 0; q < Q; q++) {
            size_t r = 0, hits = 0;
            bool fits[M] = {false};
            for (size_t j = 0; j < M && query_fold[q] >= 0; j++) {
                size_t differ = 0;
                for (size_t l = 0; l < L; l++)
                    differ += query[q * L + l] != item[j * L + l];
                fits[j] = item_fold[j] == query_fold[q] && differ <= z;
                r += fits[j];
            }
            for (size_t j = 0; j < M; j++)
                hits += fits[j] && place(score + q * M, item_fold, query_fold[q], j) <= r;
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
    const pnb_pmrp_values values = {per_query, query_fold, NULL, Q, ZETA};
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

/* Sets and their scores give one table. */
static void coco_from_sets(void **state)
{
    (void)state;
    gaussians images = random_gaussians(IMAGES, 6, -4, -1, 1);
    gaussians texts = random_gaussians(TEXTS, 6, -4, -1, 2);
    double score[IMAGES * TEXTS];
    int64_t pairs[2 * TEXTS];
    int32_t image_fold[IMAGES], text_fold[TEXTS];
    pnb_truth *t2i = NULL, *i2t = NULL;
    pnb_coco_figures a, b;
    for (size_t t = 0; t < TEXTS; t++) {
        pairs[2 * t] = (int64_t)t;
        pairs[2 * t + 1] = (int64_t)(t / 5);
    }
    assert_ok(pnb_truth_create_pairs(&t2i, TEXTS, IMAGES, pairs, TEXTS, err));
    assert_ok(pnb_truth_transpose(&i2t, t2i, err));
    assert_ok(pnb_coco_folds(t2i, NULL, 0, image_fold, text_fold, err));
    assert_ok(pnb_measure_block(PNB_MEASURE_CSD, &images.view, &texts.view, NULL, score, err));
    for (size_t i = 0; i < IMAGES * TEXTS; i++)
        score[i] = pnb_measure_score(PNB_MEASURE_CSD, score[i]);
    const pnb_coco_rows rows = {i2t_row, t2i_row, score};
    const pnb_coco_truth truth = {
        .original_i2t = i2t, .original_t2i = t2i, .image_fold = image_fold, .text_fold = text_fold};
    assert_ok(pnb_coco_from_rows(NULL, &rows, &truth, &a, err));
    assert_ok(pnb_coco_compute(NULL, &images.view, &texts.view, &truth, NULL, &b, err));
    for (size_t k = 0; k < 3; k++) {
        assert_true(a.coco_5k_r[k].i2t == b.coco_5k_r[k].i2t);
        assert_true(a.coco_1k_r[k].t2i == b.coco_1k_r[k].t2i);
    }
    pnb_truth_free(t2i);
    pnb_truth_free(i2t);
    free_gaussians(&images);
    free_gaussians(&texts);
}

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

static void nan_row(void *user, size_t query, double *score)
{
    fill_row(user, query, score);
    if (query == 4)
        score[6] = NAN;
}

static void bad_input(void **state)
{
    (void)state;
    double *score = tied_scores(1);
    uint8_t two[2 * M] = {0, 2};
    int32_t fold[M] = {0};
    const size_t zero[] = {0};
    double precision[Q];
    pnb_truth *truth = random_truth(2, 30), *other = NULL;
    pnb_ranks ranks[2];
    pnb_pmrp p;
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
    pnb_label_vectors labels = {1, 1, 2, two, two, NULL, NULL};
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 2, &p, NULL, err), PNB_ARG,
                 "label 1 of row 0 is 2");
    two[1] = 1;
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 8, &p, NULL, err), PNB_ARG,
                 "zeta");
    labels = (pnb_label_vectors){1, M, 1, two + 1, two + 2, NULL, NULL};
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 0, &p, NULL, err), PNB_ARG,
                 "at most 0 places");
    labels.n_labels = 0;
    assert_fails(pnb_pmrp_from_rows(NULL, fill_row, score, &labels, 0, &p, NULL, err), PNB_ARG,
                 "none may be 0");
    pnb_truth_free(truth);
    pnb_truth_free(other);
    free(score);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_equal_counting),
        cmocka_unit_test(positives_outside),
        cmocka_unit_test(plausible_matches),
        cmocka_unit_test(plausible_in_folds),
        cmocka_unit_test(coco_table),
        cmocka_unit_test(coco_from_sets),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(tasks_of_sets_equal_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
