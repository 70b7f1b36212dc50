/* The COCO table: folds of COCO 1K by hand, other truths beside them, sets and their scores alike.
 * Its intervals are coco.c's. */
#include "penumbra/coco.h"
#include "tests/eval/expected.h"

enum { IMAGES = 10, TEXTS = 50 };

static void i2t_row(void *user, size_t image, double *score)
{
    for (size_t t = 0; t < TEXTS; t++)
        score[t] = ((const double *)user)[image * TEXTS + t];
}

static void t2i_row(void *user, size_t text, double *score)
{
    for (size_t i = 0; i < IMAGES; i++)
        score[i] = ((const double *)user)[i * TEXTS + text];
}

static void coco_table(void **state)
{
    (void)state;
    double score[IMAGES * TEXTS], hits = 0.0;
    int64_t pairs[2 * TEXTS];
    int32_t image_fold[IMAGES], text_fold[TEXTS];
    size_t order[TEXTS];
    pnb_truth *t2i = NULL, *i2t = NULL;
    pnb_coco_figures f;
    pnb__rng rng;
    pnb__rng_init(&rng, 21, 0);
    for (size_t t = 0; t < TEXTS; t++) {
        pairs[2 * t] = (int64_t)t;
        pairs[2 * t + 1] = (int64_t)(t % IMAGES); /* captions of a picture are scattered */
        order[t] = (t % 5) * 10 + t / 5;          /* so that this order gathers them */
    }
    for (size_t i = 0; i < IMAGES * TEXTS; i++)
        score[i] = pnb__rng_uniform(&rng) + (i % IMAGES == i / TEXTS ? 0.5 : 0.0);
    assert_ok(pnb_truth_create_pairs(&t2i, TEXTS, IMAGES, pairs, TEXTS, err));
    assert_ok(pnb_truth_transpose(&i2t, t2i, err));
    assert_fails(pnb_coco_folds(t2i, NULL, 0, image_fold, text_fold, err), PNB_ARG, "in folds");
    assert_ok(pnb_coco_folds(t2i, order, TEXTS, image_fold, text_fold, err));
    for (size_t i = 0; i < IMAGES; i++)
        assert_int_equal(image_fold[i], i / 2);
    const pnb_coco_rows rows = {i2t_row, t2i_row, score};
    pnb_coco_truth truth = {
        .original_i2t = i2t, .original_t2i = t2i, .image_fold = image_fold, .text_fold = text_fold};
    assert_ok(pnb_coco_from_rows(NULL, &rows, &truth, &f, err));
    /* a fold has two pictures: caption t is right when its own scores above the other */
    for (size_t t = 0; t < TEXTS; t++) {
        size_t own = t % IMAGES, other = own ^ 1;
        hits += score[own * TEXTS + t] > score[other * TEXTS + t];
    }
    assert_near(f.coco_1k_r[0].t2i, hits / TEXTS, 1e-14, 0);
    assert_near(f.coco_1k_r[1].t2i, 1.0, 1e-14, 0);
    assert_true(f.coco_5k_r[0].t2i < f.coco_1k_r[0].t2i && isnan(f.cxc_r[0].i2t));
    truth.cxc_i2t = truth.eccv_i2t = i2t;
    truth.cxc_t2i = truth.eccv_t2i = t2i;
    assert_ok(pnb_coco_from_rows(NULL, &rows, &truth, &f, err));
    assert_true(f.cxc_r[1].i2t == f.coco_5k_r[1].i2t && f.eccv_r[0].t2i == f.coco_5k_r[0].t2i);
    assert_near(f.eccv_rprecision.t2i, f.coco_5k_r[0].t2i, 1e-14, 0); /* R is 1 */
    assert_near(f.eccv_map_at_r.t2i, f.coco_5k_r[0].t2i, 1e-14, 0);
    truth.cxc_t2i = NULL;
    assert_fails(pnb_coco_from_rows(NULL, &rows, &truth, &f, err), PNB_ARG, "one direction");
    pnb_truth_free(t2i);
    pnb_truth_free(i2t);
}

/* Sets and their scores give one table. */
static void coco_from_sets(void **state)
{
    (void)state;
    gaussians images = random_gaussians(IMAGES, 6, -4, -1, 1);
    gaussians texts = random_gaussians(TEXTS, 6, -4, -1, 2);
    double score[IMAGES * TEXTS];
    int64_t pairs[2 * TEXTS];
    int32_t image_fold[IMAGES], text_fold[TEXTS];
    pnb_truth *t2i = NULL, *i2t = NULL;
    pnb_coco_figures a, b;
    for (size_t t = 0; t < TEXTS; t++) {
        pairs[2 * t] = (int64_t)t;
        pairs[2 * t + 1] = (int64_t)(t / 5);
    }
    assert_ok(pnb_truth_create_pairs(&t2i, TEXTS, IMAGES, pairs, TEXTS, err));
    assert_ok(pnb_truth_transpose(&i2t, t2i, err));
    assert_ok(pnb_coco_folds(t2i, NULL, 0, image_fold, text_fold, err));
    assert_ok(pnb_measure_block(PNB_MEASURE_CSD, &images.view, &texts.view, NULL, score, err));
    for (size_t i = 0; i < IMAGES * TEXTS; i++)
        score[i] = pnb_measure_score(PNB_MEASURE_CSD, score[i]);
    const pnb_coco_rows rows = {i2t_row, t2i_row, score};
    const pnb_coco_truth truth = {
        .original_i2t = i2t, .original_t2i = t2i, .image_fold = image_fold, .text_fold = text_fold};
    assert_ok(pnb_coco_from_rows(NULL, &rows, &truth, &a, err));
    assert_ok(pnb_coco_compute(NULL, &images.view, &texts.view, &truth, NULL, &b, err));
    for (size_t k = 0; k < 3; k++) {
        assert_true(a.coco_5k_r[k].i2t == b.coco_5k_r[k].i2t);
        assert_true(a.coco_1k_r[k].t2i == b.coco_1k_r[k].t2i);
    }
    pnb_truth_free(t2i);
    pnb_truth_free(i2t);
    free_gaussians(&images);
    free_gaussians(&texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coco_table),
        cmocka_unit_test(coco_from_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
