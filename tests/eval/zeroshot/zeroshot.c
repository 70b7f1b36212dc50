/* Predictions and figures: against a plain double loop, hand cases, threads, bad input. */
#include "penumbra/classify.h"
#include "tests/prob/support.h"

enum { IMAGES = 150, CLASSES = 7, DIM = 12 };

static int32_t nearest(const gaussians *images, const gaussians *classes, size_t i,
                       pnb_measure measure, double *score)
{
    int32_t best = -1;
    for (size_t c = 0; c < classes->view.n; c++) {
        double value = pnb_measure_pair(measure, &images->view, i, &classes->view, c, NULL);
        double s = pnb_measure_score(measure, value);
        score[c] = s;
        if (best < 0 || s > score[best])
            best = (int32_t)c;
    }
    return best;
}

static void expect_measure(pnb_measure measure, double scale)
{
    gaussians images = random_gaussians(IMAGES, DIM, -4, -1, 1);
    gaussians classes = random_gaussians(CLASSES, DIM, -4, -1, 2);
    int32_t label[IMAGES];
    double *all = malloc(IMAGES * CLASSES * sizeof *all);
    for (size_t i = 0; i < IMAGES; i++)
        label[i] = (int32_t)(i % CLASSES);
    const pnb_classify_job job = {.images = &images.view,
                                  .classes = &classes.view,
                                  .labels = label,
                                  .measure = measure,
                                  .scale = scale,
                                  .k = 5,
                                  .all_scores = all};
    pnb_predictions p;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    for (size_t i = 0; i < IMAGES; i++) {
        double score[CLASSES], sum = 0;
        int32_t best = nearest(&images, &classes, i, measure, score);
        assert_int_equal(p.top[i * 5], best);
        for (size_t c = 0; c < CLASSES; c++) {
            sum += exp(scale * (score[c] - score[best]));
            assert_near(all[i * CLASSES + c], score[c], 1e-9, 1e-9);
        }
        assert_near(p.probability[i * 5], 1 / sum, 1e-9, 1e-9);
        assert_near(p.log_p_label[i], scale * (score[label[i]] - score[best]) - log(sum), 1e-8,
                    1e-8);
        for (size_t j = 1; j < 5; j++)
            assert_true(p.score[i * 5 + j] <= p.score[i * 5 + j - 1]);
        assert_true(isnan(p.log_odds_dummy[i]));
    }
    pnb_predictions_reset(&p);
    free(all);
    free_gaussians(&images);
    free_gaussians(&classes);
}

static void test_measures(void **state)
{
    (void)state;
    expect_measure(PNB_MEASURE_CSD, 100);
    expect_measure(PNB_MEASURE_MEAN, 100);
    expect_measure(PNB_MEASURE_W2, 10);
    expect_measure(PNB_MEASURE_KL, 0.1);
    expect_measure(PNB_MEASURE_ELK, 1);
    expect_measure(PNB_MEASURE_INCLUSION, 0.1);
}

/* A match probability enters by its logarithm: at scale 1 classes share it as it is. */
static void test_match_probability(void **state)
{
    enum { FEW = 20 }; /* one block: draws go by the place in it */
    gaussians images = random_gaussians(FEW, DIM, -4, -1, 1);
    gaussians classes = random_gaussians(CLASSES, DIM, -4, -1, 2);
    pnb_measure_opts opts = pnb_measure_opts_default();
    const pnb_classify_job job = {.images = &images.view,
                                  .classes = &classes.view,
                                  .measure = PNB_MEASURE_MATCH_PROB,
                                  .opts = &opts,
                                  .scale = 1,
                                  .k = CLASSES};
    double p[FEW * CLASSES];
    pnb_predictions found;
    (void)state;
    opts.n_samples = 3;
    opts.match_a = 4;
    opts.match_b = 2;
    assert_ok(
        pnb_measure_block(PNB_MEASURE_MATCH_PROB, &images.view, &classes.view, &opts, p, err));
    assert_ok(pnb_classify(NULL, &job, &found, err));
    for (size_t i = 0; i < FEW; i++) {
        double sum = 0;
        for (size_t c = 0; c < CLASSES; c++)
            sum += p[i * CLASSES + c];
        for (size_t c = 0; c < CLASSES; c++) {
            double of_class = p[i * CLASSES + (size_t)found.top[i * CLASSES + c]];
            assert_near(found.probability[i * CLASSES + c], of_class / sum, 1e-12, 1e-9);
            assert_near(found.score[i * CLASSES + c], log(of_class), 1e-9, 1e-9);
        }
    }
    pnb_predictions_reset(&found);
    free_gaussians(&images);
    free_gaussians(&classes);
}

static void expect_best(const pnb_rows *images, const pnb_rows *classes)
{
    const pnb_classify_job job = {
        .images = images, .classes = classes, .measure = PNB_MEASURE_VMF_EXACT, .scale = 1, .k = 1};
    pnb_predictions p;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    for (size_t i = 0; i < images->n; i++) {
        double best = -INFINITY;
        for (size_t c = 0; c < classes->n; c++)
            best = fmax(best, pnb_measure_pair(PNB_MEASURE_VMF_EXACT, images, i, classes, c, NULL));
        assert_near(p.score[i], best, 1e-9, 1e-9);
    }
    pnb_predictions_reset(&p);
}

/* vMF on either side against points, in every block of pictures. */
static void test_sphere(void **state)
{
    (void)state;
    gaussians images = random_gaussians(IMAGES, DIM, -4, -1, 1);
    gaussians classes = random_gaussians(CLASSES, DIM, -4, -1, 2);
    float kappa[IMAGES];
    for (size_t i = 0; i < IMAGES; i++)
        kappa[i] = 5 + 10 * (float)(i % 17);
    pnb_rows a = {.n = IMAGES, .dim = DIM, .mean = images.mean};
    pnb_rows b = {.n = CLASSES, .dim = DIM, .mean = classes.mean, .kappa = kappa};
    expect_best(&a, &b);
    a.kappa = kappa;
    b.kappa = NULL;
    expect_best(&a, &b);
    free_gaussians(&images);
    free_gaussians(&classes);
}

static void test_threads(void **state)
{
    (void)state;
    gaussians images = random_gaussians(IMAGES, DIM, -4, -1, 1);
    gaussians classes = random_gaussians(CLASSES, DIM, -4, -1, 2);
    pnb_predictions one, three;
    pnb_ctx *ctx;
    assert_ok(pnb_ctx_create(&ctx, &(pnb_ctx_opts){.n_threads = 3}, err));
    const pnb_classify_job job = {.images = &images.view,
                                  .classes = &classes.view,
                                  .dummies = &classes.view,
                                  .measure = PNB_MEASURE_AVG_L2,
                                  .scale = 10,
                                  .k = 2};
    assert_ok(pnb_classify(NULL, &job, &one, err));
    assert_ok(pnb_classify(ctx, &job, &three, err));
    assert_memory_equal(one.score, three.score, IMAGES * 2 * sizeof *one.score);
    for (size_t i = 0; i < IMAGES; i++) /* the dummies are the classes */
        assert_near(one.log_odds_dummy[i], 0, 1e-12, 0);
    pnb_predictions_reset(&one);
    pnb_predictions_reset(&three);
    pnb_ctx_free(ctx);
    free_gaussians(&images);
    free_gaussians(&classes);
}

/* Six classes on axes, pictures exactly on them; label 5 has no picture, picture 4 has no label. */
/* Many pictures are taken in larger blocks: the same bits as a few at a time, whatever the threads.
 * Classes that are equal have equal scores at every place, and the lower one wins. */
static void expect_equal_classes(pnb_measure measure, const pnb_rows *images,
                                 const pnb_rows *classes, const size_t equal[3])
{
    size_t n = images->n, k = classes->n, step = 37;
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts two = pnb_ctx_opts_default();
    pnb_predictions p;
    double *all = malloc(n * k * sizeof *all), *part = malloc(step * k * sizeof *part);
    assert_true(all != NULL && part != NULL);
    two.n_threads = 2;
    assert_ok(pnb_ctx_create(&ctx, &two, err));
    pnb_classify_job job = {.images = images,
                            .classes = classes,
                            .measure = measure,
                            .scale = 3,
                            .k = 1,
                            .all_scores = all};
    assert_ok(pnb_classify(ctx, &job, &p, err));
    size_t n_won = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t e = 1; e < 3; e++) {
            assert_memory_equal(&all[i * k + equal[e]], &all[i * k + equal[0]], sizeof *all);
            assert_int_not_equal(p.top[i], equal[e]);
        }
        n_won += p.top[i] == (int32_t)equal[0];
    }
    assert_true(n_won > 0);
    pnb_predictions_reset(&p);
    for (size_t begin = 0; begin < n; begin += step) {
        const pnb_rows some = pnb_rows_slice(images, begin, PNB_MIN(step, n - begin));
        job.images = &some;
        job.all_scores = part;
        assert_ok(pnb_classify(NULL, &job, &p, err));
        assert_memory_equal(part, all + begin * k, some.n * k * sizeof *part);
        pnb_predictions_reset(&p);
    }
    free(all);
    free(part);
    pnb_ctx_free(ctx);
}

static void test_equal_classes(void **state)
{
    (void)state;
    enum { MANY = 4500, KINDS = 39 };
    const size_t equal[3] = {2, 31, 38};
    gaussians images = random_gaussians(MANY, 13, -4, -1, 1);
    gaussians classes = random_gaussians(KINDS, 13, -4, -1, 2);
    for (size_t e = 1; e < 3; e++) {
        memcpy(classes.mean + equal[e] * 13, classes.mean + equal[0] * 13, 13 * sizeof(float));
        memcpy(classes.log_var + equal[e] * 13, classes.log_var + equal[0] * 13,
               13 * sizeof(float));
    }
    const pnb_measure measures[] = {PNB_MEASURE_CSD, PNB_MEASURE_MEAN, PNB_MEASURE_W2,
                                    PNB_MEASURE_ELK};
    for (size_t m = 0; m < PNB_COUNT(measures); m++)
        expect_equal_classes(measures[m], &images.view, &classes.view, equal);
    float kappa[MANY];
    for (size_t i = 0; i < MANY; i++)
        kappa[i] = 5.0f + (float)(i % 10);
    pnb_rows z = {.n = MANY, .dim = 13, .mean = images.mean, .kappa = kappa};
    const pnb_rows points = {.n = KINDS, .dim = 13, .mean = classes.mean};
    expect_equal_classes(PNB_MEASURE_VMF, &z, &points, equal);
    z.is_power = true;
    expect_equal_classes(PNB_MEASURE_POWER_SPHERICAL, &z, &points, equal);
    free_gaussians(&images);
    free_gaussians(&classes);
}

static void test_figures(void **state)
{
    (void)state;
    float axis[6 * 6] = {0}, mean[5 * 6] = {0};
    const int at[] = {0, 1, 1, 3, 2};
    const int32_t label[] = {0, 1, 4, 3, -1};
    pnb_classification c;
    pnb_predictions p;
    for (size_t i = 0; i < 6; i++)
        axis[i * 7] = 1;
    for (size_t i = 0; i < 5; i++)
        mean[i * 6 + (size_t)at[i]] = 1;
    const pnb_gaussians images = {.n = 5, .dim = 6, .mean = mean},
                        classes = {.n = 6, .dim = 6, .mean = axis};
    pnb_classify_job job = {.images = &images,
                            .classes = &classes,
                            .labels = label,
                            .measure = PNB_MEASURE_MEAN,
                            .scale = 1,
                            .k = 5};
    assert_ok(pnb_classify(NULL, &job, &p, err));
    assert_ok(pnb_classification_compute(&p, label, 10, &c, err));
    double e = exp(1), hit = e / (e + 5), miss = 1 / (e + 5);
    assert_int_equal(c.n, 4);
    assert_int_equal(c.n_unknown, 1);
    assert_int_equal(c.n_present, 4);
    assert_near(c.acc1, .75, 1e-15, 0);
    /* picture 2: class 1 first, then the ties 0, 2, 3, 4 in order: class 4 is fifth */
    static const int32_t order[] = {1, 0, 2, 3, 4};
    assert_memory_equal(p.top + 2 * 5, order, sizeof order);
    assert_near(c.acc5, 1, 1e-15, 0);
    assert_near(c.mean_per_class_recall, .75, 1e-15, 0);
    assert_near(c.nll, -(3 * log(hit) + log(miss)) / 4, 1e-12, 0);
    assert_near(c.ece, .75 - hit, 1e-12, 0);
    assert_int_equal(c.confusion[4 * 6 + 1], 1);
    assert_int_equal(c.confusion[1 * 6 + 1], 1);
    assert_near(c.classes[1].precision, .5, 1e-15, 0);
    assert_near(c.classes[4].p_label, miss, 1e-12, 0);
    assert_true(isnan(c.classes[5].recall) && isnan(c.classes[2].precision));
    pnb_classification_reset(&c);
    pnb_predictions_reset(&p);
    static const int32_t sixth[] = {0, 1, 5, 3, -1}; /* picture 2's class is the last of six */
    job.labels = sixth;
    job.k = 6;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    assert_ok(pnb_classification_compute(&p, sixth, 10, &c, err));
    assert_near(c.acc5, .75, 1e-15, 0);
    pnb_classification_reset(&c);
    pnb_predictions_reset(&p);

    /* Four classes: no top-5. One class: always right. */
    const int32_t few[] = {0, 1, 1, 3, -1}, zero[] = {0, 0, 0, 0, 0};
    const pnb_gaussians four = {.n = 4, .dim = 6, .mean = axis},
                        single = {.n = 1, .dim = 6, .mean = axis};
    job.labels = few;
    job.classes = &four;
    job.k = 4;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    assert_ok(pnb_classification_compute(&p, few, 10, &c, err));
    assert_true(isnan(c.acc5));
    assert_near(c.acc1, 1, 1e-15, 0);
    pnb_classification_reset(&c);
    pnb_predictions_reset(&p);
    job.labels = zero;
    job.classes = &single;
    job.k = 1;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    assert_ok(pnb_classification_compute(&p, zero, 10, &c, err));
    assert_near(c.acc1, 1, 1e-15, 0);
    assert_near(c.nll, 0, 1e-15, 0);
    pnb_classification_reset(&c);
    pnb_predictions_reset(&p);
}

static void test_bad(void **state)
{
    (void)state;
    gaussians images = random_gaussians(3, DIM, -4, -1, 1);
    gaussians classes = random_gaussians(6, DIM, -4, -1, 2);
    const int32_t out[] = {0, 6, 0}, unknown[] = {-1, -1, -1};
    pnb_classification c;
    pnb_predictions p;
    pnb_classify_job job = {.images = &images.view,
                            .classes = &classes.view,
                            .labels = out,
                            .measure = PNB_MEASURE_CSD,
                            .scale = 1,
                            .k = 2};
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "picture 1 has label 6");
    job.labels = unknown;
    job.scale = 0;
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "scale");
    job.scale = 1;
    job.k = 7;
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "7 of 6");
    job.k = 2;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    assert_fails(pnb_classification_compute(&p, unknown, 10, &c, err), PNB_ARG, "top-5");
    assert_fails(pnb_classification_compute(&p, out, 10, &c, err), PNB_ARG, "label 6");
    pnb_predictions_reset(&p);
    job.k = 5;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    assert_fails(pnb_classification_compute(&p, unknown, 10, &c, err), PNB_ARG, "none of 3");
    assert_fails(pnb_classification_compute(&p, NULL, 10, &c, err), PNB_ARG, "none of 3");
    pnb_predictions_reset(&p);
    images.mean[DIM] = NAN;
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_NUMERIC, "1");
    assert_null(p.top);
    free_gaussians(&images);
    free_gaussians(&classes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_measures),
                                       cmocka_unit_test(test_match_probability),
                                       cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_sphere),
                                       cmocka_unit_test(test_equal_classes),
                                       cmocka_unit_test(test_figures),
                                       cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
