/* Platt's sigmoid against a grid search that zooms in, the gradient, repeated rows for weights, and
 * data that have no fit. */
#include "tests/eval/calibration/scored_cases.h"

static const double plain[2] = {0.0, 1.0};

/* Best (a, b) of a grid over a box, then over ever smaller boxes around the best. */
static void grid_search(const pnb_scored *d, const double target[2], double a_max, double *a,
                        double *b)
{
    enum { HALF = 5 };
    long double best = INFINITY, centre[2] = {(long double)a_max / 2, 0}, size[2];
    size[0] = (long double)a_max / 2;
    size[1] = (long double)a_max;
    for (int round = 0; round < 42; round++) {
        long double from[2] = {centre[0], centre[1]};
        for (int i = -HALF; i <= HALF; i++)
            for (int j = -HALF; j <= HALF; j++) {
                long double x = from[0] + size[0] * i / HALF, y = from[1] + size[1] * j / HALF;
                long double f = plain_nll(d, target, x, y);
                if (f < best) {
                    best = f;
                    centre[0] = x;
                    centre[1] = y;
                }
            }
        size[0] *= 0.6L;
        size[1] *= 0.6L;
    }
    *a = (double)centre[0];
    *b = (double)centre[1];
}

/* The checker: gradient zero relative to the weight, and a > 0. */
static bool is_optimal(const pnb_scored *d, const double target[2], double a, double b)
{
    double g[2] = {0}, size[2] = {0};
    for (size_t i = 0; i < d->n; i++) {
        double w = d->weight != NULL ? d->weight[i] : 1.0;
        double r = w * (1.0 / (1.0 + exp(-(a * d->score[i] + b))) - target[d->label[i]]);
        g[0] += r * d->score[i];
        g[1] += r;
        size[0] += fabs(r * d->score[i]);
        size[1] += fabs(r);
    }
    return a > 0 && fabs(g[0]) <= 1e-10 * size[0] && fabs(g[1]) <= 1e-10 * size[1];
}

static void equals_grid_search(void **state)
{
    (void)state;
    const double truth[][2] = {{2, -1}, {0.4, 0}, {6, -4}, {1, 3}};
    for (size_t t = 0; t < PNB_COUNT(truth); t++) {
        cases c = random_cases(250, truth[t][0], truth[t][1], 10 + t);
        pnb_platt fit;
        double a, b;
        assert_ok(pnb_platt_fit(&c.view, false, &fit, err));
        grid_search(&c.view, plain, 20.0, &a, &b);
        assert_near(fit.a, a, 1e-6, 1e-6);
        assert_near(fit.b, b, 1e-6, 1e-6);
        assert_false(fit.is_smoothed);
        assert_true(is_optimal(&c.view, plain, fit.a, fit.b));
        assert_false(is_optimal(&c.view, plain, fit.a * 1.00001, fit.b));
        assert_false(is_optimal(&c.view, plain, fit.a, fit.b + 1e-5));
        assert_false(is_optimal(&c.view, plain, -fit.a, fit.b));
        assert_near(pnb_platt_apply(&fit, 0.3), 1 / (1 + exp(-(fit.a * 0.3 + fit.b))), 1e-15, 0);
        free_cases(&c);
    }
}

/* A weight of 3 is three rows; scores may be moved and scaled. */
static void weights_and_units(void **state)
{
    (void)state;
    cases c = random_cases(200, 3, -2, 3), r = new_cases(1000);
    pnb_platt fit, other;
    size_t n = 0;
    for (size_t i = 0; i < 200; i++) {
        size_t times = 1 + i % 4;
        c.weight[i] = (double)times;
        for (size_t k = 0; k < times; k++) {
            r.score[n] = c.score[i];
            r.label[n++] = c.label[i];
        }
    }
    r.view = (pnb_scored){n, r.score, r.label, NULL};
    assert_ok(pnb_platt_fit(&c.view, false, &fit, err));
    assert_ok(pnb_platt_fit(&r.view, false, &other, err));
    assert_near(other.a, fit.a, 0, 1e-11);
    assert_near(other.b, fit.b, 0, 1e-11);
    for (size_t i = 0; i < 200; i++)
        c.score[i] = 1e-3 * c.score[i] + 700;
    assert_ok(pnb_platt_fit(&c.view, false, &other, err));
    assert_near(other.a, fit.a * 1e3, 0, 1e-8);
    assert_near(other.b, fit.b - fit.a * 7e5, 0, 1e-8);
    free_cases(&c);
    free_cases(&r);
}

/* Few matches among many pairs: each negative row stands for a million. The mean p is the base
 * rate, and the true a and b come back within their standard errors. */
static void rare_events(void **state)
{
    (void)state;
    cases c = random_cases(MAX_CASES, 5, -6, 8);
    pnb_platt fit;
    double mean = 0, rate = 0, total = 0;
    assert_ok(pnb_platt_fit(&(pnb_scored){MAX_CASES, c.score, c.label, NULL}, false, &fit, err));
    assert_near(fit.a, 5, 0.4, 0);
    assert_near(fit.b, -6, 0.5, 0);
    for (size_t i = 0; i < MAX_CASES; i++)
        c.weight[i] = c.label[i] == 1 ? 1.0 : 1e6;
    assert_ok(pnb_platt_fit(&c.view, false, &fit, err));
    assert_true(is_optimal(&c.view, plain, fit.a, fit.b));
    for (size_t i = 0; i < MAX_CASES; i++) {
        mean += c.weight[i] * pnb_platt_apply(&fit, c.score[i]);
        rate += c.weight[i] * c.label[i];
        total += c.weight[i];
    }
    assert_near(mean / total, rate / total, 0, 1e-9);
    free_cases(&c);
}

/* Where a threshold separates the labels, Platt's targets take over, weights for counts. */
static void separable(void **state)
{
    (void)state;
    double score[] = {-2, -1, -0.5, 0.5, 1}, weight[] = {1, 2, 1, 1, 5}, a, b;
    int label[] = {0, 0, 0, 1, 1};
    pnb_scored d = {5, score, label, weight};
    const double targets[2] = {1.0 / 6.0, 7.0 / 8.0}; /* of 4 and 6 */
    pnb_platt fit, asked;
    assert_ok(pnb_platt_fit(&d, false, &fit, err));
    assert_true(fit.is_smoothed);
    grid_search(&d, targets, 20.0, &a, &b);
    assert_near(fit.a, a, 1e-6, 1e-6);
    assert_near(fit.b, b, 1e-6, 1e-6);
    assert_ok(pnb_platt_fit(&d, true, &asked, err));
    assert_true(asked.a == fit.a && asked.b == fit.b);
    score[3] = -0.5; /* both labels at one score, all else apart: still no maximum */
    assert_ok(pnb_platt_fit(&d, false, &fit, err));
    assert_true(fit.is_smoothed && fit.a > 0);
    score[3] = -0.7; /* now they overlap */
    assert_ok(pnb_platt_fit(&d, false, &fit, err));
    assert_false(fit.is_smoothed);
    assert_true(is_optimal(&d, plain, fit.a, fit.b));
    assert_ok(pnb_platt_fit(&d, true, &asked, err));
    assert_true(asked.is_smoothed && asked.a < fit.a);
    assert_true(is_optimal(&d, targets, asked.a, asked.b));
}

static void classes(void **state)
{
    (void)state;
    double scores[] = {2, 1, 0, 0.5, 1.5, 0.2, 0.1, 0.4, 1.1, 1.9, 1.2, 0.3};
    const int label[] = {0, 1, 2, 1};
    int flat[] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0};
    const int wrong[] = {0, 3, 1, 1};
    pnb_platt fit, want;
    assert_ok(pnb_platt_fit_classes(scores, label, 4, 3, &fit, err));
    assert_ok(pnb_platt_fit(&(pnb_scored){12, scores, flat, NULL}, false, &want, err));
    assert_true(fit.a == want.a && fit.b == want.b);
    assert_fails(pnb_platt_fit_classes(scores, wrong, 4, 3, &fit, err), PNB_ARG, "label 1 is 3");
    assert_fails(pnb_platt_fit_classes(scores, label, 0, 3, &fit, err), PNB_ARG, "0 rows");
}

static void bad_input(void **state)
{
    (void)state;
    double score[] = {1, 2, 3, 4}, flat[] = {2, 2, 2, 2}, nan[] = {1, NAN, 2, 3};
    double weight[] = {1, 1, 0, 1}, large[] = {-1e300, 1e300, -1e300, 1e300};
    int label[] = {0, 1, 0, 1}, ones[] = {1, 1, 1, 1}, turned[] = {1, 1, 0, 0},
        two[] = {0, 2, 1, 0};
    pnb_platt fit;
    assert_fails(pnb_platt_fit(&(pnb_scored){0, score, label, NULL}, false, &fit, err), PNB_ARG,
                 "no scored cases");
    assert_fails(pnb_platt_fit(&(pnb_scored){4, score, ones, NULL}, false, &fit, err), PNB_ARG,
                 "all 4 labels are 1");
    assert_fails(pnb_platt_fit(&(pnb_scored){4, flat, label, NULL}, false, &fit, err), PNB_ARG,
                 "all 4 scores are 2");
    assert_fails(pnb_platt_fit(&(pnb_scored){4, nan, label, NULL}, false, &fit, err), PNB_NUMERIC,
                 "score 1");
    assert_fails(pnb_platt_fit(&(pnb_scored){4, score, label, weight}, false, &fit, err),
                 PNB_NUMERIC, "weight 2 is 0");
    assert_fails(pnb_platt_fit(&(pnb_scored){4, score, two, NULL}, false, &fit, err), PNB_ARG,
                 "label 1 is 2");
    assert_fails(pnb_platt_fit(&(pnb_scored){4, score, turned, NULL}, false, &fit, err), PNB_ARG,
                 "does not score higher (mean 1.5) than label 0 (mean 3.5)");
    assert_fails(pnb_platt_fit(&(pnb_scored){4, large, label, NULL}, false, &fit, err), PNB_NUMERIC,
                 "span");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_grid_search),
        cmocka_unit_test(weights_and_units),
        cmocka_unit_test(rare_events),
        cmocka_unit_test(separable),
        cmocka_unit_test(classes),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
