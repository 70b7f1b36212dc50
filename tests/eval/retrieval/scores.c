/* Rows of scores from a matrix, a function and two sets: every query once, the same numbers, and
 * what is no number is named. */
#include "eval/retrieval/scores.h"

#include <stdatomic.h>

#include "tests/prob/support.h"

enum { N_QUERIES = 70, N_ITEMS = 900, D = 6 };

typedef struct seen {
    const double *want;
    atomic_int n_calls[N_QUERIES], n_wrong;
    double tolerance; /* relative */
    int n_threads;
} seen;

static void look(void *user, int thread, size_t query, const double *score)
{
    seen *s = user;
    atomic_fetch_add(&s->n_calls[query], 1);
    bool is_right = thread >= 0 && thread < s->n_threads;
    for (size_t j = 0; j < N_ITEMS; j++) {
        double want = s->want[query * N_ITEMS + j];
        is_right &= fabs(score[j] - want) <= s->tolerance * fabs(want);
    }
    atomic_fetch_add(&s->n_wrong, !is_right);
}

static void copy_row(void *user, size_t query, double *score)
{
    memcpy(score, (const double *)user + query * N_ITEMS, N_ITEMS * sizeof *score);
}

static void visit(const pnb__scores *scores, const double *want, double tolerance, int n_threads)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    seen *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->want = want;
    s->tolerance = tolerance;
    s->n_threads = PNB_MAX(n_threads, 1);
    opts.n_threads = n_threads;
    if (n_threads > 0)
        assert_ok(pnb_ctx_create(&ctx, &opts, err));
    assert_int_equal(pnb__scores_threads(ctx), s->n_threads);
    assert_ok(pnb__scores_visit(ctx, scores, look, s, err));
    assert_int_equal(s->n_wrong, 0);
    for (size_t q = 0; q < N_QUERIES; q++)
        assert_int_equal(s->n_calls[q], 1);
    pnb_ctx_free(ctx);
    free(s);
}

/* Of two sets the scan computes each pair itself, in f64. */
static void every_source(void **state)
{
    (void)state;
    gaussians a = random_gaussians(N_QUERIES, D, -4, 0, 1),
              b = random_gaussians(N_ITEMS, D, -4, 0, 2);
    double *want = malloc(N_QUERIES * N_ITEMS * sizeof *want);
    pnb_search_opts o = pnb_search_opts_default();
    assert_non_null(want);
    o.measure = PNB_MEASURE_W2;
    for (size_t q = 0; q < N_QUERIES; q++)
        for (size_t j = 0; j < N_ITEMS; j++)
            want[q * N_ITEMS + j] = pnb_measure_score(
                o.measure, pnb_measure_pair(o.measure, &a.view, q, &b.view, j, NULL));
    const pnb__scores sources[] = {pnb__scores_matrix(want, N_QUERIES, N_ITEMS),
                                   pnb__scores_rows(copy_row, want, N_QUERIES, N_ITEMS),
                                   pnb__scores_sets(&a.view, &b.view, &o)};
    for (size_t i = 0; i < PNB_COUNT(sources); i++)
        for (int n_threads = 0; n_threads <= 3; n_threads += 3)
            visit(&sources[i], want, i == 2 ? 1e-12 : 0, n_threads);
    free(want);
    free_gaussians(&a);
    free_gaussians(&b);
}

static void nothing(void *user, int thread, size_t query, const double *score)
{
    (void)user;
    (void)thread;
    (void)query;
    (void)score;
}

static void no_numbers(void **state)
{
    (void)state;
    double *score = calloc(N_QUERIES * N_ITEMS, sizeof *score);
    assert_non_null(score);
    score[7] = INFINITY; /* is one */
    score[5 * N_ITEMS + 899] = NAN;
    const pnb__scores matrix = pnb__scores_matrix(score, N_QUERIES, N_ITEMS);
    const pnb__scores rows = pnb__scores_rows(copy_row, score, N_QUERIES, N_ITEMS);
    assert_fails(pnb__scores_visit(NULL, &matrix, nothing, NULL, err), PNB_NUMERIC,
                 "score of query 5 and item 899 is not a number");
    assert_fails(pnb__scores_visit(NULL, &rows, nothing, NULL, err), PNB_NUMERIC, "query 5");
    gaussians a = random_gaussians(3, D, -4, 0, 1), b = random_gaussians(4, D, -4, 0, 2);
    b.mean[2 * D + 1] = NAN;
    const pnb__scores sets = pnb__scores_sets(&a.view, &b.view, NULL);
    assert_fails(pnb__scores_visit(NULL, &sets, nothing, NULL, err), PNB_NUMERIC, "2");
    b.view.dim = D - 1;
    assert_fails(pnb__scores_visit(NULL, &sets, nothing, NULL, err), PNB_SHAPE, "width");
    free(score);
    free_gaussians(&a);
    free_gaussians(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_source),
        cmocka_unit_test(no_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
