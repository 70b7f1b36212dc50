/* The search of latents under mixed processes: means and variances where it ends are those of the
 * training's form (lmc.c), nothing near is better, slopes of the mean are differences, and a row
 * that the processes made themselves is found again. */
#include "adapt/gp/lmc_latent.h"
#include "tests/adapt/gp/support.h"

enum { D = 6, M = 9, N = 4, Q = 2 };
#define JITTER 1e-4

typedef struct setting {
    pnb_ctx *ctx;
    pnb__lmc lmc;
    pnb__lmc_process p;
    pnb__lmc_search search;
    double z[D * M * Q], lengthscale[D], scale[D], constant[D], q_mean[D * M], mixing[D * D];
    double *factors, noise[D], y[N * D], true_x[N * Q];
    double x[N * Q], hessian[N * Q * Q], mean[D * N], var[D * N], jacobian[D * N * Q];
} setting;

static void set_up(setting *s, pnb__gp_kind kind)
{
    pnb_error err = PNB_ERROR_INIT;
    double mean[D * N], var[D * N];
    const pnb__lmc_opts sizes = {D, M, Q, N, JITTER, PNB__F64};
    *s = (setting){.ctx = NULL};
    fill_normal(s->z, D * M * Q, 1);
    fill_normal(s->true_x, N * Q, 2);
    fill_normal(s->constant, D, 3);
    fill_normal(s->q_mean, D * M, 4);
    fill_normal(s->mixing, D * D, 5);
    s->factors = calloc(D * pnb__factors_size(M, 1), sizeof *s->factors);
    assert_non_null(s->factors);
    for (size_t l = 0; l < D; l++) {
        s->lengthscale[l] = 1.5 + 0.1 * (double)l;
        s->scale[l] = 1 + 0.1 * (double)l;
        s->noise[l] = 0.05 + 0.02 * (double)l;
        for (size_t i = 0; i < M; i++)
            s->factors[l * pnb__factors_size(M, 1) + pnb__factors_at(M, 1, 0, i, i)] = 0.3;
    }
    assert_int_equal(pnb_ctx_create(&s->ctx, NULL, &err), PNB_OK);
    assert_int_equal(pnb__lmc_init(&s->lmc, s->ctx, &sizes, &err), PNB_OK);
    s->p = (pnb__lmc_process){kind,        s->z,      s->lengthscale, s->scale,
                              s->constant, s->q_mean, s->factors,     s->mixing};
    assert_int_equal(pnb__lmc_search_init(&s->search, s->ctx, &s->p, &sizes, s->noise, &err),
                     PNB_OK);
    assert_int_equal(pnb__lmc_at(&s->lmc, &s->p, s->true_x, N, mean, var, &err), PNB_OK);
    for (size_t i = 0; i < N * D; i++)
        s->y[i] = mean[i % D * N + i / D];
    for (size_t i = 0; i < N * Q; i++)
        s->x[i] = s->true_x[i] + 0.2 * cos((double)i);
}

static void tear_down(setting *s)
{
    pnb__lmc_search_reset(&s->search);
    pnb__lmc_reset(&s->lmc);
    pnb_ctx_free(s->ctx);
    free(s->factors);
}

static void run(setting *s, size_t max_steps, double adam_rate)
{
    pnb_error err = PNB_ERROR_INIT;
    const pnb__lmc_search_opts opts = {max_steps, 1e-12, adam_rate};
    const pnb__lmc_reading out = {s->x, s->hessian, s->mean, s->var, s->jacobian};
    assert_int_equal(pnb__lmc_search_run(&s->search, s->y, N, &opts, &out, &err), PNB_OK);
}

/* The negative expected log likelihood of row `row` at x (Q), by lmc.c. */
static double value_at(setting *s, size_t row, const double *x)
{
    double mean[D], var[D], sum = 0;
    assert_int_equal(pnb__lmc_at(&s->lmc, &s->p, x, 1, mean, var, NULL), PNB_OK);
    for (size_t t = 0; t < D; t++)
        sum += (pow(s->y[row * D + t] - mean[t], 2) + var[t]) / (2 * s->noise[t]);
    return sum;
}

static void it_ends_where_nothing_near_is_better(void **state)
{
    (void)state;
    setting s;
    double mean[D * N], var[D * N];
    set_up(&s, PNB__GP_RBF);
    run(&s, 500, 0);
    assert_int_equal(pnb__lmc_at(&s.lmc, &s.p, s.x, N, mean, var, NULL), PNB_OK);
    for (size_t i = 0; i < D * N; i++) {
        near("mean", i, s.mean[i], mean[i], 1e-10);
        near("var", i, s.var[i], var[i], 1e-10);
    }
    for (size_t row = 0; row < N; row++) {
        double here = value_at(&s, row, s.x + row * Q);
        for (size_t a = 0; a < Q; a++) {
            double x[Q], slope;
            memcpy(x, s.x + row * Q, sizeof x);
            x[a] += 1e-4;
            double above = value_at(&s, row, x);
            x[a] -= 2e-4;
            double below = value_at(&s, row, x);
            assert_true(above > here && below > here);
            slope = (above - below) / 2e-4;
            near("slope", row * Q + a, slope, 0, 1e-3);
            near("itself", row * Q + a, s.x[row * Q + a], s.true_x[row * Q + a], 0.15);
        }
    }
    tear_down(&s);
}

static void check_jacobian(setting *s)
{
    for (size_t i = 0; i < N; i++)
        for (size_t a = 0; a < Q; a++) {
            double x[Q], above[D], below[D], var[D];
            memcpy(x, s->x + i * Q, sizeof x);
            x[a] += 1e-5;
            assert_int_equal(pnb__lmc_at(&s->lmc, &s->p, x, 1, above, var, NULL), PNB_OK);
            x[a] -= 2e-5;
            assert_int_equal(pnb__lmc_at(&s->lmc, &s->p, x, 1, below, var, NULL), PNB_OK);
            for (size_t t = 0; t < D; t++)
                near("jacobian", (t * N + i) * Q + a, s->jacobian[(t * N + i) * Q + a],
                     (above[t] - below[t]) / 2e-5, 1e-5);
        }
}

static void slopes_of_the_mean_are_differences(void **state)
{
    (void)state;
    for (int kind = 0; kind < PNB__GP_WAVE; kind++) {
        setting s;
        set_up(&s, (pnb__gp_kind)kind);
        run(&s, 3, 0);
        check_jacobian(&s);
        tear_down(&s);
    }
}

/* Adam's first step goes by its rate against the slope's sign, whatever its size. */
static void adam_steps_as_the_release(void **state)
{
    (void)state;
    setting s;
    double before[N * Q];
    set_up(&s, PNB__GP_RBF);
    memcpy(before, s.x, sizeof before);
    run(&s, 1, 0.1);
    for (size_t i = 0; i < N * Q; i++) {
        double x[Q];
        memcpy(x, before + i / Q * Q, sizeof x);
        x[i % Q] += 1e-6;
        double above = value_at(&s, i / Q, x);
        x[i % Q] -= 2e-6;
        double below = value_at(&s, i / Q, x);
        near("step", i, s.x[i] - before[i], above > below ? -0.1 : 0.1, 1e-6);
    }
    tear_down(&s);
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    setting s;
    pnb_error err = PNB_ERROR_INIT;
    const pnb__lmc_search_opts opts = {3, 1e-8, 0};
    set_up(&s, PNB__GP_RBF);
    s.y[2 * D + 1] = NAN;
    const pnb__lmc_reading out = {s.x, s.hessian, s.mean, s.var, s.jacobian};
    assert_int_equal(pnb__lmc_search_run(&s.search, s.y, N, &opts, &out, &err), PNB_NUMERIC);
    assert_non_null(strstr(err.text, "embedding 2 is not finite"));
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_ends_where_nothing_near_is_better),
                                       cmocka_unit_test(slopes_of_the_mean_are_differences),
                                       cmocka_unit_test(adam_steps_as_the_release),
                                       cmocka_unit_test(what_is_no_number_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
