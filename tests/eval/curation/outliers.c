/* Outliers of every kind against plain sorting, copies of rows, and what is refused. */
#include "penumbra/outliers.h"
#include "tests/prob/support.h"

static int falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Score of row i to the others, best first. */
static void all_scores(const pnb_gaussians *g, pnb_measure measure, size_t i, double *out)
{
    size_t n = 0;
    for (size_t j = 0; j < g->n; j++)
        if (j != i)
            out[n++] = pnb_measure_score(measure, pnb_measure_pair(measure, g, i, g, j, NULL));
    qsort(out, n, sizeof *out, falling);
}

static void agrees_with_sorting(void **state)
{
    (void)state;
    enum { N = 1100, DIM = 6, K = 7 }; /* more than a block */
    gaussians g = random_gaussians(N, DIM, -5, -2, 4);
    static double scores[N];
    const pnb_measure measures[] = {PNB_MEASURE_MEAN, PNB_MEASURE_CSD};
    for (size_t m = 0; m < PNB_COUNT(measures); m++)
        for (int kind = 0; kind < PNB_OUTLIER_UNCERTAINTY; kind++) {
            pnb_outliers_opts o = pnb_outliers_opts_default();
            pnb_outliers out;
            o.kind = (pnb_outlier)kind;
            o.k = K;
            o.measure = measures[m];
            assert_ok(pnb_outliers_rank(NULL, &g.view, NULL, &o, &out, err));
            for (size_t i = 0; i < N; i += 37) {
                double sum = 0;
                all_scores(&g.view, o.measure, i, scores);
                for (size_t j = 0; j < K; j++)
                    sum += scores[j] / K;
                assert_near(out.value[i],
                            kind == PNB_OUTLIER_KNN       ? sum
                            : kind == PNB_OUTLIER_NEAREST ? scores[0]
                                                          : scores[K - 1],
                            1e-12, 0);
                size_t nearest = (size_t)out.nearest[i];
                assert_near(pnb_measure_score(o.measure, pnb_measure_pair(o.measure, &g.view, i,
                                                                          &g.view, nearest, NULL)),
                            scores[0], 1e-12, 0);
            }
            for (size_t i = 1; i < N; i++)
                assert_true(out.value[out.order[i - 1]] <= out.value[out.order[i]]);
            pnb_outliers_reset(&out);
        }
    free_gaussians(&g);
    pnb_outliers_reset(NULL);
}

static void ranks_uncertainty(void **state)
{
    (void)state;
    gaussians g = random_gaussians(4, 3, -3, -3, 1);
    const double u[4] = {2, 5, 5, 1};
    pnb_outliers_opts o = pnb_outliers_opts_default();
    pnb_outliers out;
    o.kind = PNB_OUTLIER_UNCERTAINTY;
    assert_ok(pnb_outliers_rank(NULL, &g.view, u, &o, &out, err));
    const size_t wanted[4] = {1, 2, 0, 3};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(out.order[i], wanted[i]);
        assert_near(out.value[i], u[i], 0, 0);
    }
    assert_null(out.nearest);
    pnb_outliers_reset(&out);
    free_gaussians(&g);
}

/* A copy is a neighbour, the row itself never is, wherever it stands among equals. */
static void counts_copies(void **state)
{
    (void)state;
    enum { COPIES = 30 };
    float mean[COPIES + 1][2];
    for (size_t i = 0; i < COPIES; i++) {
        mean[i][0] = 1;
        mean[i][1] = 0;
    }
    mean[COPIES][0] = 0;
    mean[COPIES][1] = 1;
    const pnb_gaussians g = {.n = COPIES + 1, .dim = 2, .mean = mean[0]};
    pnb_outliers_opts o = pnb_outliers_opts_default();
    pnb_outliers out;
    o.k = 3;
    assert_ok(pnb_outliers_rank(NULL, &g, NULL, &o, &out, err));
    assert_int_equal(out.order[0], COPIES);
    assert_near(out.value[COPIES], 0, 1e-9, 0);
    for (size_t i = 0; i < COPIES; i++) {
        assert_near(out.value[i], 1, 1e-9, 0);
        assert_int_not_equal(out.nearest[i], i);
    }
    pnb_outliers_reset(&out);
    o.k = COPIES; /* all others */
    assert_ok(pnb_outliers_rank(NULL, &g, NULL, &o, &out, err));
    assert_near(out.value[0], (COPIES - 1.0) / COPIES, 1e-9, 0);
    pnb_outliers_reset(&out);
}

static void refuses_bad_input(void **state)
{
    (void)state;
    gaussians g = random_gaussians(5, 3, -3, -3, 1);
    const double u[5] = {1, 2, INFINITY, 4, 5};
    pnb_outliers_opts o = pnb_outliers_opts_default();
    pnb_outliers out;
    assert_fails(pnb_outliers_rank(NULL, &g.view, NULL, &o, &out, err), PNB_ARG,
                 "10 neighbours among 5 rows");
    o.k = 5;
    assert_fails(pnb_outliers_rank(NULL, &g.view, NULL, &o, &out, err), PNB_ARG, "4 others");
    o.k = 0;
    assert_fails(pnb_outliers_rank(NULL, &g.view, NULL, &o, &out, err), PNB_ARG, "0 neighbours");
    o.kind = PNB_OUTLIER_UNCERTAINTY;
    assert_fails(pnb_outliers_rank(NULL, &g.view, NULL, &o, &out, err), PNB_ARG, "there is none");
    assert_fails(pnb_outliers_rank(NULL, &g.view, u, &o, &out, err), PNB_NUMERIC, "row 2");
    const pnb_gaussians one = {.n = 1, .dim = 3, .mean = g.mean};
    o.kind = PNB_OUTLIER_NEAREST;
    assert_fails(pnb_outliers_rank(NULL, &one, NULL, &o, &out, err), PNB_ARG, "0 others");
    o.measure = PNB_MEASURE_INCLUSION;
    assert_fails(pnb_outliers_rank(NULL, &g.view, NULL, &o, &out, err), PNB_ARG, "not symmetric");
    assert_string_equal(pnb_outlier_name(PNB_OUTLIER_KTH), "kth");
    assert_string_equal(pnb_outlier_name(PNB_N_OUTLIERS), "unknown");
    free_gaussians(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_sorting),
        cmocka_unit_test(ranks_uncertainty),
        cmocka_unit_test(counts_copies),
        cmocka_unit_test(refuses_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
