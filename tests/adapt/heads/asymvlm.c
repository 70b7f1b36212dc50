/* AsymVLM against its formulas in doubles: scores of all pairs, both losses, every ablation, what
 * applying writes; and on a made set general captions get the smaller concentrations. */
#include "tests/adapt/heads/reference.h"

#include "penumbra/distributions.h"

enum { N = 10, PAIRS = N_LEVELS * N };

typedef struct made {
    double mu[PAIRS][HEADS_DIM], kappa[PAIRS];
} made;

/* Rows of one side in the order of the pairs, adapted where `name` is not NULL. */
static void make_side(const pnb_safetensors *file, const char *name, const pnb_embeddings *set,
                      bool is_image, made *out)
{
    for (size_t p = 0; p < PAIRS; p++) {
        double x[64];
        load_row(set, is_image ? p % N : p, name == NULL, x);
        if (name != NULL)
            assert_int_equal(run_head(file, name, 4, x), HEADS_DIM);
        out->kappa[p] = sqrt(dot(x, x));
        for (size_t d = 0; d < HEADS_DIM; d++)
            out->mu[p][d] = x[d] / out->kappa[p];
    }
}

typedef double (*norm_fn)(size_t dim, double kappa);

static double log_lik(bool is_power, norm_fn norm, double kappa, double cosine)
{
    return kappa * (is_power ? log1p(cosine) : cosine) + norm(HEADS_DIM, kappa);
}

typedef struct variant {
    const char *method, *measure;
    pnb_family family;
    pnb_adapt_ablation ablation;
    pnb_adapt_normaliser normaliser;
    pnb_adapt_loss loss;
} variant;

static double score(const variant *v, const made *i, const made *t, size_t a, size_t b)
{
    bool is_power = strcmp(v->method, "asymvlm-ps") == 0;
    norm_fn norm = is_power                                      ? pnb_power_spherical_log_norm
                   : v->normaliser == PNB_ADAPT_NORMALISER_EXACT ? pnb_vmf_log_norm
                                                                 : pnb_vmf_log_norm_approx;
    double cosine = dot(i->mu[a], t->mu[b]);
    double by_text = log_lik(is_power, norm, t->kappa[b], cosine);
    double by_image = log_lik(is_power, norm, i->kappa[a], cosine);
    switch (v->ablation) {
    case PNB_ADAPT_ABLATION_IMAGE_SIDE:
        return by_image;
    case PNB_ADAPT_ABLATION_SYMMETRIC:
        return 0.5 * (by_image + by_text);
    case PNB_ADAPT_ABLATION_GAUSSIAN:
        return 0.5 * HEADS_DIM * log(t->kappa[b]) - t->kappa[b] * (1 - cosine);
    case PNB_ADAPT_ABLATION_DETERMINISTIC_FT:
        return cosine;
    default:
        return by_text;
    }
}

static const variant variants[] = {
    {"asymvlm-vmf", "vmf", PNB_VMF, PNB_ADAPT_ABLATION_NONE, PNB_ADAPT_NORMALISER_APPROXIMATE,
     PNB_ADAPT_LOSS_INFONCE},
    {"asymvlm-vmf", "vmf_exact", PNB_VMF, PNB_ADAPT_ABLATION_NONE, PNB_ADAPT_NORMALISER_EXACT,
     PNB_ADAPT_LOSS_INFONCE},
    {"asymvlm-vmf", "vmf", PNB_VMF, PNB_ADAPT_ABLATION_NONE, PNB_ADAPT_NORMALISER_APPROXIMATE,
     PNB_ADAPT_LOSS_SIGLIP},
    {"asymvlm-ps", "power_spherical", PNB_POWER_SPHERICAL, PNB_ADAPT_ABLATION_NONE,
     PNB_ADAPT_NORMALISER_APPROXIMATE, PNB_ADAPT_LOSS_INFONCE},
    {"asymvlm-ps", "power_spherical", PNB_POWER_SPHERICAL, PNB_ADAPT_ABLATION_SYMMETRIC,
     PNB_ADAPT_NORMALISER_APPROXIMATE, PNB_ADAPT_LOSS_SIGLIP},
    {"asymvlm-vmf", "vmf", PNB_VMF, PNB_ADAPT_ABLATION_IMAGE_SIDE, PNB_ADAPT_NORMALISER_APPROXIMATE,
     PNB_ADAPT_LOSS_INFONCE},
    {"asymvlm-vmf", "vmf", PNB_VMF, PNB_ADAPT_ABLATION_SYMMETRIC, PNB_ADAPT_NORMALISER_APPROXIMATE,
     PNB_ADAPT_LOSS_INFONCE},
    {"asymvlm-vmf", "elk", PNB_GAUSSIAN_DIAG, PNB_ADAPT_ABLATION_GAUSSIAN,
     PNB_ADAPT_NORMALISER_APPROXIMATE, PNB_ADAPT_LOSS_INFONCE},
    {"asymvlm-vmf", "mean", PNB_POINT, PNB_ADAPT_ABLATION_DETERMINISTIC_FT,
     PNB_ADAPT_NORMALISER_APPROXIMATE, PNB_ADAPT_LOSS_INFONCE},
};

/* What `apply` writes of a side, against the reference. */
static void check_apply(const pnb_adapter *a, pnb_adapter_side side, const pnb_embeddings *set,
                        const variant *v, const made *m)
{
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_apply(&out, a, side, set, &err), &err);
    assert_int_equal(out->family, v->family);
    assert_string_equal(out->info.measure, v->measure);
    for (size_t i = 0; i < set->n; i++) {
        for (size_t d = 0; d < HEADS_DIM; d++)
            assert_true(fabs(out->mean[i * HEADS_DIM + d] - m->mu[i][d]) < 1e-5);
        if (out->kappa != NULL)
            require_near(out->kappa[i], m->kappa[i], 1e-5, "kappa");
        if (out->log_var != NULL)
            require_near(out->log_var[i * HEADS_DIM + i % HEADS_DIM], -log(m->kappa[i]), 1e-4,
                         "log_var");
    }
    pnb_embeddings_free(out);
}

static void check_variant(pnb_ctx *ctx, const variant *v, const char *dir)
{
    static double scores[PAIRS * PAIRS];
    static made image, text;
    heads_world w = make_heads_world(N, 1, 3);
    pnb_adapter *a = NULL;
    pnb_adapter_facts facts;
    pnb_adapter_opts o = pnb_adapter_opts_default();
    bool is_ft = v->ablation == PNB_ADAPT_ABLATION_DETERMINISTIC_FT;
    o.ablation = v->ablation;
    o.normaliser = v->normaliser;
    o.loss = v->loss;
    pnb_safetensors *file = still(ctx, v->method, &w, o, dir, &a);
    pnb_adapter_describe(a, &facts);
    bool adapts_images = facts.side[PNB_ADAPTER_IMAGES].is_adapted;
    bool adapts_texts = facts.side[PNB_ADAPTER_TEXTS].is_adapted;
    assert_int_equal(adapts_images, v->ablation == PNB_ADAPT_ABLATION_IMAGE_SIDE ||
                                        v->ablation == PNB_ADAPT_ABLATION_SYMMETRIC);
    assert_int_equal(adapts_texts, v->ablation != PNB_ADAPT_ABLATION_IMAGE_SIDE);
    make_side(file, adapts_images ? "image_etta" : NULL, w.images, true, &image);
    make_side(file,
              !adapts_texts ? NULL
              : is_ft       ? "text_head"
                            : "text_etta",
              w.texts, false, &text);
    double scale = is_ft ? exp(scalar_of(file, "log_scale")) : scalar_of(file, "temperature");
    for (size_t i = 0; i < PAIRS * PAIRS; i++)
        scores[i] = scale * score(v, &image, &text, i / PAIRS, i % PAIRS);
    require_loss(a,
                 v->loss == PNB_ADAPT_LOSS_SIGLIP ? siglip(scores, PAIRS, scalar_of(file, "shift"))
                                                  : info_nce(scores, PAIRS),
                 v->measure);
    if (adapts_texts)
        check_apply(a, PNB_ADAPTER_TEXTS, w.texts, v, &text);
    if (adapts_images)
        check_apply(a, PNB_ADAPTER_IMAGES, w.images, v, &image);
    pnb_safetensors_free(file);
    pnb_adapter_free(a);
    free_heads_world(&w);
}

static void formulas(void **state)
{
    char *dir = scratch_create();
    for (size_t i = 0; i < PNB_COUNT(variants); i++)
        check_variant(*state, &variants[i], dir);
    scratch_remove(dir);
}

/* ---- what is learned ---- */

/* Captions of level 0 fit N_LEAVES times as many pictures: their kappa is the smaller one, in at
 * least 95% of all pairs of a general and a special caption that were not learned from. */
static void generality_is_found(void **state)
{
    static const char *const methods[] = {"asymvlm-vmf", "asymvlm-ps"};
    heads_world w = make_heads_world(256, 1, 3), fresh = make_heads_world(64, 5, 3);
    for (size_t m = 0; m < PNB_COUNT(methods); m++) {
        const pnb_adapter_data data = data_of(&w);
        pnb_adapter_opts o = short_opts();
        pnb_embeddings *out = NULL;
        pnb_error err = PNB_ERROR_INIT;
        size_t n_right = 0, n = fresh.n;
        o.hidden = 48;
        o.batch_size = 64;
        o.steps = 600;
        o.lr = 5e-3;
        pnb_adapter *a = fit_ok(*state, methods[m], &data, &o);
        assert_ok(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, fresh.texts, &err), &err);
        for (size_t i = 0; i < n * n; i++)
            n_right += out->kappa[i / n] < out->kappa[n + i % n];
        if (n_right < (size_t)(0.95 * (double)(n * n)))
            fail_msg("%s: %zu of %zu general captions below a special one", methods[m], n_right,
                     n * n);
        pnb_embeddings_free(out);
        pnb_adapter_free(a);
    }
    free_heads_world(&w);
    free_heads_world(&fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas),
        cmocka_unit_test(generality_is_found),
    };
    return cmocka_run_group_tests(tests, heads_setup, heads_teardown);
}
