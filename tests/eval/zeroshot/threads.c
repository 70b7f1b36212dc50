/* One classifier, eight threads that each have other pictures: predictions have the bits that one
 * thread alone gets, by Gaussians, by draws and by probabilities of an uncertain cosine.
 *
 * Classes, dummies and labels are everybody's; half of the threads bring a context, the same one,
 * so that they meet in the pool as well. */
#include <pthread.h>

#include "penumbra/classify.h"
#include "tests/prob/support.h"

enum { N_THREADS = 8, N_ROUNDS = 6, IMAGES = 150, CLASSES = 9, PER_CLASS = 3, DIM = 16, K = 3 };

typedef struct caller {
    const pnb_ctx *ctx;
    pnb_classify_job job; /* everybody's, but for the pictures */
    gaussians images;
    pnb_predictions alone;
    const char *problem; /* NULL: none */
} caller;

static bool are_same(const pnb_predictions *a, const pnb_predictions *b)
{
    size_t n = a->n * a->k;
    return a->n == b->n && a->k == b->k && a->n_classes == b->n_classes &&
           memcmp(a->top, b->top, n * sizeof *a->top) == 0 &&
           memcmp(a->score, b->score, n * sizeof *a->score) == 0 &&
           memcmp(a->probability, b->probability, n * sizeof *a->probability) == 0 &&
           memcmp(a->log_p_label, b->log_p_label, a->n * sizeof *a->log_p_label) == 0 &&
           memcmp(a->log_odds_dummy, b->log_odds_dummy, a->n * sizeof *a->log_odds_dummy) == 0;
}

static void *call(void *user)
{
    caller *c = user;
    for (int i = 0; i < N_ROUNDS && c->problem == NULL; i++) {
        pnb_predictions p;
        if (pnb_classify(c->ctx, &c->job, &p, NULL) != PNB_OK)
            c->problem = "it fails";
        else if (!are_same(&p, &c->alone))
            c->problem = "other predictions";
        pnb_predictions_reset(&p);
    }
    return NULL;
}

/* The classes that prompts make, as rows. */
static gaussians make_classes(void)
{
    gaussians prompts = random_gaussians(CLASSES * PER_CLASS, DIM, -4, -1, 2);
    gaussians made = random_gaussians(CLASSES, DIM, -4, -1, 3); /* written over */
    pnb_classifier classifier;
    size_t offset[CLASSES + 1];
    for (size_t c = 0; c <= CLASSES; c++)
        offset[c] = c * PER_CLASS;
    const pnb_prompts of = {.n_classes = CLASSES,
                            .dim = DIM,
                            .offset = offset,
                            .mean = prompts.mean,
                            .log_var = prompts.log_var};
    assert_ok(pnb_classifier_build(&classifier, &of, NULL, NULL, err));
    for (size_t i = 0; i < CLASSES * DIM; i++) {
        made.mean[i] = (float)classifier.mean[i];
        made.log_var[i] = (float)log(classifier.var[i]);
    }
    pnb_classifier_reset(&classifier);
    free_gaussians(&prompts);
    return made;
}

static void ask_alone(caller callers[N_THREADS], const pnb_classify_job *job)
{
    for (int i = 0; i < N_THREADS; i++) {
        caller *c = &callers[i];
        c->images = random_gaussians(IMAGES, DIM, -4, -1, 100 + (uint64_t)i);
        c->job = *job;
        c->job.images = &c->images.view;
        assert_ok(pnb_classify(NULL, &c->job, &c->alone, err));
    }
    assert_false(are_same(&callers[0].alone, &callers[1].alone));
}

static void expect_bits_of_one(const pnb_classify_job *job)
{
    caller callers[N_THREADS] = {0};
    pthread_t threads[N_THREADS];
    pnb_ctx *ctx = NULL;
    ask_alone(callers, job);
    assert_ok(pnb_ctx_create(&ctx, &(pnb_ctx_opts){.n_threads = 3}, err));
    for (int i = 0; i < N_THREADS; i++) {
        callers[i].ctx = i % 2 == 0 ? ctx : NULL;
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; i++) {
        if (callers[i].problem != NULL)
            fail_msg("%s, thread %d: %s", pnb_measure_name(job->measure), i, callers[i].problem);
        pnb_predictions_reset(&callers[i].alone);
        free_gaussians(&callers[i].images);
    }
    pnb_ctx_free(ctx);
}

static void test_threads(void **state)
{
    (void)state;
    gaussians classes = make_classes(), dummies = random_gaussians(2, DIM, -4, -1, 4);
    int32_t label[IMAGES];
    for (size_t i = 0; i < IMAGES; i++)
        label[i] = (int32_t)(i % (CLASSES + 1)) - 1;
    pnb_classify_job job = {.classes = &classes.view,
                            .dummies = &dummies.view,
                            .labels = label,
                            .measure = PNB_MEASURE_CSD,
                            .scale = 30,
                            .k = K};
    expect_bits_of_one(&job);
    job.measure = PNB_MEASURE_AVG_L2;
    expect_bits_of_one(&job);
    job.measure = PNB_MEASURE_MEAN;
    job.dummies = NULL;
    job.prediction = PNB_PREDICTION_SAMPLING;
    job.n_draws = 20;
    expect_bits_of_one(&job);
    free_gaussians(&classes);
    free_gaussians(&dummies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
