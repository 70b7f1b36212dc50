/* GroVE as a method: it learns, is kept to the bit and gives the same bytes for a seed; rows whose
 * captions say less are the uncertain ones; what cannot be learned from is refused with its reason.
 *
 * The truth: pairs have latents of 3 axes and both sides are smooth functions of them; the captions
 * of every second pair are of a latent of which two axes are wiped out, so that they fit many
 * images. */
#include "tests/adapt/grove/grove_world.h"

/* Mean uncertainty of general captions over that of exact ones. */
static double ratio_of(const pnb_embeddings *texts)
{
    double sum[2] = {0};
    for (size_t i = 0; i < texts->n; i++)
        sum[is_general(i)] += trace_of(texts, i);
    return sum[1] / sum[0];
}

/* Share of the rows' variance that the means explain. */
static double explained(const pnb_embeddings *made, const pnb_embeddings *given)
{
    double left = 0, all = 0;
    for (size_t d = 0; d < D; d++) {
        double mean = 0;
        for (size_t i = 0; i < given->n; i++)
            mean += (double)given->mean[i * D + d] / (double)given->n;
        for (size_t i = 0; i < given->n; i++) {
            left += pow((double)(given->mean[i * D + d] - made->mean[i * D + d]), 2);
            all += pow((double)given->mean[i * D + d] - mean, 2);
        }
    }
    return 1 - left / all;
}

static void general_texts_are_uncertain(void **state)
{
    (void)state;
    world w;
    make_world(&w, N);
    for (int fit = 0; fit < PNB_N_GROVE_FITS; fit++)
        for (int form = 0; form < (fit == PNB_GROVE_STEPS ? 3 : 1); form++) {
            pnb_adapter_opts o = small_opts();
            pnb_adapter *a = NULL;
            pnb_error err = PNB_ERROR_INIT;
            o.grove_fit = (pnb_grove_fit)fit;
            o.shared_covariance = form == 1;
            o.per_output = form == 2;
            if (form == 2) { /* each process as dear as all of them otherwise */
                o.inducing = 12;
                o.epochs = 5;
            }
            if (fit != PNB_GROVE_STEPS)
                o.batch_size = 0;
            if (fit == PNB_GROVE_EXACT)
                o.inducing = 0;
            assert_ok(learn(&a, &w, &o, &err), &err);
            pnb_embeddings *texts = apply_to(a, &w, PNB_ADAPTER_TEXTS);
            pnb_embeddings *images = apply_to(a, &w, PNB_ADAPTER_IMAGES);
            assert_int_equal(texts->family, PNB_GAUSSIAN_DIAG);
            print_message("fit %d, form %d: ratio %.3f, explained %.3f %.3f\n", fit, form,
                          ratio_of(texts), explained(texts, w.texts), explained(images, w.images));
            if (fit == PNB_GROVE_STEPS) /* the others do not pull the sides together */
                assert_true(ratio_of(texts) > 1.02);
            assert_true(explained(texts, w.texts) > 0.5 && explained(images, w.images) > 0.5);
            pnb_embeddings_free(texts);
            pnb_embeddings_free(images);
            pnb_adapter_free(a);
        }
    free_world(&w);
}

/* The same bytes for a seed, others for another; a folder gives back what was learned. */
/* Options of a saved grove as they were written once: '-' where '_' is now. */
static void respell(const char *dir)
{
    static const char *const names[] = {"batch_size",        "latent_dim", "elbo_weight",
                                        "align_weight",      "per_output", "shared_covariance",
                                        "latent_uncertainty"};
    char path[600], *config = NULL;
    size_t size = 0;
    pnb_error err = PNB_ERROR_INIT;
    snprintf(path, sizeof path, "%s/config.json", dir);
    assert_ok(pnb__read_file(path, 1 << 16, &config, &size, &err), &err);
    for (size_t i = 0; i < PNB_COUNT(names); i++) {
        char *at = strstr(config, names[i]);
        assert_non_null(at);
        for (char *c = at; c < at + strlen(names[i]); c++)
            *c = *c == '_' ? '-' : *c;
    }
    assert_ok(pnb__write_file(path, config, size, &err), &err);
    pnb__free(config);
}

static void options_spelt_as_once(const world *w, const char *dir, bool per_output)
{
    pnb_adapter *back = NULL;
    pnb_adapter_facts facts;
    pnb_error err = PNB_ERROR_INIT;
    respell(dir);
    assert_ok(pnb_adapter_load(&back, w->ctx, dir, &err), &err);
    pnb_adapter_describe(back, &facts);
    assert_int_equal(facts.opts->per_output, per_output);
    assert_int_equal(facts.opts->inducing, per_output ? 8 : 24);
    assert_int_equal(facts.opts->latent_dim, small_opts().latent_dim);
    pnb_adapter_free(back);
}

static void seeds_and_folders(bool per_output, const char *dir)
{
    world w;
    pnb_error err = PNB_ERROR_INIT;
    pnb_adapter *a[3] = {NULL}, *back = NULL;
    pnb_adapter_facts facts[3];
    make_world(&w, per_output ? 40 : N);
    for (int i = 0; i < 3; i++) {
        pnb_adapter_opts o = small_opts();
        o.epochs = 2;
        o.inducing = per_output ? 8 : 24;
        o.seed = i < 2 ? 3 : 4;
        o.kernel = PNB_GROVE_MATERN52;
        o.align = PNB_GROVE_JS;
        o.per_output = per_output;
        assert_ok(learn(&a[i], &w, &o, &err), &err);
        pnb_adapter_describe(a[i], &facts[i]);
    }
    assert_string_equal(facts[0].link->sha256, facts[1].link->sha256);
    assert_string_not_equal(facts[0].link->sha256, facts[2].link->sha256);
    assert_ok(pnb_adapter_save(a[0], dir, &err), &err);
    assert_ok(pnb_adapter_load(&back, w.ctx, dir, &err), &err);
    pnb_embeddings *before = apply_to(a[0], &w, PNB_ADAPTER_TEXTS);
    pnb_embeddings *after = apply_to(back, &w, PNB_ADAPTER_TEXTS);
    assert_memory_equal(before->mean, after->mean, before->n * D * sizeof(float));
    assert_memory_equal(before->log_var, after->log_var, before->n * D * sizeof(float));
    pnb_embeddings_free(before);
    pnb_embeddings_free(after);
    pnb_adapter_free(back);
    options_spelt_as_once(&w, dir, per_output);
    for (int i = 0; i < 3; i++)
        pnb_adapter_free(a[i]);
    free_world(&w);
}

static void a_seed_is_a_set_of_bytes(void **state)
{
    seeds_and_folders(false, scratch_path(*state, "grove"));
    seeds_and_folders(true, scratch_path(*state, "mixed"));
}

static void every_choice_gives_numbers(void **state)
{
    (void)state;
    world w;
    make_world(&w, 100);
    for (int i = 0; i < PNB_N_GROVE_KERNELS * 3; i++) {
        pnb_adapter_opts o = small_opts();
        pnb_adapter *a = NULL;
        pnb_error err = PNB_ERROR_INIT;
        o.epochs = 1;
        o.shared_covariance = i % 2;
        o.per_output = i == 10; /* by the released search, with w2 */
        o.kernel = (pnb_grove_kernel)(i % PNB_N_GROVE_KERNELS);
        o.align = (pnb_grove_align)(i / PNB_N_GROVE_KERNELS);
        o.latent_uncertainty = (pnb_grove_latent)(i % PNB_N_GROVE_LATENTS);
        o.inference = i % 5 == 0 ? PNB_GROVE_ADAM : PNB_GROVE_NEWTON;
        assert_ok(learn(&a, &w, &o, &err), &err);
        pnb_embeddings *made = apply_to(a, &w, PNB_ADAPTER_IMAGES); /* checks its numbers */
        pnb_embeddings_free(made);
        pnb_adapter_free(a);
    }
    free_world(&w);
}

/* ---- refusals ---- */

static void refuse(const world *w, const pnb_adapter_opts *o, pnb_status wanted, const char *text)
{
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_status status = learn(&a, w, o, &err);
    if (status != wanted || strstr(err.text, text) == NULL)
        fail_msg("status %d \"%s\", wanted %d \"%s\"", (int)status, err.text, (int)wanted, text);
    assert_null(a);
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    world w;
    pnb_adapter_opts o = small_opts();
    make_world(&w, 20);
    refuse(&w, &o, PNB_ARG, "24 inducing points for 20 pairs");
    o.inducing = 8;
    o.latent_dim = D;
    refuse(&w, &o, PNB_ARG, "latent-dim must be below it");
    o.latent_dim = 2;
    refuse(&w, &o, PNB_ARG, "batches of 32, but an epoch has 20 pairs");
    o.align_weight = -1;
    refuse(&w, &o, PNB_ARG, "align-weight -1");
    o.align_weight = NAN;
    o.lr = 0;
    refuse(&w, &o, PNB_ARG, "lr is 0");
    o.lr = NAN;
    o.grove_fit = PNB_GROVE_EXACT;
    refuse(&w, &o, PNB_ARG, "no batch-size");
    o.batch_size = 0;
    refuse(&w, &o, PNB_ARG, "exact regression has one at each");
    o.per_output = true;
    refuse(&w, &o, PNB_ARG, "no fit but steps");
    o.grove_fit = PNB_GROVE_STEPS;
    o.shared_covariance = true;
    refuse(&w, &o, PNB_ARG, "no shared-covariance");
    o.per_output = o.shared_covariance = false;
    o.kernel = PNB_N_GROVE_KERNELS;
    refuse(&w, &o, PNB_ARG, "none of its words");
    free_world(&w);
    make_world(&w, 1);
    o = small_opts();
    refuse(&w, &o, PNB_ARG, "needs two at least");
    free_world(&w);
}

static void rows_without_news_are_refused(void **state)
{
    (void)state;
    world w;
    pnb_adapter_opts o = small_opts();
    make_world(&w, 40);
    w.texts->mean[7 * D + 2] = NAN;
    refuse(&w, &o, PNB_NUMERIC, "7");
    for (size_t i = 0; i < 40 * D; i++)
        w.texts->mean[i] = (float)(i % D);
    refuse(&w, &o, PNB_NUMERIC, "text embeddings of all 40 pairs are the same");
    for (size_t i = 0; i < 40 * D; i++) { /* four different pairs, ten times each */
        w.texts->mean[i] = w.texts->mean[i];
        w.images->mean[i] = (float)sin((double)(i % (4 * D)));
        w.texts->mean[i] = (float)cos((double)(i % (4 * D)));
    }
    o.latent_dim = 2;
    refuse(&w, &o, PNB_NUMERIC, "4 different latents");
    o.latent_dim = 5;
    refuse(&w, &o, PNB_NUMERIC, "axes");
    free_world(&w);
}

static bool stop_at_third(void *user, size_t done, size_t total)
{
    size_t *n_calls = user;
    assert_true(done < total);
    return ++*n_calls < 3;
}

static void a_watch_stops_it(void **state)
{
    world w;
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    size_t n_calls = 0;
    (void)state;
    make_world(&w, 48);
    const pnb_adapter_opts o = small_opts();
    const pnb_adapter_data data = {
        .images = w.images, .texts = w.texts, .truth = w.truth, .watch = {stop_at_third, &n_calls}};
    assert_int_equal(pnb_adapter_fit(&a, w.ctx, "grove", &data, &o, &err), PNB_INTERRUPTED);
    assert_int_equal(n_calls, 3);
    assert_null(a);
    free_world(&w);
}

static bool count_to(void *user, size_t done, size_t total)
{
    size_t *n_calls = user;
    assert_int_equal(done, ++*n_calls); /* behind each step */
    assert_int_equal(total, 5);
    return true;
}

/* Five steps are five, more than an epoch or less; of epochs and steps one is given. */
static void steps_in_place_of_epochs(void **state)
{
    world w;
    pnb_adapter *a = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb_adapter_opts o = small_opts();
    size_t n_calls = 0;
    (void)state;
    make_world(&w, 48);
    const pnb_adapter_data data = {
        .images = w.images, .texts = w.texts, .truth = w.truth, .watch = {count_to, &n_calls}};
    o.steps = 5;
    assert_int_equal(pnb_adapter_fit(&a, w.ctx, "grove", &data, &o, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "one of them is enough"));
    assert_int_equal(n_calls, 0);
    o.epochs = 0;
    err = (pnb_error)PNB_ERROR_INIT;
    assert_ok(pnb_adapter_fit(&a, w.ctx, "grove", &data, &o, &err), &err);
    assert_int_equal(n_calls, 5);
    pnb_adapter_free(a);
    free_world(&w);
}

/* The paper's numbers where none were given; one that was given stands. */
static void published_recipe(void **state)
{
    world w;
    pnb_adapter *a = NULL;
    pnb_adapter_facts facts;
    pnb_error err = PNB_ERROR_INIT;
    (void)state;
    make_world(&w, 48);
    pnb_adapter_opts o = small_opts();
    o.recipe = PNB_ADAPT_RECIPE_PUBLISHED;
    o.epochs = 2;
    o.latent_dim = 0;
    assert_ok(learn(&a, &w, &o, &err), &err);
    pnb_adapter_describe(a, &facts);
    assert_true(facts.opts->lr == 1e-5 && facts.opts->elbo_weight == 0.01);
    assert_true(facts.opts->align_weight == 400 && facts.opts->epochs == 2);
    assert_int_equal(((pnb__grove *)a->self)->q, 5);
    pnb_adapter_free(a);
    o.recipe = PNB_ADAPT_RECIPE_SMALL; /* half the width of 24 */
    assert_ok(learn(&a, &w, &o, &err), &err);
    assert_int_equal(((pnb__grove *)a->self)->q, D / 2);
    pnb_adapter_free(a);
    free_world(&w);
    make_world(&w, 10); /* half the rows: as many pairs do not spread along more axes */
    o.inducing = o.batch_size = 0;
    assert_ok(learn(&a, &w, &o, &err), &err);
    assert_int_equal(((pnb__grove *)a->self)->q, 5);
    pnb_adapter_free(a);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(general_texts_are_uncertain),
        cmocka_unit_test_setup_teardown(a_seed_is_a_set_of_bytes, scratch_setup, scratch_teardown),
        cmocka_unit_test(published_recipe),
        cmocka_unit_test(steps_in_place_of_epochs),
        cmocka_unit_test(a_watch_stops_it),
        cmocka_unit_test(every_choice_gives_numbers),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(rows_without_news_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
