/* What a step draws for terms over samples, against loops that enter the streams themselves: the
 * samples of a row are its pair's, wherever the row stands, a function of seed, step and side
 * alone, the ones that a run made by an earlier version drew; and the published uniformity compares
 * the 128 that its own stream names. */
#include <math.h>

#include "tests/train/fixture.h"
#include "train/losses/loss.h"

enum { N = 12, J = 7, D = 3, DRAWN = 128 };
static const uint64_t seed = 41, noise_seed = 0x9e3779b97f4a7c15U, rows_seed = 0xd1b54a32d192ed03U;
static const double scale = 1.5, bias = 0.75;
static double mean[2][N * D], log_var[2][N * D];
static size_t row_of[N]; /* of a pair */

static void fill(void)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < N * D; i++) {
            mean[s][i] = 0.5 * pnb__rng_normal(&rng);
            log_var[s][i] = 0.5 * pnb__rng_normal(&rng) - 1;
        }
    for (size_t p = 0; p < N; p++)
        row_of[p] = (5 * p + 2) % N;
}

static double sample(int64_t step, size_t side, size_t pair, size_t j, size_t d)
{
    pnb__rng rng;
    double e;
    size_t at = row_of[pair] * D + d;
    pnb__rng_init(&rng, seed ^ noise_seed, 2 * (uint64_t)step + side);
    rng.counter = 4 * ((pair * J + j) * D + d);
    pnb__rng_normals(&rng, 1, &e);
    return mean[side][at] + exp(log_var[side][at] / 2) * e;
}

/* |x - y|^2 of two samples by (side, pair, j) */
static double apart(int64_t step, const size_t a[3], const size_t b[3])
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += pow(sample(step, a[0], a[1], a[2], d) - sample(step, b[0], b[1], b[2], d), 2);
    return sum;
}

static double plain_pcme(int64_t step)
{
    double total = 0;
    for (size_t i = 0; i < N; i++)
        for (size_t t = 0; t < N; t++) {
            double p = 0, sign = i == t ? 1 : -1;
            for (size_t j = 0; j < J; j++)
                for (size_t k = 0; k < J; k++) {
                    const size_t a[3] = {0, i, j}, b[3] = {1, t, k};
                    double z = 2 * sign * (bias - scale * sqrt(apart(step, a, b) + 1e-6));
                    p += 1 / (1 + exp(-z)) / (J * J);
                }
            total -= 2 * log(p);
        }
    return total;
}

static double plain_uniformity(int64_t step)
{
    size_t which[DRAWN][3];
    double sum = 0;
    pnb__rng rng;
    pnb__rng_init(&rng, seed ^ rows_seed, (uint64_t)step);
    for (size_t i = 0; i < DRAWN; i++) {
        size_t at = (size_t)pnb__rng_below(&rng, 2 * N * J);
        which[i][0] = at / (N * J);
        which[i][1] = at / J % N;
        which[i][2] = at % J;
    }
    for (size_t i = 0; i < DRAWN; i++)
        for (size_t k = i + 1; k < DRAWN; k++)
            sum += exp(-2 * apart(step, which[i], which[k]));
    return log(sum / (DRAWN * (DRAWN - 1) / 2.0));
}

/* The term of a training graph at a step. */
static double value_of(const pnb_ctx *ctx, pnb_loss_term term, size_t block, int64_t step)
{
    const size_t shape[2] = {N, D};
    pnb_loss_opts o = pnb_loss_opts_default();
    pnb__graph *g = NULL;
    pnb__loss loss;
    pnb__dist side[2];
    memset(o.weight, 0, sizeof o.weight);
    o.weight[term] = 1;
    o.n_samples = J;
    o.uniformity_published = true;
    ASSERT_OK(pnb__graph_create(&g, ctx, PNB__F64, true, &err));
    for (int s = 0; s < 2; s++)
        side[s] = (pnb__dist){.mean = pnb__input_with_grad(g, 2, shape),
                              .log_var = pnb__input_with_grad(g, 2, shape)};
    const pnb__loss_in in = {.image = side[0],
                             .text = side[1],
                             .scale = pnb__constant(g, scale),
                             .bias = pnb__constant(g, bias),
                             .draws = true,
                             .block = block};
    ASSERT_OK(pnb__loss_build(&loss, g, &in, &o, &err));
    ASSERT_OK(pnb__graph_plan(g, loss.total, &err));
    ASSERT_OK(pnb__loss_start(&loss, &err));
    for (int s = 0; s < 2; s++) {
        pnb__write_f64(side[s].mean, mean[s]);
        pnb__write_f64(side[s].log_var, log_var[s]);
    }
    ASSERT_OK(pnb__loss_set_step(&loss, seed, step, row_of, &err));
    ASSERT_OK(pnb__graph_run(g, &err));
    double value = pnb__read_scalar(loss.total);
    pnb__graph_free(g);
    return value;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fabs(want))) /* noise that is an input is in floats */
        fail_msg("%.10g in place of %.10g", got, want);
}

static void test_match_probability(void **state)
{
    fill();
    for (int64_t step = 0; step < 2; step++) {
        assert_near(value_of(*state, PNB_LOSS_PCME, 0, step), plain_pcme(step));
        assert_near(value_of(*state, PNB_LOSS_PCME, 5 * J * D, step), plain_pcme(step));
    }
    assert_true(fabs(plain_pcme(0) - plain_pcme(1)) > 1e-3 * fabs(plain_pcme(0)));
}

static void test_compared_samples(void **state)
{
    fill();
    for (int64_t step = 0; step < 2; step++)
        assert_near(value_of(*state, PNB_LOSS_UNIFORMITY, 0, step), plain_uniformity(step));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match_probability),
        cmocka_unit_test(test_compared_samples),
    };
    return cmocka_run_group_tests(tests, ctx_setup, ctx_teardown);
}
