/* F1, balanced accuracy, worst groups and averages of suites: by hand, by counting every class
 * apart, and at their edges. */
#include "penumbra/class_scores.h"

#include "tests/prob/support.h"

enum { N = 240, K = 6 };

static void draw(int32_t *label, int32_t *predicted, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < N; i++) {
        label[i] = (int32_t)pnb__rng_below(&rng, K - 1); /* the last class has no picture */
        predicted[i] =
            (int32_t)pnb__rng_below(&rng, 3) == 0 ? (int32_t)pnb__rng_below(&rng, K) : label[i];
    }
}

/* From precision and recall, one class at a time. */
static double f1_of(const int32_t *label, const int32_t *predicted, const size_t *row, size_t n,
                    int32_t k, double *recall)
{
    double own = 0, called = 0, right = 0;
    for (size_t i = 0; i < n; i++) {
        size_t r = row == NULL ? i : row[i];
        own += label[r] == k;
        called += predicted[r] == k;
        right += label[r] == k && predicted[r] == k;
    }
    *recall = own > 0 ? right / own : (double)NAN;
    double precision = right / called;
    return own == 0     ? (double)NAN
           : right == 0 ? 0.0
                        : 2 * precision * *recall / (precision + *recall);
}

typedef struct both {
    const int32_t *label, *predicted;
    bool recall;
} both;

static double by_definition(void *user, const size_t *row, size_t n)
{
    const both *b = user;
    double sum = 0, n_present = 0, recall;
    for (int32_t k = 0; k < K; k++) {
        double f1 = f1_of(b->label, b->predicted, row, n, k, &recall);
        if (isnan(f1))
            continue;
        sum += b->recall ? recall : f1;
        n_present++;
    }
    return sum / n_present;
}

static void by_counting(void **state)
{
    (void)state;
    int32_t label[N], predicted[N];
    double f1[K], recall;
    pnb_class_scores s;
    pnb_interval want;
    pnb_bootstrap_opts boot = {.n_resamples = 200, .level = 0.9, .seed = 3};
    draw(label, predicted, 1);
    both b = {label, predicted, false};
    assert_ok(pnb_class_scores_compute(label, predicted, N, K, &boot, &s, f1, err));
    assert_int_equal(s.n_present, K - 1);
    for (int32_t k = 0; k < K - 1; k++)
        assert_near(f1[k], f1_of(label, predicted, NULL, N, k, &recall), 1e-14, 0);
    assert_true(isnan(f1[K - 1]));
    assert_ok(pnb_bootstrap(by_definition, &b, N, &boot, &want, err));
    assert_near(s.macro_f1.value, want.value, 1e-14, 0);
    assert_near(s.macro_f1.low, want.low, 1e-14, 0);
    assert_near(s.macro_f1.high, want.high, 1e-14, 0);
    b.recall = true;
    assert_ok(pnb_bootstrap(by_definition, &b, N, &boot, &want, err));
    assert_near(s.balanced.value, want.value, 1e-14, 0);
    assert_near(s.balanced.low, want.low, 1e-14, 0);
    assert_true(s.balanced.low < s.balanced.value && s.balanced.value < s.balanced.high);
    boot.n_resamples = 0;
    assert_ok(pnb_class_scores_compute(label, predicted, N, K, &boot, &s, NULL, err));
    assert_true(s.balanced.value == want.value && isnan(s.balanced.low) && isnan(s.macro_f1.high));
}

/* scikit-learn: f1_score([0,0,1,1,2], [0,1,1,1,3], average="macro", labels=[0,1,2]) */
static void by_hand(void **state)
{
    (void)state;
    const int32_t label[] = {0, 0, 1, 1, 2}, predicted[] = {0, 1, 1, 1, 3};
    double f1[4];
    pnb_class_scores s;
    assert_ok(pnb_class_scores_compute(label, predicted, 5, 4, NULL, &s, f1, err));
    assert_near(f1[0], 2.0 / 3, 1e-15, 0);
    assert_near(f1[1], 0.8, 1e-15, 0);
    assert_true(f1[2] == 0 && isnan(f1[3]));
    assert_near(s.macro_f1.value, (2.0 / 3 + 0.8) / 3, 1e-15, 0);
    assert_near(s.balanced.value, 0.5, 1e-15, 0);
    assert_fails(pnb_class_scores_compute(label, predicted, 5, 3, NULL, &s, NULL, err), PNB_ARG,
                 "prediction 3");
    assert_fails(pnb_class_scores_compute(label, predicted, 0, 3, NULL, &s, NULL, err), PNB_ARG,
                 "no pictures");
}

/* ---- groups ---- */

typedef struct grouped {
    const double *value;
    const int32_t *group;
    bool average;
} grouped;

static double of_groups(void *user, const size_t *row, size_t n)
{
    const grouped *g = user;
    double least = 2, sum = 0, n_present = 0;
    for (int32_t k = 0; k < 4; k++) {
        double own = 0, total = 0;
        for (size_t i = 0; i < n; i++)
            if (g->group[row[i]] == k) {
                own++;
                total += g->value[row[i]];
            }
        if (own == 0)
            continue;
        least = total / own < least ? total / own : least;
        sum += total / own;
        n_present++;
    }
    return g->average ? sum / n_present : least;
}

/* Three groups have rows, one has none; every fourth row has no group and counts nowhere. */
static void groups_by_counting(void **state)
{
    (void)state;
    double value[N], kept_value[N];
    int32_t group[N], kept_group[N];
    int64_t cluster[N], kept_cluster[N];
    size_t n_kept = 0;
    pnb__rng rng;
    pnb__rng_init(&rng, 7, 0);
    for (size_t i = 0; i < N; i++) {
        group[i] = i % 4 == 3 ? -1 : (int32_t)(i % 4) + (i % 4 > 0);
        value[i] = pnb__rng_uniform(&rng) < 0.3 + 0.2 * group[i] ? 1 : 0;
        cluster[i] = (int64_t)(i / 3);
        if (group[i] < 0)
            continue;
        kept_cluster[n_kept] = cluster[i];
        kept_value[n_kept] = value[i];
        kept_group[n_kept++] = group[i];
    }
    pnb_bootstrap_opts boot = {.n_resamples = 150, .level = 0.95, .seed = 1, .cluster = cluster};
    pnb_group_score each[4];
    pnb_group_scores s;
    pnb_interval want;
    assert_ok(pnb_group_scores_compute(value, group, N, 4, &boot, each, &s, err));
    assert_int_equal(s.n, n_kept);
    assert_int_equal(s.n_present, 3);
    assert_int_equal(s.worst, 0);
    assert_true(each[1].n == 0 && isnan(each[1].mean.value));
    assert_int_equal(each[0].n + each[2].n + each[3].n, n_kept);
    grouped g = {kept_value, kept_group, false};
    boot.cluster = kept_cluster;
    assert_ok(pnb_bootstrap(of_groups, &g, n_kept, &boot, &want, err));
    assert_near(s.worst_mean.value, want.value, 1e-14, 0);
    assert_near(s.worst_mean.low, want.low, 1e-14, 0);
    assert_near(s.worst_mean.high, want.high, 1e-14, 0);
    assert_true(each[0].mean.value == s.worst_mean.value);
    g.average = true;
    assert_ok(pnb_bootstrap(of_groups, &g, n_kept, &boot, &want, err));
    assert_near(s.average.value, want.value, 1e-14, 0);
    assert_near(s.average.high, want.high, 1e-14, 0);
    assert_near(s.average.value, (each[0].mean.value + each[2].mean.value + each[3].mean.value) / 3,
                1e-14, 0);
}

static void groups_bad(void **state)
{
    (void)state;
    const double value[] = {1, NAN};
    const int32_t none[] = {-1, -1}, high[] = {0, 2}, both_in[] = {0, 0}, first[] = {0, -1};
    pnb_group_scores s;
    assert_fails(pnb_group_scores_compute(value, none, 2, 2, NULL, NULL, &s, err), PNB_ARG,
                 "none of 2 rows");
    assert_fails(pnb_group_scores_compute(value, high, 2, 2, NULL, NULL, &s, err), PNB_ARG,
                 "row 1 is of group 2");
    assert_fails(pnb_group_scores_compute(value, both_in, 2, 2, NULL, NULL, &s, err), PNB_NUMERIC,
                 "value 1");
    assert_ok(pnb_group_scores_compute(value, first, 2, 2, NULL, NULL, &s, err));
    assert_true(s.worst_mean.value == 1);
}

/* ---- suites ---- */

/* Two independent normals: half of the width of one, by the root of two. */
static void suites(void **state)
{
    (void)state;
    const pnb_interval two[] = {{0.5, 0.4, 0.6}, {0.7, 0.6, 0.8}};
    const pnb_interval uneven[] = {{0.5, 0.2, 0.6}, {0.7, 0.3, 0.9}, {0.9, 0.9, 0.9}};
    pnb_interval mean;
    assert_ok(pnb_suite_mean(two, 2, &mean, err));
    assert_near(mean.value, 0.6, 1e-15, 0);
    assert_near(mean.high - mean.value, 0.1 / sqrt(2), 1e-15, 0);
    assert_near(mean.value - mean.low, 0.1 / sqrt(2), 1e-15, 0);
    assert_ok(pnb_suite_mean(uneven, 3, &mean, err));
    assert_near(mean.value, 0.7, 1e-15, 0);
    assert_near(mean.value - mean.low, 0.5 / 3, 1e-15, 0); /* 3, 4, 5 */
    assert_near(mean.high - mean.value, sqrt(0.05) / 3, 1e-15, 0);
    const pnb_interval open[] = {{0.5, NAN, NAN}, {0.7, 0.6, 0.8}}, bad = {NAN, 0, 1};
    assert_ok(pnb_suite_mean(open, 2, &mean, err));
    assert_true(mean.value == 0.6 && isnan(mean.low) && isnan(mean.high));
    assert_fails(pnb_suite_mean(&bad, 1, &mean, err), PNB_NUMERIC, "data set 0");
    assert_fails(pnb_suite_mean(two, 0, &mean, err), PNB_ARG, "at least one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_counting), cmocka_unit_test(by_hand),
                                       cmocka_unit_test(groups_by_counting),
                                       cmocka_unit_test(groups_bad), cmocka_unit_test(suites)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
