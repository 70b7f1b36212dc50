/* Steps with mixed pictures, and terms that depend on how a step is cut: the same bits when a run
 * is resumed, labels that follow their pairs, PVSE's terms and drawn samples of several
 * micro-batches as of one. */
#include <math.h>

#include "tests/train/results.h"

enum { N_STEPS = 4 };

static losses run_of(const fixture *f, const pnb_train_opts *o, const char *name, const char *term)
{
    pnb_train_opts named = *o;
    pnb_train_result r;
    named.name = name;
    ASSERT_OK(pnb_train(f->ctx, &named, &r, &err));
    return read_losses(f, name, term);
}

static void assert_alike(const losses *a, const losses *b, double bound, const char *what)
{
    for (size_t i = 0; i < N_STEPS; i++)
        if (!(fabs(a->of[i] - b->of[i]) <= bound * fabs(a->of[i])))
            fail_msg("%s, step %zu: %.9g and %.9g", what, i, a->of[i], b->of[i]);
}

static void assert_unlike(const losses *a, const losses *b, const char *what)
{
    for (size_t i = 0; i < N_STEPS; i++)
        if (!(fabs(a->of[i] - b->of[i]) > 1e-6 * fabs(a->of[i])))
            fail_msg("%s, step %zu: %.9g and %.9g", what, i, a->of[i], b->of[i]);
}

/* PCME++'s loss on the small ProLIP model: matching, pseudo positives, divergence. */
static pnb_train_opts pcmepp_opts(const fixture *f, const char *name)
{
    pnb_train_opts o = pnb_train_opts_of(PNB_OBJECTIVE_PCMEPP, true), small = fixture_opts(f, name);
    memcpy(small.loss.weight, o.loss.weight, sizeof o.loss.weight);
    small.mix_share = o.mix_share;
    small.mix_cutmix = o.mix_cutmix;
    small.mix_alpha = o.mix_alpha;
    small.label_smoothing = o.label_smoothing;
    small.max_steps = N_STEPS;
    return small;
}

static void published_weights(void **state)
{
    (void)state;
    const pnb_train_opts o = pnb_train_opts_of(PNB_OBJECTIVE_PCMEPP, true);
    const pnb_train_opts p = pnb_train_opts_of(PNB_OBJECTIVE_PVSE, true);
    assert_true(o.loss.weight[PNB_LOSS_PCMEPP] == 2);
    assert_true(o.loss.weight[PNB_LOSS_PCMEPP_PSEUDO] == 0.1);
    assert_true(o.loss.weight[PNB_LOSS_VIB] == 1e-4);
    assert_true(o.mix_share == 0.25 && o.mix_cutmix == 0.5 && o.mix_alpha == 2);
    assert_true(o.label_smoothing == 1e-4 && p.label_smoothing == 0);
    assert_true(p.loss.weight[PNB_LOSS_DIVERSITY] == 0.1 && p.loss.weight[PNB_LOSS_MMD] == 0.01);
    assert_true(p.loss.triplet_mean && p.loss.mmd_published && p.loss.triplet_hardest);
}

static char *weights_of(const fixture *f, const char *run, size_t *n)
{
    char *path = pnb__format("%s/%s/checkpoints/latest/model.safetensors", f->logs, run), *bytes;
    ASSERT_OK(pnb__read_file(path, 1 << 24, &bytes, n, &err));
    pnb__free(path);
    return bytes;
}

/* Stopped behind each step, with other workers: mixes are of seed and step. */
static void mixing_resumes_to_the_bit(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcmepp_opts(f, "mixed");
    pnb_train_result r;
    size_t n[2];
    ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    o.name = "mixed-parts";
    o.workers = 0;
    for (int step = 1; step <= N_STEPS; step++) {
        volatile sig_atomic_t stop = 1;
        pnb_error err = PNB_ERROR_INIT;
        o.stop = step < N_STEPS ? &stop : NULL;
        o.resume = step > 1 ? "latest" : NULL;
        if (pnb_train(f->ctx, &o, &r, &err) != (step < N_STEPS ? PNB_INTERRUPTED : PNB_OK))
            fail_msg("step %d: %s", step, err.text);
    }
    char *whole = weights_of(f, "mixed", &n[0]), *parts = weights_of(f, "mixed-parts", &n[1]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(whole, parts, n[0]);
    pnb__free(whole);
    pnb__free(parts);
    o.mix_alpha = 1;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "mix_alpha = 2");
    o.mix_alpha = 2;
    o.label_smoothing = 0;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "label_smoothing = 0.0001");
    o.label_smoothing = 1e-4;
    o.mix_share = 0.5;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "mix_share = 0.25");
    o.mix_share = 0.25;
    o.loss.weight[PNB_LOSS_PCMEPP_PSEUDO] = 0;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "pcmepp_pseudo_weight = 0.1");
}

/* Nothing moves: what differs is what was mixed, by whom and by what share. */
static void mixing_is_drawn(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcmepp_opts(f, "");
    o.optim.lr = 0;
    o.augment = pnb_augment_none();
    o.texts = PNB_TEXT_FIRST;
    o.template_share = 0;
    losses mixed = run_of(f, &o, "still", "pcmepp"), again = run_of(f, &o, "still2", "pcmepp");
    assert_alike(&mixed, &again, 0, "the same seed");
    o.mix_share = 0;
    o.label_smoothing = 0;
    losses none = run_of(f, &o, "unmixed", "pcmepp");
    assert_unlike(&mixed, &none, "mixed or not");
    o.mix_share = 0.25;
    o.mix_cutmix = 1;
    losses boxes = run_of(f, &o, "boxes", "pcmepp");
    o.mix_cutmix = 0;
    losses weights = run_of(f, &o, "weights", "pcmepp");
    assert_unlike(&boxes, &weights, "CutMix or mixup");
    o.mix_share = 1;
    losses all = run_of(f, &o, "all", "pcmepp");
    assert_unlike(&all, &weights, "all or a quarter");
}

/* Masked rows go to the front of a step of two micro-batches: labels follow their pairs. */
static void labels_follow_their_pairs(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcmepp_opts(f, "");
    o.batch_size = 4;
    o.accum_freq = 2;
    o.drop_ratio = 0.5;
    o.mix_share = 0.5;
    for (int pseudo = 0; pseudo < 2; pseudo++) {
        const char *term = pseudo ? "pcmepp_pseudo" : "pcmepp";
        o.loss.weight[PNB_LOSS_TXT_INCLUSION] = 0;
        losses in_order = run_of(f, &o, pseudo ? "order-p" : "order", term);
        o.loss.weight[PNB_LOSS_TXT_INCLUSION] = 1e-30;
        losses moved = run_of(f, &o, pseudo ? "moved-p" : "moved", term);
        assert_alike(&in_order, &moved, 2e-5, term);
    }
}

static void mixing_is_refused(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcmepp_opts(f, "refused");
    pnb_train_result r;
    o.mix_share = 1.5;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "mix-share is 1.5");
    o.mix_share = 0.25;
    o.mix_cutmix = -1;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "mix-cutmix is -1");
    o.mix_cutmix = 0.5;
    o.mix_alpha = 0;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "mix-alpha is 0");
    o.mix_alpha = NAN;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "");
    o.mix_alpha = 2;
    o.batch_size = 1;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "--mix-share mixes a picture");
    o.batch_size = 8;
    o.label_smoothing = 0.5;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "label-smoothing is 0.5");
    o.label_smoothing = 1e-4;
    o.loss.weight[PNB_LOSS_CLIP] = 1;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "loss clip knows no match by halves");
    o.mix_share = 0; /* smoothed labels alone are as little known to it */
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "loss clip knows no match by halves");
    o.mix_cutmix = 1;
    ASSERT_FAILS(pnb_train(f->ctx, &o, &r, &err), PNB_ARG, "give --mix-share");
}

/* Nothing moves, so the logits are those of the plain run; BCE(Y) = mean softplus(z) - mean Y z is
 * linear in Y, so in e. */
static void labels_are_smoothed(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pcmepp_opts(f, "");
    static const double by[] = {0, 0.1, 0.2};
    losses of[3];
    o.optim.lr = 0;
    o.mix_share = 0;
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"sharp", "smooth", "smoother"};
        o.label_smoothing = by[i];
        of[i] = run_of(f, &o, names[i], "pcmepp");
    }
    for (size_t s = 0; s < N_STEPS; s++) {
        double step = of[1].of[s] - of[0].of[s];
        assert_true(fabs(step) > 1e-6);
        assert_true(fabs(of[2].of[s] - of[0].of[s] - 2 * step) < 1e-4 * fabs(of[0].of[s]));
    }
}

/* ---- terms that look at all rows of a step ---- */

static const char frozen_config[] =
    "{\"model_type\": \"pcme\", \"embed_dim\": 8, \"n_embeddings\": %d, \"uncertainty\": %s,\n"
    " \"vision_cfg\": {\"base\": 4, \"layers\": [1, 1, 1, 1], \"bottleneck\": false,\n"
    "   \"image_size\": 32, \"frozen_norm\": true},\n"
    " \"text_cfg\": {\"word_dim\": 6, \"context_length\": 24}}\n";

static pnb_train_opts several_opts(const fixture *f, pnb_objective objective)
{
    pnb_train_opts o = pnb_train_opts_of(objective, false), p = pnb_train_opts_of(objective, true);
    bool is_pvse = objective == PNB_OBJECTIVE_PVSE;
    char *config = pnb__format(frozen_config, is_pvse ? 2 : 1, is_pvse ? "false" : "true");
    ASSERT_OK(pnb__write_file(f->config, config, strlen(config), &err));
    pnb__free(config);
    o.loss = p.loss;
    o.train_data = f->train;
    o.model = f->config;
    o.tokenizer_vocab_size = 400;
    o.logs = f->logs;
    o.log_every_n_steps = 1;
    o.augment = pnb_augment_none();
    o.max_steps = N_STEPS;
    o.warmup = 0;
    o.optim.lr = 1e-4; /* rounding must not have grown by the last step */
    o.seed = 7;
    return o;
}

/* As one batch of 8 or as two of 4. */
static void cut_alike(const fixture *f, pnb_train_opts *o, const char *const *terms, size_t n)
{
    char *name[2] = {pnb__format("whole-%s", terms[0]), pnb__format("cut-%s", terms[0])};
    for (int cut = 0; cut < 2; cut++) {
        o->batch_size = cut ? 4 : 8;
        o->accum_freq = cut ? 2 : 1;
        run_of(f, o, name[cut], "loss");
    }
    for (size_t t = 0; t < n; t++) {
        losses whole = read_losses(f, name[0], terms[t]), cut = read_losses(f, name[1], terms[t]);
        assert_true(fabs(whole.of[0]) > 1e-6);
        assert_alike(&whole, &cut, 1e-4, terms[t]);
    }
    pnb__free(name[0]);
    pnb__free(name[1]);
}

static void pvse_of_micro_batches(void **state)
{
    static const char *const terms[] = {"diversity", "mmd", "triplet", "grad_norm"};
    pnb_train_opts o = several_opts(*state, PNB_OBJECTIVE_PVSE);
    cut_alike(*state, &o, terms, PNB_COUNT(terms));
}

/* 2 x 8 x 9 samples of which 128 are drawn: of pairs, so that cutting the step changes none. */
static void drawn_samples_of_micro_batches(void **state)
{
    static const char *const terms[] = {"uniformity", "pcme", "grad_norm"};
    pnb_train_opts o = several_opts(*state, PNB_OBJECTIVE_PCME);
    o.loss.weight[PNB_LOSS_UNIFORMITY] = 10;
    o.loss.n_samples = 9;
    o.batch_size = 8;
    losses exact = run_of(*state, &o, "exact-uniformity", "uniformity");
    o.loss.uniformity_published = true;
    cut_alike(*state, &o, terms, PNB_COUNT(terms));
    losses drawn = read_losses(*state, "cut-uniformity", "uniformity");
    assert_unlike(&exact, &drawn, "all samples or drawn ones");
}

/* Labels of PCME: a step with CutMix is another one and finite. */
static void pcme_takes_mixed_images(void **state)
{
    pnb_train_opts o = several_opts(*state, PNB_OBJECTIVE_PCME);
    o.batch_size = 8;
    o.optim.lr = 0;
    losses plain = run_of(*state, &o, "pcme-plain", "pcme");
    o.mix_share = 0.5;
    o.mix_cutmix = 1;
    losses mixed = run_of(*state, &o, "pcme-mixed", "pcme");
    assert_unlike(&plain, &mixed, "pcme");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_weights),       cmocka_unit_test(mixing_resumes_to_the_bit),
        cmocka_unit_test(mixing_is_drawn),         cmocka_unit_test(labels_follow_their_pairs),
        cmocka_unit_test(mixing_is_refused),       cmocka_unit_test(labels_are_smoothed),
        cmocka_unit_test(pvse_of_micro_batches),   cmocka_unit_test(drawn_samples_of_micro_batches),
        cmocka_unit_test(pcme_takes_mixed_images),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
