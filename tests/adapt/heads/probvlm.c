/* ProbVLM against its formulas in doubles: both likelihoods with the cross-modal terms, the
 * variance of a row, and what passes with dropout add to it. */
#include "tests/adapt/heads/reference.h"

#include "adapt/heads/learned.h"

enum { N = 10, HIDDEN = 16 };

typedef struct caps {
    double x[64], mean[64], inv_alpha[64], beta[64];
} caps;

static double positive(double x)
{
    return softplus(x);
}

/* `keep` (HIDDEN) is what dropout leaves, or NULL. */
static void make_caps(const pnb_safetensors *file, const heads_world *w, int side, size_t i,
                      const double *keep, caps *out)
{
    const char *word = side == 0 ? "image" : "text";
    double h[64], *const made[] = {out->mean, out->inv_alpha, out->beta};
    static const char *const blocks[] = {"mean", "inv_alpha", "beta"};
    char name[64];
    load_row(side == 0 ? w->images : w->texts, side == 0 ? i : w->n + i, false, out->x);
    memcpy(h, out->x, sizeof h);
    snprintf(name, sizeof name, "%s_lower", word);
    assert_int_equal(run_head(file, name, 2, h), HIDDEN);
    for (size_t k = 0; k < HIDDEN; k++)
        h[k] = fmax(h[k], 0) * (keep != NULL ? keep[k] : 1);
    snprintf(name, sizeof name, "%s_upper", word);
    run_head(file, name, 1, h);
    for (size_t d = 0; d < HEADS_DIM; d++)
        h[d] += out->x[d];
    for (int b = 0; b < 3; b++) {
        memcpy(made[b], h, sizeof h);
        snprintf(name, sizeof name, "%s_%s", word, blocks[b]);
        run_head(file, name, 2, made[b]);
        for (size_t d = 0; b > 0 && d < HEADS_DIM; d++)
            made[b][d] = positive(made[b][d]);
    }
}

/* Mean over d of |m - z| + 0.05 NLL. */
static double row_loss(const caps *c, const double *z, bool is_true)
{
    double sum = 0;
    for (size_t d = 0; d < HEADS_DIM; d++) {
        double a = c->inv_alpha[d] + 1e-4, b = c->beta[d] + 1e-4, away = fabs(c->mean[d] - z[d]);
        double residual = is_true ? pow(away * a, b) : away * a * b;
        residual = fmin(fmax(residual, 1e-4), 1e3);
        sum += away + 0.05 * (residual - log(a) - log(b) + lgamma(1 / b));
    }
    return sum / HEADS_DIM;
}

static double variance_of(double inv_alpha, double beta)
{
    double a = fmin(fmax(1 / (inv_alpha + 1e-5), 1e-4), 5), b = fmin(fmax(beta + 0.1, 0.1), 5);
    return a * a * exp(lgamma(3 / b) - lgamma(1 / b));
}

static double variance_in(const pnb_embeddings *e, size_t i)
{
    double b = (double)e->beta[i], a = 1 / (double)e->inv_alpha[i];
    return a * a * exp(lgamma(3 / b) - lgamma(1 / b));
}

static void check(pnb_ctx *ctx, pnb_adapt_likelihood likelihood)
{
    heads_world w = make_single_world(N, 2);
    pnb_adapter *a = NULL;
    pnb_adapter_opts o = pnb_adapter_opts_default();
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char *dir = scratch_create();
    double wanted = 0;
    o.likelihood = likelihood;
    o.dropout = 0;
    o.cross_modal = 0.3;
    pnb_safetensors *file = still(ctx, "probvlm", &w, o, dir, &a);
    assert_ok(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, w.texts, &err), &err);
    assert_false(out->has_epistemic); /* one pass has nothing to tell apart */
    for (size_t i = 0; i < N; i++) {
        caps c[2];
        for (int s = 0; s < 2; s++)
            make_caps(file, &w, s, i, NULL, &c[s]);
        for (int s = 0; s < 2; s++)
            for (int to = 0; to < 2; to++)
                wanted += (s == to ? 1 : 0.3) / N *
                          row_loss(&c[s], c[to].x, likelihood == PNB_ADAPT_LIKELIHOOD_TRUE);
        for (size_t d = 0; d < HEADS_DIM; d++) {
            size_t at = (N + i) * HEADS_DIM + d;
            assert_true(fabs(out->mean[at] - c[1].mean[d]) < 1e-5);
            require_near(variance_in(out, at), variance_of(c[1].inv_alpha[d], c[1].beta[d]), 1e-3,
                         "variance");
        }
    }
    require_loss(a, wanted, pnb__adapt_likelihood_word((int)likelihood));
    pnb_embeddings_free(out);
    pnb_safetensors_free(file);
    pnb_adapter_free(a);
    scratch_remove(dir);
    free_heads_world(&w);
}

static void formulas(void **state)
{
    check(*state, PNB_ADAPT_LIKELIHOOD_RELEASED);
    check(*state, PNB_ADAPT_LIKELIHOOD_TRUE);
}

/* The draws of a pass belong to seed, row and pass: 32 bits each, kept from p 2^32 on. */
static void draw_keep(uint64_t seed, size_t row, size_t pass, double *keep)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, PNB__STREAM_PASSES + row * 4096 + pass);
    for (size_t k = 0; k < HIDDEN; k++)
        keep[k] = pnb__rng_u32(&rng) >= (uint32_t)(0.5 * 4294967296.0) ? 2 : 0;
}

/* Mean of means, mean variance plus the variance of means, mean shape. */
static void passes_add_a_part(void **state)
{
    enum { K = 5 };
    heads_world w = make_single_world(N, 2);
    pnb_adapter *a = NULL;
    pnb_adapter_opts o = pnb_adapter_opts_default();
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    char *dir = scratch_create();
    double largest = 0;
    o.dropout = 0.5;
    o.mc_samples = K;
    o.seed = 3;
    pnb_safetensors *file = still(*state, "probvlm", &w, o, dir, &a);
    assert_ok(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, w.texts, &err), &err);
    for (size_t i = 0; i < N; i++) {
        caps c[K];
        for (size_t k = 0; k < K; k++) {
            double keep[HIDDEN];
            draw_keep(3, N + i, k, keep);
            make_caps(file, &w, 1, i, keep, &c[k]);
        }
        for (size_t d = 0; d < HEADS_DIM; d++) {
            size_t at = (N + i) * HEADS_DIM + d;
            double mean = 0, square = 0, aleatoric = 0;
            for (size_t k = 0; k < K; k++) {
                mean += c[k].mean[d] / K;
                square += c[k].mean[d] * c[k].mean[d] / K;
                aleatoric += variance_of(c[k].inv_alpha[d], c[k].beta[d]) / K;
            }
            double epistemic = square - mean * mean;
            assert_true(fabs(out->mean[at] - mean) < 1e-5);
            require_near(variance_in(out, at), aleatoric + epistemic, 2e-5, "variance");
            assert_true(fabs(out->epistemic[at] - epistemic) <= 1e-6 + 1e-4 * epistemic);
            largest = fmax(largest, epistemic / aleatoric);
        }
    }
    assert_true(largest > 2e-4); /* it is seen where it is missing */
    pnb_embeddings_free(out);
    pnb_safetensors_free(file);
    pnb_adapter_free(a);
    scratch_remove(dir);
    free_heads_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas),
        cmocka_unit_test(passes_add_a_part),
    };
    return cmocka_run_group_tests(tests, heads_setup, heads_teardown);
}
