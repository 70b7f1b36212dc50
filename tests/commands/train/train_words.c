/* Words of the trainer's command line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "commands/train/train_words.h"

static void test_augment(void **state)
{
    (void)state;
    pnb_augment a = pnb_augment_none();
    assert_false(a.enabled);
    assert_true(pnb__augment_set(&a, "scale=(0.4, 1.0)"));
    assert_true(a.enabled && a.crop);
    assert_true(fabs(a.crop_scale[0] - 0.4) < 1e-12 && fabs(a.crop_scale[1] - 1.0) < 1e-12);
    assert_true(pnb__augment_set(&a, "color_jitter=0.32,0.32,0.32,0.08"));
    assert_true(fabs(a.jitter[3] - 0.08) < 1e-12);
    assert_true(pnb__augment_set(&a, "gray_scale_prob=0.2"));
    assert_true(fabs(a.grey_p - 0.2) < 1e-12);
    assert_int_equal(a.interpolation, 0);
    assert_true(pnb__augment_set(&a, "interpolation=bilinear"));
    assert_int_equal(a.interpolation, PNB_FILTER_BILINEAR + 1);
    assert_true(pnb__augment_set(&a, "re_prob=0.25"));
    assert_true(pnb__augment_set(&a, "re_count=3"));
    assert_true(pnb__augment_set(&a, "re_mode=const") && a.erase_const);
    assert_true(pnb__augment_set(&a, "re_mode=pixel") && !a.erase_const);
    assert_true(fabs(a.erase_p - 0.25) < 1e-12);
    assert_int_equal(a.erase_count, 3);
    assert_true(pnb__augment_set(&a, "crop_scales=1,0.875,0.75,0.66"));
    assert_true(a.n_crop_scales == 4 && a.crop && fabs(a.crop_scales[3] - 0.66) < 1e-12);
    assert_true(pnb__augment_set(&a, "crop_scales=(0.5)"));
    assert_true(a.n_crop_scales == 1 && a.crop_scales[0] == 0.5 && a.crop_scales[1] == 0);
    assert_true(
        pnb__augment_set(&a, "scale=0.5,1")); /* another kind of crop: the last one counts */
    assert_int_equal(a.n_crop_scales, 0);
}

static void test_augment_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"scale",
                                      "scale=",
                                      "scale=1",
                                      "scale=1,2,3",
                                      "nothing=1",
                                      "flip=a",
                                      "flip=0.5x",
                                      "=1",
                                      "flip=1,2",
                                      "color_jitter=1,2",
                                      "interpolation=cubic",
                                      "interpolation=",
                                      "re_count=0",
                                      "re_count=1.5",
                                      "re_mode=rand",
                                      "re_prob=x",
                                      "crop_scales=",
                                      "crop_scales=1,",
                                      "crop_scales=a",
                                      "crop_scales=1,1,1,1,1,1,1,1,1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pnb_augment a = pnb_augment_none();
        assert_false(pnb__augment_set(&a, bad[i]));
        assert_false(a.enabled);
    }
}

static void test_words(void **state)
{
    (void)state;
    char separator = 0;
    assert_true(pnb__separator("tab", &separator) && separator == '\t');
    assert_true(pnb__separator(";", &separator) && separator == ';');
    assert_false(pnb__separator(";;", &separator));
    assert_false(pnb__separator("", &separator));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_augment),
        cmocka_unit_test(test_augment_refused),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
