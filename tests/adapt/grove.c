/* GroVE as a method: it learns, is kept to the bit and gives the same bytes for a seed; rows whose
 * captions say less are the uncertain ones; what cannot be learned from is refused with its reason.
 *
 * The truth: pairs have latents of 3 axes and both sides are smooth functions of them; the captions
 * of every second pair are of a latent of which two axes are wiped out, so that they fit many
 * images. */
#include "adapt/grove.h"
#include "tests/adapt/world.h"

enum { N = 300, D = 24, AXES = 3 };

typedef struct world {
    pnb_ctx *ctx;
    pnb_embeddings *images, *texts;
    pnb_truth *truth;
} world;

static double wave(const double *z, size_t d)
{
    pnb__rng rng;
    double angle;
    pnb__rng_init(&rng, 77, d);
    angle = 6 * pnb__rng_uniform(&rng);
    for (size_t a = 0; a < AXES; a++)
        angle += 0.8 * pnb__rng_normal(&rng) * z[a];
    return cos(angle);
}

static bool is_general(size_t i)
{
    return i % 2 == 1;
}

static void make_world(world *w, size_t n)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    *w = (world){
        .ctx = make_ctx(), .images = empty_set("image", n, D), .texts = empty_set("text", n, D)};
    for (size_t i = 0; i < n; i++) {
        double z[AXES];
        for (size_t a = 0; a < AXES; a++)
            z[a] = pnb__rng_normal(&rng);
        for (size_t d = 0; d < D; d++)
            w->images->mean[i * D + d] = (float)(wave(z, d) + 0.05 * pnb__rng_normal(&rng));
        if (is_general(i))
            z[1] = z[2] = 0;
        for (size_t d = 0; d < D; d++)
            w->texts->mean[i * D + d] = (float)(0.2 + wave(z, d) + 0.05 * pnb__rng_normal(&rng));
    }
    assert_int_equal(pnb_truth_create_aligned(&w->truth, n, NULL), PNB_OK);
}

static void free_world(world *w)
{
    pnb_embeddings_free(w->images);
    pnb_embeddings_free(w->texts);
    pnb_truth_free(w->truth);
    pnb_ctx_free(w->ctx);
}

static pnb_adapter_opts small_opts(void)
{
    pnb_adapter_opts o = pnb_adapter_opts_default();
    o.latent_dim = 3;
    o.inducing = 24;
    o.epochs = 10;
    o.batch_size = 32;
    o.seed = 3;
    return o;
}

static pnb_status learn(pnb_adapter **out, const world *w, const pnb_adapter_opts *o,
                        pnb_error *err)
{
    const pnb_adapter_data data = {.images = w->images, .texts = w->texts, .truth = w->truth};
    return pnb_adapter_fit(out, w->ctx, "grove", &data, o, err);
}

static pnb_embeddings *apply_to(const pnb_adapter *a, const world *w, pnb_adapter_side side)
{
    pnb_embeddings *out = NULL;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(
        pnb_adapter_apply(&out, a, side, side == PNB_ADAPTER_IMAGES ? w->images : w->texts, &err),
        &err);
    return out;
}

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

static void general_captions_are_uncertain(void **state)
{
    (void)state;
    world w;
    make_world(&w, N);
    for (int fit = 0; fit < PNB_N_GROVE_FITS; fit++)
        for (int shared = 0; shared < (fit == PNB_GROVE_STEPS ? 2 : 1); shared++) {
            pnb_adapter_opts o = small_opts();
            pnb_adapter *a = NULL;
            pnb_error err = PNB_ERROR_INIT;
            o.grove_fit = (pnb_grove_fit)fit;
            o.shared_covariance = shared;
            if (fit != PNB_GROVE_STEPS)
                o.batch_size = 0;
            if (fit == PNB_GROVE_EXACT)
                o.inducing = 0;
            assert_ok(learn(&a, &w, &o, &err), &err);
            pnb_embeddings *texts = apply_to(a, &w, PNB_ADAPTER_TEXTS);
            pnb_embeddings *images = apply_to(a, &w, PNB_ADAPTER_IMAGES);
            assert_int_equal(texts->family, PNB_GAUSSIAN_DIAG);
            print_message("fit %d, shared %d: ratio %.3f, explained %.3f %.3f\n", fit, shared,
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
static void a_seed_is_a_set_of_bytes(void **state)
{
    world w;
    pnb_error err = PNB_ERROR_INIT;
    pnb_adapter *a[3] = {NULL}, *back = NULL;
    pnb_adapter_facts facts[3];
    make_world(&w, N);
    for (int i = 0; i < 3; i++) {
        pnb_adapter_opts o = small_opts();
        o.epochs = 2;
        o.seed = i < 2 ? 3 : 4;
        o.kernel = PNB_GROVE_MATERN52;
        o.align = PNB_GROVE_JS;
        assert_ok(learn(&a[i], &w, &o, &err), &err);
        pnb_adapter_describe(a[i], &facts[i]);
    }
    assert_string_equal(facts[0].link->sha256, facts[1].link->sha256);
    assert_string_not_equal(facts[0].link->sha256, facts[2].link->sha256);
    const char *dir = scratch_path(*state, "grove");
    assert_ok(pnb_adapter_save(a[0], dir, &err), &err);
    assert_ok(pnb_adapter_load(&back, w.ctx, dir, &err), &err);
    pnb_embeddings *before = apply_to(a[0], &w, PNB_ADAPTER_TEXTS);
    pnb_embeddings *after = apply_to(back, &w, PNB_ADAPTER_TEXTS);
    assert_memory_equal(before->mean, after->mean, N * D * sizeof(float));
    assert_memory_equal(before->log_var, after->log_var, N * D * sizeof(float));
    pnb_embeddings_free(before);
    pnb_embeddings_free(after);
    pnb_adapter_free(back);
    for (int i = 0; i < 3; i++)
        pnb_adapter_free(a[i]);
    free_world(&w);
}

static void every_choice_gives_numbers(void **state)
{
    (void)state;
    world w;
    make_world(&w, N);
    for (int i = 0; i < PNB_N_GROVE_KERNELS * 3; i++) {
        pnb_adapter_opts o = small_opts();
        pnb_adapter *a = NULL;
        pnb_error err = PNB_ERROR_INIT;
        o.epochs = 1;
        o.shared_covariance = i % 2;
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
    o.kernel = PNB_N_GROVE_KERNELS;
    refuse(&w, &o, PNB_ARG, "none of its words");
    free_world(&w);
    make_world(&w, 1);
    o = small_opts();
    refuse(&w, &o, PNB_ARG, "at least two");
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

/* ---- the step ---- */

typedef struct probe {
    world w;
    pnb__grove g;
    pnb__grove_pairs pairs;
    pnb_adapter_opts opts;
    pnb__grove_fit *fit;
    pnb__objective objective;
    pnb__run_opts run;
    pnb__run_result result;
    pnb__trainer trainer;
} probe;

static void open_probe(probe *p, bool shared, pnb_grove_fit fit)
{
    pnb_error err = PNB_ERROR_INIT;
    *p = (probe){.opts = small_opts()};
    make_world(&p->w, 30);
    p->opts.inducing = fit == PNB_GROVE_EXACT ? 0 : 10;
    p->opts.batch_size = fit == PNB_GROVE_STEPS ? 30 : 0; /* all pairs: the same batch each time */
    p->opts.grove_fit = fit;
    p->g = (pnb__grove){.kind = PNB__GP_RBF, .q = 3, .m = 10, .is_shared = shared};
    p->g.part[0].d = p->g.part[1].d = D;
    const pnb__adapter_job job = {.side = {{.set = p->w.images, .n = 30, .what = "image"},
                                           {.set = p->w.texts, .n = 30, .what = "text"}},
                                  .truth = p->w.truth};
    static pnb__adapter_job kept; /* pairs read it */
    kept = job;
    assert_ok(pnb__grove_start(&p->g, p->w.ctx, &kept, &p->opts, &p->pairs, &err), &err);
    assert_ok(pnb__grove_fit_create(&p->fit, &p->g, p->w.ctx, &p->pairs, &p->opts, &err), &err);
    p->objective = pnb__grove_fit_objective(p->fit);
    p->run = pnb__grove_fit_run(p->fit);
    pnb__trainer_init(&p->trainer, p->w.ctx, &p->run, &p->objective, &p->result);
    assert_ok(pnb__trainer_setup(&p->trainer, NULL, &err), &err);
}

static void close_probe(probe *p)
{
    pnb__trainer_reset(&p->trainer);
    pnb__grove_fit_free(p->fit);
    pnb__grove_pairs_reset(&p->pairs);
    pnb__grove_reset(&p->g);
    free_world(&p->w);
}

static double loss_of(probe *p)
{
    pnb__step_values v;
    pnb_error err = PNB_ERROR_INIT;
    assert_ok(pnb__trainer_step(&p->trainer, &v, &err), &err);
    return v.total;
}

/* Every parameter of every fit, at some of its places: doubles by differences. Of the per-output
 * form, whose numbers are floats, a step down the gradient must lower the loss as it says. */
static void slopes_are_those_of_the_loss(void **state)
{
    (void)state;
    for (int fit = 0; fit < PNB_N_GROVE_FITS; fit++) {
        probe p;
        pnb__kernels k;
        open_probe(&p, true, (pnb_grove_fit)fit);
        pnb__kernels_fill_host(&k, p.w.ctx, PNB__F64);
        const pnb__objective *o = &p.trainer.objective;
        for (size_t i = 0; i < o->n_params; i++)
            for (size_t at = 0; at < o->params[i]->n; at += 1 + o->params[i]->n / 7) {
                double *x = (double *)pnb__param_on_host(o->params[i], &k) + at, kept = *x, slope;
                if (strstr(o->params[i]->name, "factors") != NULL && at % 10 > at / 10)
                    continue; /* above the diagonal there is nothing to change */
                const double h = 1e-5;
                loss_of(&p);
                slope = ((const double *)o->params[i]->grad)[at];
                *x = kept + h;
                double above = loss_of(&p);
                *x = kept - h;
                double found = (above - loss_of(&p)) / (2 * h);
                *x = kept;
                if (!(fabs(found - slope) <= 2e-4 * (1 + fabs(slope))))
                    fail_msg("fit %d, %s[%zu]: %.9g, wanted %.9g", fit, o->params[i]->name, at,
                             slope, found);
            }
        close_probe(&p);
    }
}

static void a_step_down_the_slope_goes_down(void **state)
{
    (void)state;
    probe p;
    pnb__kernels k;
    open_probe(&p, false, PNB_GROVE_STEPS);
    pnb__kernels_fill_host(&k, p.w.ctx, PNB__F32);
    const pnb__objective *o = &p.trainer.objective;
    for (size_t i = 0; i < o->n_params; i++) {
        double before = loss_of(&p), square = 0;
        float *x = pnb__param_on_host(o->params[i], &k), *kept = malloc(o->params[i]->n * 4);
        const float *g = o->params[i]->grad;
        memcpy(kept, x, o->params[i]->n * 4);
        for (size_t at = 0; at < o->params[i]->n; at++)
            square += (double)g[at] * (double)g[at];
        const double by = 1e-3 / (square + 1e-12); /* the loss should fall by 1e-3 */
        for (size_t at = 0; at < o->params[i]->n; at++)
            x[at] -= (float)(by * (double)g[at]);
        double fell = before - loss_of(&p);
        if (!(fabs(fell - 1e-3) < 2e-4))
            fail_msg("%s: fell by %g, wanted 1e-3", o->params[i]->name, fell);
        memcpy(x, kept, o->params[i]->n * 4);
        free(kept);
    }
    close_probe(&p);
}

/* Every pair once; another order for another seed, and for another epoch. */
static void pairs_of_an_epoch(void **state)
{
    enum { N_PAIRS = 50 };
    uint32_t first[N_PAIRS], order[N_PAIRS];
    (void)state;
    pnb__grove_order(first, N_PAIRS, 8, 3, 0);
    bool seen[N_PAIRS] = {false};
    for (size_t i = 0; i < N_PAIRS; i++)
        seen[first[i]] = true;
    for (size_t i = 0; i < N_PAIRS; i++)
        assert_true(seen[i]);
    pnb__grove_order(order, N_PAIRS, 8, 3, 0);
    assert_memory_equal(order, first, sizeof order);
    pnb__grove_order(order, N_PAIRS, 8, 4, 0);
    assert_memory_not_equal(order, first, sizeof order);
    pnb__grove_order(order, N_PAIRS, 8, 3, 1);
    assert_memory_not_equal(order, first, sizeof order);
    pnb__grove_order(order, N_PAIRS, N_PAIRS, 3, 1);
    for (size_t i = 0; i < N_PAIRS; i++)
        assert_int_equal(order[i], i);
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
    assert_ok(learn(&a, &w, &o, &err), &err);
    pnb_adapter_describe(a, &facts);
    assert_true(facts.opts->lr == 1e-5 && facts.opts->elbo_weight == 0.01);
    assert_true(facts.opts->align_weight == 400 && facts.opts->epochs == 2);
    pnb_adapter_free(a);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(general_captions_are_uncertain),
        cmocka_unit_test_setup_teardown(a_seed_is_a_set_of_bytes, scratch_setup, scratch_teardown),
        cmocka_unit_test(published_recipe),
        cmocka_unit_test(a_watch_stops_it),
        cmocka_unit_test(pairs_of_an_epoch),
        cmocka_unit_test(every_choice_gives_numbers),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(rows_without_news_are_refused),
        cmocka_unit_test(slopes_are_those_of_the_loss),
        cmocka_unit_test(a_step_down_the_slope_goes_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
