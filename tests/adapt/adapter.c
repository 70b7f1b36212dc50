/* What is checked before a method learns, which rows it learns from, and the list of methods. */
#include "tests/adapt/world.h"

#include "adapt/adapter.h"

static void assert_refused(pnb_ctx *ctx, const char *method, const pnb_adapter_data *data,
                           const pnb_adapter_opts *opts, pnb_status status, const char *says)
{
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_failed(pnb_adapter_fit(&a, ctx, method, data, opts, &err), &err, status, says);
    assert_null(a);
}

static void the_list_is_whole(void **state)
{
    (void)state;
    size_t n = 0;
    for (; pnb_adapter_method_at(n) != NULL; n++) {
        const pnb_adapter_about *about = pnb_adapter_method_at(n);
        pnb_measure measure;
        assert_true(strlen(about->name) > 0 && strlen(about->name) < 32);
        assert_true(strlen(about->learns) > 20 && strlen(about->paper) > 20 &&
                    strlen(about->cost) > 10);
        assert_int_equal(pnb_measure_parse(&measure, about->measure, NULL), PNB_OK);
        for (size_t i = 0; i < n; i++)
            assert_string_not_equal(about->name, pnb_adapter_method_at(i)->name);
    }
    assert_true(n >= 3);
    assert_string_equal(pnb_adapter_option_at(pnb_adapter_method_at(0), 0), "uncertain");
    assert_null(pnb_adapter_option_at(pnb_adapter_method_at(0), 1));
    assert_string_equal(pnb_adapter_option_at(pnb_adapter_method_at(1), 1), "shrinkage");
}

static void sets_that_do_not_fit(void **state)
{
    pnb_ctx *ctx = *state;
    pnb_embeddings *images = unit_set("image", 6, 4, 1), *texts = unit_set("text", 6, 4, 2);
    pnb_truth *truth = NULL;
    pnb_adapter_opts opts = pnb_adapter_opts_default();
    assert_int_equal(pnb_truth_create_aligned(&truth, 5, NULL), PNB_OK);
    assert_refused(ctx, "whitend", &(pnb_adapter_data){.images = images, .texts = texts}, NULL,
                   PNB_NOT_FOUND, "method 'whitend' is unknown; known are conformity, whitened, ");
    assert_refused(ctx, "whitened", &(pnb_adapter_data){0}, NULL, PNB_ARG, "no embeddings");
    assert_refused(ctx, "whitened", &(pnb_adapter_data){.images = texts, .texts = images}, NULL,
                   PNB_ARG, "text embeddings were given as the images");
    assert_refused(ctx, "whitened", &(pnb_adapter_data){.images = images, .truth = truth}, NULL,
                   PNB_ARG, "the texts are missing");
    assert_refused(ctx, "whitened",
                   &(pnb_adapter_data){.images = images, .texts = texts, .truth = truth}, NULL,
                   PNB_SHAPE, "truth is of 5 images and 5 texts, the sets have 6 and 6");
    snprintf(texts->info.weights_sha256, sizeof texts->info.weights_sha256, TWOS);
    assert_refused(ctx, "conformity", &(pnb_adapter_data){.images = images, .texts = texts}, NULL,
                   PNB_ARG, "different weights (tiny 111111111111..., tiny 222222222222...)");
    opts.shrinkage = 0.5;
    assert_refused(ctx, "conformity", &(pnb_adapter_data){.images = images}, &opts, PNB_ARG,
                   "conformity does not read the option shrinkage; whitened does");
    opts = pnb_adapter_opts_default();
    opts.uncertain = PNB_N_ADAPT_UNCERTAIN;
    assert_refused(ctx, "conformity", &(pnb_adapter_data){.images = images}, &opts, PNB_ARG,
                   "none of its words");
    pnb_truth_free(truth);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
}

/* Only rows of a pair are learned from: as if the others were not there. */
static void truth_chooses_rows(void **state)
{
    pnb_ctx *ctx = *state;
    static const char *const names[] = {"conformity", "whitened", "bayesvlm"};
    const int64_t pairs[][2] = {{1, 0}, {1, 3}, {4, 5}, {2, 5}};
    const size_t image_rows[] = {1, 2, 4}, text_rows[] = {0, 3, 5};
    pnb_embeddings *images = unit_set("image", 6, 4, 1), *texts = unit_set("text", 7, 4, 2);
    pnb_embeddings *some[2] = {NULL, NULL};
    pnb_truth *truth = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb_truth_create_pairs(&truth, 6, 7, &pairs[0][0], 4, &err), &err);
    assert_ok(pnb_embeddings_select(&some[0], images, image_rows, 3, &err), &err);
    assert_ok(pnb_embeddings_select(&some[1], texts, text_rows, 3, &err), &err);
    for (size_t m = 0; m < PNB_COUNT(names); m++) {
        pnb_adapter *chosen = NULL, *alone = NULL;
        pnb_adapter_facts x, y;
        assert_ok(
            pnb_adapter_fit(&chosen, ctx, names[m],
                            &(pnb_adapter_data){.images = images, .texts = texts, .truth = truth},
                            NULL, &err),
            &err);
        assert_ok(pnb_adapter_fit(&alone, ctx, names[m],
                                  &(pnb_adapter_data){.images = some[0], .texts = some[1]}, NULL,
                                  &err),
                  &err);
        pnb_adapter_describe(chosen, &x);
        pnb_adapter_describe(alone, &y);
        assert_int_equal(x.side[PNB_ADAPTER_IMAGES].n_rows, 3);
        assert_string_equal(x.link->sha256, y.link->sha256); /* the same to the last bit */
        pnb_adapter_free(chosen);
        pnb_adapter_free(alone);
    }
    pnb_truth_free(truth);
    pnb_embeddings_free(images);
    pnb_embeddings_free(texts);
    pnb_embeddings_free(some[0]);
    pnb_embeddings_free(some[1]);
}

/* What is learned from one side says that it leaves the other alone. */
static void one_side_is_enough(void **state)
{
    pnb_ctx *ctx = *state;
    pnb_embeddings *texts = unit_set("text", 9, 4, 2);
    pnb_adapter *a = NULL;
    pnb_adapter_facts facts;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(
        pnb_adapter_fit(&a, ctx, "conformity", &(pnb_adapter_data){.texts = texts}, NULL, &err),
        &err);
    pnb_adapter_describe(a, &facts);
    assert_true(facts.link->leaves_images && !facts.link->leaves_texts);
    assert_true(!facts.side[PNB_ADAPTER_IMAGES].is_adapted &&
                facts.side[PNB_ADAPTER_TEXTS].is_adapted);
    assert_string_equal(facts.side[PNB_ADAPTER_TEXTS].origin->weights_sha256, ONES);
    pnb_adapter_free(a);
    pnb_embeddings_free(texts);
}

static void words_of_uncertain(void **state)
{
    (void)state;
    assert_string_equal(pnb__adapt_uncertain_word(PNB_ADAPT_COMMON), "common");
    assert_null(pnb__adapt_uncertain_word(PNB_N_ADAPT_UNCERTAIN));
}

static const pnb_adapter_about *method_called(const char *name)
{
    size_t i = 0;
    while (strcmp(pnb_adapter_method_at(i)->name, name) != 0)
        i++;
    return pnb_adapter_method_at(i);
}

/* Words, numbers and truth values by the names that a method's table has. */
static void options_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *method, *name, *value, *says;
        pnb_status status;
    } cases[] = {
        {"pfe", "shrinkage", "0.5", "pfe reads no option 'shrinkage'; it reads recipe, ",
         PNB_NOT_FOUND},
        {"whitened", "shrinkage", "half", "shrinkage of whitened cannot be 'half'", PNB_ARG},
        {"whitened", "shrinkage", "1,2", "cannot be '1,2'", PNB_ARG},
        {"whitened", "uncertain", "seldom", "uncertain of whitened cannot be 'seldom'", PNB_ARG},
        {"pfe", "steps", "1.5", "steps of pfe cannot be '1.5'", PNB_ARG},
        {"pfe", "seed", "-1", "seed of pfe cannot be '-1'", PNB_ARG},
        {"grove", "shared-covariance", "1", "cannot be '1'", PNB_ARG},
    };
    pnb_adapter_opts o = pnb_adapter_opts_default();
    pnb_error err = PNB_ERROR_INIT;
    const pnb_adapter_about *grove = method_called("grove");
    assert_ok(pnb_adapter_opts_set(&o, method_called("whitened"), "shrinkage", "0.25", &err), &err);
    assert_true(o.shrinkage == 0.25);
    assert_ok(pnb_adapter_opts_set(&o, method_called("whitened"), "uncertain", "common", &err),
              &err);
    assert_int_equal(o.uncertain, PNB_ADAPT_COMMON);
    assert_ok(pnb_adapter_opts_set(&o, grove, "latent_dim", "7", &err), &err);
    assert_ok(pnb_adapter_opts_set(&o, grove, "shared-covariance", "true", &err), &err);
    assert_ok(pnb_adapter_opts_set(&o, grove, "kernel", "matern32", &err), &err);
    assert_ok(pnb_adapter_opts_set(&o, method_called("pfe"), "batch-size", "12", &err), &err);
    assert_ok(pnb_adapter_opts_set(&o, method_called("pfe"), "seed", "9", &err), &err);
    assert_true(o.latent_dim == 7 && o.shared_covariance && o.kernel == PNB_GROVE_MATERN32);
    assert_true(o.batch_size == 12 && o.seed == 9);
    const pnb_adapter_opts before = o;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_error_reset(&err);
        assert_failed(pnb_adapter_opts_set(&o, method_called(cases[i].method), cases[i].name,
                                           cases[i].value, &err),
                      &err, cases[i].status, cases[i].says);
    }
    assert_true(o.shrinkage == before.shrinkage && o.uncertain == before.uncertain &&
                o.steps == before.steps && o.seed == before.seed);
}

static int setup(void **state)
{
    *state = make_ctx();
    return 0;
}

static int teardown(void **state)
{
    pnb_ctx_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_whole),  cmocka_unit_test(sets_that_do_not_fit),
        cmocka_unit_test(truth_chooses_rows), cmocka_unit_test(one_side_is_enough),
        cmocka_unit_test(words_of_uncertain), cmocka_unit_test(options_by_name),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
