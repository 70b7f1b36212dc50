/* AsymVLM's likelihoods and losses against their formulas in doubles: each density with its
 * normaliser written out here, both contrastive losses. */
#include "adapt/sphere_loss.h"

#include "tests/adapt/loss_case.h"

enum { B = 3, D = 5, N = B * D };
#define PI 3.14159265358979323846

static pnb__sphere_density density;
static bool is_sigmoid;

static pnb__tensor *matches, *signs, *centre;

/* images (unit rows made from them), eta, scale, bias */
static pnb__tensor *build(pnb__graph *g, pnb__tensor *const *leaf)
{
    pnb__tensor *log_lik = pnb__sphere_log_lik(density, pnb__l2_normalize(leaf[0], 1e-12),
                                               pnb__directions_of(leaf[1]), NULL);
    if (is_sigmoid) {
        signs = pnb__input(g, PNB__REAL, 2, (size_t[]){B, B});
        centre = pnb__input(g, PNB__REAL, 0, NULL);
        return pnb__pairwise_sigmoid(log_lik, leaf[2], leaf[3], centre, signs);
    }
    matches = pnb__input(g, PNB__INT32, 1, (size_t[]){B});
    pnb__tensor *loss = pnb__symmetric_info_nce(log_lik, leaf[2], matches);
    return pnb__add(loss, pnb__affine(leaf[3], 0, 0)); /* the bias has no part in it */
}

static void fill(void)
{
    static const double square[B * B] = {1, -1, -1, -1, 1, -1, -1, -1, 1}, middle = -2;
    static const int32_t places[B] = {0, 1, 2};
    if (!is_sigmoid) {
        pnb__write_i32(matches, places);
        return;
    }
    pnb__write_f64(signs, square);
    pnb__write_f64(centre, &middle);
}

/* log I_nu(x) by its series. */
static double log_bessel(double nu, double x)
{
    double sum = 0;
    for (int k = 0; k < 200; k++)
        sum += exp(2 * k * log(x / 2) - lgamma(k + 1.0) - lgamma(nu + k + 1) + lgamma(nu + 1));
    return nu * log(x / 2) - lgamma(nu + 1) + log(sum);
}

static double log_norm(double kappa)
{
    double a = (D - 1) / 2.0, b = (D + 1) / 2.0;
    double ra = sqrt(a * a + kappa * kappa), rb = sqrt(b * b + kappa * kappa);
    switch (density) {
    case PNB__SPHERE_VMF:
        return a / 2 * (log(a + ra) + log(a + rb)) - 0.5 * (ra + rb);
    case PNB__SPHERE_VMF_EXACT:
        return (D / 2.0 - 1) * log(kappa) - D / 2.0 * log(2 * PI) - log_bessel(D / 2.0 - 1, kappa);
    default:
        return -(D - 1 + kappa) * log(2) - a * log(PI) - lgamma(a + kappa) + lgamma(D - 1 + kappa);
    }
}

static double log_lik_of(const double *x, size_t i, size_t t)
{
    double length = 0, kappa = 0, product = 0;
    for (size_t d = 0; d < D; d++) {
        length += x[i * D + d] * x[i * D + d];
        kappa += x[N + t * D + d] * x[N + t * D + d];
        product += x[i * D + d] * x[N + t * D + d];
    }
    kappa = sqrt(kappa);
    product /= sqrt(length) * kappa;
    return kappa * (density == PNB__SPHERE_POWER_SPHERICAL ? log1p(product) : product) +
           log_norm(kappa);
}

static double value(const double *x)
{
    double s[B][B], sum = 0;
    for (size_t i = 0; i < B; i++)
        for (size_t t = 0; t < B; t++)
            s[i][t] = x[2 * N] * (log_lik_of(x, i, t) + (is_sigmoid ? 2 : 0)) +
                      (is_sigmoid ? x[2 * N + 1] : 0);
    for (size_t i = 0; i < B; i++) {
        double by_row = 0, by_column = 0;
        for (size_t t = 0; t < B; t++) {
            by_row += exp(s[i][t] - s[i][i]);
            by_column += exp(s[t][i] - s[i][i]);
            sum += is_sigmoid ? log1p(exp((i == t ? -1 : 1) * s[i][t])) / B : 0;
        }
        sum += is_sigmoid ? 0 : (log(by_row) + log(by_column)) / (2 * B);
    }
    return sum;
}

static void test_formulas(void **state)
{
    (void)state;
    const loss_case c = {.n_leaves = 4,
                         .rank = {2, 2, 0, 0},
                         .shape = {{B, D}, {B, D}},
                         .build = build,
                         .value = value,
                         .fill = fill,
                         .step = 1e-6,
                         .tolerance = 1e-6};
    for (int k = 0; k < 2 * PNB__N_SPHERE_DENSITIES; k++) {
        double x[2 * N + 2];
        density = (pnb__sphere_density)(k / 2);
        is_sigmoid = k % 2 == 1;
        draw(x, 2 * N, 0, 1, 6);
        x[2 * N] = 0.7;
        x[2 * N + 1] = -0.4;
        require_loss(&c, x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formulas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
