/* PCME's soft contrastive loss against its definition in doubles, pair by pair and sample by
 * sample, and its gradients by central differences. */
#include "tests/adapt/world.h"

#include "adapt/heads/soft_contrastive.h"

enum { B = 3, J = 4, D = 5, N_IN = 4 * B * D + 2 };

/* Inputs in one row: image mean, image log_var, text mean, text log_var, scale, shift. */
static double inputs[N_IN], noise[2][B * J * D];

static double sample(int side, size_t b, size_t j, size_t d)
{
    const double *mean = inputs + 2 * side * B * D, *log_var = mean + B * D;
    return mean[b * D + d] + exp(0.5 * log_var[b * D + d]) * noise[side][(b * J + j) * D + d];
}

/* As the paper writes it: e^l/(e^l + e^-l), its mean over samples, its logarithm. */
static double wanted_loss(void)
{
    double a = inputs[N_IN - 2], b = inputs[N_IN - 1], sum = 0;
    for (size_t i = 0; i < B; i++)
        for (size_t t = 0; t < B; t++) {
            double p = 0;
            for (size_t j = 0; j < J; j++)
                for (size_t k = 0; k < J; k++) {
                    double square = 0;
                    for (size_t d = 0; d < D; d++) {
                        double x = sample(0, i, j, d) - sample(1, t, k, d);
                        square += x * x;
                    }
                    double l = (i == t ? 1 : -1) * (-a * sqrt(square + 1e-6) + b);
                    p += exp(l) / (exp(l) + exp(-l)) / (J * J);
                }
            sum -= log(p);
        }
    return 2 * sum;
}

static double wanted_divergence(int side)
{
    const double *mean = inputs + 2 * side * B * D, *log_var = mean + B * D;
    double sum = 0;
    for (size_t i = 0; i < B * D; i++)
        sum -= 0.5 * (1 + log_var[i] - mean[i] * mean[i] - exp(log_var[i]));
    return sum;
}

static void formula_and_gradients(void **state)
{
    pnb_ctx *ctx = make_ctx();
    pnb__graph *g = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb__tensor *leaf[6], *eps[2], *signs;
    double square[B * B], grad[B * D];
    pnb__rng rng;
    (void)state;
    pnb__rng_init(&rng, 4, 0);
    for (size_t i = 0; i < N_IN; i++)
        inputs[i] = i >= N_IN - 2 ? 1.3 : 0.5 * pnb__rng_normal(&rng);
    for (size_t i = 0; i < B * J * D; i++)
        noise[0][i] = pnb__rng_normal(&rng), noise[1][i] = pnb__rng_normal(&rng);
    for (size_t i = 0; i < B * B; i++)
        square[i] = i / B == i % B ? 1 : -1;
    assert_ok(pnb__graph_create(&g, ctx, PNB__F64, true, &err), &err);
    for (int i = 0; i < 6; i++) {
        leaf[i] = pnb__input_with_grad(g, i < 4 ? 2 : 0, (size_t[]){B, D});
        pnb__keep_grad(leaf[i]);
    }
    for (int s = 0; s < 2; s++)
        eps[s] = pnb__input(g, PNB__REAL, 3, (size_t[]){B, J, D});
    signs = pnb__input(g, PNB__REAL, 2, (size_t[]){B, B});
    const pnb__sampled_side image = {leaf[0], leaf[1], eps[0]}, text = {leaf[2], leaf[3], eps[1]};
    pnb__tensor *loss = pnb__soft_contrastive(image, text, leaf[4], leaf[5], signs);
    pnb__tensor *vib = pnb__add(pnb__sampled_divergence(image), pnb__sampled_divergence(text));
    pnb__tensor *total = pnb__add(loss, vib);
    pnb__keep(loss);
    pnb__keep(vib);
    assert_ok(pnb__graph_plan(g, total, &err), &err);
    for (int i = 0; i < 6; i++)
        pnb__write_f64(leaf[i], inputs + (i < 4 ? i * B * D : N_IN - 6 + i));
    pnb__write_f64(eps[0], noise[0]);
    pnb__write_f64(eps[1], noise[1]);
    pnb__write_f64(signs, square);
    assert_ok(pnb__graph_run(g, &err), &err);
    require_near(pnb__read_scalar(loss), wanted_loss(), 1e-10, "loss");
    require_near(pnb__read_scalar(vib), wanted_divergence(0) + wanted_divergence(1), 1e-10, "vib");
    for (int i = 0; i < 6; i++) {
        size_t n = i < 4 ? B * D : 1, at = i < 4 ? (size_t)i * B * D : (size_t)(N_IN - 6 + i);
        assert_true(pnb__read_grad_f64(leaf[i], grad));
        for (size_t k = 0; k < n; k++) {
            double kept = inputs[at + k], h = 1e-5, up, down;
            inputs[at + k] = kept + h;
            up = wanted_loss() + wanted_divergence(0) + wanted_divergence(1);
            inputs[at + k] = kept - h;
            down = wanted_loss() + wanted_divergence(0) + wanted_divergence(1);
            inputs[at + k] = kept;
            if (!(fabs(grad[k] - (up - down) / (2 * h)) < 1e-6))
                fail_msg("input %d, number %zu: gradient %g, wanted %g", i, k, grad[k],
                         (up - down) / (2 * h));
        }
    }
    pnb__graph_free(g);
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formula_and_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
