/* Every method that trains a head: it learns, the same seed gives the same bytes, what is saved is
 * what is applied, blocks do not matter, and what cannot be learned from is refused by name. */
#include "tests/adapt/heads/world.h"

static const char *const methods[] = {"asymvlm-vmf", "asymvlm-ps", "pfe",     "pcme",
                                      "pcmepp",      "prolip",     "probvlm", "deterministic"};

static void each_learns(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(128, 1, 3);
    for (size_t m = 0; m < PNB_COUNT(methods); m++) {
        pnb_adapter_opts one = short_opts(), many = short_opts();
        pnb_adapter_data data = data_of(&w);
        data.val_images = w.images; /* the loss over all pairs, where a batch's is one of many */
        data.val_texts = w.texts;
        data.val_truth = w.truth;
        one.steps = 1;
        many.steps = 80;
        pnb_adapter *first = fit_ok(ctx, methods[m], &data, &one);
        pnb_adapter *last = fit_ok(ctx, methods[m], &data, &many);
        double before = figure_of(first, "val_loss"), after = figure_of(last, "val_loss");
        if (!(after < before - 0.02 * fabs(before)))
            fail_msg("%s: loss %g after one step, %g after 80", methods[m], before, after);
        assert_true(figure_of(last, "steps") == 80);
        pnb_adapter_free(first);
        pnb_adapter_free(last);
    }
    free_heads_world(&w);
}

static void seeds_decide(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(64, 1, 3);
    for (size_t m = 0; m < PNB_COUNT(methods); m++) {
        pnb_adapter_opts o = short_opts();
        const pnb_adapter_data data = data_of(&w);
        o.steps = 6;
        pnb_adapter *a = fit_ok(ctx, methods[m], &data, &o),
                    *b = fit_ok(ctx, methods[m], &data, &o);
        assert_string_equal(hash_of(a), hash_of(b));
        pnb_adapter_free(b);
        o.seed = 1;
        b = fit_ok(ctx, methods[m], &data, &o);
        assert_string_not_equal(hash_of(a), hash_of(b));
        pnb_adapter_free(a);
        pnb_adapter_free(b);
    }
    free_heads_world(&w);
}

static void require_same_rows(const pnb_embeddings *a, size_t from, const pnb_embeddings *b)
{
    for (size_t i = 0; i < b->n * b->dim; i++) {
        assert_true(fabs(a->mean[from * a->dim + i] - b->mean[i]) <= 1e-5);
        if (b->log_var != NULL)
            assert_true(fabs(a->log_var[from * a->dim + i] - b->log_var[i]) <= 1e-4);
        if (b->beta != NULL)
            assert_true(fabs(a->beta[from * a->dim + i] - b->beta[i]) <= 1e-4);
    }
    for (size_t i = 0; b->kappa != NULL && i < b->n; i++)
        assert_true(fabs(a->kappa[from + i] - b->kappa[i]) <= 1e-4 * b->kappa[i]);
}

/* Saved, loaded and applied to all rows, against the first rows alone. */
static void files_and_blocks(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(64, 1, 3);
    pnb_error err = PNB_ERROR_INIT;
    char *dir = scratch_create();
    for (size_t m = 0; m < PNB_COUNT(methods); m++) {
        pnb_adapter_opts o = short_opts();
        const pnb_adapter_data data = data_of(&w);
        pnb_adapter *b = NULL;
        pnb_embeddings *all = NULL, *some = NULL, *few = NULL;
        const size_t rows[] = {0, 1, 2};
        o.steps = 4;
        pnb_adapter *a = fit_ok(ctx, methods[m], &data, &o);
        assert_ok(pnb_adapter_save(a, dir, &err), &err);
        assert_ok(pnb_adapter_load(&b, ctx, dir, &err), &err);
        assert_string_equal(hash_of(a), hash_of(b));
        assert_ok(pnb_adapter_apply(&all, a, PNB_ADAPTER_TEXTS, w.texts, &err), &err);
        assert_ok(pnb_embeddings_select(&few, w.texts, rows, 3, &err), &err);
        assert_ok(pnb_adapter_apply(&some, b, PNB_ADAPTER_TEXTS, few, &err), &err);
        require_same_rows(all, 0, some);
        pnb_embeddings_free(all);
        pnb_embeddings_free(some);
        pnb_embeddings_free(few);
        pnb_adapter_free(a);
        pnb_adapter_free(b);
    }
    scratch_remove(dir);
    free_heads_world(&w);
}

/* ---- what cannot be learned from ---- */

static void bad_pairs(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(16, 1, 3);
    pnb_adapter_opts o = short_opts();
    pnb_adapter_data data = data_of(&w);
    pnb_truth *one = NULL;
    pnb_error err = PNB_ERROR_INIT;
    const int64_t pair[] = {0, 0, 0, 0};
    assert_ok(pnb_truth_create_pairs(&one, 16, 32, pair, 2, &err), &err); /* one pair, twice */
    data.truth = one;
    fit_fails(ctx, "asymvlm-vmf", &data, &o, PNB_ARG, "the truth has 1 pair:");
    data.truth = NULL;
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "the truth is missing");
    data = data_of(&w);
    data.texts = NULL;
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "the texts are missing");
    data = data_of(&w);
    o.batch_size = 33;
    fit_fails(ctx, "pcmepp", &data, &o, PNB_ARG, "batches of 33, but an epoch has 32 pairs");
    o.texts = PNB_ADAPT_TEXTS_ONE;
    o.batch_size = 17;
    fit_fails(ctx, "pcmepp", &data, &o, PNB_ARG, "an epoch has 16 pairs");
    pnb_truth_free(one);
    free_heads_world(&w);
}

static void bad_rows(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(16, 1, 3);
    const pnb_adapter_data data = data_of(&w);
    pnb_adapter_opts o = short_opts();
    float kept[HEADS_DIM];
    memcpy(kept, w.texts->mean + 3 * HEADS_DIM, sizeof kept);
    w.texts->mean[3 * HEADS_DIM + 1] = NAN;
    fit_fails(ctx, "asymvlm-ps", &data, &o, PNB_NUMERIC, "row 3 of the text embeddings holds");
    memset(w.texts->mean + 3 * HEADS_DIM, 0, sizeof kept);
    fit_fails(ctx, "prolip", &data, &o, PNB_NUMERIC, "row 3 of the text embeddings has length 0");
    memcpy(w.texts->mean + 3 * HEADS_DIM, kept, sizeof kept);
    for (size_t i = 0; i < 16; i++)
        memcpy(w.images->mean + i * HEADS_DIM, w.images->mean, sizeof kept);
    fit_fails(ctx, "deterministic", &data, &o, PNB_NUMERIC, "all 16 rows of the image embeddings");
    free_heads_world(&w);
    w = make_heads_world(16, 1, 1e30); /* no concentration is a float */
    const pnb_adapter_data long_rows = data_of(&w);
    fit_fails(ctx, "asymvlm-vmf", &long_rows, &o, PNB_NUMERIC, "divide the embeddings by their");
    free_heads_world(&w);
}

static void bad_options(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(16, 1, 3);
    const pnb_adapter_data data = data_of(&w);
    pnb_adapter_opts o = short_opts();
    o.epochs = 2;
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "epochs and steps");
    o = short_opts();
    o.lr = -1;
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "lr is -1");
    o = short_opts();
    o.dropout = 1;
    fit_fails(ctx, "probvlm", &data, &o, PNB_ARG, "dropout is 1");
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "pfe does not read the option dropout; probvlm does");
    o = short_opts();
    o.samples = 65;
    fit_fails(ctx, "pcme", &data, &o, PNB_ARG, "samples is 65");
    o = short_opts();
    o.ablation = (pnb_adapt_ablation)77;
    fit_fails(ctx, "asymvlm-ps", &data, &o, PNB_ARG, "ablation is number 77");
    o = short_opts();
    o.lr = 1e3; /* concentrations without a normaliser, or a loss that is none */
    o.batch_size = 8;
    o.steps = 40;
    o.recipe = PNB_ADAPT_RECIPE_PUBLISHED;
    fit_fails(ctx, "asymvlm-vmf", &data, &o, PNB_NUMERIC, "step ");
    free_heads_world(&w);
}

/* Rows with lengths and rows of unit length come of the same weights. */
static void lengths_are_told_apart(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world raw = make_heads_world(32, 1, 3), unit = make_heads_world(32, 1, 1);
    pnb_adapter_data data = data_of(&raw);
    pnb_adapter_opts o = short_opts();
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    o.steps = 2;
    pnb_adapter *a = fit_ok(ctx, "asymvlm-vmf", &data, &o);
    assert_int_equal(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, unit.texts, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "embed with --raw"));
    pnb_adapter_free(a);
    err = (pnb_error)PNB_ERROR_INIT;
    data = data_of(&unit);
    a = fit_ok(ctx, "asymvlm-vmf", &data, &o);
    assert_int_equal(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, raw.texts, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "embed without --raw"));
    pnb_adapter_free(a);
    a = fit_ok(ctx, "pcmepp", &data, &o); /* reads directions alone */
    err = (pnb_error)PNB_ERROR_INIT;
    assert_ok(pnb_adapter_apply(&out, a, PNB_ADAPTER_TEXTS, raw.texts, &err), &err);
    pnb_adapter_free(a);
    pnb_embeddings_free(out);
    free_heads_world(&raw);
    free_heads_world(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_learns),
        cmocka_unit_test(seeds_decide),
        cmocka_unit_test(files_and_blocks),
        cmocka_unit_test(bad_pairs),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(lengths_are_told_apart),
    };
    return cmocka_run_group_tests(tests, setup_ctx, teardown_ctx);
}
