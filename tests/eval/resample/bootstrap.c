/* The bootstrap of one figure: coverage of a mean, draws by seed, shares at their ends, quantiles,
 * and what is refused. */
#include "penumbra/bootstrap.h"
#include "eval/sorted.h"
#include "tests/prob/support.h"

/* A 95% interval of a normal mean is close to +-1.96/sqrt(n) and covers the truth about as often.
 */
static void bootstrap_of_a_mean(void **state)
{
    (void)state;
    enum { N = 200, RUNS = 60 };
    double x[N];
    int covered = 0;
    pnb_bootstrap_opts o = pnb_bootstrap_opts_default();
    o.n_resamples = 300;
    for (uint64_t run = 0; run < RUNS; run++) {
        pnb_interval interval;
        pnb__rng rng;
        pnb__rng_init(&rng, 11, run);
        for (size_t i = 0; i < N; i++)
            x[i] = 2.0 + pnb__rng_normal(&rng);
        assert_ok(pnb_bootstrap_mean(x, N, &o, &interval, err));
        covered += interval.low <= 2.0 && 2.0 <= interval.high;
        assert_near(interval.high - interval.low, 2 * 1.96 / sqrt(N), 0.08, 0);
        assert_true(interval.low < interval.value && interval.value < interval.high);
    }
    assert_true(covered >= RUNS * 85 / 100);
}

static double always_nan(void *user, const size_t *row, size_t n)
{
    (void)user;
    (void)row;
    (void)n;
    return (double)NAN;
}

typedef struct calls {
    size_t n_rows[400], n_calls, n_nan;
} calls;

/* Notes the sizes of samples; no number where row 0 was drawn twice or more. */
static double note(void *user, const size_t *row, size_t n)
{
    calls *c = user;
    size_t n_first = 0;
    double sum = 0;
    c->n_rows[c->n_calls++ % 400] = n;
    for (size_t i = 0; i < n; i++) {
        n_first += row[i] == 0;
        sum += (double)row[i];
    }
    c->n_nan += n_first > 1;
    return n_first > 1 ? (double)NAN : sum / (double)n;
}

/* Rows of a cluster come together; resamples without a value are left out. */
static void statistics_of_rows(void **state)
{
    (void)state;
    const int64_t cluster[] = {4, 4, 4, 7, 7, 9};
    pnb_bootstrap_opts o = {.n_resamples = 50, .level = 0.9, .seed = 2, .cluster = cluster};
    calls c = {.n_calls = 0};
    pnb_interval interval, again;
    assert_ok(pnb_bootstrap(note, &c, 6, &o, &interval, err));
    assert_int_equal(c.n_calls, 1 + 50 + 3); /* the sample, resamples, one without each cluster */
    assert_int_equal(c.n_rows[0], 6);
    assert_near(interval.value, 2.5, 1e-15, 0);
    for (size_t i = 1; i <= 50; i++) /* three of the sizes 3, 2 and 1 */
        assert_in_range(c.n_rows[i], 3, 9);
    assert_true(c.n_rows[51] == 3 && c.n_rows[52] == 4 && c.n_rows[53] == 5);
    assert_true(c.n_nan > 5 && isfinite(interval.low) && interval.low <= interval.high);
    c.n_calls = 0;
    assert_ok(pnb_bootstrap(note, &c, 6, &o, &again, err));
    assert_memory_equal(&again, &interval, sizeof again);
    o.seed = 3;
    c.n_calls = 0;
    assert_ok(pnb_bootstrap(note, &c, 6, &o, &again, err));
    assert_true(again.low != interval.low || again.high != interval.high);
}

/* Shares that are all 0 or 1 have Wilson's interval, other values that agree have none around. */
static void agreeing_rows(void **state)
{
    (void)state;
    const double ones[] = {1, 1, 1, 1, 1, 1, 1, 1}, fives[] = {5, 5, 5, 5, 5, 5, 5, 5};
    pnb_interval interval;
    assert_ok(pnb_bootstrap_mean(ones, 8, NULL, &interval, err));
    assert_true(interval.value == 1 && interval.high == 1 && interval.low > 0.4 &&
                interval.low < 0.8);
    assert_ok(pnb_bootstrap_mean(fives, 8, NULL, &interval, err));
    assert_true(interval.low == 5 && interval.high == 5);
    assert_ok(pnb_bootstrap_mean(fives, 1, NULL, &interval, err));
    assert_true(interval.value == 5 && isnan(interval.low) && isnan(interval.high));
}

static void quantiles(void **state)
{
    (void)state;
    const double x[] = {1, 2, 4, 8};
    assert_near(pnb__quantile(x, 4, 0), 1, 0, 0);
    assert_near(pnb__quantile(x, 4, 1), 8, 0, 0);
    assert_near(pnb__quantile(x, 4, 0.5), 3, 1e-15, 0);
    assert_near(pnb__quantile(x, 4, 0.9), 4 + 0.7 * 4, 1e-14, 0);
    assert_near(pnb__quantile(x, 1, 0.3), 1, 0, 0);
}

static void bad_input(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3}, nan[] = {1, NAN, 2};
    pnb_interval interval;
    pnb_bootstrap_opts o = {.n_resamples = 10, .level = 1.0};
    assert_fails(pnb_bootstrap_mean(x, 0, NULL, &interval, err), PNB_ARG, "no rows");
    assert_fails(pnb_bootstrap_mean(x, 3, &o, &interval, err), PNB_ARG, "level 1");
    o = (pnb_bootstrap_opts){.n_resamples = 0, .level = 0.9};
    assert_fails(pnb_bootstrap_mean(x, 3, &o, &interval, err), PNB_ARG, "0 resamples");
    assert_fails(pnb_bootstrap_mean(nan, 3, NULL, &interval, err), PNB_NUMERIC, "value 1");
    assert_fails(pnb_bootstrap(always_nan, NULL, 3, NULL, &interval, err), PNB_NUMERIC,
                 "resamples");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bootstrap_of_a_mean), cmocka_unit_test(statistics_of_rows),
        cmocka_unit_test(agreeing_rows),       cmocka_unit_test(quantiles),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
