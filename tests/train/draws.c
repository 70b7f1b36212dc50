/* What a run draws, and from what: the order of samples from the seed, captions from the epoch,
 * masks from the micro-batch. Runs of rate 0 start from one model, so that a loss is a function of
 * what was drawn and of nothing else. */
#include <math.h>

#include "tests/train/results.h"

/* The model every run here starts from; made once. */
static char *start_model(const fixture *f)
{
    char *dir = pnb__format("%s/start/checkpoints/latest", f->logs);
    pnb_train_opts o = fixture_opts(f, "start");
    pnb_train_result r;
    o.max_steps = 1;
    if (!pnb__path_is_dir(dir))
        ASSERT_OK(pnb_train(f->ctx, &o, &r, &err));
    return dir;
}

/* Nothing moves, nothing is augmented, no mask, the first caption of each picture. */
static pnb_train_opts still_opts(const fixture *f, const char *name, const char *model)
{
    pnb_train_opts o = fixture_opts(f, name);
    o.model = model;
    o.optim.lr = 0;
    o.augment = pnb_augment_none();
    o.texts = PNB_TEXT_FIRST;
    o.template_share = 0;
    o.loss.weight[PNB_LOSS_IMG_INCLUSION] = o.loss.weight[PNB_LOSS_TXT_INCLUSION] = 0;
    o.train_num_samples = 0;
    return o;
}

static losses losses_of(const fixture *f, const pnb_train_opts *o, const char *term)
{
    pnb_train_result r;
    ASSERT_OK(pnb_train(f->ctx, o, &r, &err));
    return read_losses(f, o->name, term);
}

static void test_order_of_samples_is_drawn_from_the_seed(void **state)
{
    const fixture *f = *state;
    char *model = start_model(f);
    pnb_train_opts o = still_opts(f, "order1", model);
    o.max_steps = 3;
    losses one = losses_of(f, &o, "ppcl");
    o.name = "order2";
    losses again = losses_of(f, &o, "ppcl");
    o.name = "order3";
    o.seed++;
    losses other = losses_of(f, &o, "ppcl");
    for (size_t i = 0; i < 3; i++) {
        assert_true(one.of[i] == again.of[i]);
        assert_true(fabs(one.of[i] - other.of[i]) > 1e-6);
    }
    assert_true(fabs(one.of[0] - one.of[1]) > 1e-6);
    pnb__free(model);
}

/* A batch of the whole set holds the same pictures in every epoch: only captions can differ. */
static void test_texts_are_drawn_anew_in_every_epoch(void **state)
{
    const fixture *f = *state;
    char *model = start_model(f);
    pnb_dataset *train = NULL;
    ASSERT_OK(pnb_dataset_open(&train, f->train, NULL, &err));
    pnb_train_opts o = still_opts(f, "first", model);
    o.batch_size = pnb_dataset_size(train);
    o.max_steps = 3;
    pnb_dataset_free(train);
    losses fixed = losses_of(f, &o, "ppcl");
    o.name = "level";
    o.texts = PNB_TEXT_LEVEL;
    losses drawn = losses_of(f, &o, "ppcl");
    for (size_t i = 1; i < 3; i++) {
        if (!(fabs(fixed.of[i] - fixed.of[0]) <= 2e-5 * fixed.of[0]))
            fail_msg("the same pairs: %.9g and %.9g", fixed.of[0], fixed.of[i]);
        if (!(fabs(drawn.of[i] - drawn.of[i - 1]) > 1e-4 * drawn.of[0]))
            fail_msg("captions of epoch %zu: %.9g after %.9g", i, drawn.of[i], drawn.of[i - 1]);
    }
    pnb__free(model);
}

/* All captions are alike, so a micro-batch's text term says which mask it got: the two of one step
 * have those that two steps of half the size have, one after the other. */
static void test_every_micro_batch_has_its_own_text_mask(void **state)
{
    const fixture *f = *state;
    char *model = start_model(f);
    pnb_train_opts o = still_opts(f, "steps", model);
    o.train_data = NULL;
    o.dataset.kind = PNB_DATASET_SYNTHETIC;
    o.train_num_samples = 16;
    o.batch_size = 4;
    o.drop_ratio = 1;
    o.drop_prob = 0.5;
    o.loss.weight[PNB_LOSS_TXT_INCLUSION] = 1;
    o.loss.inclusion_scale = 10;
    o.max_steps = 4;
    losses single = losses_of(f, &o, "txt_inclusion");
    o.name = "micros";
    o.accum_freq = 2;
    o.max_steps = 2;
    losses both = losses_of(f, &o, "txt_inclusion");
    assert_true(fabs(single.of[0] - single.of[1]) > 1e-4);
    for (size_t i = 0; i < 2; i++) {
        double want = 0.5 * (single.of[2 * i] + single.of[2 * i + 1]);
        if (!(fabs(both.of[i] - want) <= 2e-5 * want))
            fail_msg("step %zu: %.9g, its micro-batches %.9g and %.9g", i, both.of[i],
                     single.of[2 * i], single.of[2 * i + 1]);
    }
    pnb__free(model);
}

/* What a masked copy loses is what was asked for: nothing masked leaves each pair log 2, and two
 * other shares are neither that nor the same. */
static void test_masks_take_the_shares_asked_for(void **state)
{
    const fixture *f = *state;
    static const struct {
        const char *name, *term;
        double drop_prob, mask_keep;
    } runs[] = {
        {"whole_text", "txt_inclusion", 0, 0.25},   {"some_text", "txt_inclusion", 0.3, 0.25},
        {"most_text", "txt_inclusion", 0.9, 0.25},  {"whole_image", "img_inclusion", 0.75, 1},
        {"some_image", "img_inclusion", 0.75, 0.6}, {"least_image", "img_inclusion", 0.75, 0.1}};
    double loss[PNB_COUNT(runs)];
    char *model = start_model(f);
    for (size_t i = 0; i < PNB_COUNT(runs); i++) {
        pnb_train_opts o = still_opts(f, runs[i].name, model);
        o.drop_ratio = 1;
        o.drop_prob = runs[i].drop_prob;
        o.mask_keep = runs[i].mask_keep;
        o.loss.weight[PNB_LOSS_IMG_INCLUSION] = o.loss.weight[PNB_LOSS_TXT_INCLUSION] = 1;
        o.loss.inclusion_scale = 100;
        o.max_steps = 1;
        loss[i] = losses_of(f, &o, runs[i].term).of[0];
    }
    for (size_t i = 0; i < PNB_COUNT(runs); i += 3)
        if (!(fabs(loss[i] - log(2)) < 1e-4) || fabs(loss[i + 1] - log(2)) < 1e-3 ||
            fabs(loss[i + 2] - loss[i + 1]) < 1e-3)
            fail_msg("%s: %.6f with nothing masked, then %.6f and %.6f", runs[i].term, loss[i],
                     loss[i + 1], loss[i + 2]);
    pnb__free(model);
}

/* The first txt_inclusion of a run whose captions lose three words of four. */
static double masked_loss(const fixture *f, const char *name, const char *model, double drop_ratio,
                          int replace_token)
{
    pnb_train_opts o = still_opts(f, name, model);
    o.drop_ratio = drop_ratio;
    o.replace_token = replace_token;
    o.text_mask = PNB_TEXT_MASK_REPLACE;
    o.loss.weight[PNB_LOSS_TXT_INCLUSION] = 1;
    o.loss.inclusion_scale = 100;
    o.max_steps = 1;
    return losses_of(f, &o, "txt_inclusion").of[0];
}

static void test_masks_take_the_rows_and_token_asked_for(void **state)
{
    const fixture *f = *state;
    char *model = start_model(f);
    double own = masked_loss(f, "own_token", model, 1, -1);
    double other = masked_loss(f, "other_token", model, 1, 5);
    double few = masked_loss(f, "few_rows", model, 0.25, -1);
    if (!(fabs(own - other) > 1e-3) || !(fabs(own - few) > 1e-3))
        fail_msg("%.6f, with another token %.6f, with a quarter of the rows %.6f", own, other, few);
    pnb__free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_samples_is_drawn_from_the_seed),
        cmocka_unit_test(test_texts_are_drawn_anew_in_every_epoch),
        cmocka_unit_test(test_every_micro_batch_has_its_own_text_mask),
        cmocka_unit_test(test_masks_take_the_shares_asked_for),
        cmocka_unit_test(test_masks_take_the_rows_and_token_asked_for),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
