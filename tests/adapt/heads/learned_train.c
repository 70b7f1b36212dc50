/* Training of heads: a run resumed in its middle ends in the bytes of an uninterrupted one, early
 * stopping keeps the best weights, and the files of a run say what was done. */
#include "tests/adapt/heads/world.h"

#include "adapt/heads/learned.h"

/* Stops at a step. */
typedef struct stopper {
    size_t at;
} stopper;

static bool stop_at(void *user, size_t done, size_t total)
{
    (void)total;
    return done < ((const stopper *)user)->at;
}

static void resumes_to_the_bit(void **state)
{
    static const char *const methods[] = {"asymvlm-vmf", "pcme", "probvlm"};
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(48, 1, 3), held = make_heads_world(24, 2, 3);
    char *logs = scratch_create();
    for (size_t m = 0; m < PNB_COUNT(methods); m++) {
        pnb_adapter_data data = data_of(&w);
        pnb_adapter_opts o = short_opts();
        stopper stop = {23};
        pnb_adapter *cut = NULL;
        pnb_error err = PNB_ERROR_INIT;
        data.val_images = held.images;
        data.val_texts = held.texts;
        data.val_truth = held.truth;
        o.steps = 0;
        o.epochs = 15; /* of three steps: the middle is in the middle of an epoch */
        pnb_adapter *whole = fit_ok(ctx, methods[m], &data, &o);
        data.logs = logs;
        data.name = methods[m];
        data.watch = (pnb_watch){stop_at, &stop};
        assert_int_equal(pnb_adapter_fit(&cut, ctx, methods[m], &data, &o, &err), PNB_INTERRUPTED);
        assert_non_null(strstr(err.text, "after step 23 of 45"));
        stop.at = SIZE_MAX;
        data.resume = "latest";
        cut = fit_ok(ctx, methods[m], &data, &o);
        assert_string_equal(hash_of(whole), hash_of(cut));
        pnb_adapter_free(cut);
        cut = fit_ok(ctx, methods[m], &data, &o); /* at its end: nothing is left to do */
        assert_string_equal(hash_of(whole), hash_of(cut));
        pnb_adapter_free(cut);
        o.lr = 0.5;
        fit_fails(ctx, methods[m], &data, &o, PNB_ARG, "lr = 0.00");
        pnb_adapter_free(whole);
    }
    scratch_remove(logs);
    free_heads_world(&w);
    free_heads_world(&held);
}

static void without_a_run_nothing_is_kept(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(32, 1, 3);
    pnb_adapter_data data = data_of(&w);
    pnb_adapter_opts o = short_opts();
    stopper stop = {3};
    data.watch = (pnb_watch){stop_at, &stop};
    fit_fails(ctx, "pfe", &data, &o, PNB_INTERRUPTED, "nothing of it was kept");
    data.resume = "latest";
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "no checkpoint to resume from");
    free_heads_world(&w);
}

/* Held-out captions are of other pictures: what is learned by heart makes their loss rise. */
static void the_best_is_kept(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(32, 1, 3), held = make_heads_world(64, 2, 3);
    pnb_adapter_data data = data_of(&w);
    pnb_adapter_opts o = short_opts();
    o.steps = 300;
    o.hidden = 64;
    o.lr = 0.01;
    o.patience = 0;
    data.val_images = held.images;
    data.val_texts = held.texts;
    data.val_truth = held.truth;
    pnb_adapter *all = fit_ok(ctx, "deterministic", &data, &o);
    double best = figure_of(all, "best_step");
    assert_true(figure_of(all, "steps") == 300 && best > 0 && best < 300);
    o.patience = 3;
    pnb_adapter *early = fit_ok(ctx, "deterministic", &data, &o);
    assert_true(figure_of(early, "steps") == best + 30); /* validated every 10 steps */
    assert_true(figure_of(early, "val_loss") == figure_of(all, "val_loss"));
    /* the weights are those of the best step: a run of that length has the same schedule only in
     * its arrays' beginning, so they are compared through what they make */
    pnb_embeddings *one = NULL, *two = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_adapter_apply(&one, all, PNB_ADAPTER_TEXTS, held.texts, &err), &err);
    assert_ok(pnb_adapter_apply(&two, early, PNB_ADAPTER_TEXTS, held.texts, &err), &err);
    assert_memory_equal(one->mean, two->mean, one->n * one->dim * sizeof *one->mean);
    pnb_embeddings_free(one);
    pnb_embeddings_free(two);
    pnb_adapter_free(all);
    pnb_adapter_free(early);
    free_heads_world(&w);
    free_heads_world(&held);
}

static double val_loss_of(pnb_ctx *ctx, const pnb_adapter_data *data)
{
    pnb_adapter_opts o = short_opts();
    o.steps = 4;
    o.batch_size = 4;
    pnb_adapter *a = fit_ok(ctx, "pfe", data, &o);
    double loss = figure_of(a, "val_loss");
    pnb_adapter_free(a);
    return loss;
}

/* Held-out pairs beyond twenty batches are left out: a large set does not cost more than steps. */
static void of_many_pairs_the_first_are_validated(void **state)
{
    enum { BATCH = 4, VALIDATED = 20 * BATCH };
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(32, 1, 3), held = make_heads_world(64, 2, 3);
    pnb_adapter_data data = data_of(&w);
    pnb__learned_pairs pairs;
    pnb_error err = PNB_ERROR_INIT;
    data.val_images = held.images;
    data.val_texts = held.texts;
    data.val_truth = held.truth;
    assert_ok(pnb__learned_pairs_init(&pairs, held.images, held.texts, held.truth,
                                      PNB_ADAPT_TEXTS_EACH, &err),
              &err);
    pnb__learned_pairs_shuffle(&pairs, 0, 0);
    assert_true(pairs.n_order > VALIDATED);
    double loss = val_loss_of(ctx, &data);
    const uint32_t *row = pairs.row[PNB_ADAPTER_TEXTS];
    held.texts->mean[row[pairs.order[VALIDATED]] * HEADS_DIM] += 1;
    assert_true(val_loss_of(ctx, &data) == loss);
    held.texts->mean[row[pairs.order[VALIDATED - 1]] * HEADS_DIM] += 1;
    assert_true(val_loss_of(ctx, &data) != loss);
    pnb__learned_pairs_reset(&pairs);
    free_heads_world(&w);
    free_heads_world(&held);
}

static void held_out_rows_are_checked(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(32, 1, 3), held = make_heads_world(16, 2, 3);
    pnb_adapter_data data = data_of(&w);
    pnb_adapter_opts o = short_opts();
    data.val_images = held.images;
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "the texts are missing");
    data.val_texts = held.texts;
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "the truth is missing");
    data.val_truth = w.truth;
    fit_fails(ctx, "pfe", &data, &o, PNB_SHAPE, "held-out rows");
    data.val_truth = held.truth;
    snprintf(held.texts->info.weights_sha256, sizeof held.texts->info.weights_sha256, TWOS);
    snprintf(held.images->info.weights_sha256, sizeof held.images->info.weights_sha256, TWOS);
    fit_fails(ctx, "pfe", &data, &o, PNB_ARG, "held-out rows");
    free_heads_world(&w);
    free_heads_world(&held);
}

static void recipes(void **state)
{
    pnb_ctx *ctx = *state;
    heads_world w = make_heads_world(32, 1, 3);
    const pnb_adapter_data data = data_of(&w);
    pnb_adapter_opts o = pnb_adapter_opts_default();
    pnb_adapter_facts facts;
    o.steps = 1;
    pnb_adapter *a = fit_ok(ctx, "asymvlm-ps", &data, &o);
    pnb_adapter_describe(a, &facts);
    assert_int_equal(facts.opts->recipe, PNB_ADAPT_RECIPE_SMALL);
    assert_int_equal(facts.opts->batch_size, 64); /* all pairs are fewer than a batch */
    assert_int_equal(facts.opts->hidden, 512);
    assert_true(facts.opts->lr == 2e-3 && facts.opts->start == PNB_ADAPT_START_ROWS);
    pnb_adapter_free(a);
    a = fit_ok(ctx, "pfe", &data, &o);
    pnb_adapter_describe(a, &facts);
    assert_true(facts.opts->lr == 1e-3);
    pnb_adapter_free(a);
    o.recipe = PNB_ADAPT_RECIPE_PUBLISHED;
    a = fit_ok(ctx, "asymvlm-ps", &data, &o);
    pnb_adapter_describe(a, &facts);
    assert_true(facts.opts->lr == 1e-2 && facts.opts->hidden == 1024 && facts.opts->layers == 3 &&
                facts.opts->start == PNB_ADAPT_START_RANDOM);
    pnb_adapter_free(a);
    free_heads_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumes_to_the_bit),
        cmocka_unit_test(without_a_run_nothing_is_kept),
        cmocka_unit_test(the_best_is_kept),
        cmocka_unit_test(of_many_pairs_the_first_are_validated),
        cmocka_unit_test(held_out_rows_are_checked),
        cmocka_unit_test(recipes),
    };
    return cmocka_run_group_tests(tests, setup_ctx, teardown_ctx);
}
