/* Marginals without a graph: the numbers of the graph's form (svgp.c), slopes against differences,
 * and at the optimum of the bound one covariance is as good as one for each output. */
#include "adapt/gp/marginals.h"
#include "adapt/gp/gp_exact.h"
#include "adapt/gp/grove_loss.h"
#include "tests/adapt/gp/support.h"

enum { D = 3, M = 4, N = 6, Q = 2 };

typedef struct setting {
    pnb_ctx *ctx;
    pnb__marginals marginals;
    pnb__process process;
    size_t f;
    double z[M * Q], x[N * Q], lengthscale, constant[D], q_mean[D * M], factors[D * M * M];
    double mean[D * N], var[D * N], by_mean[D * N], by_var[D * N], weight;
} setting;

static void set_up(setting *s, bool is_shared)
{
    pnb_error err = {0};
    const pnb__marginals_opts opts = {D, M, N, 1e-6, is_shared, PNB__F64};
    double c[M * M];
    *s = (setting){.f = is_shared ? 1 : D, .lengthscale = 1.2, .weight = 0.4};
    fill_normal(s->z, M * Q, 1);
    fill_normal(s->x, N * Q, 2);
    fill_normal(s->constant, D, 3);
    fill_normal(s->q_mean, D * M, 4);
    fill_normal(s->by_mean, D * N, 5);
    fill_normal(s->by_var, D * N, 6);
    assert_int_equal(pnb_ctx_create(&s->ctx, NULL, &err), PNB_OK);
    assert_int_equal(pnb__marginals_init(&s->marginals, s->ctx, &opts, &err), PNB_OK);
    for (size_t f = 0; f < s->f; f++) {
        fill_normal(c, M * M, 7 + f);
        for (size_t r = 0; r < M; r++)
            for (size_t i = 0; i <= r; i++)
                s->factors[pnb__factors_at(M, s->f, f, r, i)] = c[r * M + i];
    }
    s->process = (pnb__process){.kernel = {PNB__GP_RBF, Q, 1, &s->lengthscale, 1.4},
                                .z = s->z,
                                .constant = s->constant,
                                .q_mean = s->q_mean,
                                .factors = s->factors};
}

static void tear_down(setting *s)
{
    pnb__marginals_reset(&s->marginals);
    pnb_ctx_free(s->ctx);
}

static double loss(void *user)
{
    setting *s = user;
    assert_int_equal(pnb__marginals_factorise(&s->marginals, &s->process, NULL), PNB_OK);
    pnb__marginals_at(&s->marginals, &s->process, s->x, N, s->mean, s->var);
    double sum = s->weight * pnb__marginals_divergence(&s->marginals, &s->process);
    for (size_t i = 0; i < D * N; i++)
        sum += s->by_mean[i] * s->mean[i];
    for (size_t i = 0; i < s->f * N; i++)
        sum += s->by_var[i] * s->var[i];
    return sum;
}

/* The graph's form has (M,F,M) factors. */
static void numbers_are_those_of_the_graph(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        setting s;
        pnb_error err = {0};
        pnb__graph *g = NULL;
        double factors[D * M * M] = {0}, mean[D * N], var[D * N];
        set_up(&s, shared);
        loss(&s);
        for (size_t i = 0; i < s.f * M * M; i++)
            if (i % M <= i / (s.f * M))
                factors[i] = s.factors[pnb__factors_at(M, s.f, i / M % s.f, i / (s.f * M), i % M)];
        assert_int_equal(pnb__graph_create(&g, s.ctx, PNB__F64, false, &err), PNB_OK);
        pnb__svgp f = {.form = shared ? PNB__SVGP_SHARED_COVARIANCE : PNB__SVGP_SHARED_KERNEL,
                       .n_outputs = D,
                       .m = M,
                       .n = N};
        f.b = pnb__input(g, PNB__REAL, 2, (size_t[]){M, N});
        f.prior = pnb__input(g, PNB__REAL, 0, NULL);
        f.q_mean = pnb__input(g, PNB__REAL, 2, (size_t[]){D, M});
        f.q_chol = pnb__input(g, PNB__REAL, 3, (size_t[]){M, s.f, M});
        f.constant = pnb__input(g, PNB__REAL, 2, (size_t[]){D, 1});
        pnb__svgp_inputs(g, &f);
        pnb__svgp_out out = pnb__svgp_build(&f);
        pnb__keep(out.mean);
        pnb__keep(out.var);
        pnb__keep(out.kl);
        assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_OK);
        pnb__write_f64(f.b, s.marginals.set.b);
        pnb__write_f64(f.prior, &s.process.kernel.scale);
        pnb__write_f64(f.q_mean, s.q_mean);
        pnb__write_f64(f.q_chol, factors);
        pnb__write_f64(f.constant, s.constant);
        assert_int_equal(pnb__svgp_write_inputs(&f, &err), PNB_OK);
        assert_int_equal(pnb__graph_run(g, &err), PNB_OK);
        pnb__read_f64(out.mean, mean);
        pnb__read_f64(out.var, var);
        for (size_t i = 0; i < D * N; i++)
            near("mean", i, s.mean[i], mean[i], 1e-12);
        for (size_t i = 0; i < s.f * N; i++)
            near("var", i, s.var[i], var[i], 1e-12);
        near("divergence", 0, pnb__marginals_divergence(&s.marginals, &s.process),
             pnb__read_scalar(out.kl), 1e-12);
        pnb__marginals_at(&s.marginals, &s.process, s.x, N, mean, NULL);
        for (size_t i = 0; i < D * N; i++)
            assert_true(mean[i] == s.mean[i]);
        pnb__graph_free(g);
        tear_down(&s);
    }
}

static void slopes_are_those_of_the_loss(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        setting s;
        double dx[N * Q] = {0}, dz[M * Q] = {0}, dlengthscale = 0, dscale = 0, dconstant[D];
        double dq_mean[D * M], dfactors[D * M * M];
        set_up(&s, shared);
        loss(&s);
        const pnb__marginals_slopes slopes = {s.by_mean, s.by_var, s.weight};
        double divergence = 0;
        const pnb__process_grad grad = {
            {dx, dz, &dlengthscale, &dscale}, dconstant, dq_mean, dfactors, &divergence};
        pnb__marginals_backward(&s.marginals, &s.process, s.x, N, &slopes, &grad);
        near("divergence", 0, divergence, pnb__marginals_divergence(&s.marginals, &s.process),
             1e-13);
        check_slopes("x", loss, &s, s.x, N * Q, dx, 1e-6);
        check_slopes("z", loss, &s, s.z, M * Q, dz, 1e-5);
        check_slopes("lengthscale", loss, &s, &s.lengthscale, 1, &dlengthscale, 1e-6);
        check_slopes("scale", loss, &s, &s.process.kernel.scale, 1, &dscale, 1e-6);
        check_slopes("constant", loss, &s, s.constant, D, dconstant, 1e-6);
        check_slopes("q_mean", loss, &s, s.q_mean, D * M, dq_mean, 1e-6);
        for (size_t f = 0; f < s.f; f++)
            for (size_t i = 0; i < M * M; i++)
                if (i / M >= i % M) {
                    size_t at = pnb__factors_at(M, s.f, f, i / M, i % M);
                    check_slopes("factor", loss, &s, s.factors + at, 1, dfactors + at, 1e-6);
                }
        tear_down(&s);
    }
}

/* -ELBO of y (D,N) at s->mean and s->var; its slopes into by_mean and by_var. */
static double negative_bound(setting *s, const double *y, double noise)
{
    s->weight = 1;
    double sum = 0;
    assert_int_equal(pnb__marginals_factorise(&s->marginals, &s->process, NULL), PNB_OK);
    pnb__marginals_at(&s->marginals, &s->process, s->x, N, s->mean, s->var);
    memset(s->by_var, 0, sizeof s->by_var);
    for (size_t i = 0; i < D * N; i++) {
        size_t at = s->f == 1 ? i % N : i;
        double r = y[i] - s->mean[i];
        sum += 0.5 * (log(2 * 3.14159265358979323846 * noise) + (r * r + s->var[at]) / noise);
        s->by_mean[i] = -r / noise;
        s->by_var[at] += 0.5 / noise;
    }
    return sum + pnb__marginals_divergence(&s->marginals, &s->process);
}

/* Put in q(v) of the collapsed bound: with one covariance and with one for each output the bound is
 * the collapsed one, and no slope of q(v) is left, so that the second cannot be better. */
static void both_bounds_agree_at_the_optimum(void **state)
{
    (void)state;
    double value[2];
    for (int shared = 0; shared < 2; shared++) {
        setting s;
        pnb_error err = {0};
        double y[N * D], columns[N * D], q_chol[M * M], dq_mean[D * M], dfactors[D * M * M];
        double dx[N * Q], dz[M * Q], dconstant[D], noise = 0.3, slope = 0;
        set_up(&s, shared);
        fill_normal(y, N * D, 20);
        for (size_t i = 0; i < N * D; i++)
            columns[i % D * N + i / D] = y[i];
        pnb__gp_data data = {N, D, s.x, y, s.constant, noise};
        pnb__gp_collapsed_out out = {.q_mean = s.q_mean, .q_chol = q_chol};
        assert_int_equal(pnb__marginals_factorise(&s.marginals, &s.process, &err), PNB_OK);
        assert_int_equal(
            pnb__gp_collapsed(&s.marginals.inducing, &s.marginals.set, &data, &out, &err), PNB_OK);
        pnb__factors_fill(&s.marginals.factors, q_chol, s.factors);
        value[shared] = negative_bound(&s, columns, noise);
        near("bound", (size_t)shared, -value[shared], out.bound, 1e-9);
        const pnb__process_grad grad = {
            {dx, dz, &slope, &slope}, dconstant, dq_mean, dfactors, NULL};
        const pnb__marginals_slopes slopes = {s.by_mean, s.by_var, 1};
        pnb__marginals_backward(&s.marginals, &s.process, s.x, N, &slopes, &grad);
        for (size_t i = 0; i < D * M; i++)
            near("slope of q_mean", i, dq_mean[i], 0, 1e-9);
        for (size_t i = 0; i < pnb__factors_size(M, s.f); i++)
            near("slope of a factor", i, dfactors[i], 0, 1e-9);
        tear_down(&s);
    }
    near("both bounds", 0, value[0], value[1], 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_those_of_the_graph),
                                       cmocka_unit_test(slopes_are_those_of_the_loss),
                                       cmocka_unit_test(both_bounds_agree_at_the_optimum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
