/* Shared by the tests of ranks: all figures of a query by sorting everything, scores full of ties,
 * and random truths. */
#ifndef PNB_TESTS_EVAL_RETRIEVAL_RANKING_H
#define PNB_TESTS_EVAL_RETRIEVAL_RANKING_H

#include "penumbra/retrieval.h"
#include "penumbra/search.h"
#include "tests/eval/expected.h"

typedef struct scored {
    double score;
    size_t index;
} scored;

static inline int compare_scored(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static inline bool is_positive(const pnb_truth *t, size_t q, size_t item)
{
    for (size_t i = t->offset[q]; i < t->offset[q + 1]; i++)
        if (t->item[i] == item)
            return true;
    return false;
}

/* All figures of one query by sorting everything. */
static inline void expect_query(const pnb_ranks *r, const pnb_truth *t, size_t q,
                                const double *score)
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

enum { TIED_Q = 30, TIED_M = 47 };

static inline void fill_row(void *user, size_t query, double *score)
{
    memcpy(score, (const double *)user + query * TIED_M, TIED_M * sizeof *score);
}

static inline double *tied_scores(uint64_t seed)
{
    double *score = malloc(TIED_Q * TIED_M * sizeof *score);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    assert_non_null(score);
    for (size_t i = 0; i < TIED_Q * TIED_M; i++)
        score[i] = (double)pnb__rng_below(&rng, 25);
    return score;
}

/* Place of an item among those of a fold (or all), from 1. */
static inline size_t place(const double *score, const int32_t *fold, int32_t own, size_t item)
{
    size_t n = 1;
    for (size_t j = 0; j < TIED_M; j++)
        if (fold == NULL || fold[j] == own)
            n += score[j] > score[item] || (score[j] == score[item] && j < item);
    return n;
}

static inline pnb_truth *random_truth(uint64_t seed, size_t n_pairs)
{
    int64_t pairs[2 * 200];
    pnb_truth *truth = NULL;
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 1);
    assert_true(n_pairs <= 200);
    for (size_t i = 0; i < n_pairs; i++) {
        pairs[2 * i] = (int64_t)pnb__rng_below(&rng, TIED_Q);
        pairs[2 * i + 1] = (int64_t)pnb__rng_below(&rng, TIED_M);
    }
    assert_ok(pnb_truth_create_pairs(&truth, TIED_Q, TIED_M, pairs, n_pairs, err));
    return truth;
}

#endif
