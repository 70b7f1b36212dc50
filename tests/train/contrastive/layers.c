/* Groups of layers: every weight of a ProLIP and of a PCME++ model by name, towers without blocks,
 * what is left trainable, and what is refused. */
#include "tests/train/fixture.h"
#include "train/contrastive/contrastive.h"

static const char prolip[] =
    "{\"embed_dim\":8,\"vision_cfg\":{\"image_size\":8,\"patch_size\":4,\"layers\":3,\"width\":8,"
    "\"head_width\":4,\"embed_unc\":true},\"text_cfg\":{\"layers\":2,\"width\":8,\"heads\":2,"
    "\"embed_cls\":true,\"embed_unc\":true,\"no_causal_mask\":true,\"pool_type\":\"last\","
    "\"proj_bias\":true,\"vocab_size\":20,\"context_length\":6}}";

static pnb_model *model_of(const fixture *f, const char *json)
{
    pnb_model *m = NULL;
    ASSERT_OK(pnb_model_init(&m, f->ctx, json, 1, &err));
    ASSERT_OK(pnb__model_make_trainable(m, &err));
    return m;
}

static void test_groups(void **state)
{
    static const struct {
        const char *name;
        int64_t group, n;
    } cases[] = {{"visual.conv1.weight", 0, 5},
                 {"visual.class_embedding", 0, 5},
                 {"visual.positional_embedding", 0, 5},
                 {"visual.ln_pre.weight", 0, 5},
                 {"visual.transformer.resblocks.0.ln_1.weight", 1, 5},
                 {"visual.transformer.resblocks.2.mlp.c_fc.weight", 3, 5},
                 {"visual.ln_post.bias", 3, 5},
                 {"visual.proj", 4, 5},
                 {"visual.unc_embedding", 4, 5},
                 {"visual.uncertainty_proj.weight", 4, 5},
                 {"text.token_embedding.weight", 0, 4},
                 {"text.cls_emb", 0, 4},
                 {"text.transformer.resblocks.1.attn.in_proj_weight", 2, 4},
                 {"text.ln_final.weight", 2, 4},
                 {"text.unc_emb", 3, 4},
                 {"text.text_projection.weight", 3, 4},
                 {"logit_scale", -1, 0}};
    pnb_model *m = model_of(*state, prolip);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        pnb__layer at = pnb__contrastive_layer(m, cases[i].name);
        if (at.group != cases[i].group || at.n_groups != cases[i].n)
            fail_msg("%s is group %lld of %lld", cases[i].name, (long long)at.group,
                     (long long)at.n_groups);
    }
    pnb_model_free(m);
    m = model_of(*state, "pcme-tiny");
    assert_int_equal(pnb__contrastive_layer(m, "visual.fc.weight").group, -1);
    pnb_model_free(m);
}

static size_t n_trainable(pnb_model *m, const char *prefix)
{
    size_t n = 0;
    for (size_t i = 0; i < pnb__model_n_params(m); i++)
        n += pnb__starts_with(pnb__model_param(m, i)->name, prefix) &&
             pnb__model_param(m, i)->trainable;
    return n;
}

static void test_lock(void **state)
{
    pnb_train_opts o = pnb_train_opts_default();
    pnb__contrastive c = {.opts = &o};
    o.lock_image = true;
    for (int64_t n = 0; n <= 5; n++) {
        static const size_t wanted[] = {0, 4, 18, 30, 42, 47};
        c.model = model_of(*state, prolip);
        c.info = pnb_model_get_info(c.model);
        size_t all_text = n_trainable(c.model, "text.");
        o.image_unlocked_groups = n;
        ASSERT_OK(pnb__contrastive_lock(&c, &err));
        assert_int_equal(n_trainable(c.model, "visual."), wanted[n]);
        assert_int_equal(n_trainable(c.model, "text."), all_text);
        assert_int_equal(n_trainable(c.model, "logit"), 1);
        pnb_model_free(c.model);
    }
    c.model = model_of(*state, prolip);
    c.info = pnb_model_get_info(c.model);
    o.image_unlocked_groups = 6;
    ASSERT_FAILS(pnb__contrastive_lock(&c, &err), PNB_ARG, "the tower has 5 groups");
    pnb_model_free(c.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups), cmocka_unit_test(test_lock)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
