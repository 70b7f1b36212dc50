/* Means in strata: values by hand, the intervals of the plain bootstrap where there is one stratum,
 * threads, and rows without a value. */
#include "eval/resample/means_bootstrap.h"

#include "penumbra/bootstrap.h"
#include "penumbra/ctx.h"
#include "tests/prob/support.h"

enum { N = 40 };
static const pnb_bootstrap_opts BOOT = {.n_resamples = 200, .level = 0.95, .seed = 5};

/* Two columns of N rows in one stratum. */
static pnb__means two_columns(void)
{
    pnb__means m;
    pnb__rng rng;
    pnb__rng_init(&rng, 1, 0);
    assert_ok(pnb__means_init(&m, N, 2, 1, err));
    for (size_t i = 0; i < N; i++) {
        m.value[2 * i] = pnb__rng_uniform(&rng);
        m.value[2 * i + 1] = m.value[2 * i] > 0.5;
        m.stratum[i] = 0;
        m.cluster[i] = (int64_t)(i / 3);
    }
    return m;
}

static void one_stratum_is_the_plain_bootstrap(void **state)
{
    (void)state;
    pnb__means m = two_columns();
    pnb_interval got[3], want;
    double column[N], p[3];
    pnb_bootstrap_opts boot = BOOT;
    boot.cluster = m.cluster;
    assert_ok(pnb__means_bootstrap(NULL, &m, &BOOT, got, p, err));
    for (size_t c = 0; c < 3; c++) {
        for (size_t i = 0; i < N; i++)
            column[i] = c < 2 ? m.value[2 * i + c] : 0.5 * (m.value[2 * i] + m.value[2 * i + 1]);
        assert_ok(pnb_bootstrap_mean(column, N, &boot, &want, err));
        assert_near(got[c].value, want.value, 1e-14, 0);
        assert_near(got[c].low, want.low, 1e-12, 0);
        assert_near(got[c].high, want.high, 1e-12, 0);
        assert_true(p[c] > 0 && p[c] < 0.05); /* no mean of these is 0 */
    }
    pnb__means_reset(&m);
    assert_null(m.value);
}

/* Means within strata are averaged; rows of negative strata and without a value take no part. */
static void values_in_strata(void **state)
{
    (void)state;
    double value[] = {1, 0, /* */ 0, NAN, /* */ 1, NAN, /* */ 1, NAN, /* */ 0.25, 1, /* */ 9, 9};
    int32_t stratum[] = {0, 0, 0, 1, 1, -1};
    pnb_bootstrap_opts none = {.n_resamples = 0, .level = 0.9};
    const pnb__means m = {
        .value = value, .stratum = stratum, .n = 6, .n_columns = 2, .n_strata = 3};
    pnb_interval got[3];
    double p[3];
    assert_ok(pnb__means_bootstrap(NULL, &m, &none, got, p, err));
    assert_near(got[0].value, 0.5 * (2.0 / 3 + 1.25 / 2), 1e-15, 0);
    assert_near(got[1].value, 0.5 * (0 + 1), 1e-15, 0); /* one value in each stratum */
    assert_near(got[2].value, 0.5 * (got[0].value + got[1].value), 1e-15, 0);
    for (size_t c = 0; c < 3; c++)
        assert_true(isnan(got[c].low) && isnan(got[c].high) && isnan(p[c]));
    for (size_t i = 0; i < 6; i++)
        value[2 * i + 1] = NAN;
    assert_ok(pnb__means_bootstrap(NULL, &m, &BOOT, got, NULL, err));
    assert_true(isnan(got[1].value) && isnan(got[1].low) && isnan(got[2].value));
    assert_true(isfinite(got[0].low));
}

/* Strata are drawn apart: two that agree within themselves leave nothing to chance. */
static void strata_are_drawn_apart(void **state)
{
    (void)state;
    double value[N];
    int32_t stratum[N];
    pnb_interval got[2];
    for (size_t i = 0; i < N; i++) {
        stratum[i] = i % 4 == 0;
        value[i] = stratum[i] ? 0.75 : 0.25;
    }
    pnb__means m = {.value = value,
                    .stratum = stratum,
                    .n = N,
                    .n_columns = 1,
                    .n_strata = 2,
                    .is_difference = true};
    assert_ok(pnb__means_bootstrap(NULL, &m, &BOOT, got, NULL, err));
    assert_true(got[0].value == 0.5 && got[0].low == 0.5 && got[0].high == 0.5);
    m.stratum = NULL; /* all in one: the mix is drawn too */
    m.n_strata = 1;
    assert_ok(pnb__means_bootstrap(NULL, &m, &BOOT, got, NULL, err));
    assert_true(got[0].low < 0.36 && got[0].high > 0.39);
}

static void threads_and_seeds(void **state)
{
    (void)state;
    pnb__means m = two_columns();
    pnb_interval one[3], three[3], other[3];
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_bootstrap_opts boot = BOOT;
    pnb_ctx *ctx = NULL;
    opts.n_threads = 3;
    assert_ok(pnb_ctx_create(&ctx, &opts, err));
    assert_ok(pnb__means_bootstrap(NULL, &m, &BOOT, one, NULL, err));
    assert_ok(pnb__means_bootstrap(ctx, &m, &BOOT, three, NULL, err));
    assert_memory_equal(one, three, sizeof one);
    boot.seed++;
    assert_ok(pnb__means_bootstrap(NULL, &m, &boot, other, NULL, err));
    assert_true(one[0].low != other[0].low);
    boot.level = 0;
    assert_fails(pnb__means_bootstrap(NULL, &m, &boot, other, NULL, err), PNB_ARG, "level 0");
    m.n = 0;
    assert_fails(pnb__means_bootstrap(NULL, &m, &BOOT, other, NULL, err), PNB_ARG, "no rows");
    pnb_ctx_free(ctx);
    pnb__means_reset(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stratum_is_the_plain_bootstrap),
        cmocka_unit_test(values_in_strata),
        cmocka_unit_test(strata_are_drawn_apart),
        cmocka_unit_test(threads_and_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
