/* PCME++'s matching loss with its pseudo positives, and the heads that the Gaussian methods share,
 * against their formulas in doubles. */
#include "tests/adapt/heads/reference.h"

enum { N = 12 };

static double mean[2][N * HEADS_DIM], log_var[2][N * HEADS_DIM];

static double trace(int side, size_t i)
{
    double sum = 0;
    for (size_t d = 0; d < HEADS_DIM; d++)
        sum += exp(log_var[side][i * HEADS_DIM + d]);
    return sum;
}

/* -a csd + b */
static double logit(double a, double b, size_t i, size_t t)
{
    const double *x = mean[0] + i * HEADS_DIM, *y = mean[1] + t * HEADS_DIM;
    double csd = 2 - 2 * dot(x, y) + trace(0, i) + trace(1, t);
    return -a * csd + b;
}

static double cross_entropy(double z, double label)
{
    return softplus(z) - label * z;
}

static double wanted_loss(double a, double b, double vib, double pseudo)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        for (size_t t = 0; t < N; t++) {
            double z = logit(a, b, i, t), match = i == t;
            double row = z >= logit(a, b, i, i) ? 1 : match;
            double column = z >= logit(a, b, t, t) ? 1 : match;
            sum += 2 * cross_entropy(z, match) +
                   pseudo * (cross_entropy(z, row) + cross_entropy(z, column));
        }
    return sum / (N * N) + vib * (divergence(mean[0], log_var[0], N * HEADS_DIM) +
                                  divergence(mean[1], log_var[1], N * HEADS_DIM));
}

static void check(pnb_ctx *ctx, double vib, double pseudo)
{
    heads_world w = make_single_world(N, 3);
    pnb_adapter *a = NULL;
    pnb_adapter_opts o = pnb_adapter_opts_default();
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char *dir = scratch_create();
    o.vib = vib;
    o.pseudo = pseudo;
    pnb_safetensors *file = still(ctx, "pcmepp", &w, o, dir, &a);
    for (size_t i = 0; i < 2 * N; i++) {
        double row[64], made[64];
        size_t at = i / 2 * HEADS_DIM;
        head_row(file, &w, i % 2, i / 2, true, "log_var", row, made);
        memcpy(mean[i % 2] + at, row, HEADS_DIM * sizeof *row);
        memcpy(log_var[i % 2] + at, made, HEADS_DIM * sizeof *made);
    }
    require_loss(
        a, wanted_loss(scalar_of(file, "negative_scale"), scalar_of(file, "shift"), vib, pseudo),
        "pcmepp");
    assert_ok(pnb_adapter_apply(&out, a, PNB_ADAPTER_IMAGES, w.images, &err), &err);
    for (size_t i = 0; i < N * HEADS_DIM; i++) {
        require_near(out->log_var[i], log_var[0][i], 1e-5, "log_var");
        assert_true(fabs(out->mean[i] - mean[0][i]) < 1e-6);
    }
    pnb_embeddings_free(out);
    pnb_safetensors_free(file);
    pnb_adapter_free(a);
    scratch_remove(dir);
    free_heads_world(&w);
}

static void formulas(void **state)
{
    check(*state, 0, 0);
    check(*state, 0.3, 0);
    check(*state, 0, 0.7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formulas)};
    return cmocka_run_group_tests(tests, heads_setup, heads_teardown);
}
