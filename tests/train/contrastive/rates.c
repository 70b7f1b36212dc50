/* Which share of the learning rate each weight takes: numbers by hand, and the published recipe. */
#include <math.h>

#include "tests/train/fixture.h"
#include "train/contrastive/contrastive.h"

/* Two blocks are the tower's own, U of them stand once more for the log-variance. */
static const char config[] =
    "{\"embed_dim\":8,\"vision_cfg\":{\"image_size\":8,\"patch_size\":4,\"layers\":3,\"width\":8,"
    "\"head_width\":4,\"unc_layers\":2},\"text_cfg\":{\"layers\":2,\"width\":8,\"heads\":2,"
    "\"unc_layers\":1,\"vocab_size\":20,\"context_length\":6}}";

static pnb_model *model_of(const fixture *f, const char *json)
{
    pnb_model *m = NULL;
    ASSERT_OK(pnb_model_init(&m, f->ctx, json, 1, &err));
    return m;
}

static void takes(const pnb__contrastive *c, const char *name, double early, double rate)
{
    const pnb__param *p = pnb__model_find_param(c->model, name);
    if (p == NULL)
        fail_msg("there is no %s", name);
    const pnb__optim_group g = pnb__contrastive_group(c, p);
    assert_int_equal(g.from_step, c->opts->head_epochs * c->steps_per_epoch);
    if (!(fabs(g.early - early) <= 1e-15 && fabs(g.rate - rate) <= 1e-15))
        fail_msg("%s takes %.17g, then %.17g; wanted %g and %g", name, g.early, g.rate, early,
                 rate);
}

/* Block i of L takes decay^(L - i), those of the log-variance counted by themselves. */
static void test_shares(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pnb_train_opts_of(PNB_OBJECTIVE_PCMEPP, true);
    pnb__contrastive c = {.opts = &o, .model = model_of(f, config), .steps_per_epoch = 7};
    c.info = pnb_model_get_info(c.model);
    ASSERT_OK(pnb__contrastive_check_rates(&c, &err));
    /* the image tower stands still for two epochs */
    takes(&c, "visual.conv1.weight", 0, 0.01);
    takes(&c, "visual.ln_post.bias", 0, 0.01);
    takes(&c, "visual.transformer.resblocks.0.ln_1.weight", 0, 0.01 * 0.343);
    takes(&c, "visual.transformer.resblocks.2.mlp.c_fc.weight", 0, 0.01 * 0.7);
    takes(&c, "visual.uncertainty_transformer.resblocks.0.ln_1.bias", 0.0049, 0.0049);
    takes(&c, "visual.proj", 1, 1);
    takes(&c, "visual.uncertainty_proj", 1, 1);
    takes(&c, "text.token_embedding.weight", 0.1, 0.1);
    takes(&c, "text.transformer.resblocks.0.attn.in_proj_weight", 0.049, 0.049);
    takes(&c, "text.uncertainty_transformer.resblocks.0.ln_2.bias", 0.07, 0.07);
    takes(&c, "text.uncertainty_text_projection", 1, 1);
    takes(&c, "logit_scale", 1, 1);
    o.head_epochs = 0;
    takes(&c, "visual.conv1.weight", 0.01, 0.01);
    o.head_epochs = 3;
    o.trunk_lr_ratio = 0.5;
    takes(&c, "visual.conv1.weight", 0, 0.005);
    takes(&c, "visual.proj", 1, 0.5);
    pnb_model_free(c.model);
}

/* A model without heads of its own takes the share whole, one without blocks has none to decay. */
static void test_other_families(void **state)
{
    const fixture *f = *state;
    pnb_train_opts o = pnb_train_opts_default();
    pnb__contrastive c = {.opts = &o, .model = model_of(f, micro_config), .steps_per_epoch = 1};
    c.info = pnb_model_get_info(c.model);
    takes(&c, "visual.transformer.resblocks.0.ln_1.weight", 1, 1);
    o.image_lr_ratio = 0.25;
    takes(&c, "visual.ln_post.weight", 0.25, 0.25);
    takes(&c, "text.ln_final.weight", 1, 1);
    o.head_lr_ratio = 10;
    takes(&c, "visual.ln_post.weight", 0.25, 0.25);
    takes(&c, "visual.proj", 2.5, 2.5);
    takes(&c, "text.text_projection.weight", 10, 10);
    takes(&c, "logit_scale", 1, 1);
    o.head_lr_ratio = 1;
    pnb_model_free(c.model);
    c.model = model_of(f, "pcme-tiny");
    c.info = pnb_model_get_info(c.model);
    takes(&c, "visual.cnn.conv1.weight", 0.25, 0.25);
    takes(&c, "visual.fc.weight", 1, 1);
    takes(&c, "text.rnn.weight_ih_l0", 1, 1);
    ASSERT_OK(pnb__contrastive_check_rates(&c, &err));
    o.layer_lr_decay = 0.5;
    ASSERT_FAILS(pnb__contrastive_check_rates(&c, &err), PNB_ARG, "has no blocks");
    pnb_model_free(c.model);
}

/* configs/pcmepp.yaml of the released code. */
static void test_published(void **state)
{
    (void)state;
    const pnb_train_opts o = pnb_train_opts_of(PNB_OBJECTIVE_PCMEPP, true);
    assert_int_equal(o.optim.kind, PNB_OPTIM_ADAMP);
    assert_true(o.optim.lr == 5e-4 && o.optim.weight_decay == 1e-4 && o.optim.grad_clip_norm == 2);
    assert_int_equal(o.lr_scheduler, PNB_SCHEDULE_MULTISTEP);
    assert_true(o.lr_milestones[0] == 15 && o.lr_milestones[1] == 0 && o.lr_gamma == 0.1);
    assert_true(o.epochs == 25 && o.batch_size == 128 && o.swa_start == 17);
    assert_true(o.mix_share == 0.25 && o.label_smoothing == 1e-4);
    assert_true(o.augment.crop_scale[0] == 0.36 && o.augment.flip == 0.5);
}

/* What a run says before it has a folder. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t at[PNB_MAX_MILESTONES];
        double gamma;
        const char *words;
    } cases[] = {{{0}, 0.1, "names 1 to 4 epochs"},
                 {{5, 5}, 0.1, "later than the one before"},
                 {{5, 0, 9}, 0.1, "later than the one before"},
                 {{-1}, 0.1, "names 1 to 4 epochs"},
                 {{5}, 0, "lr-gamma is 0"},
                 {{5}, 1.5, "lr-gamma is 1.5"}};
    pnb_train_opts o = pnb_train_opts_default();
    o.train_data = "x";
    o.lr_scheduler = PNB_SCHEDULE_MULTISTEP;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        memcpy(o.lr_milestones, cases[i].at, sizeof o.lr_milestones);
        o.lr_gamma = cases[i].gamma;
        ASSERT_FAILS(pnb__contrastive_check_opts(&o, &err), PNB_ARG, cases[i].words);
    }
    o.lr_scheduler = PNB_SCHEDULE_COSINE; /* and not read by others */
    ASSERT_OK(pnb__contrastive_check_opts(&o, &err));
    o.text_lr_ratio = 1.5;
    ASSERT_FAILS(pnb__contrastive_check_opts(&o, &err), PNB_ARG, "text-lr-ratio is 1.5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares), cmocka_unit_test(test_other_families),
        cmocka_unit_test(test_published), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
