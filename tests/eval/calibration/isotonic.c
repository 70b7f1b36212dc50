/* Pooling adjacent violators against all partitions (few points), against the max-min formula
 * (many), the rule between and beyond knots, bad input. */
#include "tests/eval/calibration/scored_cases.h"

/* Distinct scores with their weight and mean label. */
typedef struct points {
    size_t n;
    double score[64], weight[64], mean[64];
} points;

static points distinct(const pnb_scored *d)
{
    points p = {0};
    for (;;) {
        double next = INFINITY, w = 0, y = 0;
        for (size_t i = 0; i < d->n; i++)
            if (d->score[i] < next && (p.n == 0 || d->score[i] > p.score[p.n - 1]))
                next = d->score[i];
        if (isinf(next))
            return p;
        for (size_t i = 0; i < d->n; i++)
            if (d->score[i] == next) {
                w += d->weight[i];
                y += d->weight[i] * d->label[i];
            }
        p.score[p.n] = next;
        p.weight[p.n] = w;
        p.mean[p.n++] = y / w;
    }
}

static double mean_of(const points *p, size_t begin, size_t end)
{
    double w = 0, y = 0;
    for (size_t i = begin; i < end; i++) {
        w += p->weight[i];
        y += p->weight[i] * p->mean[i];
    }
    return y / w;
}

/* Least squared error over every cut of the points into runs whose means do not fall. */
static void best_partition(const points *p, double *value)
{
    double best = INFINITY;
    for (unsigned cuts = 0; cuts < 1u << (p->n - 1); cuts++) {
        double fitted[64], error = 0, last = -INFINITY;
        size_t begin = 0;
        for (size_t i = 0; i < p->n; i++) {
            if (i + 1 < p->n && (cuts >> i & 1) == 0)
                continue;
            double mean = mean_of(p, begin, i + 1);
            error += mean < last - 1e-12 ? INFINITY : 0;
            last = mean;
            for (; begin <= i; begin++) {
                fitted[begin] = mean;
                error += p->weight[begin] * (p->mean[begin] - mean) * (p->mean[begin] - mean);
            }
        }
        if (error < best - 1e-12) {
            best = error;
            memcpy(value, fitted, p->n * sizeof *value);
        }
    }
}

static cases tied_cases(size_t n, uint64_t n_scores, uint64_t seed)
{
    cases c = new_cases(n);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 6);
    for (size_t i = 0; i < n; i++) {
        c.score[i] = (double)pnb__rng_below(&rng, n_scores) / 8.0 - 1.0;
        c.weight[i] = 0.25 + pnb__rng_uniform(&rng);
        c.label[i] = pnb__rng_uniform(&rng) < 0.5 + 0.4 * (c.score[i] / (double)n_scores);
    }
    c.label[0] = 0;
    c.label[1] = 1;
    c.score[0] = -1.0;
    c.score[1] = (double)(n_scores - 1) / 8.0 - 1.0;
    return c;
}

static void equals_all_partitions(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        cases c = tied_cases(3 + seed % 10, 2 + seed % 8, seed);
        points p = distinct(&c.view);
        double want[64];
        pnb_isotonic fit;
        best_partition(&p, want);
        assert_ok(pnb_isotonic_fit(&c.view, false, &fit, err));
        for (size_t i = 0; i < p.n; i++)
            assert_near(pnb_isotonic_apply(&fit, p.score[i]), want[i], 1e-12, 0);
        pnb_isotonic_reset(&fit);
        free_cases(&c);
    }
}

/* g_i = max over j <= i of min over k >= i of the mean of points j..k. */
static double max_min(const points *p, size_t i)
{
    double best = -INFINITY;
    for (size_t j = 0; j <= i; j++) {
        double least = INFINITY;
        for (size_t k = i; k < p->n; k++)
            least = fmin(least, mean_of(p, j, k + 1));
        best = fmax(best, least);
    }
    return best;
}

/* The checker of the next test: every value is the regression's. */
static bool is_regression(const pnb_isotonic *fit, const points *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (!(fabs(pnb_isotonic_apply(fit, p->score[i]) - max_min(p, i)) <= 1e-12))
            return false;
    return true;
}

static void equals_max_min(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        cases c = tied_cases(400, 50, 1000 + seed);
        points p = distinct(&c.view);
        pnb_isotonic fit;
        assert_ok(pnb_isotonic_fit(&c.view, false, &fit, err));
        assert_true(is_regression(&fit, &p));
        for (size_t k = 1; k < fit.n; k++)
            assert_true(fit.score[k] > fit.score[k - 1] && fit.p[k] >= fit.p[k - 1]);
        fit.p[fit.n / 2] += 1e-9; /* a fault that must be seen */
        assert_false(is_regression(&fit, &p));
        pnb_isotonic_reset(&fit);
        free_cases(&c);
    }
}

static void between_and_beyond(void **state)
{
    (void)state;
    double score[] = {0, 1, 2, 4, 5, 6}, weight[] = {1, 1, 1, 1, 1, 1};
    int label[] = {0, 1, 0, 1, 0, 1};
    pnb_scored d = {6, score, label, weight};
    pnb_isotonic fit;
    /* blocks {0}, {1,2}, {4,5}, {6} of 0, 1/2, 1/2, 1: the two in the middle are one */
    assert_ok(pnb_isotonic_fit(&d, false, &fit, err));
    assert_int_equal(fit.n, 4);
    assert_near(pnb_isotonic_apply(&fit, -9), 0, 0, 0);
    assert_near(pnb_isotonic_apply(&fit, 0.5), 0.25, 1e-15, 0);
    assert_near(pnb_isotonic_apply(&fit, 3), 0.5, 1e-15, 0);
    assert_near(pnb_isotonic_apply(&fit, 5.75), 0.875, 1e-15, 0);
    assert_near(pnb_isotonic_apply(&fit, INFINITY), 1, 0, 0);
    assert_true(isnan(pnb_isotonic_apply(&fit, (double)NAN)));
    pnb_isotonic_reset(&fit);
    assert_ok(pnb_isotonic_fit(&d, true, &fit, err)); /* 3 and 3: targets 4/5 and 1/5 */
    assert_near(pnb_isotonic_apply(&fit, 0), 0.2, 1e-15, 0);
    assert_near(pnb_isotonic_apply(&fit, 3), 0.5, 1e-15, 0);
    assert_near(pnb_isotonic_apply(&fit, 7), 0.8, 1e-15, 0);
    pnb_isotonic_reset(&fit);
    for (size_t i = 0; i < 6; i++)
        score[i] = -score[i];
    int turned[] = {1, 1, 1, 0, 0, 0};
    for (size_t i = 0; i < 6; i++)
        turned[i] = i >= 3;
    assert_ok(pnb_isotonic_fit(&(pnb_scored){6, score, turned, NULL}, false, &fit, err));
    assert_near(pnb_isotonic_apply(&fit, -6), 0.5, 1e-15, 0); /* falling data: one constant */
    assert_near(pnb_isotonic_apply(&fit, 0), 0.5, 1e-15, 0);
    pnb_isotonic_reset(&fit);
    pnb_isotonic_reset(NULL);
}

static void bad_input(void **state)
{
    (void)state;
    double score[] = {1, 2}, flat[] = {1, 1}, nan[] = {1, NAN};
    int label[] = {0, 1}, ones[] = {1, 1};
    pnb_isotonic fit;
    assert_fails(pnb_isotonic_fit(&(pnb_scored){2, score, ones, NULL}, true, &fit, err), PNB_ARG,
                 "labels are 1");
    assert_fails(pnb_isotonic_fit(&(pnb_scored){2, flat, label, NULL}, true, &fit, err), PNB_ARG,
                 "scores are 1");
    assert_fails(pnb_isotonic_fit(&(pnb_scored){2, nan, label, NULL}, true, &fit, err), PNB_NUMERIC,
                 "score 1");
    assert_fails(pnb_isotonic_fit(&(pnb_scored){0, score, label, NULL}, true, &fit, err), PNB_ARG,
                 "no scored cases");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_all_partitions),
        cmocka_unit_test(equals_max_min),
        cmocka_unit_test(between_and_beyond),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
