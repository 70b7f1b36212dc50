/* Nearest rows of a set's own rows: blocks and single rows against sorting all scores. */
#include "eval/curation/neighbours.h"

#include "tests/prob/support.h"

enum { N = 150, DIM = 6, K = 4 };

/* The k-th best of a row by score, then by number. */
static void expect_row(const pnb_gaussians *g, pnb_measure measure, size_t row,
                       const pnb_hits *hits, size_t at)
{
    bool taken[N] = {false};
    for (size_t k = 0; k < K; k++) {
        size_t best = N;
        double best_score = 0;
        for (size_t j = 0; j < N; j++) {
            double score =
                pnb_measure_score(measure, pnb_measure_pair(measure, g, row, g, j, NULL));
            if (!taken[j] && (best == N || score > best_score)) {
                best = j;
                best_score = score;
            }
        }
        taken[best] = true;
        assert_int_equal(hits->index[at * K + k], best);
        assert_near(hits->score[at * K + k], best_score, 1e-12, 1e-12);
    }
}

static void blocks_and_rows(void **state)
{
    (void)state;
    static const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2};
    static const size_t rows[] = {0, 149, 7, 7, 80};
    gaussians g = random_gaussians(N, DIM, -4, 0, 3);
    const pnb_measure_opts opts = pnb_search_opts_default().measure_opts;
    memcpy(g.mean + 30 * DIM, g.mean + 20 * DIM, DIM * sizeof(float)); /* a copy of a lower row */
    memcpy(g.log_var + 30 * DIM, g.log_var + 20 * DIM, DIM * sizeof(float));
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb__neighbours n;
        pnb_hits hits;
        assert_ok(pnb__neighbours_init(&n, NULL, &g.view, measures[m], &opts, err));
        assert_ok(pnb__neighbours_of_block(&n, 20, 40, K, &hits, err));
        assert_true(hits.n_queries == 40 && hits.k == K);
        for (size_t i = 0; i < 40; i++)
            expect_row(&g.view, measures[m], 20 + i, &hits, i);
        if (measures[m] != PNB_MEASURE_CSD) /* which counts a row's own variance against it */
            assert_true(hits.index[10 * K] == 20 && hits.index[10 * K + 1] == 30); /* of row 30 */
        pnb_hits_reset(&hits);
        for (size_t pass = 0; pass < 2; pass++) { /* the room is used again */
            assert_ok(pnb__neighbours_of_rows(&n, rows + pass, 4, K, &hits, err));
            for (size_t i = 0; i < 4; i++)
                expect_row(&g.view, measures[m], rows[pass + i], &hits, i);
            pnb_hits_reset(&hits);
        }
        pnb__neighbours_reset(&n);
        assert_null(n.index);
    }
    free_gaussians(&g);
}

/* Points have no variances to gather. */
static void points(void **state)
{
    (void)state;
    static const size_t rows[] = {9, 3};
    gaussians g = random_gaussians(N, DIM, -4, 0, 3);
    const pnb_measure_opts opts = pnb_search_opts_default().measure_opts;
    pnb__neighbours n;
    pnb_hits hits;
    g.view.log_var = NULL;
    assert_ok(pnb__neighbours_init(&n, NULL, &g.view, PNB_MEASURE_MEAN, &opts, err));
    assert_ok(pnb__neighbours_of_rows(&n, rows, 2, K, &hits, err));
    expect_row(&g.view, PNB_MEASURE_MEAN, 9, &hits, 0);
    expect_row(&g.view, PNB_MEASURE_MEAN, 3, &hits, 1);
    assert_null(n.log_var);
    pnb_hits_reset(&hits);
    pnb__neighbours_reset(&n);
    free_gaussians(&g);
}

static void refuses(void **state)
{
    (void)state;
    gaussians g = random_gaussians(N, DIM, -4, 0, 3);
    const pnb_measure_opts opts = pnb_search_opts_default().measure_opts;
    pnb__neighbours n;
    pnb_hits hits;
    assert_fails(pnb__neighbours_init(&n, NULL, &g.view, PNB_MEASURE_KL, &opts, err), PNB_ARG,
                 "kl is not symmetric; neighbours within one set need a measure that is");
    pnb__neighbours_reset(&n);
    assert_fails(pnb__neighbours_init(&n, NULL, &g.view, PNB_MEASURE_VMF, &opts, err), PNB_ARG,
                 "vmf");
    pnb__neighbours_reset(&n);
    g.log_var[5 * DIM] = NAN;
    assert_ok(pnb__neighbours_init(&n, NULL, &g.view, PNB_MEASURE_CSD, &opts, err));
    assert_fails(pnb__neighbours_of_block(&n, 0, 10, K, &hits, err), PNB_NUMERIC, "5");
    assert_null(hits.index);
    pnb__neighbours_reset(&n);
    free_gaussians(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_and_rows),
        cmocka_unit_test(points),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
