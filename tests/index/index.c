/* The seam between searching and what searches: another kind of index (brute_index.h) behind the
 * same calls gives the same hits, pairs and members; what a kind cannot do is said; failures leave
 * nothing. tests/eval/other_index.c does the same with what is built on searches. */
#include "index/index.h"
#include "penumbra/inclusion_search.h"

#include "tests/index/brute_index.h"

enum { N = 70, N_QUERIES = 9, DIM = 6 };

static gaussians q, x;
static pnb_ctx *contexts[2]; /* exact, brute */

static int setup(void **state)
{
    (void)state;
    q = random_gaussians(N_QUERIES, DIM, -4, -1, 1);
    x = random_gaussians(N, DIM, -4, -1, 2);
    for (int i = 0; i < 2; i++)
        contexts[i] = brute_context(i == 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free_gaussians(&q);
    free_gaussians(&x);
    for (int i = 0; i < 2; i++)
        pnb_ctx_free(contexts[i]);
    return 0;
}

static void assert_same_scores(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(a[i] == b[i] || fabs(a[i] - b[i]) <= 1e-12 + 1e-11 * fabs(b[i])))
            fail_msg("score %zu is %.17g and %.17g", i, a[i], b[i]);
}

static void test_same_hits(void **state)
{
    (void)state;
    for (int m = 0; m < PNB_MEASURE_VMF; m++)
        for (int reverse = 0; reverse < 2; reverse++)
            for (size_t k = 1; k <= 2 * N; k += N - 1) {
                pnb_search_opts o = pnb_search_opts_default();
                pnb_hits hits[2];
                o.measure = (pnb_measure)m;
                o.reverse = reverse != 0;
                o.k = k;
                if (m == PNB_MEASURE_AVG_L2 || m == PNB_MEASURE_MATCH_PROB)
                    continue;
                for (int i = 0; i < 2; i++)
                    assert_ok(pnb_search(contexts[i], &q.view, &x.view, &o, &hits[i], err));
                assert_int_equal(hits[0].n_queries, hits[1].n_queries);
                assert_int_equal(hits[0].k, hits[1].k);
                assert_memory_equal(hits[0].index, hits[1].index, N_QUERIES * k * sizeof(int64_t));
                assert_same_scores(hits[0].score, hits[1].score, N_QUERIES * k);
                for (int i = 0; i < 2; i++)
                    pnb_hits_reset(&hits[i]);
            }
    assert_true(brute.n_nearest > 0);
}

static void test_same_pairs(void **state)
{
    (void)state;
    pnb_index *index[2];
    pnb_pairs pairs[2];
    const pnb_range_opts range = {.min_score = 0.2 + 1.23e-7, .max_pairs = N * N};
    for (int i = 0; i < 2; i++)
        assert_ok(pnb_index_create(&index[i], contexts[i], &x.view, NULL, err));
    for (int self = 0; self < 2; self++) {
        for (int i = 0; i < 2; i++)
            assert_ok(
                self ? pnb_index_self_join(index[i], contexts[i], &range, &pairs[i], err)
                     : pnb_index_range(index[i], contexts[i], &q.view, &range, &pairs[i], err));
        assert_true(pairs[0].n > 5);
        assert_int_equal(pairs[0].n, pairs[1].n);
        assert_memory_equal(pairs[0].query, pairs[1].query, pairs[0].n * sizeof(int64_t));
        assert_memory_equal(pairs[0].item, pairs[1].item, pairs[0].n * sizeof(int64_t));
        assert_same_scores(pairs[0].score, pairs[1].score, pairs[0].n);
        for (int i = 0; i < 2; i++)
            pnb_pairs_reset(&pairs[i]);
    }
    for (int i = 0; i < 2; i++)
        pnb_index_free(index[i]);
    assert_true(brute.n_range == 1 && brute.n_self_join == 1);
}

/* Inclusion is a measure with a direction; what is near 0 or kept is measured again by its own. */
static void test_same_members(void **state)
{
    (void)state;
    for (int form = 0; form < 8; form++) {
        pnb_inclusion_search_opts o = pnb_inclusion_search_opts_default();
        pnb_inclusion_hits hits[2];
        o.inside = form & 1;
        o.published = form & 2;
        o.order = form & 4 ? PNB_INCLUSION_BY_NEARNESS : PNB_INCLUSION_BY_INCLUSION;
        for (int i = 0; i < 2; i++)
            assert_ok(pnb_inclusion_search(contexts[i], &q.view, &x.view, &o, &hits[i], err));
        assert_memory_equal(hits[0].index, hits[1].index, N_QUERIES * o.k * sizeof(int64_t));
        assert_memory_equal(hits[0].n_all, hits[1].n_all, N_QUERIES * sizeof(size_t));
        assert_same_scores(hits[0].h, hits[1].h, N_QUERIES * o.k);
        for (int i = 0; i < 2; i++)
            pnb_inclusion_hits_reset(&hits[i]);
    }
    assert_int_equal(brute.n_rows, 8);
}

static void ignore_row(void *user, int thread, size_t query, const double *score)
{
    (void)user, (void)thread, (void)query, (void)score;
    fail();
}

/* A kind says which measures it serves; one that finds only the nearest says what it lacks. */
static void test_what_a_kind_cannot_do(void **state)
{
    (void)state;
    pnb__index_calls few = brute_calls;
    pnb_search_opts o = pnb_search_opts_default();
    pnb_index *index = NULL;
    pnb_hits hits;
    pnb_pairs pairs;
    o.measure = PNB_MEASURE_AVG_L2;
    assert_fails(pnb_search(contexts[1], &q.view, &x.view, &o, &hits, err), PNB_UNSUPPORTED,
                 "no sampled measures");
    assert_null(hits.index);
    assert_ok(pnb_search(contexts[0], &q.view, &x.view, &o, &hits, err));
    pnb_hits_reset(&hits);
    few.range = NULL;
    few.self_join = NULL;
    few.rows = NULL;
    contexts[1]->index = &few;
    assert_ok(pnb_index_create(&index, contexts[1], &x.view, NULL, err));
    assert_fails(pnb_index_range(index, NULL, &q.view, NULL, &pairs, err), PNB_UNSUPPORTED,
                 "kind brute cannot find all pairs above a score");
    assert_fails(pnb_index_self_join(index, NULL, NULL, &pairs, err), PNB_UNSUPPORTED,
                 "all pairs of its rows");
    assert_fails(pnb__index_rows(index, NULL, &q.view, ignore_row, NULL, err), PNB_UNSUPPORTED,
                 "score every row");
    pnb_index_free(index);
    contexts[1]->index = &brute_calls;
    o = pnb_search_opts_default();
    o.kind = PNB_N_INDEX_KINDS;
    assert_fails(pnb_index_create(&index, NULL, &x.view, &o, err), PNB_ARG, "no index of number");
    assert_null(index);
}

/* Refused before a kind is asked, whichever it is; and what was made is freed. */
static void test_common_checks(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const pnb_gaussians none = {.dim = DIM};
        const pnb_range_opts no_number = {.min_score = (double)NAN, .max_pairs = 1},
                             one = {.min_score = -1e9, .max_pairs = 1};
        pnb_search_opts o = pnb_search_opts_default();
        pnb_index *index = NULL;
        pnb_hits hits;
        pnb_pairs pairs;
        assert_fails(pnb_index_create(&index, contexts[i], &none, NULL, err), PNB_SHAPE, "empty");
        assert_ok(pnb_index_create(&index, contexts[i], &x.view, NULL, err));
        assert_fails(pnb_index_search(index, contexts[i], &q.view, 0, &hits, err), PNB_ARG,
                     "k is 0");
        assert_fails(pnb_index_range(index, contexts[i], &q.view, &no_number, &pairs, err), PNB_ARG,
                     "not a number");
        assert_fails(pnb_index_range(index, contexts[i], &q.view, &one, &pairs, err), PNB_ARG,
                     "more than 1 pairs");
        assert_true(pairs.n == 0 && pairs.query == NULL && pairs.score == NULL);
        pnb_index_free(index);
        o.measure = PNB_MEASURE_KL;
        assert_ok(pnb_index_create(&index, contexts[i], &x.view, &o, err));
        assert_fails(pnb_index_self_join(index, contexts[i], NULL, &pairs, err), PNB_ARG,
                     "symmetric");
        pnb_index_free(index);
    }
    assert_int_equal(brute.n_made, brute.n_freed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_hits),     cmocka_unit_test(test_same_pairs),
        cmocka_unit_test(test_same_members),  cmocka_unit_test(test_what_a_kind_cannot_do),
        cmocka_unit_test(test_common_checks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
