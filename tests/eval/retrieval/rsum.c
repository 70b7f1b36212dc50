/* RSUM of both directions: its value, the width of its interval, seeds and paired models. */
#include "penumbra/rsum.h"
#include "penumbra/bootstrap.h"
#include "penumbra/figures.h"
#include "tests/prob/support.h"

enum { N = 400, M = 700 };
static const size_t K[] = {1, 5, 10};

/* Ranks 1 .. `most`, about evenly. */
static void fill(int64_t *rank, size_t n, uint64_t most, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 3);
    for (size_t i = 0; i < n; i++)
        rank[i] = 1 + (int64_t)pnb__rng_below(&rng, most);
}

static double sum_of(const int64_t *rank, size_t n, double *square)
{
    double sum = 0.0;
    *square = 0.0;
    for (size_t i = 0; i < n; i++) {
        double w = (rank[i] <= 1) + (rank[i] <= 5) + (rank[i] <= 10);
        sum += w / (double)n;
        *square += w * w / (double)n;
    }
    return sum;
}

static void value_and_width(void **state)
{
    (void)state;
    int64_t images[N], texts[M];
    fill(images, N, 12, 1);
    fill(texts, M, 30, 2);
    const pnb_query_values a = {.n = N, .best_rank = images}, b = {.n = M, .best_rank = texts};
    const pnb_rsum_job job = {.a = {&a, &b}, .n_a = 1, .k = K, .n_k = 3};
    pnb_bootstrap_opts boot = {.n_resamples = 4000, .level = 0.95, .seed = 7};
    pnb_rsum r, again;
    double q0, q1, s0 = sum_of(images, N, &q0), s1 = sum_of(texts, M, &q1);
    assert_ok(pnb_rsum_bootstrap(&job, &boot, &r, err));
    assert_near(r.value, s0 + s1, 1e-12, 0);
    /* the two means are independent: variances add */
    double sd = sqrt((q0 - s0 * s0) / N + (q1 - s1 * s1) / M);
    assert_near((r.high - r.low) / (2 * 1.959964), sd, 0, 0.05);
    assert_near(0.5 * (r.high + r.low), r.value, 0.2 * sd, 0);
    assert_true(isnan(r.std) && isnan(r.p)); /* one seed, and nothing to compare with */
    assert_ok(pnb_rsum_bootstrap(&job, &boot, &again, err));
    assert_true(again.low == r.low && again.high == r.high);
    boot.seed = 8; /* other draws, nearly the same interval */
    assert_ok(pnb_rsum_bootstrap(&job, &boot, &again, err));
    assert_true(again.low != r.low || again.high != r.high);
    assert_near(again.low, r.low, 0.2 * sd, 0);
}

/* No miss among few queries is no proof that there is none. */
static void no_miss_has_an_interval(void **state)
{
    (void)state;
    enum { FEW = 7 };
    int64_t ranks[FEW] = {1, 1, 1, 1, 1, 1, 1};
    const pnb_query_values v = {.n = FEW, .best_rank = ranks};
    const pnb_rsum_job job = {.a = {&v, &v}, .n_a = 1, .k = K, .n_k = 3};
    pnb_rsum r;
    assert_ok(pnb_rsum_bootstrap(&job, NULL, &r, err));
    assert_near(r.value, 6.0, 1e-12, 0);
    assert_true(r.high == 6.0 && r.low > 3.0 && r.low < 5.5);
    for (size_t i = 0; i < FEW; i++)
        ranks[i] = 11;
    assert_ok(pnb_rsum_bootstrap(&job, NULL, &r, err));
    assert_true(r.value == 0.0 && r.low == 0.0 && r.high > 0.5 && r.high < 3.0);
}

/* Picture and captions fail together, so with clusters the sides do not average each other out. */
static void both_sides_of_a_cluster(void **state)
{
    (void)state;
    enum { CLUSTERS = 300, EACH = 4 };
    int64_t images[CLUSTERS], texts[CLUSTERS * EACH], of_image[CLUSTERS], of_text[CLUSTERS * EACH];
    double q;
    fill(images, CLUSTERS, 12, 4);
    for (size_t c = 0; c < CLUSTERS; c++) {
        of_image[c] = (int64_t)c;
        for (size_t i = 0; i < EACH; i++) {
            texts[c * EACH + i] = images[c];
            of_text[c * EACH + i] = (int64_t)c;
        }
    }
    pnb_query_values a = {.n = CLUSTERS, .best_rank = images, .cluster = of_image};
    pnb_query_values b = {.n = CLUSTERS * EACH, .best_rank = texts, .cluster = of_text};
    const pnb_rsum_job job = {.a = {&a, &b}, .n_a = 1, .k = K, .n_k = 3};
    pnb_rsum r;
    double s = sum_of(images, CLUSTERS, &q), sd = 2.0 * sqrt((q - s * s) / CLUSTERS);
    assert_ok(pnb_rsum_bootstrap(&job, NULL, &r, err));
    assert_near((r.high - r.low) / (2 * 1.959964), sd, 0, 0.08);
    b.cluster = NULL;
    assert_fails(pnb_rsum_bootstrap(&job, NULL, &r, err), PNB_ARG, "one side only");
    a.cluster = NULL;
    assert_ok(pnb_rsum_bootstrap(&job, NULL, &r, err));
    assert_true((r.high - r.low) / (2 * 1.959964) < 0.7 * sd);
}

static void seeds_and_models(void **state)
{
    (void)state;
    int64_t images[3][N], texts[3][M];
    pnb_query_values a[2][3];
    double value[3], mean = 0.0, squares = 0.0, unused;
    for (size_t s = 0; s < 3; s++) {
        fill(images[s], N, 12, 10 + s);
        fill(texts[s], M, s < 2 ? 30 : 26, 20 + s);
        a[0][s] = (pnb_query_values){.n = N, .best_rank = images[s]};
        a[1][s] = (pnb_query_values){.n = M, .best_rank = texts[s]};
        value[s] = sum_of(images[s], N, &unused) + sum_of(texts[s], M, &unused);
        mean += value[s] / 3.0;
    }
    for (size_t s = 0; s < 3; s++)
        squares += (value[s] - mean) * (value[s] - mean);
    pnb_rsum_job job = {.a = {a[0], a[1]}, .n_a = 3, .k = K, .n_k = 3};
    pnb_rsum r;
    assert_ok(pnb_rsum_bootstrap(&job, NULL, &r, err));
    assert_near(r.value, mean, 1e-12, 0);
    assert_near(r.std, sqrt(squares / 2.0), 1e-12, 0);
    job.n_a = 1;
    job.b[0] = a[0]; /* the same model: no difference in any resample */
    job.b[1] = a[1];
    job.n_b = 1;
    assert_ok(pnb_rsum_bootstrap(&job, NULL, &r, err));
    assert_true(r.value == 0.0 && r.low == 0.0 && r.high == 0.0 && r.p == 1.0);
    for (size_t i = 0; i < M; i++)
        texts[1][i] = PNB_MAX(texts[0][i] - 4, 1); /* better for every caption */
    job.b[0] = a[0];
    job.b[1] = &a[1][1];
    assert_ok(pnb_rsum_bootstrap(&job, NULL, &r, err));
    assert_true(r.value > 0.0 && r.low > 0.0 && r.p < 0.01);
    assert_near(r.value, sum_of(texts[1], M, &unused) - sum_of(texts[0], M, &unused), 1e-12, 0);
}

static void bad_input(void **state)
{
    (void)state;
    static const size_t zero[] = {1, 0, 10};
    int64_t rank[2] = {1, 2};
    const pnb_query_values two = {.n = 2, .best_rank = rank}, one = {.n = 1, .best_rank = rank},
                           none = {.n = 0};
    pnb_rsum_job job = {.a = {&two, &two}, .n_a = 1, .k = K, .n_k = 3};
    pnb_bootstrap_opts boot = pnb_bootstrap_opts_default();
    pnb_rsum r;
    boot.level = 1.0;
    assert_fails(pnb_rsum_bootstrap(&job, &boot, &r, err), PNB_ARG, "level 1");
    job.k = zero;
    assert_fails(pnb_rsum_bootstrap(&job, NULL, &r, err), PNB_ARG, "cut-off 1 of R@k is 0");
    job.k = K;
    rank[1] = 0; /* no match: would count as found */
    assert_fails(pnb_rsum_bootstrap(&job, NULL, &r, err), PNB_ARG, "query 1 has rank 0");
    rank[1] = 2;
    job.b[0] = &two;
    job.b[1] = &one;
    job.n_b = 1;
    assert_fails(pnb_rsum_bootstrap(&job, NULL, &r, err), PNB_ARG, "1 queries beside 2");
    job.n_b = 0;
    job.a[1] = &none;
    assert_fails(pnb_rsum_bootstrap(&job, NULL, &r, err), PNB_ARG, "at least one");
    job.n_a = 0;
    assert_fails(pnb_rsum_bootstrap(&job, NULL, &r, err), PNB_ARG, "0 seeds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_and_width),
        cmocka_unit_test(no_miss_has_an_interval),
        cmocka_unit_test(both_sides_of_a_cluster),
        cmocka_unit_test(seeds_and_models),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
