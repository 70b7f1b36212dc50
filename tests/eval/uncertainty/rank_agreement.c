/* Scores against what is known: each figure by its definition over all pairs of rows, resamples as
 * pnb_bootstrap makes them of rows written out, and intervals that hold what a world with known
 * correlations has. */
#include "penumbra/rank_agreement.h"

#include "penumbra/statistics.h"
#include "tests/prob/support.h"

enum { N = 60, N_SCORES = 3, RESAMPLES = 80 };

typedef struct world {
    double known[N], score[N_SCORES][N];
    const double *scores[N_SCORES];
    int64_t cluster[N];
    pnb_known_rows rows;
} world;

/* Scores with many ties, of falling use; clusters of one to four rows. */
static void world_make(world *w, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    int64_t cluster = 0;
    for (size_t i = 0; i < N; i++) {
        w->known[i] = floor(6.0 * pnb__rng_uniform(&rng)) / 2.0;
        for (size_t s = 0; s < N_SCORES; s++)
            w->score[s][i] =
                floor(2.0 * w->known[i] + (2.0 + 4.0 * (double)s) * pnb__rng_normal(&rng));
        cluster += pnb__rng_uniform(&rng) < 0.4;
        w->cluster[i] = cluster;
    }
    for (size_t s = 0; s < N_SCORES; s++)
        w->scores[s] = w->score[s];
    w->rows = (pnb_known_rows){N, w->known, w->scores, N_SCORES, false};
}

/* ---- by definition ---- */

static double sign(double d)
{
    return (d > 0) - (d < 0);
}

static double tau_by_pairs(const double *x, const double *y, size_t n)
{
    double both = 0, only_x = 0, only_y = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            both += sign(x[i] - x[j]) * sign(y[i] - y[j]);
            only_x += x[i] != x[j];
            only_y += y[i] != y[j];
        }
    return both / sqrt(only_x * only_y);
}

static double auroc_by_pairs(const double *known, const double *score, size_t n, double above)
{
    double sum = 0, pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (known[i] > above && known[j] <= above) {
                sum += 0.5 + 0.5 * sign(score[i] - score[j]);
                pairs++;
            }
    return sum / pairs;
}

/* rank_i = 1 + rows below + half of the other ties; Pearson of the two. */
static double spearman_by_counts(const double *x, const double *y, size_t n)
{
    double xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < n; i++) {
        double a = 0, b = 0;
        for (size_t j = 0; j < n; j++) {
            a += 0.5 * sign(x[i] - x[j]);
            b += 0.5 * sign(y[i] - y[j]);
        }
        xx += a * a;
        yy += b * b;
        xy += a * b;
    }
    return xy / sqrt(xx * yy);
}

/* Partial correlation as the correlation of what regressions on the ranks of z leave of those of x
 * and y. */
static double held_by_residuals(const double *x, const double *y, const double *z, size_t n)
{
    double rank[3][N] = {{0}}, slope[2] = {0}, zz = 0, xx = 0, yy = 0, xy = 0;
    const double *of[3] = {x, y, z};
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                rank[k][i] += 0.5 * sign(of[k][i] - of[k][j]);
    for (size_t i = 0; i < n; i++) {
        zz += rank[2][i] * rank[2][i];
        slope[0] += rank[0][i] * rank[2][i];
        slope[1] += rank[1][i] * rank[2][i];
    }
    for (size_t i = 0; i < n; i++) {
        double a = rank[0][i] - slope[0] / zz * rank[2][i];
        double b = rank[1][i] - slope[1] / zz * rank[2][i];
        xx += a * a;
        yy += b * b;
        xy += a * b;
    }
    return xy / sqrt(xx * yy);
}

static void figures_by_definition(void **state)
{
    (void)state;
    const pnb_bootstrap_opts none = {.n_resamples = 0, .level = 0.95};
    for (uint64_t seed = 0; seed < 20; seed++) {
        world w;
        pnb_rank_agreement got[N_SCORES];
        pnb_known_split split;
        world_make(&w, seed);
        assert_ok(pnb_known_split_of(w.known, N, &split, err));
        assert_ok(pnb_rank_agreement_compute(NULL, &w.rows, &none, got, err));
        for (size_t s = 0; s < N_SCORES; s++) {
            const double want[PNB_N_AGREEMENTS] = {
                spearman_by_counts(w.known, w.score[s], N), tau_by_pairs(w.known, w.score[s], N),
                auroc_by_pairs(w.known, w.score[s], N, split.median)};
            for (size_t f = 0; f < PNB_N_AGREEMENTS; f++) {
                assert_near(got[s].figure[f].value, want[f], 1e-12, 0);
                assert_near(got[s].lead[f].value, got[0].figure[f].value - want[f], 1e-12, 0);
                assert_true(isnan(got[s].figure[f].low) && isnan(got[s].lead[f].high));
            }
            assert_true(isnan(got[s].held.low) && isnan(got[0].held.value));
            if (s > 0)
                assert_near(got[s].held.value,
                            held_by_residuals(w.known, w.score[0], w.score[s], N), 1e-12, 0);
        }
    }
}

/* ---- resamples ---- */

typedef struct one_figure {
    const world *world;
    size_t score, figure;
    double above;
} one_figure;

/* The figure of rows written out, by statistics.h. */
static double of_rows(void *user, const size_t *row, size_t n)
{
    const one_figure *o = user;
    double *x = malloc(2 * n * sizeof *x), *y = x + n, out = NAN;
    int *high = malloc(n * sizeof *high);
    assert_true(x != NULL && high != NULL);
    for (size_t i = 0; i < n; i++) {
        x[i] = o->world->known[row[i]];
        y[i] = o->world->score[o->score][row[i]];
        high[i] = x[i] > o->above;
    }
    if (o->figure == PNB_AGREEMENT_SPEARMAN)
        assert_ok(pnb_spearman(x, y, n, &out, err));
    else if (o->figure == PNB_AGREEMENT_KENDALL)
        assert_ok(pnb_kendall_tau_b(x, y, n, &out, err));
    else
        assert_ok(pnb_auroc(y, high, n, &out, err));
    free(x);
    free(high);
    return out;
}

/* Of the first score where that of the figure is held fixed. */
static double held_of_rows(void *user, const size_t *row, size_t n)
{
    const one_figure *o = user;
    double at[3][N]; /* what is known, the first score, the one held; resamples may have other n */
    double *x[3], xy, xz, yz;
    for (size_t k = 0; k < 3; k++) {
        x[k] = n <= N ? at[k] : malloc(n * sizeof **x);
        assert_non_null(x[k]);
        for (size_t i = 0; i < n; i++)
            x[k][i] =
                k == 0 ? o->world->known[row[i]] : o->world->score[k == 1 ? 0 : o->score][row[i]];
    }
    assert_ok(pnb_spearman(x[0], x[1], n, &xy, err));
    assert_ok(pnb_spearman(x[0], x[2], n, &xz, err));
    assert_ok(pnb_spearman(x[1], x[2], n, &yz, err));
    for (size_t k = 0; k < 3 && n > N; k++)
        free(x[k]);
    return (xy - xz * yz) / sqrt((1 - xz * xz) * (1 - yz * yz));
}

static double lead_of_rows(void *user, const size_t *row, size_t n)
{
    one_figure first = *(const one_figure *)user;
    first.score = 0;
    return of_rows(&first, row, n) - of_rows(user, row, n);
}

static void resamples_are_rows_written_out(void **state)
{
    (void)state;
    world w;
    pnb_rank_agreement got[N_SCORES];
    pnb_known_split split;
    world_make(&w, 4);
    const pnb_bootstrap_opts boot = {
        .n_resamples = RESAMPLES, .level = 0.9, .seed = 7, .cluster = w.cluster};
    assert_ok(pnb_known_split_of(w.known, N, &split, err));
    assert_ok(pnb_rank_agreement_compute(NULL, &w.rows, &boot, got, err));
    for (size_t s = 0; s < N_SCORES; s++)
        for (size_t f = 0; f < PNB_N_AGREEMENTS; f++) {
            one_figure one = {&w, s, f, split.median};
            pnb_interval want;
            assert_ok(pnb_bootstrap(of_rows, &one, N, &boot, &want, err));
            assert_near(got[s].figure[f].low, want.low, 1e-12, 0);
            assert_near(got[s].figure[f].high, want.high, 1e-12, 0);
            if (s == 0) {
                assert_true(got[0].lead[f].value == 0 && isnan(got[0].lead[f].low));
                continue;
            }
            assert_ok(pnb_bootstrap(lead_of_rows, &one, N, &boot, &want, err));
            assert_near(got[s].lead[f].low, want.low, 1e-12, 0);
            assert_near(got[s].lead[f].high, want.high, 1e-12, 0);
        }
    for (size_t s = 1; s < N_SCORES; s++) {
        one_figure one = {&w, s, 0, 0};
        pnb_interval want;
        assert_ok(pnb_bootstrap(held_of_rows, &one, N, &boot, &want, err));
        assert_true(isfinite(want.low) && want.low < want.high);
        assert_near(got[s].held.low, want.low, 1e-12, 0);
        assert_near(got[s].held.high, want.high, 1e-12, 0);
    }
}

/* What ties leave: the mean over random orders of equal rows, and 1 without any. */
static void most_that_ties_allow(void **state)
{
    (void)state;
    enum { ORDERS = 4000 };
    world w;
    pnb_known_split split;
    double score[N], sum = 0, at;
    pnb__rng rng;
    world_make(&w, 11);
    for (size_t i = 0; i < N / 2; i++)
        w.known[i] = 0; /* as many as half of them, beside runs of other lengths */
    assert_ok(pnb_known_split_of(w.known, N, &split, err));
    pnb__rng_init(&rng, 5, 0);
    for (size_t t = 0; t < ORDERS; t++) {
        for (size_t i = 0; i < N; i++)
            score[i] = w.known[i] + 0.4 * pnb__rng_uniform(&rng);
        assert_ok(pnb_spearman(w.known, score, N, &at, err));
        sum += at / ORDERS;
    }
    assert_true(split.most_spearman < 0.95);
    assert_near(split.most_spearman, sum, 1e-3, 0);
    for (size_t i = 0; i < N; i++)
        score[i] = (double)i;
    assert_ok(pnb_known_split_of(score, N, &split, err));
    assert_true(split.most_spearman == 1.0);
    assert_ok(pnb_known_split_of((const double[]){3, 3, 3}, 3, &split, err));
    assert_true(isnan(split.most_spearman));
}

/* Of 0 and 1 AUROC says all: the same as with the others, which are left out. */
static void only_auroc(void **state)
{
    (void)state;
    world w;
    pnb_rank_agreement all[N_SCORES], one[N_SCORES];
    world_make(&w, 6);
    for (size_t i = 0; i < N; i++)
        w.known[i] = w.known[i] > 2;
    const pnb_bootstrap_opts boot = {.n_resamples = 50, .level = 0.95, .cluster = w.cluster};
    assert_ok(pnb_rank_agreement_compute(NULL, &w.rows, &boot, all, err));
    w.rows.only_auroc = true;
    assert_ok(pnb_rank_agreement_compute(NULL, &w.rows, &boot, one, err));
    for (size_t s = 0; s < N_SCORES; s++) {
        const pnb_interval *a = &all[s].figure[PNB_AGREEMENT_AUROC],
                           *b = &one[s].figure[PNB_AGREEMENT_AUROC];
        assert_true(a->value == b->value && a->low == b->low && a->high == b->high);
        assert_true(isnan(one[s].held.value) && (s == 0 || isfinite(all[s].held.high)));
        assert_true(isnan(one[s].figure[PNB_AGREEMENT_KENDALL].value) &&
                    isfinite(all[s].figure[PNB_AGREEMENT_KENDALL].low));
    }
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    world w;
    pnb_rank_agreement one[N_SCORES], many[N_SCORES];
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    world_make(&w, 9);
    const pnb_bootstrap_opts boot = {.n_resamples = 50, .level = 0.95, .cluster = w.cluster};
    opts.n_threads = 3;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    memset(one, 0, sizeof one);
    memset(many, 0, sizeof many);
    assert_ok(pnb_rank_agreement_compute(NULL, &w.rows, &boot, one, err));
    assert_ok(pnb_rank_agreement_compute(ctx, &w.rows, &boot, many, err));
    assert_memory_equal(one, many, sizeof one);
    pnb_ctx_free(ctx);
}

/* ---- intervals that hold ---- */

enum { CLUSTERS = 40, EACH = 5, TRIALS = 200 };

/* Pairs of normals of correlation r, most of which rows of a cluster share. */
static void normal_pairs(uint64_t trial, double r, double *x, double *y, int64_t *cluster)
{
    pnb__rng rng;
    pnb__rng_init(&rng, trial, 1);
    for (size_t k = 0; k < CLUSTERS; k++) {
        double a = pnb__rng_normal(&rng), b = pnb__rng_normal(&rng);
        for (size_t j = 0; j < EACH; j++) {
            size_t i = k * EACH + j;
            double c = pnb__rng_normal(&rng), d = pnb__rng_normal(&rng);
            double u = sqrt(0.8) * a + sqrt(0.2) * c, v = sqrt(0.8) * b + sqrt(0.2) * d;
            x[i] = u;
            y[i] = r * u + sqrt(1 - r * r) * v;
            cluster[i] = (int64_t)k;
        }
    }
}

/* How often the intervals of Spearman, tau and the lead before noise hold their true values:
 * 6/pi asin(r/2) and 2/pi asin(r) of two normals (Kruskal 1958). */
static void count_covered(double r, bool with_clusters, double covered[3])
{
    enum { ROWS = CLUSTERS * EACH };
    static double x[ROWS], y[ROWS], noise[ROWS];
    static int64_t cluster[ROWS];
    const double *scores[] = {y, noise};
    const pnb_known_rows rows = {ROWS, x, scores, 2, false};
    double truth[] = {6 / M_PI * asin(r / 2), 2 / M_PI * asin(r), 6 / M_PI * asin(r / 2)};
    memset(covered, 0, 3 * sizeof *covered);
    for (uint64_t t = 0; t < TRIALS; t++) {
        pnb_rank_agreement got[2];
        pnb__rng rng;
        normal_pairs(t, r, x, y, cluster);
        pnb__rng_init(&rng, t, 2);
        for (size_t i = 0; i < ROWS; i++)
            noise[i] = pnb__rng_normal(&rng);
        const pnb_bootstrap_opts boot = {.n_resamples = 200,
                                         .level = 0.95,
                                         .seed = t,
                                         .cluster = with_clusters ? cluster : NULL};
        assert_ok(pnb_rank_agreement_compute(NULL, &rows, &boot, got, err));
        const pnb_interval *of[] = {&got[0].figure[PNB_AGREEMENT_SPEARMAN],
                                    &got[0].figure[PNB_AGREEMENT_KENDALL],
                                    &got[1].lead[PNB_AGREEMENT_SPEARMAN]};
        for (size_t k = 0; k < 3; k++)
            covered[k] += (of[k]->low <= truth[k] && truth[k] <= of[k]->high) / (double)TRIALS;
    }
}

/* Bounds of four standard deviations of the simulation around 95%; rows drawn one by one are far
 * below. */
static void intervals_hold(void **state)
{
    (void)state;
    double covered[3];
    for (size_t i = 0; i < 2; i++) {
        count_covered(i == 0 ? 0.0 : 0.6, true, covered);
        print_message("intervals cover %.3f %.3f %.3f\n", covered[0], covered[1], covered[2]);
        for (size_t k = 0; k < 3; k++)
            assert_true(covered[k] >= 0.88);
    }
    count_covered(0.0, false, covered);
    assert_true(covered[0] < 0.8 && covered[1] < 0.8);
}

/* ---- edges ---- */

static void what_has_no_figure(void **state)
{
    (void)state;
    const double flat[] = {2, 2, 2, 2}, rising[] = {1, 2, 3, 4}, binary[] = {0, 1, 1, 1},
                 rare[] = {0, 0, 0, 1}, nan[] = {0, NAN, 1, 2};
    const double *scores[] = {rising, flat};
    pnb_known_rows rows = {4, flat, scores, 2, false};
    pnb_rank_agreement got[2];
    pnb_known_split split;
    assert_ok(pnb_rank_agreement_compute(NULL, &rows, NULL, got, err));
    for (size_t f = 0; f < PNB_N_AGREEMENTS; f++)
        assert_true(isnan(got[0].figure[f].value) && isnan(got[0].figure[f].low));
    rows.known = rising;
    assert_ok(pnb_rank_agreement_compute(NULL, &rows, NULL, got, err));
    assert_near(got[0].figure[PNB_AGREEMENT_KENDALL].value, 1, 1e-15, 0);
    assert_near(got[0].figure[PNB_AGREEMENT_SPEARMAN].value, 1, 1e-15, 0);
    assert_near(got[1].figure[PNB_AGREEMENT_AUROC].value, 0.5, 0, 0);
    assert_true(isnan(got[1].figure[PNB_AGREEMENT_SPEARMAN].value) && isnan(got[1].held.value));
    /* 0 and 1 are told apart whichever is the more common */
    assert_ok(pnb_known_split_of(binary, 4, &split, err));
    assert_true(split.includes_median && split.n_high == 3);
    assert_ok(pnb_known_split_of(rare, 4, &split, err));
    assert_true(!split.includes_median && split.n_high == 1);
    rows.known = nan;
    assert_fails(pnb_rank_agreement_compute(NULL, &rows, NULL, got, err), PNB_NUMERIC,
                 "known value 1");
    rows.known = rising;
    scores[1] = nan;
    assert_fails(pnb_rank_agreement_compute(NULL, &rows, NULL, got, err), PNB_NUMERIC, "score 1");
    rows.n = 0;
    assert_fails(pnb_rank_agreement_compute(NULL, &rows, NULL, got, err), PNB_ARG, "at least one");
    const pnb_bootstrap_opts bad = {.n_resamples = 9, .level = 1};
    rows.n = 4;
    assert_fails(pnb_rank_agreement_compute(NULL, &rows, &bad, got, err), PNB_ARG, "level 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_by_definition), cmocka_unit_test(resamples_are_rows_written_out),
        cmocka_unit_test(most_that_ties_allow),  cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(intervals_hold),        cmocka_unit_test(only_auroc),
        cmocka_unit_test(what_has_no_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
