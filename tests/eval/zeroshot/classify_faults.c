/* Fails allocation 0, 1, 2, ... of prompts to figures until all of it passes: every failure is
 * reported as such, leaks nothing (the sanitizers look) and leaves the outputs empty. Needs a
 * PNB_FAULTS build. */
#include "penumbra/classify.h"
#include "tests/prob/support.h"

#ifdef PNB_FAULTS

enum { CLASSES = 6, PROMPTS = 3, IMAGES = 9, DIM = 4 };

static pnb_status run(const gaussians *prompts, const gaussians *images, pnb_error *err)
{
    size_t offset[CLASSES + 1];
    double u[CLASSES * PROMPTS], weight[CLASSES * PROMPTS], strange[IMAGES], threshold;
    int32_t label[IMAGES];
    float mean[CLASSES * DIM];
    bool is_right[IMAGES] = {true};
    pnb_classifier made = {0};
    pnb_predictions p = {0};
    pnb_classification figures = {0};
    pnb_none_figures none;
    pnb_status status;
    for (size_t c = 0; c <= CLASSES; c++)
        offset[c] = c * PROMPTS;
    for (size_t i = 0; i < IMAGES; i++)
        label[i] = (int32_t)(i % CLASSES);
    const pnb_prompts all = {.n_classes = CLASSES,
                             .dim = DIM,
                             .offset = offset,
                             .mean = prompts->mean,
                             .log_var = prompts->log_var};
    PNB_TRY(pnb_prompts_uncertainty(&all, u, err));
    PNB_TRY(pnb_prompts_filter(PNB_FILTER_PROMPTS_TOP_K, 2, offset, CLASSES, u, weight, err));
    PNB_TRY(pnb_bprw(NULL, &all, &images->view, NULL, NULL, weight, NULL, err));
    PNB_TRY(pnb_bprw(NULL, &all, &images->view, label, NULL, weight, NULL, err));
    PNB_TRY(pnb_classifier_build(&made, &all, weight, NULL, err));
    for (size_t i = 0; i < CLASSES * DIM; i++)
        mean[i] = (float)made.mean[i];
    const pnb_gaussians classes = {.n = CLASSES, .dim = DIM, .mean = mean};
    const pnb_classify_job job = {.images = &images->view,
                                  .classes = &classes,
                                  .dummies = &classes,
                                  .labels = label,
                                  .measure = PNB_MEASURE_CSD,
                                  .scale = 10,
                                  .k = 5};
    PNB_TRY(pnb_classify(NULL, &job, &p, err));
    PNB_TRY(pnb_classification_compute(&p, label, 5, &figures, err));
    PNB_TRY(pnb_ood_score(PNB_NONE_DUMMY, &p, NULL, strange, err));
    PNB_TRY(pnb_none_fit_rejected(strange, IMAGES, 0.1, &threshold, err));
    status = pnb_none_compute(strange, is_right, 5, strange + 5, 4, threshold, &none, err);
done:
    if (p.top == NULL || figures.classes == NULL || made.mean == NULL)
        assert_true(status != PNB_OK);
    pnb_classifier_reset(&made);
    pnb_predictions_reset(&p);
    pnb_classification_reset(&figures);
    return status;
}

static void test_all(void **state)
{
    (void)state;
    gaussians prompts = random_gaussians(CLASSES * PROMPTS, DIM, -4, -1, 1);
    gaussians images = random_gaussians(IMAGES, DIM, -4, -1, 2);
    long n = 0;
    for (pnb_status status = PNB_NOMEM; status != PNB_OK; n++) {
        pnb_error error = PNB_ERROR_INIT;
        pnb__alloc_fail_after(n);
        status = run(&prompts, &images, &error);
        pnb__alloc_fail_after(-1);
        if (status != PNB_OK && status != PNB_NOMEM)
            fail_msg("allocation %ld: %s: %s", n, pnb_status_name(status), error.text);
        assert_true(n < 5000);
    }
    print_message("%ld allocations failed in turn\n", n - 1);
    assert_true(n > 30);
    free_gaussians(&prompts);
    free_gaussians(&images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    print_message("skipped: built without PNB_FAULTS\n");
    return 0;
}

#endif
