/* Recovered against known: the truth itself scores perfectly, a scale is an error and no loss of
 * rank, families are compared by their mean cosine, and regions hold the share they say. */
#include "penumbra/known_truth.h"

#include "penumbra/distributions.h"
#include "penumbra/view.h"
#include "tests/prob/support.h"

enum { N = 12, D = 10, IMAGES = 400 };

static pnb_embeddings *known_set(void)
{
    pnb_embeddings *set;
    pnb__rng rng;
    pnb__rng_init(&rng, 3, 0);
    assert_ok(pnb_embeddings_create(&set, PNB_VMF, N, D, err));
    for (size_t i = 0; i < N; i++) {
        double square = 0;
        float *x = set->mean + i * D;
        for (size_t d = 0; d < D; d++) {
            x[d] = (float)pnb__rng_normal(&rng);
            square += (double)x[d] * x[d];
        }
        for (size_t d = 0; d < D; d++)
            x[d] = (float)(x[d] / sqrt(square));
        set->kappa[i] = (float)(3.0 * exp(0.4 * (double)((5 * i) % N)));
    }
    return set;
}

/* Pictures of every row: PICTURES samples each, and which belong to which. */
static pnb_embeddings *images_of(const pnb_embeddings *known, pnb_truth **truth)
{
    pnb_embeddings *images;
    pnb_view view;
    pnb_sample_opts o = pnb_sample_opts_default();
    double *x = malloc((size_t)N * IMAGES * D * sizeof *x);
    int64_t *pairs = malloc((size_t)2 * N * IMAGES * sizeof *pairs);
    assert_ok(pnb_embeddings_create(&images, PNB_POINT, N * IMAGES, D, err));
    assert_ok(pnb_view_init(&view, known, err));
    o.n_samples = IMAGES;
    assert_ok(pnb_sample_rows(&view.rows, &o, x, err));
    for (size_t i = 0; i < (size_t)N * IMAGES * D; i++)
        images->mean[i] = (float)(3.0 * x[i]);
    for (size_t i = 0; i < N * IMAGES; i++) {
        pairs[2 * i] = (int64_t)i;
        pairs[2 * i + 1] = (int64_t)(i / IMAGES);
    }
    assert_ok(pnb_truth_create_pairs(truth, N * IMAGES, N, pairs, N * IMAGES, err));
    pnb_view_reset(&view);
    free(x);
    free(pairs);
    return images;
}

static void test_itself(void **state)
{
    pnb_embeddings *known = known_set();
    pnb_truth *truth;
    pnb_embeddings *images = images_of(known, &truth);
    pnb_known_scores s;
    (void)state;
    assert_ok(pnb_known_scores_compute(known, known, images, truth, &s, err));
    assert_int_equal(s.n, N);
    assert_near(s.spearman, 1.0, 1e-12, 0);
    assert_near(s.log_error, 0.0, 1e-9, 0);
    assert_near(s.slope, 1.0, 1e-9, 0);
    assert_near(s.direction, 1.0, 1e-6, 0);
    assert_near(s.coverage[0], 0.5, 0.03, 0);
    assert_near(s.coverage[1], 0.9, 0.02, 0);
    pnb_embeddings_free(images);
    pnb_embeddings_free(known);
    pnb_truth_free(truth);
}

/* kappa^2 / 7 instead of kappa: half the slope, no residue, the same order, and twice as narrow
 * regions hold less. Two rows exchanged: by hand. */
static void test_scale_and_order(void **state)
{
    pnb_embeddings *known = known_set(), *got = known_set();
    pnb_truth *truth;
    pnb_embeddings *images = images_of(known, &truth);
    pnb_known_scores s;
    double error = 0;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        double kappa = (double)known->kappa[i] * known->kappa[i] / 7.0;
        got->kappa[i] = (float)kappa;
        error += pow(log(kappa / known->kappa[i]), 2.0) / N;
    }
    assert_ok(pnb_known_scores_compute(got, known, images, truth, &s, err));
    assert_near(s.spearman, 1.0, 1e-12, 0);
    assert_near(s.log_error, sqrt(error), 0, 1e-5);
    assert_near(s.slope, 0.5, 1e-5, 0);
    assert_near(s.fitted_error, 0.0, 1e-5, 0);
    assert_true(s.coverage[1] < 0.7);
    memcpy(got->kappa, known->kappa, N * sizeof(float));
    got->kappa[0] = known->kappa[5]; /* the ranks of 0 and 5 are 1 and 2: d^2 = 1 + 1 */
    got->kappa[5] = known->kappa[0];
    assert_near((double)known->kappa[5], 3.0 * exp(0.4), 1e-5, 0);
    assert_ok(pnb_known_scores_compute(got, known, NULL, NULL, &s, err));
    assert_near(s.spearman, 1.0 - 6.0 * 2.0 / (N * (N * N - 1.0)), 1e-12, 0);
    assert_true(isnan(s.coverage[0]));
    pnb_embeddings_free(images);
    pnb_embeddings_free(known);
    pnb_embeddings_free(got);
    pnb_truth_free(truth);
}

/* Gaussians and power sphericals of the same mean cosine are the same concentration. */
static void test_families(void **state)
{
    pnb_embeddings *known = known_set(), *power, *gauss;
    pnb_known_scores s;
    (void)state;
    assert_ok(pnb_embeddings_create(&power, PNB_POWER_SPHERICAL, N, D, err));
    assert_ok(pnb_embeddings_create(&gauss, PNB_GAUSSIAN_DIAG, N, D, err));
    for (size_t i = 0; i < N; i++) {
        double a = pnb_vmf_mean_cosine(D, known->kappa[i]), v = 4.0 * (1.0 / (a * a) - 1.0);
        power->kappa[i] = (float)((D - 1.0) * a / (1.0 - a));
        for (size_t d = 0; d < D; d++) { /* a mean of length 2, the variance unequally spread */
            power->mean[i * D + d] = known->mean[i * D + d];
            gauss->mean[i * D + d] = 2.0f * known->mean[i * D + d];
            gauss->log_var[i * D + d] = (float)log(v * (d % 2 == 0 ? 1.5 : 0.5) / D);
        }
    }
    assert_ok(pnb_known_scores_compute(power, known, NULL, NULL, &s, err));
    assert_near(s.log_error, 0.0, 1e-5, 0);
    assert_ok(pnb_known_scores_compute(gauss, known, NULL, NULL, &s, err));
    assert_near(s.log_error, 0.0, 1e-5, 0);
    assert_near(s.direction, 1.0, 1e-6, 0);
    pnb_embeddings_free(known);
    pnb_embeddings_free(power);
    pnb_embeddings_free(gauss);
}

static void test_edges(void **state)
{
    pnb_embeddings *known = known_set(), *points, *few;
    pnb_known_scores s;
    (void)state;
    assert_ok(pnb_embeddings_create(&points, PNB_POINT, N, D, err));
    memcpy(points->mean, known->mean, (size_t)N * D * sizeof(float));
    assert_ok(pnb_known_scores_compute(points, known, NULL, NULL, &s, err));
    assert_true(isnan(s.spearman) && isnan(s.log_error) && s.direction > 0.999);
    assert_fails(pnb_known_scores_compute(known, points, NULL, NULL, &s, err), PNB_ARG,
                 "have no concentration");
    assert_ok(pnb_embeddings_create(&few, PNB_VMF, 2, D, err));
    assert_fails(pnb_known_scores_compute(few, known, NULL, NULL, &s, err), PNB_ARG, "2 rows");
    assert_ok(pnb_embeddings_set_id(known, 3, "a", err));
    pnb_embeddings *other = known_set();
    assert_ok(pnb_embeddings_set_id(other, 3, "b", err));
    assert_fails(pnb_known_scores_compute(other, known, NULL, NULL, &s, err), PNB_ARG,
                 "row 3 is 'b', the known one 'a'");
    for (size_t i = 0; i < N; i++)
        other->kappa[i] = 5.0f;
    assert_ok(pnb_embeddings_set_id(other, 3, NULL, err));
    assert_ok(pnb_known_scores_compute(other, known, NULL, NULL, &s, err));
    assert_true(isnan(s.spearman) && isfinite(s.log_error));
    memset(other->mean, 0, D * sizeof(float));
    assert_fails(pnb_known_scores_compute(other, known, NULL, NULL, &s, err), PNB_NUMERIC,
                 "row 0: a mean of length 0");
    pnb_embeddings_free(known);
    pnb_embeddings_free(points);
    pnb_embeddings_free(few);
    pnb_embeddings_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_itself),
        cmocka_unit_test(test_scale_and_order),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
