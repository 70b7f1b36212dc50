/* Heads that begin as the frozen rows: with a rate of 0 what comes out is what went in, at the
 * concentration of the pairs; and where they may not begin so. */
#include "tests/adapt/heads/world.h"

#include "penumbra/distributions.h"

static pnb_adapter_opts still(void)
{
    pnb_adapter_opts o = short_opts();
    o.recipe = PNB_ADAPT_RECIPE_SMALL;
    o.hidden = 2 * HEADS_DIM + 3;
    o.lr = 0;
    o.steps = 1;
    return o;
}

static double dot(const float *a, const float *b)
{
    double sum = 0;
    for (size_t d = 0; d < HEADS_DIM; d++)
        sum += (double)a[d] * (double)b[d];
    return sum;
}

/* All pairs of the world: an epoch has them once. */
static double mean_cosine(const heads_world *w)
{
    double sum = 0;
    for (size_t t = 0; t < w->texts->n; t++) {
        const float *text = w->texts->mean + t * HEADS_DIM;
        const float *image = w->images->mean + t % w->n * HEADS_DIM;
        sum += dot(text, image) / sqrt(dot(text, text) * dot(image, image));
    }
    return sum / (double)w->texts->n;
}

static pnb_embeddings *untouched(pnb_ctx *ctx, const heads_world *w, const char *method,
                                 const pnb_adapter_opts *o)
{
    const pnb_adapter_data data = data_of(w);
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_adapter *a = fit_ok(ctx, method, &data, o);
    assert_ok(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, w->texts, &err), &err);
    pnb_adapter_free(a);
    return out;
}

static double furthest(const heads_world *w, const pnb_embeddings *out)
{
    double worst = 0;
    for (size_t t = 0; t < out->n; t++) {
        const float *x = w->texts->mean + t * HEADS_DIM, *y = out->mean + t * HEADS_DIM;
        worst = fmax(worst, 1 - dot(x, y) / sqrt(dot(x, x) * dot(y, y)));
    }
    return worst;
}

static void as_the_rows(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(64, 1, 3); /* captions of length 3 */
    double cosine = mean_cosine(&w);
    const struct {
        const char *method;
        pnb_adapt_ablation ablation;
        double kappa;
    } cases[] = {
        {"asymvlm-vmf", PNB_ADAPT_ABLATION_NONE, pnb_vmf_kappa_at(HEADS_DIM, cosine)},
        {"asymvlm-vmf", PNB_ADAPT_ABLATION_SYMMETRIC, pnb_vmf_kappa_at(HEADS_DIM, cosine)},
        {"asymvlm-vmf", PNB_ADAPT_ABLATION_GAUSSIAN, HEADS_DIM / (2 * (1 - cosine))},
        {"asymvlm-vmf", PNB_ADAPT_ABLATION_DETERMINISTIC_FT, 0},
        {"asymvlm-ps", PNB_ADAPT_ABLATION_NONE, pnb_power_spherical_kappa_at(HEADS_DIM, cosine)},
        {"deterministic", PNB_ADAPT_ABLATION_NONE, 0},
    };
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_adapter_opts o = still();
        o.ablation = cases[i].ablation;
        pnb_embeddings *out = untouched(ctx, &w, cases[i].method, &o);
        assert_true(furthest(&w, out) < 1e-6);
        for (size_t t = 0; t < out->n && cases[i].kappa > 0; t++) {
            double kappa = out->kappa != NULL ? (double)out->kappa[t]
                                              : exp(-(double)out->log_var[t * HEADS_DIM]);
            assert_true(fabs(kappa / cases[i].kappa - 1) < 1e-4);
        }
        pnb_embeddings_free(out);
    }
    free_heads_world(&w);
}

/* What lies beside the handed-on coordinates learns: after steps more than s x is there. */
static void others_learn(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(64, 1, 3);
    pnb_adapter_opts o = still();
    o.lr = 1e-2;
    o.steps = 30;
    pnb_embeddings *out = untouched(ctx, &w, "asymvlm-vmf", &o);
    double low = INFINITY, high = 0;
    assert_true(furthest(&w, out) > 1e-3);
    for (size_t t = 0; t < out->n; t++) {
        low = fmin(low, (double)out->kappa[t]);
        high = fmax(high, (double)out->kappa[t]);
    }
    assert_true(high > 1.3 * low);
    pnb_embeddings_free(out);
    free_heads_world(&w);
}

static void where_not(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(64, 1, 3);
    const pnb_adapter_data data = data_of(&w);
    pnb_adapter_opts o = still();
    o.hidden = 2 * HEADS_DIM - 1;
    pnb_embeddings *out = untouched(ctx, &w, "asymvlm-vmf", &o); /* auto: too narrow, drawn */
    assert_true(furthest(&w, out) > 0.1);
    pnb_embeddings_free(out);
    o.start = PNB_ADAPT_START_ROWS;
    fit_fails(ctx, "asymvlm-ps", &data, &o, PNB_ARG, "hidden layers need twice their width of 16");
    o = still();
    o.recipe = PNB_ADAPT_RECIPE_PUBLISHED;
    out = untouched(ctx, &w, "deterministic", &o);
    assert_true(furthest(&w, out) > 0.1);
    pnb_embeddings_free(out);
    o.start = PNB_ADAPT_START_ROWS;
    out = untouched(ctx, &w, "deterministic", &o);
    assert_true(furthest(&w, out) < 1e-6);
    pnb_embeddings_free(out);
    o = still();
    o.start = PNB_ADAPT_START_RANDOM;
    out = untouched(ctx, &w, "deterministic", &o);
    assert_true(furthest(&w, out) > 0.1);
    pnb_embeddings_free(out);
    o.start = PNB_ADAPT_START_ROWS;
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "pfe does not read the option start");
    free_heads_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_rows),
        cmocka_unit_test(others_learn),
        cmocka_unit_test(where_not),
    };
    return cmocka_run_group_tests(tests, setup_ctx, teardown_ctx);
}
