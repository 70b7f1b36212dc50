/* GroVE's training: a step's slopes, the order of pairs, how many steps there are, runs that are
 * resumed and held-out pairs. */
#include "tests/adapt/grove/grove_world.h"

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

enum { EACH, SHARED, MIXED }; /* whose covariance */

static void open_probe(probe *p, int form, pnb_grove_fit fit)
{
    pnb_error err = PNB_ERROR_INIT;
    *p = (probe){.opts = small_opts()};
    make_world(&p->w, 30);
    p->opts.inducing = fit == PNB_GROVE_EXACT ? 0 : 10;
    p->opts.batch_size = fit == PNB_GROVE_STEPS ? 30 : 0; /* all pairs: the same batch each time */
    p->opts.grove_fit = fit;
    p->g = (pnb__grove){.kind = PNB__GP_RBF,
                        .q = 3,
                        .m = 10,
                        .is_shared = form == SHARED,
                        .is_mixed = form == MIXED};
    p->g.part[0].d = p->g.part[1].d = D;
    const pnb__adapter_job job = {.side = {{.set = p->w.images, .n = 30, .what = "image"},
                                           {.set = p->w.texts, .n = 30, .what = "text"}},
                                  .truth = p->w.truth};
    static pnb__adapter_job kept; /* pairs read it */
    kept = job;
    assert_ok(pnb__grove_start(&p->g, p->w.ctx, &kept, &p->opts, &p->pairs, &err), &err);
    const pnb__grove_run run = {.opts = &p->opts};
    assert_ok(pnb__grove_fit_create(&p->fit, &p->g, p->w.ctx, &p->pairs, &run, &err), &err);
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
        open_probe(&p, SHARED, (pnb_grove_fit)fit);
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
    for (int form = EACH; form <= MIXED; form += MIXED) {
        probe p;
        pnb__kernels k;
        open_probe(&p, form, PNB_GROVE_STEPS);
        pnb__kernels_fill_host(&k, p.w.ctx, PNB__F32);
        const pnb__objective *o = &p.trainer.objective;
        assert_int_equal(o->n_params, form == MIXED ? 13 : 11);
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
                fail_msg("form %d, %s: fell by %g, wanted 1e-3", form, o->params[i]->name, fell);
            memcpy(x, kept, o->params[i]->n * 4);
            free(kept);
        }
        close_probe(&p);
    }
}

/* Per output, every process begins as the shared one and every output as its process: but for the
 * jitter the loss is that of the shared form. */
static void processes_begin_as_the_shared_one(void **state)
{
    (void)state;
    double loss[2];
    for (int i = 0; i < 2; i++) {
        probe p;
        open_probe(&p, i == 0 ? EACH : MIXED, PNB_GROVE_STEPS);
        loss[i] = loss_of(&p);
        close_probe(&p);
    }
    print_message("each %.6f, mixed %.6f\n", loss[0], loss[1]);
    assert_true(fabs(loss[0] - loss[1]) < 0.02 * fabs(loss[0]));
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

/* ---- runs ---- */

typedef struct stopper {
    size_t at;
} stopper;

static bool stop_at(void *user, size_t done, size_t total)
{
    (void)total;
    return done < ((const stopper *)user)->at;
}

static double figure_of(const pnb_adapter *a, const char *name)
{
    pnb_adapter_facts facts;
    pnb_adapter_describe(a, &facts);
    for (size_t i = 0; i < facts.n_figures; i++)
        if (strcmp(facts.figures[i].name, name) == 0)
            return facts.figures[i].value;
    fail_msg("no figure %s", name);
    return NAN;
}

static const char *hash_of(const pnb_adapter *a)
{
    static pnb_adapter_facts facts[2]; /* of two adapters beside each other */
    static int at;
    at = !at;
    pnb_adapter_describe(a, &facts[at]);
    return facts[at].link->sha256;
}

/* Stopped in the middle of an epoch and resumed, with held-out pairs: the bytes of a whole run. */
static void resumes_to_the_bit(void **state)
{
    world w, held;
    make_world(&w, 30);
    make_world(&held, 12);
    for (int form = EACH; form <= MIXED + 1; form++) {
        pnb_adapter_opts o = small_opts();
        pnb_adapter *whole = NULL, *cut = NULL;
        pnb_error err = PNB_ERROR_INIT;
        stopper stop = {5};
        o.shared_covariance = form == SHARED;
        o.per_output = form == MIXED;
        o.grove_fit = form > MIXED ? PNB_GROVE_COLLAPSED : PNB_GROVE_STEPS;
        o.batch_size = form > MIXED ? 0 : 10;
        o.inducing = 8;
        o.epochs = form > MIXED ? 9 : 3; /* of one step, or of three */
        pnb_adapter_data data = {.images = w.images,
                                 .texts = w.texts,
                                 .truth = w.truth,
                                 .val_images = held.images,
                                 .val_texts = held.texts,
                                 .val_truth = held.truth};
        assert_ok(pnb_adapter_fit(&whole, w.ctx, "grove", &data, &o, &err), &err);
        char name[16];
        snprintf(name, sizeof name, "form%d", form);
        data.logs = scratch_path(*state, "runs");
        data.name = name;
        data.watch = (pnb_watch){stop_at, &stop};
        assert_int_equal(pnb_adapter_fit(&cut, w.ctx, "grove", &data, &o, &err), PNB_INTERRUPTED);
        assert_non_null(strstr(err.text, "after step 5 of 9"));
        stop.at = SIZE_MAX;
        data.resume = "latest";
        err = (pnb_error)PNB_ERROR_INIT;
        assert_ok(pnb_adapter_fit(&cut, w.ctx, "grove", &data, &o, &err), &err);
        assert_string_equal(hash_of(whole), hash_of(cut));
        assert_true(figure_of(whole, "val_loss") == figure_of(cut, "val_loss"));
        assert_true(figure_of(whole, "image_loss_first") == figure_of(cut, "image_loss_first"));
        pnb_adapter_free(cut);
        o.lr = 0.5;
        assert_int_equal(pnb_adapter_fit(&cut, w.ctx, "grove", &data, &o, &err), PNB_ARG);
        pnb_adapter_free(whole);
    }
    free_world(&w);
    free_world(&held);
}

/* A rate that is far too high, and held-out pairs that do not belong together: after a few steps
 * their loss only gets worse, and what was best is what is kept. */
static void the_best_is_kept(void **state)
{
    (void)state;
    world w, held;
    pnb_adapter *all = NULL, *early = NULL;
    pnb_error err = PNB_ERROR_INIT;
    make_world(&w, 64);
    make_world(&held, 64);
    for (size_t i = 0; i < 64; i++)
        memcpy(held.texts->mean + i * D, w.texts->mean + (i + 1) % 64 * D, D * sizeof(float));
    const pnb_adapter_data data = {.images = w.images,
                                   .texts = w.texts,
                                   .truth = w.truth,
                                   .val_images = held.images,
                                   .val_texts = held.texts,
                                   .val_truth = held.truth};
    pnb_adapter_opts o = small_opts();
    o.inducing = 16;
    o.epochs = 15;
    o.lr = 1;
    o.patience = 0;
    assert_ok(pnb_adapter_fit(&all, w.ctx, "grove", &data, &o, &err), &err);
    double best = figure_of(all, "best_step");
    print_message("best step %g of %g: %g\n", best, figure_of(all, "steps"),
                  figure_of(all, "val_loss"));
    assert_true(figure_of(all, "steps") == 30 && best > 0 && best < 20);
    o.patience = 3;
    assert_ok(pnb_adapter_fit(&early, w.ctx, "grove", &data, &o, &err), &err);
    assert_true(figure_of(early, "best_step") == best);
    assert_true(figure_of(early, "steps") == best + 3); /* validated at every step */
    assert_true(figure_of(early, "val_loss") == figure_of(all, "val_loss"));
    pnb_embeddings *one = apply_to(all, &w, PNB_ADAPTER_TEXTS);
    pnb_embeddings *two = apply_to(early, &w, PNB_ADAPTER_TEXTS);
    assert_memory_equal(one->mean, two->mean, one->n * one->dim * sizeof *one->mean);
    pnb_embeddings_free(one);
    pnb_embeddings_free(two);
    pnb_adapter_free(all);
    pnb_adapter_free(early);
    free_world(&w);
    free_world(&held);
}

/* Ten epochs, but no more than a thousand steps unless epochs are given, and at least one epoch. */
static void steps_by_default(void **state)
{
    (void)state;
    static const struct {
        size_t n_pairs;
        int64_t given, batch, wanted;
    } cases[] = {{1000, 0, 64, 10}, {64, 0, 64, 10},   {30, 0, 64, 10},      {6400, 0, 64, 10},
                 {8000, 0, 64, 8},  {64000, 0, 64, 1}, {1000000, 0, 64, 1},  {8000, 30, 64, 30},
                 {8000, 0, 8, 1},   {2000, 0, 8, 4},   {1000000, 0, 512, 1}, {50000, 0, 512, 10}};
    pnb_ctx *ctx = make_ctx();
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb_adapter_opts o = pnb_adapter_opts_default();
        pnb__grove g = {.q = 2, .m = 2};
        pnb__grove_pairs pairs = {.n = cases[i].n_pairs};
        const pnb__grove_run run = {.opts = &o};
        pnb__grove_fit *fit = NULL;
        o.epochs = cases[i].given;
        o.batch_size = cases[i].batch;
        assert_int_equal(pnb__grove_fit_create(&fit, &g, ctx, &pairs, &run, NULL), PNB_OK);
        assert_int_equal(pnb__grove_fit_run(fit).epochs, cases[i].wanted);
        pnb__grove_fit_free(fit);
    }
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_are_those_of_the_loss),
        cmocka_unit_test(a_step_down_the_slope_goes_down),
        cmocka_unit_test(processes_begin_as_the_shared_one),
        cmocka_unit_test(pairs_of_an_epoch),
        cmocka_unit_test(steps_by_default),
        cmocka_unit_test_setup_teardown(resumes_to_the_bit, scratch_setup, scratch_teardown),
        cmocka_unit_test(the_best_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
