/* Inclusion beside the difference of divergences: from the measures' own pairs in f64, in one
 * dimension where both must agree, where they part, and against strangers. */
#include "penumbra/hierarchy.h"
#include "tests/prob/support.h"

enum { N = 60, DIM = 4 };

static double kl(const gaussians *a, const gaussians *b, size_t i)
{
    double sum = 0;
    for (size_t k = i * a->view.dim; k < (i + 1) * a->view.dim; k++) {
        double va = exp((double)a->view.log_var[k]), vb = exp((double)b->view.log_var[k]);
        double delta = (double)a->view.mean[k] - (double)b->view.mean[k];
        sum += 0.5 * (va / vb + delta * delta / vb - 1 + log(vb / va));
    }
    return sum;
}

static void by_definition(void **state)
{
    (void)state;
    gaussians a = random_gaussians(N, DIM, -3, -1, 1), b = random_gaussians(N, DIM, -2.5, -0.5, 2);
    double h[N], d[N];
    for (int published = 0; published < 2; published++) {
        pnb_measure measure = published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
        double n_h = 0, n_kl = 0, n_both = 0, n_only = 0, sum_h = 0, sum_kl = 0;
        pnb_inclusion_contest c;
        assert_ok(pnb_inclusion_against_kl(&a.view, &b.view, NULL, published, h, d, &c, err));
        for (size_t i = 0; i < N; i++) {
            double want_h = pnb_measure_pair(measure, &a.view, i, &b.view, i, NULL);
            double want_d = kl(&a, &b, i) - kl(&b, &a, i);
            assert_near(h[i], want_h, 1e-12, 1e-12);
            assert_near(d[i], want_d, 1e-9, 1e-10);
            n_h += want_h > 0;
            n_kl += want_d < 0;
            n_both += want_h > 0 && want_d < 0;
            n_only += want_h > 0 && !(want_d < 0);
            sum_h += want_h / N;
            sum_kl += want_d / N;
        }
        assert_near(c.by_h, n_h / N, 1e-15, 0);
        assert_near(c.by_kl, n_kl / N, 1e-15, 0);
        assert_near(c.both, n_both / N, 1e-15, 0);
        assert_near(c.only_h, n_only / N, 1e-15, 0);
        assert_near(c.only_kl, (n_kl - n_both) / N, 1e-15, 0);
        assert_near(c.h_mean, sum_h, 1e-12, 1e-12);
        assert_near(c.kl_mean, sum_kl, 1e-9, 1e-10);
        assert_true(isnan(c.h_auroc) && isnan(c.kl_auroc));
        assert_true(n_only + n_kl - n_both > 0); /* worth comparing */
    }
    free_gaussians(&a);
    free_gaussians(&b);
}

/* The exact two-sided binomial test, summed by Pascal's triangle. */
static double binomial_p(size_t k, size_t n)
{
    double row[N + 2] = {1}, sum = 0;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = i; j > 0; j--)
            row[j] += row[j - 1];
    for (size_t j = 0; j <= n; j++)
        if (fabs((double)j - (double)n / 2) >= fabs((double)k - (double)n / 2) - 1e-9)
            sum += row[j];
    return sum / pow(2, (double)n);
}

static void sign_test(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 9; seed++) {
        gaussians a = random_gaussians(N, DIM, -3, -1, seed);
        gaussians b = random_gaussians(N, DIM, -3, -1, seed + 50);
        pnb_inclusion_contest c;
        assert_ok(pnb_inclusion_against_kl(&a.view, &b.view, NULL, false, NULL, NULL, &c, err));
        size_t only_h = (size_t)lround(c.only_h * N), only_kl = (size_t)lround(c.only_kl * N);
        assert_near(c.p, binomial_p(only_h, only_h + only_kl), 1e-9, 1e-10);
        free_gaussians(&a);
        free_gaussians(&b);
    }
}

/* One dimension: both tell which is narrower, whatever the means. Turned round both say the
 * opposite; of equal variances neither says anything. */
static void one_dimension(void **state)
{
    (void)state;
    gaussians a = random_gaussians(N, 1, -4, 2, 3), b = random_gaussians(N, 1, -4, 2, 4);
    double h[N], d[N], h_back[N], d_back[N];
    pnb_inclusion_contest c;
    assert_ok(pnb_inclusion_against_kl(&a.view, &b.view, NULL, false, h, d, &c, err));
    assert_true(c.by_h == c.by_kl && c.both == c.by_h && c.p == 1);
    assert_ok(pnb_inclusion_against_kl(&b.view, &a.view, NULL, false, h_back, d_back, &c, err));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(h[i] > 0, a.view.log_var[i] < b.view.log_var[i]);
        assert_near(h_back[i], -h[i], 1e-12, 1e-12);
        assert_near(d_back[i], -d[i], 1e-12, 1e-12);
    }
    memcpy(b.log_var, a.log_var, N * sizeof(float));
    assert_ok(pnb_inclusion_against_kl(&a.view, &b.view, NULL, false, h, d, &c, err));
    for (size_t i = 0; i < N; i++)
        assert_true(h[i] == 0 && d[i] == 0);
    free_gaussians(&a);
    free_gaussians(&b);
}

/* Copies ten times as wide at the same place against strangers of the same widths as the row: the
 * areas are 1; against the same rows once more they are a half. */
static void strangers(void **state)
{
    (void)state;
    gaussians a = random_gaussians(N, DIM, -3, -1, 5), wide = random_gaussians(N, DIM, 0, 0, 6);
    gaussians other = random_gaussians(N, DIM, -3, -1, 7);
    pnb_inclusion_contest c;
    for (size_t k = 0; k < N * DIM; k++) {
        wide.mean[k] = a.mean[k];
        wide.log_var[k] = a.log_var[k] + (float)log(100.0);
        other.log_var[k] = a.log_var[k];
    }
    assert_ok(
        pnb_inclusion_against_kl(&a.view, &wide.view, &other.view, false, NULL, NULL, &c, err));
    assert_true(c.h_auroc == 1 && c.kl_auroc == 1 && c.both == 1);
    assert_ok(
        pnb_inclusion_against_kl(&a.view, &wide.view, &wide.view, false, NULL, NULL, &c, err));
    assert_true(c.h_auroc == 0.5 && c.kl_auroc == 0.5);
    free_gaussians(&a);
    free_gaussians(&wide);
    free_gaussians(&other);
}

static void bad_input(void **state)
{
    (void)state;
    gaussians a = random_gaussians(3, DIM, -3, -1, 5), b = random_gaussians(4, DIM, -3, -1, 6);
    pnb_gaussians none = a.view, point = a.view;
    pnb_inclusion_contest c;
    none.n = 0;
    point.log_var = NULL;
    assert_fails(pnb_inclusion_against_kl(&none, &none, NULL, false, NULL, NULL, &c, err), PNB_ARG,
                 "no rows");
    assert_fails(pnb_inclusion_against_kl(&a.view, &b.view, NULL, false, NULL, NULL, &c, err),
                 PNB_SHAPE, "3 rows");
    assert_fails(pnb_inclusion_against_kl(&a.view, &a.view, &b.view, false, NULL, NULL, &c, err),
                 PNB_SHAPE, "4 of width");
    assert_fails(pnb_inclusion_against_kl(&a.view, &point, NULL, false, NULL, NULL, &c, err),
                 PNB_ARG, "no variances");
    b.log_var[5] = -800; /* 1/variance is infinite */
    b.view.n = 3;
    assert_fails(pnb_inclusion_against_kl(&a.view, &b.view, NULL, false, NULL, NULL, &c, err),
                 PNB_NUMERIC, "row 1");
    free_gaussians(&a);
    free_gaussians(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_definition), cmocka_unit_test(sign_test),
                                       cmocka_unit_test(one_dimension), cmocka_unit_test(strangers),
                                       cmocka_unit_test(bad_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
