/* Options that no training could have are refused before there is a folder, each by its name. */
#include <math.h>

#include "tests/train/fixture.h"
#include "train/contrastive/contrastive.h"

/* One option of an otherwise fine run is set wrongly. */
#define REFUSED(change, part)                                                                      \
    do {                                                                                           \
        pnb_train_opts o = pnb_train_opts_default();                                               \
        o.train_data = "somewhere";                                                                \
        ASSERT_OK(pnb__contrastive_check_opts(&o, &err));                                          \
        change;                                                                                    \
        ASSERT_FAILS(pnb__contrastive_check_opts(&o, &err), PNB_ARG, part);                        \
    } while (0)

static void test_refused_by_name(void **state)
{
    (void)state;
    REFUSED(o.train_data = NULL, "--train-data");
    REFUSED(o.logs = NULL, "logs is not set");
    REFUSED(o.workers = -1, "workers -1");
    REFUSED(o.drop_ratio = 1.5, "drop-ratio");
    REFUSED(o.drop_prob = NAN, "drop-prob");
    REFUSED(o.mask_keep = 0, "mask-keep");
    REFUSED(o.mix_alpha = 1, "--mix-alpha");
    REFUSED(o.label_smoothing = 0.5, "label-smoothing");
    REFUSED(o.word_drop_removes = true, "--word-drop");
    REFUSED(o.image_unlocked_groups = 1, "--lock-image");
    REFUSED(o.head_lr_ratio = -1, "head-lr-ratio");
    REFUSED(o.save_best_unc = true, "--val-data");
    REFUSED(o.texts = PNB_TEXT_ALL_LEVELS, "one caption");
    REFUSED(o.lora_alpha = 2, "give --lora-rank");
    REFUSED(o.lora_text = false, "give --lora-rank");
    REFUSED((o.lora_rank = 2, o.ema_decay = 0.5), "--ema-decay");
    REFUSED((o.lora_rank = 2, o.lora_image = o.lora_text = false), "no tower");
    REFUSED((o.lora_rank = 2, o.reinit_unc = true), "--reinit-unc");
    REFUSED(o.best_by = "zeroshot_top1", "measures no such figure");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
