/* Rows to label next: order, ties, labelled rows, seeds, the cover of k-centre against a plain
 * greedy search, and what is refused. */
#include "penumbra/selection.h"
#include "tests/prob/support.h"

static void takes_the_most_uncertain(void **state)
{
    (void)state;
    const double u[6] = {1, 9, 4, 9, 2, 7};
    const unsigned char taken[6] = {0, 1, 0, 0, 0, 0};
    size_t row[6];
    assert_ok(pnb_select_uncertain(u, 6, NULL, 4, row, err));
    assert_true(row[0] == 1 && row[1] == 3 && row[2] == 5 && row[3] == 2);
    assert_ok(pnb_select_uncertain(u, 6, taken, 5, row, err));
    assert_true(row[0] == 3 && row[1] == 5 && row[2] == 2 && row[3] == 4 && row[4] == 0);
}

static void draws_evenly(void **state)
{
    (void)state;
    enum { N = 10, RUNS = 6000, COUNT = 3 };
    const unsigned char taken[N] = {[4] = 1};
    size_t row[N], again[N], n_first[N] = {0}, n_any[N] = {0};
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        assert_ok(pnb_select_random(N, taken, COUNT, seed, row, err));
        n_first[row[0]]++;
        for (size_t i = 0; i < COUNT; i++) {
            n_any[row[i]]++;
            for (size_t j = 0; j < i; j++)
                assert_int_not_equal(row[i], row[j]);
        }
    }
    for (size_t i = 0; i < N; i++) { /* nine rows share; 4.5 standard deviations */
        double p = i == 4 ? 0 : 1.0 / 9, q = i == 4 ? 0 : 3.0 / 9;
        assert_near((double)n_first[i] / RUNS, p, 4.5 * sqrt(p * (1 - p) / RUNS), 0);
        assert_near((double)n_any[i] / RUNS, q, 4.5 * sqrt(q * (1 - q) / RUNS), 0);
    }
    assert_ok(pnb_select_random(N, NULL, N, 5, row, err));
    assert_ok(pnb_select_random(N, NULL, N, 5, again, err));
    assert_memory_equal(row, again, sizeof row);
}

static double distance_of(const gaussians *g, size_t i, size_t j, bool with_spread)
{
    double sum = 0;
    size_t dim = g->view.dim;
    for (size_t d = 0; d < dim; d++) {
        double m = (double)g->mean[i * dim + d] - (double)g->mean[j * dim + d];
        double s =
            exp(0.5 * (double)g->log_var[i * dim + d]) - exp(0.5 * (double)g->log_var[j * dim + d]);
        sum += m * m + (with_spread ? s * s : 0);
    }
    return sqrt(sum);
}

/* Each choice is furthest from all before it, and at the distance told. */
static void assert_greedy(const gaussians *g, const unsigned char *taken, bool with_spread,
                          const size_t *row, const double *distance, size_t count, size_t first)
{
    for (size_t k = first; k < count; k++) {
        double best = -1, mine = INFINITY;
        for (size_t i = 0; i < g->view.n; i++) {
            double nearest = INFINITY;
            bool used = taken != NULL && taken[i];
            for (size_t j = 0; j < k; j++) {
                used = used || row[j] == i;
                nearest = fmin(nearest, distance_of(g, i, row[j], with_spread));
            }
            for (size_t j = 0; taken != NULL && j < g->view.n; j++)
                if (taken[j])
                    nearest = fmin(nearest, distance_of(g, i, j, with_spread));
            if (i == row[k]) {
                assert_false(used);
                mine = nearest;
            }
            best = used ? best : fmax(best, nearest);
        }
        assert_near(mine, best, 1e-9, 1e-9);
        assert_near(distance[k], mine, 1e-6, 1e-6);
        assert_true(k == first || distance[k] <= distance[k - 1] + 1e-9);
    }
}

static void covers_greedily(void **state)
{
    (void)state;
    enum { N = 300, COUNT = 25 };
    gaussians g = random_gaussians(N, 5, -4, 1, 3);
    unsigned char taken[N] = {[7] = 1, [100] = 1, [299] = 1};
    size_t row[COUNT], again[COUNT];
    double distance[COUNT];
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts three = pnb_ctx_opts_default();
    three.n_threads = 3;
    assert_ok(pnb_ctx_create(&ctx, &three, err));
    for (int with_spread = 0; with_spread < 2; with_spread++) {
        const pnb_k_centre_opts o = {.with_spread = with_spread != 0, .seed = 11};
        assert_ok(pnb_select_k_centre(NULL, &g.view, NULL, COUNT, &o, row, distance, err));
        assert_true(isinf(distance[0]));
        assert_greedy(&g, NULL, o.with_spread, row, distance, COUNT, 1);
        assert_ok(pnb_select_k_centre(ctx, &g.view, NULL, COUNT, &o, again, NULL, err));
        assert_memory_equal(row, again, sizeof row);
        assert_ok(pnb_select_k_centre(ctx, &g.view, taken, COUNT, &o, row, distance, err));
        assert_greedy(&g, taken, o.with_spread, row, distance, COUNT, 0);
    }
    const pnb_k_centre_opts one = {.seed = 1}, two = {.seed = 2};
    assert_ok(pnb_select_k_centre(NULL, &g.view, NULL, COUNT, &one, row, NULL, err));
    assert_ok(pnb_select_k_centre(NULL, &g.view, NULL, COUNT, &two, again, NULL, err));
    assert_int_not_equal(row[0], again[0]);
    pnb_ctx_free(ctx);
    free_gaussians(&g);
}

/* Copies lie at distance 0 and come last; every row is chosen once. */
static void chooses_all_rows(void **state)
{
    (void)state;
    float mean[6][2] = {{1, 0}, {1, 0}, {0, 1}, {0, 1}, {-1, 0}, {1, 0}};
    const pnb_gaussians g = {.n = 6, .dim = 2, .mean = mean[0]};
    size_t row[6], seen[6] = {0};
    double distance[6];
    assert_ok(pnb_select_k_centre(NULL, &g, NULL, 6, NULL, row, distance, err));
    for (size_t i = 0; i < 6; i++)
        seen[row[i]]++;
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(seen[i], 1);
        assert_true(i < 3 ? distance[i] > 1 : distance[i] == 0);
    }
    assert_true(row[3] < row[4] && row[4] < row[5]);
}

static bool stop(void *user, size_t done, size_t total)
{
    (void)user;
    (void)total;
    return done < 3;
}

static void refuses_bad_input(void **state)
{
    (void)state;
    gaussians g = random_gaussians(5, 3, -3, -3, 1);
    const unsigned char taken[5] = {1, 1, 0, 0, 0};
    const double u[5] = {1, 2, 3, NAN, 5};
    size_t row[8];
    assert_fails(pnb_select_random(5, NULL, 6, 0, row, err), PNB_ARG, "6 rows to choose");
    assert_fails(pnb_select_random(5, taken, 4, 0, row, err), PNB_ARG, "3 of 5 are not labelled");
    assert_fails(pnb_select_uncertain(u, 5, taken, 0, row, err), PNB_ARG, "0 rows");
    assert_fails(pnb_select_uncertain(u, 5, taken, 2, row, err), PNB_NUMERIC, "row 3");
    assert_fails(pnb_select_k_centre(NULL, &g.view, taken, 4, NULL, row, NULL, err), PNB_ARG,
                 "4 rows to choose");
    const pnb_gaussians points = {.n = 5, .dim = 3, .mean = g.mean};
    pnb_k_centre_opts o = {.with_spread = true};
    assert_fails(pnb_select_k_centre(NULL, &points, NULL, 2, &o, row, NULL, err), PNB_ARG,
                 "points");
    g.log_var[4] = 1000;
    assert_fails(pnb_select_k_centre(NULL, &g.view, NULL, 2, &o, row, NULL, err), PNB_NUMERIC,
                 "row 1: a log-variance of 1000");
    o = (pnb_k_centre_opts){.watch = {stop, NULL}};
    assert_fails(pnb_select_k_centre(NULL, &g.view, NULL, 5, &o, row, NULL, err), PNB_INTERRUPTED,
                 "3 of 5");
    g.mean[7] = NAN;
    assert_fails(pnb_select_k_centre(NULL, &g.view, NULL, 2, NULL, row, NULL, err), PNB_NUMERIC,
                 "row 2");
    free_gaussians(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_most_uncertain), cmocka_unit_test(draws_evenly),
        cmocka_unit_test(covers_greedily),          cmocka_unit_test(chooses_all_rows),
        cmocka_unit_test(refuses_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
