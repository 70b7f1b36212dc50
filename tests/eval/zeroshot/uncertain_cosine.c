/* Predictions by uncertain cosines: the probit's formula in doubles of its own, draws against
 * quadrature and against drawn logits, and what neither is made of. */
#include "penumbra/classify.h"
#include "tests/prob/support.h"

enum { IMAGES = 70, CLASSES = 6, DIM = 8 };

typedef struct world {
    gaussians images, classes;
} world;

static world make_world(size_t n_classes)
{
    return (world){random_gaussians(IMAGES, DIM, -6, -2, 1),
                   random_gaussians(n_classes, DIM, -6, -2, 2)};
}

static void free_world(world *w)
{
    free_gaussians(&w->images);
    free_gaussians(&w->classes);
}

static pnb_classify_job job_of(const world *w, pnb_prediction prediction, double scale)
{
    return (pnb_classify_job){.images = &w->images.view,
                              .classes = &w->classes.view,
                              .measure = PNB_MEASURE_MEAN,
                              .scale = scale,
                              .k = w->classes.view.n,
                              .prediction = prediction,
                              .n_draws = 400,
                              .seed = 3};
}

/* Mean and variance of the cosine, written out. */
static void moments(const gaussians *a, size_t i, const gaussians *b, size_t j, double *mean,
                    double *variance)
{
    double dot = 0, m2 = 0, n2 = 0, top = 0;
    for (size_t d = 0; d < DIM; d++) {
        double m = (double)a->mean[i * DIM + d], n = (double)b->mean[j * DIM + d];
        double u = exp((double)a->log_var[i * DIM + d]), v = exp((double)b->log_var[j * DIM + d]);
        dot += m * n;
        m2 += m * m + u;
        n2 += n * n + v;
        top += (m * m + u) * v + u * n * n;
    }
    *mean = dot / sqrt(m2 * n2);
    *variance = top / (m2 * n2);
}

static double probability_in(const pnb_predictions *p, size_t i, size_t c)
{
    for (size_t j = 0; j < p->k; j++)
        if (p->top[i * p->k + j] == (int32_t)c)
            return p->probability[i * p->k + j];
    fail_msg("class %zu of picture %zu is not there", c, i);
    return 0;
}

static void probit(void **state)
{
    (void)state;
    world w = make_world(CLASSES);
    const pnb_classify_job job = job_of(&w, PNB_PREDICTION_PROBIT, 20);
    pnb_predictions p;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    for (size_t i = 0; i < IMAGES; i++) {
        double logit[CLASSES], sum = 0;
        for (size_t c = 0; c < CLASSES; c++) {
            double m, v;
            moments(&w.images, i, &w.classes, c, &m, &v);
            logit[c] = 20 * m / sqrt(1 + acos(-1.0) / 8 * 400 * v);
            sum += exp(logit[c]);
        }
        for (size_t c = 0; c < CLASSES; c++)
            assert_near(probability_in(&p, i, c), exp(logit[c]) / sum, 1e-12, 1e-9);
        assert_near(20 * p.score[i * CLASSES], logit[p.top[i * CLASSES]], 1e-9, 1e-9);
    }
    pnb_predictions_reset(&p);
    free_world(&w);
}

/* Of two classes the mean softmax is the mean of s(z), z ~ N(a(m1 - m2), a^2 (v1 + v2)). */
static double mean_sigmoid(double mean, double std)
{
    enum { STEPS = 20000 };
    double sum = 0, norm = 0;
    for (int k = 0; k < STEPS; k++) {
        double e = -9 + 18 * (k + 0.5) / STEPS, weight = exp(-0.5 * e * e);
        sum += weight * pnb_sigmoid(mean + std * e);
        norm += weight;
    }
    return sum / norm;
}

static void drawn_against_quadrature(void **state)
{
    (void)state;
    world w = make_world(2);
    pnb_classify_job job = job_of(&w, PNB_PREDICTION_SAMPLING, 30);
    pnb_predictions p;
    double worst = 0, apart = 0;
    job.n_draws = 20000;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    for (size_t i = 0; i < 10; i++) {
        double m[2], v[2];
        for (size_t c = 0; c < 2; c++)
            moments(&w.images, i, &w.classes, c, &m[c], &v[c]);
        double wanted = mean_sigmoid(30 * (m[0] - m[1]), 30 * sqrt(v[0] + v[1]));
        worst = fmax(worst, fabs(probability_in(&p, i, 0) - wanted));
        apart = fmax(apart, fabs(pnb_sigmoid(30 * (m[0] - m[1])) - wanted));
        assert_near(probability_in(&p, i, 0) + probability_in(&p, i, 1), 1, 1e-12, 0);
    }
    assert_true(worst < 0.012); /* 3.4 standard errors of 20,000 draws */
    assert_true(apart > 0.05);  /* plain probabilities are seen to be others */
    pnb_predictions_reset(&p);
    free_world(&w);
}

/* Means of softmaxes of many classes, drawn here once more by another generator. */
static void drawn_against_draws(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    world w = make_world(CLASSES);
    pnb_classify_job job = job_of(&w, PNB_PREDICTION_SAMPLING, 25);
    pnb_predictions p;
    pnb__rng rng;
    job.n_draws = DRAWS;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    pnb__rng_init(&rng, 77, 5);
    for (size_t i = 0; i < 3; i++) {
        double m[CLASSES], v[CLASSES], mean[CLASSES] = {0};
        for (size_t c = 0; c < CLASSES; c++)
            moments(&w.images, i, &w.classes, c, &m[c], &v[c]);
        for (size_t s = 0; s < DRAWS; s++) {
            double e[CLASSES], sum = 0;
            for (size_t c = 0; c < CLASSES; c++)
                sum += e[c] = exp(25 * (m[c] + sqrt(v[c]) * pnb__rng_normal(&rng)));
            for (size_t c = 0; c < CLASSES; c++)
                mean[c] += e[c] / sum / DRAWS;
        }
        for (size_t c = 0; c < CLASSES; c++)
            assert_near(probability_in(&p, i, c), mean[c], 0.015, 0);
    }
    pnb_predictions_reset(&p);
    free_world(&w);
}

/* Draws are of a picture: threads and blocks change nothing, the seed does. */
static void draws_belong_to_images(void **state)
{
    (void)state;
    world w = make_world(CLASSES);
    pnb_classify_job job = job_of(&w, PNB_PREDICTION_SAMPLING, 25);
    pnb_ctx_opts two = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    pnb_predictions a, b;
    two.n_threads = 2;
    assert_ok(pnb_ctx_create(&ctx, &two, err));
    assert_ok(pnb_classify(NULL, &job, &a, err));
    assert_ok(pnb_classify(ctx, &job, &b, err));
    assert_memory_equal(a.probability, b.probability, IMAGES * CLASSES * sizeof(double));
    pnb_predictions_reset(&b);
    job.seed = 4;
    assert_ok(pnb_classify(ctx, &job, &b, err));
    assert_true(memcmp(a.probability, b.probability, IMAGES * CLASSES * sizeof(double)) != 0);
    pnb_predictions_reset(&a);
    pnb_predictions_reset(&b);
    pnb_ctx_free(ctx);
    free_world(&w);
}

/* Without variances on the other side the picture's own are enough; without any the three agree. */
static void refused(void **state)
{
    (void)state;
    world w = make_world(CLASSES);
    const pnb_rows points = {.n = CLASSES, .dim = DIM, .mean = w.classes.mean};
    const pnb_rows image_points = {.n = IMAGES, .dim = DIM, .mean = w.images.mean};
    const float kappa[CLASSES] = {1, 1, 1, 1, 1, 1};
    pnb_rows sphere = points;
    pnb_classify_job job = job_of(&w, PNB_PREDICTION_PROBIT, 10);
    pnb_predictions p;
    sphere.kappa = kappa;
    job.classes = &points;
    assert_ok(pnb_classify(NULL, &job, &p, err));
    pnb_predictions_reset(&p);
    job.images = &image_points;
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "cosines have no variance");
    job = job_of(&w, PNB_PREDICTION_PROBIT, 10);
    job.measure = PNB_MEASURE_CSD;
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "measure mean, not csd");
    job = job_of(&w, PNB_PREDICTION_SAMPLING, 10);
    job.n_draws = 0;
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "0 draws");
    job.n_draws = 10;
    job.dummies = &points;
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "dummies");
    job = job_of(&w, PNB_PREDICTION_PROBIT, 10);
    job.classes = &sphere;
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "on the sphere");
    job = job_of(&w, PNB_N_PREDICTIONS, 10);
    assert_fails(pnb_classify(NULL, &job, &p, err), PNB_ARG, "does not exist");
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probit),
        cmocka_unit_test(drawn_against_quadrature),
        cmocka_unit_test(drawn_against_draws),
        cmocka_unit_test(draws_belong_to_images),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
