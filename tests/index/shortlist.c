/* Search with a shortlist: exact where it is the gallery, else the best of the nearest means; the
 * same for every number of threads; what is refused; memory that runs out. */
#include "index/shortlist.h"

#include "penumbra/ctx.h"
#include "tests/prob/support.h"

enum { Q = 5, N = 40, D = 9, K = 4 };

typedef struct sets {
    gaussians q, x;
    pnb_search_opts opts;
} sets;

static sets make_sets(pnb_measure measure)
{
    sets s = {.q = random_gaussians(Q, D, -3, -1, 1),
              .x = random_gaussians(N, D, -3, -1, 2),
              .opts = pnb_search_opts_default()};
    s.opts.measure = measure;
    s.opts.k = K;
    return s;
}

static void free_sets(sets *s)
{
    free_gaussians(&s->q);
    free_gaussians(&s->x);
}

static pnb_ctx *context(int n_threads)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = n_threads;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    return ctx;
}

static double apart(const sets *s, size_t q, size_t i)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++) {
        double x = (double)s->q.mean[q * D + d] - (double)s->x.mean[i * D + d];
        sum += x * x;
    }
    return sum;
}

/* The best of those whose means are nearest, by pnb_measure_pair. */
static void expect_best(const sets *s, const pnb_hits *hits)
{
    for (size_t q = 0; q < Q; q++)
        for (size_t rank = 0; rank < K; rank++) {
            size_t item = (size_t)hits->index[q * K + rank], n_nearer = 0, n_better = 0;
            double own = pnb_measure_score(
                s->opts.measure, pnb_measure_pair(s->opts.measure, &s->q.view, q, &s->x.view, item,
                                                  &s->opts.measure_opts));
            assert_true(fabs(own - hits->score[q * K + rank]) <= 1e-10 * (1 + fabs(own)));
            for (size_t i = 0; i < N; i++)
                n_nearer += apart(s, q, i) < apart(s, q, item);
            assert_true(n_nearer < s->opts.shortlist);
            for (size_t i = 0; i < N; i++) {
                size_t place = 0;
                for (size_t j = 0; j < N; j++)
                    place += apart(s, q, j) < apart(s, q, i);
                double score = pnb_measure_score(
                    s->opts.measure, pnb_measure_pair(s->opts.measure, &s->q.view, q, &s->x.view, i,
                                                      &s->opts.measure_opts));
                n_better += place < s->opts.shortlist && score > own + 1e-9;
            }
            assert_int_equal(n_better, rank);
        }
}

static void best_of_the_nearest(void **state)
{
    (void)state;
    const pnb_measure measures[] = {PNB_MEASURE_MATCH_PROB, PNB_MEASURE_AVG_L2, PNB_MEASURE_KL};
    for (size_t m = 0; m < PNB_COUNT(measures); m++)
        for (size_t n = K; n <= 12; n += 8) {
            sets s = make_sets(measures[m]);
            pnb_hits hits[2];
            s.opts.shortlist = n;
            for (int t = 0; t < 2; t++) {
                pnb_ctx *ctx = context(1 + 2 * t);
                assert_ok(pnb_search(ctx, &s.q.view, &s.x.view, &s.opts, &hits[t], err));
                pnb_ctx_free(ctx);
            }
            expect_best(&s, &hits[0]);
            assert_memory_equal(hits[0].score, hits[1].score, sizeof(double) * Q * K);
            assert_memory_equal(hits[0].index, hits[1].index, sizeof(int64_t) * Q * K);
            pnb_hits_reset(&hits[0]);
            pnb_hits_reset(&hits[1]);
            free_sets(&s);
        }
}

static void whole_gallery_is_exact(void **state)
{
    (void)state;
    for (size_t n = N - 1; n <= N + 1; n++) {
        sets s = make_sets(PNB_MEASURE_MATCH_PROB);
        pnb_hits exact, listed;
        assert_ok(pnb_search(NULL, &s.q.view, &s.x.view, &s.opts, &exact, err));
        s.opts.shortlist = n;
        assert_ok(pnb_search(NULL, &s.q.view, &s.x.view, &s.opts, &listed, err));
        assert_memory_equal(exact.index, listed.index, sizeof(int64_t) * Q * K);
        assert_memory_equal(exact.score, listed.score, sizeof(double) * Q * K);
        pnb_hits_reset(&exact);
        pnb_hits_reset(&listed);
        free_sets(&s);
    }
}

static void what_is_refused(void **state)
{
    (void)state;
    sets s = make_sets(PNB_MEASURE_MATCH_PROB);
    pnb_hits hits;
    s.opts.shortlist = K - 1;
    assert_fails(pnb_search(NULL, &s.q.view, &s.x.view, &s.opts, &hits, err), PNB_ARG,
                 "a shortlist of 3 for 4 hits");
    s.opts.shortlist = K;
    s.q.log_var[D] = NAN; /* query 1: its mean is fine, so the first stage does not see it */
    assert_fails(pnb_search(NULL, &s.q.view, &s.x.view, &s.opts, &hits, err), PNB_NUMERIC,
                 "query 1 ");
    assert_null(hits.index);
    free_sets(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_of_the_nearest),
        cmocka_unit_test(whole_gallery_is_exact),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
