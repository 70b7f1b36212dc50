/* The three forms of sparse processes in a graph: the same numbers where they mean the same, the
 * bound at its optimum, gradients, and the distances that align two sides. */
#include "adapt/gp/svgp.h"
#include "adapt/gp/gp_exact.h"
#include "tests/adapt/gp/support.h"

enum { D = 3, M = 4, N = 6, Q = 2 };

typedef struct setting {
    pnb_ctx *ctx;
    pnb__inducing inducing;
    pnb__inducing_set set;
    double z[M * Q], x[N * Q], y[N * D], lengthscale, chol[M * M], b[M * N];
    double q_mean[D * M], q_chol[D][M * M], constant, noise;
} setting;

static void set_up(setting *s)
{
    pnb_error err = {0};
    double all[D * M * M];
    fill_normal(s->z, M * Q, 1);
    fill_normal(s->x, N * Q, 2);
    fill_normal(s->y, N * D, 3);
    fill_normal(s->q_mean, D * M, 4);
    fill_normal(all, D * M * M, 5); /* rubbish above the diagonals, which nobody may read */
    memcpy(s->q_chol, all, sizeof all);
    s->lengthscale = 1.1;
    s->constant = 0.3;
    s->noise = 0.4;
    assert_int_equal(pnb_ctx_create(&s->ctx, NULL, &err), PNB_OK);
    assert_int_equal(pnb__inducing_init(&s->inducing, s->ctx, M, N, 1e-8, &err), PNB_OK);
    s->set = (pnb__inducing_set){
        .kernel = {PNB__GP_RBF, Q, 1, &s->lengthscale, 1.4}, .z = s->z, .chol = s->chol, .b = s->b};
    assert_int_equal(pnb__inducing_factorise(&s->inducing, &s->set, &err), PNB_OK);
    pnb__inducing_project(&s->inducing, &s->set, s->x, N);
}

static void tear_down(setting *s)
{
    pnb__inducing_reset(&s->inducing);
    pnb_ctx_free(s->ctx);
}

/* What a form makes of the setting: marginals, divergence, bound, and slopes of the bound. */
typedef struct result {
    double mean[D * N], var[D * N], kl, bound, dq_mean[D * M], dq_chol[D][M * M];
} result;

/* [d][i][j] of the factors at their place in the form's tensor */
static size_t place(pnb__svgp_form form, size_t d, size_t i, size_t j)
{
    if (form == PNB__SVGP_PER_OUTPUT)
        return (d * M + i) * M + j;
    return form == PNB__SVGP_SHARED_KERNEL ? (i * D + d) * M + j : i * M + j;
}

static void read_factors(pnb__svgp_form form, const double *in, double out[D][M * M])
{
    for (size_t d = 0; d < D; d++)
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < M; j++)
                out[d][i * M + j] = in[place(form, d, i, j)];
}

static void run(const setting *s, pnb__svgp_form form, result *out)
{
    pnb_error err = {0};
    pnb__graph *g = NULL;
    size_t factors = form == PNB__SVGP_SHARED_COVARIANCE ? 1 : D;
    bool per_output = form == PNB__SVGP_PER_OUTPUT;
    double factor[D * M * M], b[D * M * N], y[D * N], prior = s->set.kernel.scale;
    assert_int_equal(pnb__graph_create(&g, s->ctx, PNB__F64, true, &err), PNB_OK);
    size_t own[] = {D, M, per_output ? M : N}, middle[] = {M, factors, M}, wide[] = {D, M, N};
    pnb__svgp f = {.form = form, .n_outputs = D, .m = M, .n = N};
    f.b = per_output ? pnb__input(g, PNB__REAL, 3, wide)
                     : pnb__input(g, PNB__REAL, 2, (size_t[]){M, N});
    f.q_mean = pnb__input_with_grad(g, 2, (size_t[]){D, M});
    f.q_chol = pnb__input_with_grad(g, 3, per_output ? own : middle);
    f.prior = pnb__input(g, PNB__REAL, 0, NULL);
    f.constant = pnb__constant(g, s->constant);
    pnb__tensor *noise = pnb__constant(g, s->noise);
    pnb__tensor *target = pnb__input(g, PNB__REAL, 2, (size_t[]){D, N});
    pnb__svgp_inputs(g, &f);
    pnb__svgp_out made = pnb__svgp_build(&f);
    pnb__tensor *bound =
        pnb__sub(pnb__gauss_expected_log_lik(target, made.mean, made.var, noise), made.kl);
    pnb__keep(made.mean);
    pnb__keep(made.var);
    pnb__keep(made.kl);
    pnb__keep(bound);
    pnb__keep_grad(f.q_mean);
    pnb__keep_grad(f.q_chol);
    assert_int_equal(pnb__graph_plan(g, bound, &err), PNB_OK);
    for (size_t d = 0; d < D; d++) {
        memcpy(b + d * M * N, s->b, sizeof s->b);
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < M; j++)
                if (d < factors)
                    factor[place(form, d, i, j)] = s->q_chol[d][i * M + j];
        for (size_t n = 0; n < N; n++)
            y[d * N + n] = s->y[n * D + d];
    }
    assert_int_equal(pnb__svgp_write_inputs(&f, &err), PNB_OK);
    pnb__write_f64(f.b, b);
    pnb__write_f64(f.q_mean, s->q_mean);
    pnb__write_f64(f.q_chol, factor);
    pnb__write_f64(f.prior, &prior);
    pnb__write_f64(target, y);
    assert_int_equal(pnb__graph_run(g, &err), PNB_OK);
    pnb__read_f64(made.mean, out->mean);
    pnb__read_f64(made.var, out->var);
    out->kl = pnb__read_scalar(made.kl);
    out->bound = pnb__read_scalar(bound);
    pnb__read_grad_f64(f.q_mean, out->dq_mean);
    pnb__read_grad_f64(f.q_chol, factor);
    read_factors(form, factor, out->dq_chol);
    pnb__graph_free(g);
}

/* Straight from the definitions, in loops. */
static void by_hand(const setting *s, result *out)
{
    out->kl = 0;
    for (size_t d = 0; d < D; d++) {
        const double *m = s->q_mean + d * M, *c = s->q_chol[d];
        for (size_t n = 0; n < N; n++) {
            double mean = s->constant, var = s->set.kernel.scale;
            for (size_t i = 0; i < M; i++) {
                double t = 0, b = s->b[i * N + n];
                for (size_t p = i; p < M; p++)
                    t += c[p * M + i] * s->b[p * N + n];
                mean += m[i] * b;
                var += t * t - b * b;
            }
            out->mean[d * N + n] = mean;
            out->var[d * N + n] = var;
        }
        for (size_t i = 0; i < M; i++) {
            out->kl += 0.5 * (m[i] * m[i] - 1) - log(fabs(c[i * M + i]));
            for (size_t j = 0; j <= i; j++)
                out->kl += 0.5 * c[i * M + j] * c[i * M + j];
        }
    }
}

static void forms_agree(void **state)
{
    (void)state;
    setting s;
    result hand, shared, each, one;
    set_up(&s);
    by_hand(&s, &hand);
    run(&s, PNB__SVGP_SHARED_KERNEL, &shared);
    run(&s, PNB__SVGP_PER_OUTPUT, &each);
    for (size_t i = 0; i < D * N; i++) {
        near("mean", i, shared.mean[i], hand.mean[i], 1e-13);
        near("var", i, shared.var[i], hand.var[i], 1e-13);
        near("mean, own", i, each.mean[i], hand.mean[i], 1e-13);
        near("var, own", i, each.var[i], hand.var[i], 1e-13);
    }
    near("kl", 0, shared.kl, hand.kl, 1e-13);
    near("kl, own", 0, each.kl, hand.kl, 1e-13);
    memcpy(s.q_chol[1], s.q_chol[0], sizeof s.q_chol[0]);
    memcpy(s.q_chol[2], s.q_chol[0], sizeof s.q_chol[0]);
    run(&s, PNB__SVGP_SHARED_KERNEL, &shared);
    run(&s, PNB__SVGP_SHARED_COVARIANCE, &one);
    near("one covariance, bound", 0, one.bound, shared.bound, 1e-13);
    near("one covariance, kl", 0, one.kl, shared.kl, 1e-13);
    for (size_t i = 0; i < N; i++)
        near("one covariance, var", i, one.var[i], shared.var[i], 1e-13);
    tear_down(&s);
}

/* The collapsed bound's q(v) is where both bounds are flat, and they agree there: with a shared
 * kernel and noise one covariance for all outputs loses nothing. */
static void bounds_agree_at_the_optimum(void **state)
{
    (void)state;
    setting s;
    result shared, one;
    double constant[D], q_chol[M * M];
    pnb_error err = {0};
    set_up(&s);
    for (size_t d = 0; d < D; d++)
        constant[d] = s.constant;
    pnb__gp_data data = {N, D, s.x, s.y, constant, s.noise};
    pnb__gp_collapsed_out best = {.q_mean = s.q_mean, .q_chol = q_chol};
    assert_int_equal(pnb__gp_collapsed(&s.inducing, &s.set, &data, &best, &err), PNB_OK);
    for (size_t d = 0; d < D; d++)
        memcpy(s.q_chol[d], q_chol, sizeof q_chol);
    run(&s, PNB__SVGP_SHARED_KERNEL, &shared);
    run(&s, PNB__SVGP_SHARED_COVARIANCE, &one);
    near("bound", 0, shared.bound, best.bound, 1e-12);
    near("one covariance", 0, one.bound, best.bound, 1e-12);
    for (size_t d = 0; d < D; d++) {
        for (size_t i = 0; i < M; i++)
            near("slope by the mean", d * M + i, shared.dq_mean[d * M + i], 0, 1e-11);
        for (size_t i = 0; i < M * M; i++) {
            near("slope by the factor", i, shared.dq_chol[d][i], 0, 1e-11);
            near("slope by the one factor", i, one.dq_chol[0][i], 0, 1e-11);
        }
    }
    tear_down(&s);
}

typedef struct moved {
    setting *s;
    pnb__svgp_form form;
} moved;

static double bound_at(void *user)
{
    moved *m = user;
    result r;
    run(m->s, m->form, &r);
    return r.bound;
}

static void slopes_agree_with_differences(void **state)
{
    (void)state;
    for (int form = 0; form < 3; form++) {
        setting s;
        result r;
        set_up(&s);
        moved m = {&s, (pnb__svgp_form)form};
        run(&s, m.form, &r);
        check_slopes("q_mean", bound_at, &m, s.q_mean, D * M, r.dq_mean, 1e-7);
        check_slopes("q_chol", bound_at, &m, s.q_chol[0], M * M, r.dq_chol[0], 1e-7);
        tear_down(&s);
    }
}

/* ---- distances between two sides ---- */
static double kl(double m0, double v0, double m1, double v1)
{
    return 0.5 * (log(v1 / v0) + (v0 + (m0 - m1) * (m0 - m1)) / v1 - 1);
}

static double aligned(pnb__align kind, double m0, double v0, double m1, double v1)
{
    double m = (m0 + m1) / 2, v = (v0 + v1) / 2, apart = sqrt(v0) - sqrt(v1);
    if (kind == PNB__ALIGN_KL)
        return (kl(m0, v0, m1, v1) + kl(m1, v1, m0, v0)) / 2;
    if (kind == PNB__ALIGN_JS)
        return (kl(m0, v0, m, v) + kl(m1, v1, m, v)) / 2;
    return (m0 - m1) * (m0 - m1) + apart * apart;
}

static void alignments_are_their_formulas(void **state)
{
    (void)state;
    setting s;
    double values[4][D * N], got[N];
    pnb_error err = {0};
    set_up(&s);
    for (int i = 0; i < 4; i++)
        fill_normal(values[i], D * N, 20 + (uint64_t)i);
    for (size_t i = 0; i < D * N; i++)
        for (int v = 1; v < 4; v += 2)
            values[v][i] = exp(values[v][i]);
    for (int kind = 0; kind < PNB__N_ALIGNS; kind++) {
        pnb__graph *g = NULL;
        pnb__tensor *in[4];
        assert_int_equal(pnb__graph_create(&g, s.ctx, PNB__F64, false, &err), PNB_OK);
        for (int i = 0; i < 4; i++)
            in[i] = pnb__input(g, PNB__REAL, 2, (size_t[]){D, N});
        pnb__tensor *out = pnb__gauss_align((pnb__align)kind, (pnb__gauss){in[0], in[1]},
                                            (pnb__gauss){in[2], in[3]});
        pnb__keep(out);
        assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_OK);
        for (int i = 0; i < 4; i++)
            pnb__write_f64(in[i], values[i]);
        assert_int_equal(pnb__graph_run(g, &err), PNB_OK);
        pnb__read_f64(out, got);
        for (size_t n = 0; n < N; n++) {
            double want = 0;
            for (size_t at = n; at < D * N; at += N)
                want += aligned((pnb__align)kind, values[0][at], values[1][at], values[2][at],
                                values[3][at]);
            near("alignment", n, got[n], want, 1e-13);
        }
        pnb__graph_free(g);
    }
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_agree),
        cmocka_unit_test(bounds_agree_at_the_optimum),
        cmocka_unit_test(slopes_agree_with_differences),
        cmocka_unit_test(alignments_are_their_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
