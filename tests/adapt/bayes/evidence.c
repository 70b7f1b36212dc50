/* The marginal likelihood against the determinant of the whole precision, and its maximum against
 * looking at every prior. */
#include "tests/adapt/world.h"

#include "adapt/bayes/kronecker.h"

enum { P = 4, Q = 3, ALL = P * Q };

/* log det by elimination; positive definite. */
static double log_det(double m[ALL][ALL], size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        sum += log(m[k][k]);
        for (size_t i = k + 1; i < n; i++) {
            double f = m[i][k] / m[k][k];
            for (size_t j = k; j < n; j++)
                m[i][j] -= f * m[k][j];
        }
    }
    return sum;
}

static void fill_gram(double *out, size_t d, pnb__rng *rng)
{
    double x[8][P];
    for (size_t r = 0; r < 8; r++)
        for (size_t i = 0; i < d; i++)
            x[r][i] = pnb__rng_normal(rng);
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) {
            out[i * d + j] = 0;
            for (size_t r = 0; r < 8; r++)
                out[i * d + j] += x[r][i] * x[r][j] / 8;
        }
}

static double factor_at(const double *f, size_t d, size_t i, size_t j, double n, double lambda)
{
    return sqrt(n) * f[i * d + j] + (i == j ? sqrt(lambda) : 0);
}

/* log N(W; 0, I/lambda) - log det(precision)/2, up to what lambda does not change */
static double dense(const pnb__kronecker *k, double weight_square, double lambda)
{
    double m[ALL][ALL];
    for (size_t i = 0; i < ALL; i++)
        for (size_t j = 0; j < ALL; j++)
            m[i][j] = factor_at(k->a, P, i / Q, j / Q, k->n, lambda) *
                      factor_at(k->b, Q, i % Q, j % Q, k->n, lambda);
    return 0.5 * (ALL * log(lambda) - lambda * weight_square) - 0.5 * log_det(m, ALL);
}

/* The exponents the other way round and no half, as it was released. */
static double dense_released(const pnb__kronecker *k, double weight_square, double lambda)
{
    double a[ALL][ALL], b[ALL][ALL];
    for (size_t i = 0; i < P; i++)
        for (size_t j = 0; j < P; j++)
            a[i][j] = factor_at(k->a, P, i, j, k->n, lambda);
    for (size_t i = 0; i < Q; i++)
        for (size_t j = 0; j < Q; j++)
            b[i][j] = factor_at(k->b, Q, i, j, k->n, lambda);
    return 0.5 * (ALL * log(lambda) - lambda * weight_square) - P * log_det(a, P) -
           Q * log_det(b, Q);
}

static void make_factors(pnb__kronecker *k)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    assert_int_equal(pnb__kronecker_init(k, P, Q, NULL), PNB_OK);
    fill_gram(k->a, P, &rng);
    fill_gram(k->b, Q, &rng);
    k->n = 40;
}

static void against_the_dense_determinant(void **state)
{
    (void)state;
    static const double at[] = {1e-3, 0.5, 1, 7, 300};
    pnb__kronecker k;
    pnb__evidence e;
    make_factors(&k);
    for (int kind = 0; kind < PNB_N_ADAPT_MARGINALS; kind++) {
        assert_int_equal(pnb__evidence_init(&e, &k, 2.5, (pnb_adapt_marginal)kind, NULL), PNB_OK);
        for (size_t i = 0; i < PNB_COUNT(at); i++)
            require_near(pnb__evidence_at(&e, at[i]),
                         kind == PNB_ADAPT_MARGINAL_CORRECTED ? dense(&k, 2.5, at[i])
                                                              : dense_released(&k, 2.5, at[i]),
                         1e-11, "evidence");
        pnb__evidence_reset(&e);
    }
    pnb__kronecker_reset(&k);
}

static void the_best_prior(void **state)
{
    (void)state;
    pnb__kronecker k;
    pnb__evidence e;
    double best = 0;
    make_factors(&k);
    assert_int_equal(pnb__evidence_init(&e, &k, 2.5, PNB_ADAPT_MARGINAL_CORRECTED, NULL), PNB_OK);
    assert_int_equal(pnb__evidence_best(&e, "image", &best, NULL), PNB_OK);
    for (double lambda = 1e-8; lambda < 1e12; lambda *= 1.01)
        assert_true(pnb__evidence_at(&e, lambda) <= pnb__evidence_at(&e, best) + 1e-12);
    pnb_error err = PNB_ERROR_INIT;
    e.kind = PNB_ADAPT_MARGINAL_RELEASED; /* without rows it falls for ever */
    e.n = 1e-300;
    assert_int_equal(pnb__evidence_best(&e, "image", &best, &err), PNB_NUMERIC);
    assert_non_null(strstr(err.text, "prior_precision"));
    pnb__evidence_reset(&e);
    pnb__kronecker_reset(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_dense_determinant),
                                       cmocka_unit_test(the_best_prior)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
