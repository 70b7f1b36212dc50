/* Likelihoods on the sphere in search: candidates by inner products, hits of the f64 scores. */
#include "tests/index/exact/sphere_rows.h"

#include "index/exact/exact.h"
#include "penumbra/search.h"

static pnb_ctx *context(int n_threads)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = n_threads;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    return ctx;
}

static int compare_falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Scores are the k best of all pairs; each hit has the score of its pair. */
static void expect_best(pnb_measure m, const pnb_rows *q, const pnb_rows *x, const pnb_hits *hits)
{
    double *all = malloc(x->n * sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < q->n; i++) {
        for (size_t j = 0; j < x->n; j++)
            all[j] = pnb_measure_pair(m, q, i, x, j, NULL);
        qsort(all, x->n, sizeof *all, compare_falling);
        for (size_t r = 0; r < hits->k && r < x->n; r++) {
            double got = hits->score[i * hits->k + r];
            double own = pnb_measure_pair(m, q, i, x, (size_t)hits->index[i * hits->k + r], NULL);
            if (!(fabs(got - all[r]) <= 1e-10 + 1e-11 * fabs(all[r])) ||
                !(fabs(got - own) <= 1e-10 + 1e-11 * fabs(own)))
                fail_msg("%s query %zu rank %zu: score %.17g of item %lld, which has %.17g; want "
                         "%.17g",
                         pnb_measure_name(m), i, r, got, (long long)hits->index[i * hits->k + r],
                         own, all[r]);
        }
    }
    free(all);
}

static void equals_brute_force(void **state)
{
    (void)state;
    const size_t dims[] = {2, 3, 17, 512}, n_queries[] = {1, 7, 17, 70};
    const double most[] = {30.0, 1e6};
    for (size_t m = 0; m < PNB_COUNT(MEASURES); m++)
        for (size_t c = 0; c < PNB_COUNT(dims) * PNB_COUNT(most) * 3; c++) {
            size_t dim = dims[c % 4], n = n_queries[c / 3 % 4];
            bool is_power = MEASURES[m] == PNB_MEASURE_POWER_SPHERICAL;
            sphere q = random_sphere(n, dim, is_power, most[c / 4 % 2], 2 * c),
                   x = random_sphere(400, dim, is_power, most[c / 4 % 2], 2 * c + 1);
            pnb_ctx *ctx = context(1 + (int)(c % 2));
            pnb_search_opts o = pnb_search_opts_default();
            pnb_hits hits;
            choose_sides((int)(c / 8), &q, &x);
            o.measure = MEASURES[m];
            assert_ok(pnb_search(ctx, &q.rows, &x.rows, &o, &hits, err));
            q.rows.n = PNB_MIN(n, (size_t)4);
            expect_best(o.measure, &q.rows, &x.rows, &hits);
            pnb_hits_reset(&hits);
            pnb_ctx_free(ctx);
            free_sphere(&q);
            free_sphere(&x);
        }
}

/* The fast way is the one that is taken, and not for what floats cannot hold. */
static void way_that_is_taken(void **state)
{
    (void)state;
    sphere q = random_sphere(3, 8, false, 1e6, 40), x = random_sphere(60, 8, false, 1e6, 41);
    pnb_search_opts o = pnb_search_opts_default();
    pnb__exact scan;
    pnb__exact_run run;
    o.measure = PNB_MEASURE_VMF;
    for (int huge = 0; huge < 2; huge++) {
        x.kappa[7] = huge ? 1e20f : 5.0f;
        assert_ok(pnb__exact_init(&scan, NULL, &x.rows, &o, err));
        assert_ok(pnb__exact_run_init(&run, &scan, NULL, &q.rows, err));
        assert_int_equal(run.way, huge ? PNB__EXACT_F64 : PNB__EXACT_SPHERE);
        pnb__exact_run_reset(&run);
        pnb__exact_reset(&scan);
    }
    free_sphere(&q);
    free_sphere(&x);
}

/* Rows along one line, both ways: cosines of 1 and -1, where the logarithm is steepest, and rows of
 * any length, which only point somewhere. */
static void poles_and_lengths(void **state)
{
    (void)state;
    enum { N = 400, D = 12 };
    for (size_t m = 0; m < PNB_COUNT(MEASURES); m++)
        for (int sides = 0; sides < 3; sides++) {
            bool is_power = MEASURES[m] == PNB_MEASURE_POWER_SPHERICAL;
            sphere q = random_sphere(5, D, is_power, 1e4, 50),
                   x = random_sphere(N, D, is_power, 1e4, 51);
            pnb_search_opts o = pnb_search_opts_default();
            pnb_hits hits;
            for (size_t j = 0; j < N; j++)
                for (size_t d = 0; d < D; d++) {
                    float along = q.means.mean[j % 5 * D + d] * (j % 2 ? 1.0f : -1.0f);
                    float aside = j % 3 ? 1e-3f * x.means.mean[j * D + d] : 0.0f;
                    x.means.mean[j * D + d] = (along + aside) * (float)(1 + j % 7);
                }
            memset(x.means.mean + 11 * D, 0, D * sizeof(float)); /* no direction: cosine 0 */
            choose_sides(sides, &q, &x);
            o.measure = MEASURES[m];
            o.k = N;
            assert_ok(pnb_search(NULL, &q.rows, &x.rows, &o, &hits, err));
            expect_best(o.measure, &q.rows, &x.rows, &hits);
            pnb_hits_reset(&hits);
            free_sphere(&q);
            free_sphere(&x);
        }
}

/* All pairs above a limit come from the same intervals. */
static void limits(void **state)
{
    (void)state;
    enum { N = 90, M = 700, D = 20 };
    for (size_t m = 0; m < PNB_COUNT(MEASURES); m++)
        for (int sides = 0; sides < 3; sides++) {
            bool is_power = MEASURES[m] == PNB_MEASURE_POWER_SPHERICAL;
            sphere q = random_sphere(N, D, is_power, 1e3, 60),
                   x = random_sphere(M, D, is_power, 1e3, 61);
            pnb_search_opts o = pnb_search_opts_default();
            pnb_range_opts range = pnb_range_opts_default();
            pnb_index *index = NULL;
            pnb_pairs pairs;
            size_t n_above = 0;
            double *score = malloc(sizeof(double) * N * M);
            assert_non_null(score);
            choose_sides(sides, &q, &x);
            o.measure = MEASURES[m];
            assert_ok(pnb_measure_block(o.measure, &q.rows, &x.rows, NULL, score, err));
            range.min_score = score[3 * M + 5];
            for (size_t i = 0; i < N * M; i++)
                n_above += score[i] >= range.min_score;
            assert_ok(pnb_index_create(&index, NULL, &x.rows, &o, err));
            assert_ok(pnb_index_range(index, NULL, &q.rows, &range, &pairs, err));
            assert_int_equal(pairs.n, n_above);
            pnb_pairs_reset(&pairs);
            pnb_index_free(index);
            free(score);
            free_sphere(&q);
            free_sphere(&x);
        }
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    for (size_t m = 0; m < PNB_COUNT(MEASURES); m++) {
        bool is_power = MEASURES[m] == PNB_MEASURE_POWER_SPHERICAL;
        sphere q = random_sphere(130, 24, is_power, 500, 70),
               x = random_sphere(2500, 24, is_power, 500, 71);
        pnb_search_opts o = pnb_search_opts_default();
        pnb_hits first = {0};
        o.measure = MEASURES[m];
        for (int t = 1; t <= 5; t += 2) {
            pnb_ctx *ctx = context(t);
            pnb_hits hits;
            assert_ok(pnb_search(ctx, &q.rows, &x.rows, &o, &hits, err));
            if (t == 1) {
                first = hits;
            } else {
                size_t n = hits.n_queries * hits.k;
                assert_memory_equal(hits.index, first.index, n * sizeof *hits.index);
                assert_memory_equal(hits.score, first.score, n * sizeof *hits.score);
                pnb_hits_reset(&hits);
            }
            pnb_ctx_free(ctx);
        }
        pnb_hits_reset(&first);
        free_sphere(&q);
        free_sphere(&x);
    }
}

static void bad_input(void **state)
{
    (void)state;
    const float bad[] = {-1.0f, NAN, INFINITY};
    for (size_t m = 0; m < PNB_COUNT(MEASURES); m++)
        for (size_t b = 0; b < PNB_COUNT(bad); b++) {
            bool is_power = MEASURES[m] == PNB_MEASURE_POWER_SPHERICAL;
            sphere q = random_sphere(4, 8, is_power, 100, 80),
                   x = random_sphere(60, 8, is_power, 100, 81);
            pnb_search_opts o = pnb_search_opts_default();
            pnb_hits hits;
            o.measure = MEASURES[m];
            x.kappa[33] = bad[b];
            assert_fails(pnb_search(NULL, &q.rows, &x.rows, &o, &hits, err), PNB_NUMERIC,
                         "query 0 and item 33");
            x.kappa[33] = 1.0f;
            q.means.mean[2 * 8 + 1] = b == 0 ? NAN : INFINITY;
            assert_fails(pnb_search(NULL, &q.rows, &x.rows, &o, &hits, err), PNB_NUMERIC,
                         "query 2 and item 0");
            free_sphere(&q);
            free_sphere(&x);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),    cmocka_unit_test(way_that_is_taken),
        cmocka_unit_test(poles_and_lengths),     cmocka_unit_test(limits),
        cmocka_unit_test(threads_do_not_matter), cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
