/* Mean and variance of an uncertain cosine against drawn pairs, its limits, and the probit softmax
 * against drawn logits. */
#include "prob/cosine.h"

#include "tests/prob/support.h"

enum { D = 64, DRAWS = 100000 };

static double draw(const float *mean, const float *log_var, pnb__rng *rng, double *out)
{
    double square = 0;
    for (size_t d = 0; d < D; d++) {
        out[d] = (double)mean[d] + exp(0.5 * (double)log_var[d]) * pnb__rng_normal(rng);
        square += out[d] * out[d];
    }
    return sqrt(square);
}

static void against_drawn_pairs(void **state)
{
    (void)state;
    float mean[2][D], log_var[2][D];
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 0);
    for (size_t i = 0; i < D; i++) {
        mean[0][i] = (float)pnb__rng_normal(&rng);
        mean[1][i] = 0.5f * mean[0][i] + (float)pnb__rng_normal(&rng);
        log_var[0][i] = (float)(-0.5 + 0.5 * pnb__rng_normal(&rng));
        log_var[1][i] = (float)(-0.3 + 0.5 * pnb__rng_normal(&rng));
    }
    const pnb_gaussians a = {.n = 1, .dim = D, .mean = mean[0], .log_var = log_var[0]};
    const pnb_gaussians b = {.n = 1, .dim = D, .mean = mean[1], .log_var = log_var[1]};
    double m, v, sum = 0, dots = 0, lengths = 0, dot_mean = 0;
    pnb__cosine_moments(&a, 0, &b, 0, &m, &v);
    for (size_t i = 0; i < DRAWS; i++) {
        double g[D], h[D], dot = 0, x = draw(mean[0], log_var[0], &rng, g),
                           y = draw(mean[1], log_var[1], &rng, h);
        for (size_t d = 0; d < D; d++)
            dot += g[d] * h[d];
        sum += dot / x / y / DRAWS;
        dot_mean += dot / DRAWS;
        dots += dot * dot / DRAWS;
        lengths += x * x * y * y / DRAWS;
    }
    assert_near(m, sum, 0.01, 0); /* lengths in place of their means */
    assert_near(v, (dots - dot_mean * dot_mean) / lengths, 0, 0.02);
}

static void limits(void **state)
{
    (void)state;
    const float x[2] = {3, 0}, y[2] = {1, 1}, zero[2] = {0, 0}, narrow[2] = {-80, -80};
    const pnb_gaussians p = {.n = 1, .dim = 2, .mean = x}, q = {.n = 1, .dim = 2, .mean = y};
    const pnb_gaussians o = {.n = 1, .dim = 2, .mean = zero};
    const pnb_gaussians n = {.n = 1, .dim = 2, .mean = x, .log_var = narrow};
    double m, v;
    pnb__cosine_moments(&p, 0, &q, 0, &m, &v);
    assert_near(m, sqrt(0.5), 0, 1e-15);
    assert_true(v == 0);
    pnb__cosine_moments(&n, 0, &q, 0, &m, &v);
    assert_near(m, sqrt(0.5), 0, 1e-15);
    pnb__cosine_moments(&o, 0, &q, 0, &m, &v);
    assert_true(m == 0 && v == 0);
}

static void probit_against_drawn_logits(void **state)
{
    (void)state;
    const double mean[2] = {1.5, 0}, sure[2] = {0, 0}, unsure[2] = {4, 0};
    double p[2], plain[2], drawn = 0;
    pnb__rng rng;
    pnb__rng_init(&rng, 2, 0);
    pnb__softmax_probit(mean, sure, 2, plain);
    assert_near(plain[0], pnb_sigmoid(1.5), 0, 1e-14);
    pnb__softmax_probit(mean, unsure, 2, p);
    assert_near(p[0] + p[1], 1, 0, 1e-14);
    for (size_t i = 0; i < DRAWS; i++)
        drawn += pnb_sigmoid(1.5 + 2 * pnb__rng_normal(&rng)) / DRAWS;
    assert_near(p[0], drawn, 0.015, 0); /* of one uncertain logit: the probit's own error */
    double far[2] = {1e6, -1e6};
    pnb__softmax_probit(far, sure, 2, far);
    assert_true(far[0] == 1 && far[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_drawn_pairs),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(probit_against_drawn_logits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
