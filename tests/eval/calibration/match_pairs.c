/* The sample of pairs: all of them when they fit, else every match, the best others, and weights
 * that make sums over all pairs come out right. */
#include "eval/calibration/match_pairs.h"
#include "penumbra/retrieval.h"
#include "tests/eval/calibration/match_world.h"

static double pair_score(const world *w, size_t q, size_t x)
{
    return pnb_measure_score(PNB_MEASURE_CSD, pnb_measure_pair(PNB_MEASURE_CSD, &w->queries.view, q,
                                                               &w->gallery.view, x, NULL));
}

static void all_pairs(void **state)
{
    (void)state;
    world w;
    pnb__match_pairs p;
    pnb_ranks ranks;
    make_world(&w, 130, 70, 1.0, 1);
    const pnb__match_sample sample = {1 << 20, 0, 0};
    assert_ok(pnb__match_pairs_collect(NULL, &w.job, &sample, &p, err));
    assert_ok(pnb_ranks_compute(NULL, w.job.queries, w.job.gallery, w.truth, NULL, &ranks, err));
    assert_true(p.is_exact);
    for (size_t q = 0; q < 130; q++) {
        size_t n = p.offset[q + 1] - p.offset[q], n_matches = 0;
        double sum = 0, want = 0;
        if (q % 11 == 10) {
            assert_true(n == 0 && isnan(p.best[q]));
            continue;
        }
        assert_int_equal(n, 70);
        for (size_t i = p.offset[q]; i < p.offset[q + 1]; i++) {
            assert_true(p.weight[i] == 1.0);
            n_matches += (size_t)p.label[i];
            sum += p.score[i];
        }
        for (size_t x = 0; x < 70; x++)
            want += pair_score(&w, q, x);
        assert_int_equal(n_matches, q % 5 == 4 ? 2 : 1);
        assert_near(sum, want, 1e-10, 1e-12);
        assert_int_equal((int64_t)p.rank[q], ranks.best_rank[q]);
        assert_int_equal(p.first_label[q], matches(w.truth, q, (size_t)ranks.top1[q]));
        assert_near(p.first[q], pair_score(&w, q, (size_t)ranks.top1[q]), 1e-12, 0);
        double best = -INFINITY;
        for (size_t x = 0; x < 70; x++)
            best = matches(w.truth, q, x) ? fmax(best, pair_score(&w, q, x)) : best;
        assert_near(p.best[q], best, 1e-12, 0);
    }
    pnb_ranks_reset(&ranks);
    pnb__match_pairs_reset(&p);
    free_world(&w);
}

/* Sum of weights = all pairs of the query; its first hits are there in order with weight 1, and so
 * is every match; over many seeds the weighted sum of any function of the score is that over all
 * pairs. */
static void weighted_sample(void **state)
{
    (void)state;
    enum { N_QUERIES = 33, N_GALLERY = 200, N_SEEDS = 400, PER_QUERY = 8 };
    world w;
    double want = 0, mean = 0, square = 0;
    pnb_hits hits;
    pnb_ranks ranks;
    pnb_search_opts top = pnb_search_opts_default();
    make_world(&w, N_QUERIES, N_GALLERY, 1.0, 2);
    top.k = PER_QUERY / 2;
    assert_ok(pnb_search(NULL, w.job.queries, w.job.gallery, &top, &hits, err));
    assert_ok(pnb_ranks_compute(NULL, w.job.queries, w.job.gallery, w.truth, NULL, &ranks, err));
    for (size_t q = 0; q < N_QUERIES; q++)
        for (size_t x = 0; q % 11 != 10 && x < N_GALLERY; x++)
            want += exp(3 * pair_score(&w, q, x));
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        pnb__match_pairs p;
        const pnb__match_sample sample = {30 * PER_QUERY, 0, seed}; /* 30 queries have a match */
        double sum = 0;
        assert_ok(pnb__match_pairs_collect(NULL, &w.job, &sample, &p, err));
        assert_false(p.is_exact);
        assert_true(p.offset[N_QUERIES] <= 30 * PER_QUERY + w.truth->n_pairs);
        for (size_t q = 0; q < N_QUERIES; q++) {
            double weight = 0;
            size_t n_matches = 0;
            for (size_t i = p.offset[q]; i < p.offset[q + 1]; i++) {
                weight += p.weight[i];
                sum += p.weight[i] * exp(3 * p.score[i]);
                n_matches += (size_t)p.label[i];
                assert_true(p.label[i] == 0 || p.weight[i] == 1.0);
            }
            if (q % 11 == 10)
                continue;
            assert_near(weight, N_GALLERY, 1e-9, 0);
            assert_int_equal(n_matches, q % 5 == 4 ? 2 : 1);
            assert_int_equal((int64_t)p.rank[q], ranks.best_rank[q]);
            for (size_t j = 0; j < PER_QUERY / 2; j++) {
                assert_true(p.score[p.offset[q] + j] == hits.score[q * PER_QUERY / 2 + j]);
                assert_true(p.weight[p.offset[q] + j] == 1.0);
            }
        }
        mean += sum / N_SEEDS;
        square += sum * sum / N_SEEDS;
        pnb__match_pairs_reset(&p);
    }
    double error = sqrt((square - mean * mean) / N_SEEDS);
    assert_near(mean, want, 4 * error, 0);
    assert_true(4 * error < 0.02 * want); /* the comparison says something */
    pnb_hits_reset(&hits);
    pnb_ranks_reset(&ranks);
    free_world(&w);
}

static void same_on_any_threads(void **state)
{
    (void)state;
    world w;
    pnb__match_pairs a, b;
    pnb_ctx *ctx = threads(3);
    make_world(&w, 300, 90, 1.0, 3);
    const pnb__match_sample sample = {5000, 0, 7};
    assert_ok(pnb__match_pairs_collect(NULL, &w.job, &sample, &a, err));
    assert_ok(pnb__match_pairs_collect(ctx, &w.job, &sample, &b, err));
    size_t n = a.offset[300];
    assert_int_equal(n, b.offset[300]);
    assert_memory_equal(a.score, b.score, n * sizeof(double));
    assert_memory_equal(a.weight, b.weight, n * sizeof(double));
    assert_memory_equal(a.label, b.label, n * sizeof(int));
    pnb__match_pairs_reset(&a);
    pnb__match_pairs_reset(&b);
    pnb_ctx_free(ctx);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pairs),
        cmocka_unit_test(weighted_sample),
        cmocka_unit_test(same_on_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
