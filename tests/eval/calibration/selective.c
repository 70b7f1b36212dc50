/* Selective prediction: hand cases, all orders of ties, closed forms. */
#include "penumbra/selective.h"
#include "penumbra/statistics.h"
#include "tests/eval/expected.h"

static void hand_case(void **state)
{
    (void)state;
    const double u[] = {0.3, 0.1, 0.4, 0.2}, y[] = {0, 1, 1, 1};
    double coverage[2], risk[2];
    pnb_selective s;
    /* answered in the order right, right, wrong, right: E = 0 0 1 1 */
    assert_ok(pnb_selective_compute(u, y, 4, &s, err));
    assert_near(s.error, 0.25, 0, 0);
    assert_near(s.aurc, (0 + 0 + 1.0 / 3 + 1.0 / 4) / 4, 1e-15, 0);
    assert_near(s.augrc, (0 + 0 + 0.5 + 1.0) / 16, 1e-15, 0);
    assert_near(s.auroc, 2.0 / 3, 1e-15, 0);
    assert_ok(pnb_risk_coverage(u, y, 4, 2, coverage, risk, err));
    assert_true(coverage[0] == 0.5 && coverage[1] == 1.0);
    assert_near(risk[0], 0.0, 0, 0);
    assert_near(risk[1], 0.25, 1e-15, 0);
}

/* A point that falls between two answers is that of the next one; equal uncertainties share their
 * errors evenly. */
static void points_between_answers(void **state)
{
    (void)state;
    const double u[] = {1, 2, 3}, tied[] = {1, 2, 2}, y[] = {1, 0, 1};
    static const double at[] = {1, 2, 2, 3, 3};
    double coverage[5], risk[5];
    assert_ok(pnb_risk_coverage(u, y, 3, 5, coverage, risk, err));
    for (size_t i = 0; i < 5; i++) {
        assert_near(coverage[i], at[i] / 3, 1e-15, 0);
        assert_near(risk[i], (at[i] > 1) / at[i], 1e-15, 0);
    }
    assert_ok(pnb_risk_coverage(tied, y, 3, 2, coverage, risk, err));
    assert_near(coverage[0], 2.0 / 3, 1e-15, 0);
    assert_near(risk[0], 0.25, 1e-15, 0);
    assert_near(risk[1], 1.0 / 3, 1e-15, 0);
}

static void add_order(const size_t *order, const double *y, size_t n, double *aurc, double *augrc)
{
    double wrong = 0.0;
    for (size_t i = 0; i < n; i++) {
        double before = wrong;
        wrong += 1.0 - y[order[i]];
        *aurc += wrong / (double)(i + 1) / (double)n;
        *augrc += 0.5 * (before + wrong) / (double)(n * n);
    }
}

/* Mean over every order that sorts u, against the closed mean. */
static void ties_are_averaged(void **state)
{
    (void)state;
    enum { N = 6 };
    const double u[N] = {2, 1, 2, 2, 1, 3}, y[N] = {1, 0, 0, 1, 1, 0};
    double aurc = 0.0, augrc = 0.0, n_orders = 0.0;
    size_t order[N];
    for (size_t code = 0; code < 46656; code++) { /* 6^6 words, those that are orders of u */
        bool used[N] = {false}, fine = true;
        for (size_t i = 0, c = code; i < N && fine; i++, c /= N) {
            order[i] = c % N;
            fine = !used[order[i]] && (i == 0 || u[order[i - 1]] <= u[order[i]]);
            used[order[i]] = true;
        }
        if (!fine)
            continue;
        add_order(order, y, N, &aurc, &augrc);
        n_orders += 1.0;
    }
    pnb_selective s;
    assert_true(n_orders == 12.0);
    assert_ok(pnb_selective_compute(u, y, N, &s, err));
    assert_near(s.aurc, aurc / n_orders, 1e-14, 0);
    assert_near(s.augrc, augrc / n_orders, 1e-14, 0);
}

/* AUROC as pnb_auroc has it; AUGRC = m k (1 - AUROC)/N^2 + m^2/(2 N^2). */
static void closed_forms(void **state)
{
    (void)state;
    enum { N = 500 };
    double u[N], y[N], auroc, m = 0.0;
    int wrong[N];
    pnb__rng rng;
    pnb__rng_init(&rng, 4, 0);
    for (size_t i = 0; i < N; i++) {
        u[i] = (double)pnb__rng_below(&rng, 40);
        wrong[i] = pnb__rng_uniform(&rng) < 0.2 + u[i] / 80;
        y[i] = 1 - wrong[i];
        m += wrong[i];
    }
    pnb_selective s;
    assert_ok(pnb_selective_compute(u, y, N, &s, err));
    assert_ok(pnb_auroc(u, wrong, N, &auroc, err));
    assert_near(s.auroc, auroc, 1e-13, 0);
    assert_near(s.augrc, (m * (N - m) * (1 - auroc) + m * m / 2) / ((double)N * N), 1e-13, 0);
    assert_true(s.auroc > 0.55 && s.aurc < s.error);
}

static void one_class(void **state)
{
    (void)state;
    const double u[] = {1, 2, 3}, right[] = {1, 1, 1}, wrong[] = {0, 0, 0};
    pnb_selective s;
    assert_ok(pnb_selective_compute(u, right, 3, &s, err));
    assert_true(isnan(s.auroc) && s.aurc == 0.0 && s.augrc == 0.0);
    assert_ok(pnb_selective_compute(u, wrong, 3, &s, err));
    assert_true(isnan(s.auroc));
    assert_near(s.aurc, 1.0, 1e-15, 0);
    assert_near(s.augrc, 0.5, 1e-15, 0);
}

static void geometric_mean(void **state)
{
    (void)state;
    const double x[] = {1, 4, 2, 8, 1e-300, 1e300}, bad[] = {1, 2, 0, 1};
    double out[3];
    assert_ok(pnb_geometric_mean_rows(x, 3, 2, out, err));
    assert_near(out[0], 2.0, 1e-15, 0);
    assert_near(out[1], 4.0, 1e-14, 0);
    assert_near(out[2], 1.0, 1e-12, 0);
    assert_fails(pnb_geometric_mean_rows(bad, 2, 2, out, err), PNB_NUMERIC, "row 1, column 0");
    assert_fails(pnb_geometric_mean_rows(bad, 2, 0, out, err), PNB_SHAPE, "0 values");
}

static void bad_input(void **state)
{
    (void)state;
    const double u[] = {1, 2, 3}, nan[] = {1, NAN, 3}, y[] = {1, 0, 1}, high[] = {1, 2, 1};
    pnb_selective s;
    double c[3], k[3];
    assert_fails(pnb_selective_compute(u, y, 0, &s, err), PNB_ARG, "no answers");
    assert_fails(pnb_selective_compute(nan, y, 3, &s, err), PNB_NUMERIC, "uncertainty 1");
    assert_fails(pnb_selective_compute(u, high, 3, &s, err), PNB_NUMERIC, "correct 1");
    assert_fails(pnb_risk_coverage(u, y, 3, 0, c, k, err), PNB_ARG, "0 points");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_case),         cmocka_unit_test(points_between_answers),
        cmocka_unit_test(ties_are_averaged), cmocka_unit_test(closed_forms),
        cmocka_unit_test(one_class),         cmocka_unit_test(geometric_mean),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
