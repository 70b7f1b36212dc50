/* Figures of a direction against the functions they are made of, and the bootstrap against the
 * plain one that copies rows. */
#include "penumbra/bootstrap.h"
#include "penumbra/calibrate.h"
#include "penumbra/ece.h"
#include "penumbra/figures.h"
#include "penumbra/retrieval.h"
#include "penumbra/selective.h"
#include "penumbra/statistics.h"
#include "penumbra/uncertainty_calibration.h"
#include "tests/eval/expected.h"

enum { N = 240, B = 60 };

/* Queries whose first hit is wrong the more often, the more uncertain they are. */
typedef struct data {
    int64_t rank[2 * N], cluster[N];
    double u[2 * N], confidence[2 * N], precision[2 * N], map[2 * N], correct[N];
    int label[N];
    pnb_query_values v;
} data;

static void make(data *d, uint64_t seed, double skill)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < N; i++) {
        d->u[i] = pnb__rng_uniform(&rng);
        bool right = pnb__rng_uniform(&rng) < skill * (1.0 - 0.8 * d->u[i]);
        d->rank[i] = right ? 1 : 2 + (int64_t)pnb__rng_below(&rng, 30);
        d->label[i] = right;
        d->correct[i] = right;
        d->confidence[i] = 0.5 + 0.5 * pnb__rng_uniform(&rng) * (1.0 - d->u[i]);
        if (i % 3 == 0) /* equal forecasts stay in one bin */
            d->confidence[i] = 0.25 + 0.125 * (double)pnb__rng_below(&rng, 5);
        d->precision[i] = pnb__rng_uniform(&rng);
        d->map[i] = d->precision[i] * pnb__rng_uniform(&rng);
    }
    for (size_t i = 0; i < N; i++)
        d->cluster[i] = i < N / 2 ? 1000 - (int64_t)(i / 2) : (int64_t)i; /* of two, of one */
    d->v = (pnb_query_values){N, d->rank, d->precision, d->map, d->u, d->confidence, d->cluster};
}

static void expect_point(const data *d, const pnb_figures *f)
{
    pnb_uncertainty_calibration c;
    pnb_selective s;
    pnb_weighted_ece r;
    double hits[2] = {0, 0}, nlpd = 0.0;
    for (size_t i = 0; i < N; i++) {
        hits[0] += d->rank[i] <= 1;
        hits[1] += d->rank[i] <= 5;
        nlpd -= log(d->label[i] ? d->confidence[i] : 1 - d->confidence[i]) / N;
    }
    assert_near(f->recall[0], hits[0] / N, 1e-14, 0);
    assert_near(f->recall[1], hits[1] / N, 1e-14, 0);
    assert_ok(
        pnb_uncertainty_calibration_compute(d->u, d->correct, N, PNB_BINS_EQUAL_COUNT, 7, &c, err));
    assert_near(f->value[PNB_FIGURE_SPEARMAN_S], c.s, 1e-14, 0);
    assert_near(f->value[PNB_FIGURE_R2], c.r2, 1e-14, 0);
    assert_near(f->value[PNB_FIGURE_MINUS_S_R2], c.minus_s_r2, 1e-14, 0);
    assert_ok(
        pnb_uncertainty_calibration_compute(d->u, d->correct, N, PNB_BINS_EQUAL_WIDTH, 7, &c, err));
    assert_near(f->value[PNB_FIGURE_WIDTH_SPEARMAN_S], c.s, 1e-14, 0);
    assert_near(f->value[PNB_FIGURE_WIDTH_R2], c.r2, 1e-14, 0);
    assert_near(f->value[PNB_FIGURE_WIDTH_MINUS_S_R2], c.minus_s_r2, 1e-14, 0);
    assert_ok(pnb_selective_compute(d->u, d->correct, N, &s, err));
    assert_near(f->value[PNB_FIGURE_AUROC], s.auroc, 1e-14, 0);
    assert_near(f->value[PNB_FIGURE_AURC], s.aurc, 1e-14, 0);
    assert_near(f->value[PNB_FIGURE_AUGRC], s.augrc, 1e-14, 0);
    const pnb_scored estimates = {N, d->confidence, d->label, NULL};
    assert_ok(pnb_weighted_ece_compute(&estimates, 9, &r, err));
    assert_near(f->value[PNB_FIGURE_ECE], r.ece, 1e-14, 0);
    assert_near(f->value[PNB_FIGURE_NLPD], nlpd, 1e-12, 0);
}

static pnb_figure_opts options(void)
{
    pnb_figure_opts o = pnb_figure_opts_default();
    o.n_bins = 7;
    o.n_mass_bins = 9;
    return o;
}

static void point_values(void **state)
{
    (void)state;
    data d;
    pnb_figures f;
    pnb_figure_opts o = options();
    make(&d, 1, 0.9);
    assert_ok(pnb_figures_compute(&d.v, &o, &f, err));
    expect_point(&d, &f);
    pnb_ranks ranks = {N, 100, d.rank, NULL, NULL, d.precision, d.map};
    pnb_direction direction;
    assert_ok(pnb_direction_summarise(&ranks, o.k, o.n_k, &direction, err));
    assert_near(f.value[PNB_FIGURE_MEDIAN_RANK], direction.median_rank, 0, 0);
    assert_near(f.value[PNB_FIGURE_MEAN_RANK], direction.mean_rank, 1e-12, 0);
    assert_near(f.value[PNB_FIGURE_R_PRECISION], direction.r_precision, 1e-13, 0);
    assert_near(f.value[PNB_FIGURE_MAP_AT_R], direction.map_at_r, 1e-13, 0);
    assert_string_equal(pnb_figure_name(PNB_FIGURE_AUGRC), "augrc");
    assert_string_equal(pnb_figure_name(PNB_N_FIGURES), "unknown");
}

/* A figure of copied rows, as the plain bootstrap wants it. */
typedef struct copied {
    const data *d;
    pnb_figure figure;
} copied;

static double figure_of_rows(void *user, const size_t *row, size_t n)
{
    const copied *c = user;
    data d;
    pnb_figures f;
    pnb_error err = PNB_ERROR_INIT;
    pnb_figure_opts o = options();
    assert_true(n <= 2 * N);
    for (size_t i = 0; i < n; i++) {
        d.rank[i] = c->d->rank[row[i]];
        d.u[i] = c->d->u[row[i]];
        d.confidence[i] = c->d->confidence[row[i]];
        d.precision[i] = c->d->precision[row[i]];
        d.map[i] = c->d->map[row[i]];
    }
    d.v = (pnb_query_values){n, d.rank, d.precision, d.map, d.u, d.confidence, NULL};
    assert_true(pnb_figures_compute(&d.v, &o, &f, &err) == PNB_OK);
    return f.value[c->figure];
}

/* Weights and copies give the same intervals for every figure: same draws, no ties. */
static void intervals_equal_the_plain_bootstrap(void **state)
{
    (void)state;
    data d;
    pnb_figure_intervals got;
    pnb_figure_opts o = options();
    pnb_bootstrap_opts b = {.n_resamples = B, .level = 0.9, .seed = 12};
    make(&d, 2, 0.8);
    assert_ok(pnb_figures_bootstrap(NULL, &d.v, 1, &o, &b, &got, err));
    for (int f = 0; f < PNB_N_FIGURES; f++) {
        copied c = {&d, (pnb_figure)f};
        pnb_interval want;
        if (!pnb_figure_has_interval((pnb_figure)f)) {
            assert_true(isnan(got.low.value[f]) && isnan(got.high.value[f]));
            continue;
        }
        if (f == PNB_FIGURE_ECE_DEBIASED)
            continue; /* not a bootstrap of the figure: calibration_error.c */
        b.cluster = d.cluster;
        assert_ok(pnb_bootstrap(figure_of_rows, &c, N, &b, &want, err));
        assert_near(got.value.value[f], want.value, 1e-12, 0);
        assert_near(got.low.value[f], want.low, 1e-12, 0);
        assert_near(got.high.value[f], want.high, 1e-12, 0);
        assert_true(got.low.value[f] <= got.high.value[f]);
    }
    pnb_interval recall;
    b.cluster = d.cluster;
    assert_ok(pnb_bootstrap_mean(d.correct, N, &b, &recall, err));
    assert_near(got.low.recall[0], recall.low, 1e-14, 0);
    assert_near(got.high.recall[0], recall.high, 1e-14, 0);
    assert_true(got.low.recall[0] < got.value.recall[0]);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    data d;
    pnb_figure_intervals one, three;
    pnb_bootstrap_opts b = {.n_resamples = 31, .level = 0.95, .seed = 5};
    pnb_ctx_opts ctx_opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    ctx_opts.n_threads = 3;
    assert_ok(pnb_ctx_create(&ctx, &ctx_opts, err));
    make(&d, 3, 0.7);
    assert_ok(pnb_figures_bootstrap(NULL, &d.v, 1, NULL, &b, &one, err));
    assert_ok(pnb_figures_bootstrap(ctx, &d.v, 1, NULL, &b, &three, err));
    assert_memory_equal(&one, &three, sizeof one);
    pnb_ctx_free(ctx);
}

static void paired_comparison(void **state)
{
    (void)state;
    data weak[2], strong[2];
    pnb_query_values a[2], c[2];
    pnb_figure_test t;
    pnb_figures f;
    double mean = 0.0;
    pnb_bootstrap_opts b = {.n_resamples = 199, .level = 0.95, .seed = 1};
    for (uint64_t s = 0; s < 2; s++) {
        make(&weak[s], 10 + s, 0.5);
        make(&strong[s], 20 + s, 0.95);
        a[s] = weak[s].v;
        c[s] = strong[s].v;
        assert_ok(pnb_figures_compute(&a[s], NULL, &f, err));
        mean -= 0.5 * f.recall[0];
        assert_ok(pnb_figures_compute(&c[s], NULL, &f, err));
        mean += 0.5 * f.recall[0];
    }
    pnb_figure_pair pair = {a, c, 2, 2};
    assert_ok(pnb_figures_compare(NULL, &pair, NULL, &b, &t, err));
    assert_near(t.difference.recall[0], mean, 1e-13, 0);
    /* no resample on the other side; with so many clusters t is nearly normal */
    assert_near(t.p.recall[0], 2.0 / 200, 2e-3, 0);
    assert_true(isnan(t.p.value[PNB_FIGURE_SPEARMAN_S]) && isnan(t.p.value[PNB_FIGURE_ECE]));
    assert_true(!isnan(t.difference.value[PNB_FIGURE_SPEARMAN_S]));
    assert_true(t.low.recall[0] > 0.0 && t.high.recall[0] < 1.0);
    pair = (pnb_figure_pair){a, a, 1, 1};
    assert_ok(pnb_figures_compare(NULL, &pair, NULL, &b, &t, err));
    assert_true(t.difference.recall[0] == 0.0 && t.p.recall[0] == 1.0);
    /* by chance alone p is small about as often as it says */
    size_t n_small = 0;
    for (uint64_t run = 0; run < 60; run++) {
        make(&weak[0], 100 + 2 * run, 0.6);
        make(&weak[1], 101 + 2 * run, 0.6);
        a[0] = weak[0].v;
        a[1] = weak[1].v;
        pair = (pnb_figure_pair){&a[0], &a[1], 1, 1};
        assert_ok(pnb_figures_compare(NULL, &pair, NULL, &b, &t, err));
        n_small += t.p.recall[0] < 0.1;
    }
    assert_true(n_small <= 14);
}

static void missing_and_degenerate(void **state)
{
    (void)state;
    int64_t rank[] = {1, 1, 1};
    const double u[] = {1, 2, 3};
    pnb_query_values v = {3, rank, NULL, NULL, u, NULL, NULL};
    pnb_figures f;
    pnb_figure_intervals i;
    assert_ok(pnb_figures_compute(&v, NULL, &f, err)); /* fewer queries than bins */
    assert_true(isnan(f.value[PNB_FIGURE_AUROC]) && isnan(f.value[PNB_FIGURE_ECE]));
    assert_true(isnan(f.value[PNB_FIGURE_MAP_AT_R]) && isnan(f.recall[3]));
    assert_true(f.value[PNB_FIGURE_SPEARMAN_S] == 0.0 && f.recall[0] == 1.0);
    assert_ok(pnb_figures_bootstrap(NULL, &v, 1, NULL, NULL, &i, err));
    /* three of three right: Wilson's limit with three cases, widened for three clusters */
    double reach = sqrt(1.5) * 4.302653;
    assert_true(isnan(i.low.value[PNB_FIGURE_AUROC]) && i.high.recall[0] == 1.0);
    assert_near(i.low.recall[0], 3.0 / (3.0 + reach * reach), 1e-6, 0);
    assert_true(isnan(i.low.value[PNB_FIGURE_AURC]) && isnan(i.low.value[PNB_FIGURE_MEAN_RANK]));
    assert_true(i.low.value[PNB_FIGURE_MEDIAN_RANK] == 1.0);
    int64_t one[] = {4, 4, 4}; /* one cluster says nothing of others */
    v.cluster = one;
    assert_ok(pnb_figures_bootstrap(NULL, &v, 1, NULL, NULL, &i, err));
    assert_true(isnan(i.low.recall[0]) && i.value.recall[0] == 1.0);
}

/* The median of an even number of ranks lies between two of them, in the sample and in resamples.
 */
static void median_of_an_even_count(void **state)
{
    (void)state;
    static const struct {
        int64_t rank[4];
        double median;
    } cases[] = {{{1, 4, 9, 2}, 3},  /* floor(((2-1) + (4-1))/2) + 1 */
                 {{1, 2, 3, 10}, 2}, /* floor(1.5) + 1 */
                 {{5, 5, 5, 5}, 5},
                 {{1, 1, 20, 20}, 10}};
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        const pnb_query_values v = {.n = 4, .best_rank = cases[i].rank};
        double none[4] = {0, 0, 0, 0};
        const pnb_ranks ranks = {4,    100, (int64_t *)(uintptr_t)cases[i].rank, NULL, NULL,
                                 none, none};
        pnb_direction direction;
        pnb_figures f;
        const size_t k[] = {1};
        assert_ok(pnb_figures_compute(&v, NULL, &f, err));
        assert_near(f.value[PNB_FIGURE_MEDIAN_RANK], cases[i].median, 0, 0);
        assert_ok(pnb_direction_summarise(&ranks, k, 1, &direction, err));
        assert_near(direction.median_rank, cases[i].median, 0, 0);
    }
}

/* Without resamples values are the same and there are no intervals. */
static void no_resamples(void **state)
{
    (void)state;
    data d;
    pnb_figure_intervals with, without;
    pnb_bootstrap_opts b = {.n_resamples = 50, .level = 0.95};
    make(&d, 3, 0.7);
    assert_ok(pnb_figures_bootstrap(NULL, &d.v, 1, NULL, &b, &with, err));
    b.n_resamples = 0;
    assert_ok(pnb_figures_bootstrap(NULL, &d.v, 1, NULL, &b, &without, err));
    for (int f = 0; f < PNB_N_FIGURES; f++) {
        assert_true(with.value.value[f] == without.value.value[f]);
        assert_true(isnan(without.low.value[f]) && isnan(without.high.value[f]));
    }
    assert_true(with.value.recall[0] == without.value.recall[0] && isnan(without.low.recall[0]));
}

/* Over single queries Spearman is that of stats.c. */
static void single_queries(void **state)
{
    (void)state;
    data d;
    pnb_figures f;
    double want;
    make(&d, 4, 0.7);
    for (size_t i = 0; i < N; i += 3)
        d.u[i] = 0.5; /* ties */
    assert_ok(pnb_figures_compute(&d.v, NULL, &f, err));
    assert_ok(pnb_spearman(d.u, d.correct, N, &want, err));
    assert_near(f.value[PNB_FIGURE_QUERY_SPEARMAN], want, 1e-12, 0);
    assert_true(want < -0.1);
}

static void bad_input(void **state)
{
    (void)state;
    int64_t rank[] = {1, 2, 1}, zero[] = {1, 0, 1};
    const double nan[] = {1, NAN, 3}, high[] = {0.5, 1.5, 0.5};
    const size_t k[] = {0};
    pnb_query_values v = {.n = 3, .best_rank = rank}, w = v, two[2];
    pnb_figure_opts o = pnb_figure_opts_default();
    pnb_bootstrap_opts b = pnb_bootstrap_opts_default();
    pnb_figures f;
    pnb_figure_intervals i;
    pnb_figure_test t;
    w.best_rank = zero;
    assert_fails(pnb_figures_compute(&w, NULL, &f, err), PNB_ARG, "query 1 has rank 0");
    w = v;
    w.uncertainty = nan;
    assert_fails(pnb_figures_compute(&w, NULL, &f, err), PNB_NUMERIC, "uncertainty 1");
    w = v;
    w.confidence = high;
    assert_fails(pnb_figures_compute(&w, NULL, &f, err), PNB_NUMERIC, "confidence 1");
    w = v;
    w.map_at_r = nan;
    assert_fails(pnb_figures_compute(&w, NULL, &f, err), PNB_NUMERIC, "query 1");
    w.n = 0;
    assert_fails(pnb_figures_compute(&w, NULL, &f, err), PNB_ARG, "0 queries");
    o.k = k;
    o.n_k = 1;
    assert_fails(pnb_figures_compute(&v, &o, &f, err), PNB_ARG, "cut-off 0");
    o = pnb_figure_opts_default();
    o.n_bins = 0;
    assert_fails(pnb_figures_compute(&v, &o, &f, err), PNB_ARG, "bins");
    b.level = 1.0;
    assert_fails(pnb_figures_bootstrap(NULL, &v, 1, NULL, &b, &i, err), PNB_ARG, "level 1");
    assert_fails(pnb_figures_bootstrap(NULL, &v, 0, NULL, NULL, &i, err), PNB_ARG, "0 seeds");
    two[0] = two[1] = v;
    two[1].n = 2;
    assert_fails(pnb_figures_bootstrap(NULL, two, 2, NULL, NULL, &i, err), PNB_ARG,
                 "the same queries");
    pnb_figure_pair pair = {&v, NULL, 1, 0};
    assert_fails(pnb_figures_compare(NULL, &pair, NULL, NULL, &t, err), PNB_ARG, "second model");
}

#ifdef PNB_FAULTS
static void out_of_memory(void **state)
{
    (void)state;
    data d;
    pnb_status status = PNB_NOMEM;
    pnb_bootstrap_opts b = {.n_resamples = 2, .level = 0.95, .seed = 0};
    make(&d, 1, 0.5);
    for (long n = 0; status != PNB_OK; n++) {
        pnb_error err = PNB_ERROR_INIT;
        pnb_figure_intervals i;
        pnb__alloc_fail_after(n);
        status = pnb_figures_bootstrap(NULL, &d.v, 1, NULL, &b, &i, &err);
        pnb__alloc_fail_after(-1);
        assert_true((status == PNB_OK || status == PNB_NOMEM) && n < 200);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(point_values),
        cmocka_unit_test(intervals_equal_the_plain_bootstrap),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(paired_comparison),
        cmocka_unit_test(missing_and_degenerate),
        cmocka_unit_test(median_of_an_even_count),
        cmocka_unit_test(no_resamples),
        cmocka_unit_test(single_queries),
        cmocka_unit_test(bad_input),
#ifdef PNB_FAULTS
        cmocka_unit_test(out_of_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
