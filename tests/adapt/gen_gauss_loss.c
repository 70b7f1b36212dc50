/* ProbVLM's losses, the released one and the likelihood, against their formulas in doubles; the
 * clamp, outside of which there is no gradient. */
#include "adapt/gen_gauss_loss.h"

#include "tests/adapt/loss_case.h"

enum { B = 3, D = 4, N = B * D };

static pnb__gen_gauss_form form;

/* mean, 1/alpha, beta, target */
static pnb__tensor *build(pnb__graph *g, pnb__tensor *const *leaf)
{
    (void)g;
    return pnb__gen_gauss_loss(form, (pnb__gen_gauss){leaf[0], leaf[1], leaf[2]}, leaf[3], 1.0,
                               0.05);
}

static double nll(double far, double inv_alpha, double beta)
{
    double a = inv_alpha + 1e-4, b = beta + 1e-4;
    double residual = form == PNB__GEN_GAUSS_TRUE ? pow(far * a, b) : far * a * b;
    return fmin(fmax(residual, 1e-4), 1e3) - log(a) + lgamma(1 / b) - log(b);
}

static double value(const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        double far = fabs(x[i] - x[3 * N + i]);
        sum += far + 0.05 * nll(far, x[N + i], x[2 * N + i]);
    }
    return sum / N;
}

static const loss_case losses = {.n_leaves = 4,
                                 .rank = {2, 2, 2, 2},
                                 .shape = {{B, D}, {B, D}, {B, D}, {B, D}},
                                 .build = build,
                                 .value = value,
                                 .step = 1e-6,
                                 .tolerance = 1e-6};

static void test_formula(void **state)
{
    (void)state;
    for (int f = 0; f < PNB__N_GEN_GAUSS_FORMS; f++) {
        double x[4 * N];
        form = (pnb__gen_gauss_form)f;
        draw(x, N, 0, 1, 1);
        draw(x + N, N, 2, 0.2, 2);
        draw(x + 2 * N, N, 1.5, 0.2, 3);
        draw(x + 3 * N, N, 0, 1, 4);
        require_loss(&losses, x);
    }
}

/* Residuals below 1e-4 and above 1e3 stand still: what is left is the slope of the norm. */
static void test_clamp(void **state)
{
    (void)state;
    for (int f = 0; f < PNB__N_GEN_GAUSS_FORMS; f++) {
        double x[4 * N];
        form = (pnb__gen_gauss_form)f;
        for (size_t i = 0; i < N; i++) {
            x[i] = i % 2 == 0 ? 1e-6 : 1e6;
            x[N + i] = 2;
            x[2 * N + i] = 1.5;
            x[3 * N + i] = -1e-7;
        }
        loss_case c = losses;
        c.step = 1e-8; /* stays on its side of |mean - target| = 0 */
        c.tolerance = 1e-2;
        require_near(value(x), value(x), 0, "itself");
        require_loss(&c, x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formula),
                                       cmocka_unit_test(test_clamp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
