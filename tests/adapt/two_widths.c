/* Images of width 6 and captions of width 4: which methods learn from them, how wide what they make
 * is, and that the others say why they do not and what would do. */
#include "tests/adapt/world.h"

enum { N = 6, IMAGE_DIM = 6, TEXT_DIM = 4 };

typedef struct width_case {
    const char *method;
    pnb_adapter_opts opts;
    size_t image_dim, text_dim; /* of what comes out; 0: that side is left alone */
    const char *says;           /* where the method refuses */
} width_case;

static pnb_adapter_opts short_opts(int64_t steps)
{
    pnb_adapter_opts o = pnb_adapter_opts_default();
    o.steps = steps;
    o.hidden = steps > 0 ? 8 : 0;
    return o;
}

static pnb_adapter_opts grove_opts(double align_weight, pnb_grove_fit fit)
{
    pnb_adapter_opts o = pnb_adapter_opts_default();
    o.latent_dim = 2;
    o.epochs = 2;
    o.align_weight = align_weight;
    o.grove_fit = fit;
    return o;
}

static pnb_adapter_opts without_cross_terms(void)
{
    pnb_adapter_opts o = short_opts(3);
    o.cross_modal = 0;
    return o;
}

static pnb_adapter_opts ablated(pnb_adapt_ablation ablation)
{
    pnb_adapter_opts o = short_opts(3);
    o.ablation = ablation;
    return o;
}

/* Applied as it is and out of its folder. */
static void check_side(const pnb_adapter *a, const pnb_adapter *back, pnb_adapter_side side,
                       const pnb_embeddings *set, size_t wanted)
{
    pnb_embeddings *made = NULL, *again = NULL;
    pnb_error err = PNB_ERROR_INIT;
    if (wanted == 0) {
        assert_failed(pnb_adapter_apply(&made, a, side, set, &err), &err, PNB_ARG, "alone");
        return;
    }
    assert_ok(pnb_adapter_apply(&made, a, side, set, &err), &err);
    assert_ok(pnb_adapter_apply(&again, back, side, set, &err), &err);
    assert_int_equal(made->dim, wanted);
    assert_int_equal(again->dim, wanted);
    assert_memory_equal(made->mean, again->mean, made->n * made->dim * sizeof(float));
    pnb_embeddings_free(made);
    pnb_embeddings_free(again);
}

static void one_case(scratch *s, pnb_ctx *ctx, const width_case *c, const pnb_adapter_data *data)
{
    pnb_adapter *a = NULL, *back = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = pnb_adapter_fit(&a, ctx, c->method, data, &c->opts, &err);
    if (c->says != NULL) {
        assert_failed(status, &err, PNB_SHAPE, c->says);
        assert_non_null(strstr(err.text, "images of width 6 and texts of width 4"));
        return;
    }
    assert_ok(status, &err);
    const char *dir = scratch_path(s, c->method);
    assert_ok(pnb_adapter_save(a, dir, &err), &err);
    assert_ok(pnb_adapter_load(&back, ctx, dir, &err), &err);
    check_side(a, back, PNB_ADAPTER_IMAGES, data->images, c->image_dim);
    check_side(a, back, PNB_ADAPTER_TEXTS, data->texts, c->text_dim);
    pnb_adapter_free(a);
    pnb_adapter_free(back);
    remove_folder(s, c->method);
}

static void every_method(void **state)
{
    scratch *s = *state;
    const pnb_adapter_opts learned = short_opts(3), plain = short_opts(0);
    const width_case cases[] = {
        {"conformity", plain, IMAGE_DIM, TEXT_DIM, NULL},
        {"whitened", plain, IMAGE_DIM, TEXT_DIM, NULL},
        {"asymvlm-vmf", learned, 0, IMAGE_DIM, NULL},
        {"asymvlm-ps", ablated(PNB_ADAPT_ABLATION_IMAGE_SIDE), TEXT_DIM, 0, NULL},
        {"asymvlm-vmf", ablated(PNB_ADAPT_ABLATION_DETERMINISTIC_FT), 0, IMAGE_DIM, NULL},
        {"asymvlm-vmf", ablated(PNB_ADAPT_ABLATION_SYMMETRIC), 0, 0, "are both densities"},
        {"deterministic", learned, 0, IMAGE_DIM, NULL},
        {"probvlm", without_cross_terms(), IMAGE_DIM, TEXT_DIM, NULL},
        {"probvlm", learned, 0, 0, "with cross_modal 0"},
        {"grove", grove_opts(0, PNB_GROVE_STEPS), IMAGE_DIM, TEXT_DIM, NULL},
        {"grove", grove_opts((double)NAN, PNB_GROVE_COLLAPSED), IMAGE_DIM, TEXT_DIM, NULL},
        {"grove", grove_opts((double)NAN, PNB_GROVE_STEPS), 0, 0, "align_weight 0"},
        {"pfe", learned, 0, 0, "adds the variances"},
        {"pcme", learned, 0, 0, "distances between samples"},
        {"pcmepp", learned, 0, 0, "takes the distance"},
        {"prolip", learned, 0, 0, "takes the similarity"},
        {"bayesvlm", plain, 0, 0, "the model whose projections"},
    };
    pnb_ctx *ctx = make_ctx();
    pnb_embeddings *images = unit_set("image", N, IMAGE_DIM, 1);
    pnb_embeddings *texts = unit_set("text", N, TEXT_DIM, 2);
    pnb_truth *truth = NULL;
    assert_int_equal(pnb_truth_create_aligned(&truth, N, NULL), PNB_OK);
    const pnb_adapter_data data = {.images = images, .texts = texts, .truth = truth};
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        one_case(s, ctx, &cases[i], &data);
    pnb_truth_free(truth);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
    pnb_ctx_free(ctx);
}

/* The learned rows fall on the images' sphere, so that both can be compared. */
static void they_meet(void **state)
{
    (void)state;
    pnb_ctx *ctx = make_ctx();
    pnb_embeddings *images = unit_set("image", N, IMAGE_DIM, 1), *made = NULL;
    pnb_embeddings *texts = unit_set("text", N, TEXT_DIM, 2);
    pnb_truth *truth = NULL;
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_adapter_opts opts = short_opts(300);
    double own = 0, other = 0;
    assert_int_equal(pnb_truth_create_aligned(&truth, N, NULL), PNB_OK);
    const pnb_adapter_data data = {.images = images, .texts = texts, .truth = truth};
    assert_ok(pnb_adapter_fit(&a, ctx, "asymvlm-vmf", &data, &opts, &err), &err);
    assert_ok(pnb_adapter_apply(&made, a, PNB_ADAPTER_TEXTS, texts, &err), &err);
    assert_ok(pnb_embeddings_check_mix(images, made, &err), &err);
    for (size_t i = 0; i < N; i++)
        for (size_t d = 0; d < IMAGE_DIM; d++) {
            own += (double)made->mean[i * IMAGE_DIM + d] * images->mean[i * IMAGE_DIM + d];
            other +=
                (double)made->mean[i * IMAGE_DIM + d] * images->mean[(i + 1) % N * IMAGE_DIM + d];
        }
    assert_true(own > other + 0.5);
    pnb_adapter_free(a);
    pnb_truth_free(truth);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
    pnb_embeddings_free(made);
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_method, scratch_setup, scratch_teardown),
        cmocka_unit_test(they_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
