/* f64 scores and bounds of measures that take samples: whether a side's samples are kept or, where
 * they are too many for the memory, drawn anew for each block, the bits are the same, and they are
 * those of the two sides' own streams. */
#include "index/exact/exact.h"

#include "index/exact/bound.h"
#include "tests/prob/support.h"

enum { N_QUERIES = 5, N_ITEMS = 9, DIM = 12, N = N_QUERIES * N_ITEMS };

typedef struct found {
    double block[N], pair[N];
    float value[N];
} found;

/* All pairs with the samples of the sides in `gone` (1 queries, 2 items) taken away. */
static found score_all(const pnb_search_opts *o, const gaussians *q, const gaussians *x,
                       unsigned gone)
{
    found f;
    pnb__exact scan;
    pnb__exact_run run;
    pnb__bound pass;
    pnb__bound_work work;
    pnb__values v;
    assert_ok(pnb__exact_init(&scan, NULL, &x->view, o, err));
    assert_ok(pnb__exact_run_init(&run, &scan, NULL, &q->view, err));
    assert_int_equal(run.way, PNB__EXACT_SAMPLES);
    double *kept[2] = {run.queries.samples, scan.gallery.samples};
    assert_true(kept[0] != NULL && kept[1] != NULL);
    run.queries.samples = gone & 1 ? NULL : kept[0];
    scan.gallery.samples = gone & 2 ? NULL : kept[1];
    assert_ok(pnb__bound_init(&pass, &run, NULL, 0, N_QUERIES, err));
    assert_ok(pnb__bound_work_init(&work, &run, err));
    const pnb__exact_block block = {
        .n_queries = N_QUERIES, .n_items = N_ITEMS, .score = f.block, .ld = N_ITEMS};
    assert_ok(pnb__exact_score(&run, &work.scan, &block, err));
    assert_true(pass.strip >= N_QUERIES && pass.n_items >= N_ITEMS);
    assert_ok(pnb__bound_score(&pass, &work, 0, (const size_t[2]){0, N_ITEMS}, &v, err));
    for (size_t i = 0; i < N_QUERIES; i++)
        for (size_t j = 0; j < N_ITEMS; j++) {
            f.pair[i * N_ITEMS + j] = pnb__exact_pair(&run, &work.scan, i, j);
            f.value[i * N_ITEMS + j] = v.value[j * v.ld + i];
        }
    pnb__bound_work_reset(&work);
    pnb__bound_reset(&pass);
    run.queries.samples = kept[0];
    scan.gallery.samples = kept[1];
    pnb__exact_run_reset(&run);
    pnb__exact_reset(&scan);
    return f;
}

static void samples_drawn_anew_are_the_same(void **state)
{
    (void)state;
    const pnb_measure measures[] = {PNB_MEASURE_AVG_L2, PNB_MEASURE_MATCH_PROB};
    gaussians q = random_gaussians(N_QUERIES, DIM, -3, 0, 1),
              x = random_gaussians(N_ITEMS, DIM, -3, 0, 2);
    for (size_t m = 0; m < PNB_COUNT(measures); m++) {
        pnb_search_opts o = pnb_search_opts_default();
        double want[N];
        o.measure = measures[m];
        o.measure_opts.n_samples = 3;
        assert_ok(pnb_measure_block(o.measure, &q.view, &x.view, &o.measure_opts, want, err));
        const found kept = score_all(&o, &q, &x, 0);
        for (unsigned gone = 1; gone < 4; gone++) {
            const found anew = score_all(&o, &q, &x, gone);
            assert_memory_equal(anew.block, kept.block, sizeof kept.block);
            assert_memory_equal(anew.pair, kept.block, sizeof kept.block);
            assert_memory_equal(anew.value, kept.value, sizeof kept.value);
        }
        for (size_t i = 0; i < N; i++)
            assert_near(kept.block[i], pnb_measure_score(o.measure, want[i]), 1e-12, 1e-11);
    }
    free_gaussians(&q);
    free_gaussians(&x);
}

/* Between outlines lies the mean squared distance of all pairs of samples, less what is the query's
 * own: the order of items is that of the mean. */
static void outlines_are_mean_distances(void **state)
{
    (void)state;
    enum { J = 3 };
    gaussians q = random_gaussians(N_QUERIES, DIM, -3, 0, 1),
              x = random_gaussians(N_ITEMS, DIM, -3, 0, 2);
    pnb_search_opts o = pnb_search_opts_default();
    pnb__exact scan;
    pnb__exact_run run;
    o.measure = PNB_MEASURE_MATCH_PROB;
    o.measure_opts.n_samples = J;
    assert_ok(pnb__exact_init(&scan, NULL, &x.view, &o, err));
    assert_ok(pnb__exact_run_init(&run, &scan, NULL, &q.view, err));
    for (size_t i = 0; i < N_QUERIES; i++) {
        const double *a = run.queries.samples + i * J * DIM;
        const float *from = run.queries.outline + i * (DIM + 1);
        double own = 0.0;
        for (size_t n = 0; n < J * DIM; n++)
            own += pow(a[n] - (double)from[n % DIM], 2) / J;
        for (size_t k = 0; k < N_ITEMS; k++) {
            const double *b = scan.gallery.samples + k * J * DIM;
            const float *to = scan.gallery.outline + k * (DIM + 1);
            double mean = 0.0, between = 0.0;
            for (size_t n = 0; n < J * J * DIM; n++)
                mean += pow(a[n % (J * DIM)] - b[n / (J * DIM) * DIM + n % DIM], 2) / (J * J);
            for (size_t d = 0; d <= DIM; d++)
                between += pow((double)from[d] - (double)to[d], 2);
            assert_near(between + own, mean, 1e-5, 1e-5);
        }
    }
    pnb__exact_run_reset(&run);
    pnb__exact_reset(&scan);
    free_gaussians(&q);
    free_gaussians(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples_drawn_anew_are_the_same),
                                       cmocka_unit_test(outlines_are_mean_distances)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
