/* Mixed processes: the numbers of the graph that the golden cases hold (grove_loss.c), slopes
 * against differences, any count of threads, and which process cannot be factored. */
#include "adapt/gp/lmc.h"
#include "adapt/gp/grove_loss.h"
#include "tests/adapt/gp/support.h"

enum { D = 3, M = 4, N = 5, Q = 2 };
#define JITTER 1e-4

typedef struct setting {
    pnb_ctx *ctx;
    pnb__lmc lmc;
    pnb__lmc_process p;
    double z[D * M * Q], x[N * Q], lengthscale[D], scale[D], constant[D], q_mean[D * M];
    double mixing[D * D], *factors;
    double mean[D * N], var[D * N], by_mean[D * N], by_var[D * N], weight;
} setting;

static size_t factor_at(size_t l, size_t row, size_t column)
{
    return l * pnb__factors_size(M, 1) + pnb__factors_at(M, 1, 0, row, column);
}

static void set_up(setting *s, int n_threads, pnb__gp_kind kind)
{
    pnb_error err = PNB_ERROR_INIT;
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    opts.n_threads = n_threads;
    double c[M * M];
    *s = (setting){.weight = 0.4};
    fill_normal(s->z, D * M * Q, 1);
    fill_normal(s->x, N * Q, 2);
    fill_normal(s->constant, D, 3);
    fill_normal(s->q_mean, D * M, 4);
    fill_normal(s->by_mean, D * N, 5);
    fill_normal(s->by_var, D * N, 6);
    fill_normal(s->mixing, D * D, 7);
    s->factors = calloc(D * pnb__factors_size(M, 1), sizeof *s->factors);
    assert_non_null(s->factors);
    for (size_t l = 0; l < D; l++) {
        s->lengthscale[l] = 0.9 + 0.2 * (double)l;
        s->scale[l] = 1.3 - 0.3 * (double)l;
        fill_normal(c, M * M, 8 + l);
        for (size_t r = 0; r < M; r++)
            for (size_t i = 0; i <= r; i++)
                s->factors[factor_at(l, r, i)] = c[r * M + i];
    }
    assert_int_equal(pnb_ctx_create(&s->ctx, &opts, &err), PNB_OK);
    const pnb__lmc_opts sizes = {D, M, Q, N, JITTER, PNB__F64};
    assert_int_equal(pnb__lmc_init(&s->lmc, s->ctx, &sizes, &err), PNB_OK);
    s->p = (pnb__lmc_process){kind,        s->z,      s->lengthscale, s->scale,
                              s->constant, s->q_mean, s->factors,     s->mixing};
}

static void tear_down(setting *s)
{
    pnb__lmc_reset(&s->lmc);
    pnb_ctx_free(s->ctx);
    free(s->factors);
}

static double loss(void *user)
{
    setting *s = user;
    double sum = 0;
    assert_int_equal(pnb__lmc_at(&s->lmc, &s->p, s->x, N, s->mean, s->var, NULL), PNB_OK);
    for (size_t i = 0; i < D * N; i++)
        sum += s->by_mean[i] * s->mean[i] + s->by_var[i] * s->var[i];
    return sum + s->weight * pnb__lmc_divergence(&s->lmc);
}

/* B of every process as the golden runner computes it: (D,M,N). */
static void find_b(const setting *s, double *b)
{
    pnb__inducing inducing;
    double chol[M * M];
    assert_int_equal(pnb__inducing_init(&inducing, s->ctx, M, N, JITTER, NULL), PNB_OK);
    for (size_t l = 0; l < D; l++) {
        pnb__inducing_set set = {.kernel = {s->p.kind, Q, 1, &s->lengthscale[l], s->scale[l]},
                                 .z = s->z + l * M * Q,
                                 .chol = chol,
                                 .b = b + l * M * N};
        assert_int_equal(pnb__inducing_factorise(&inducing, &set, NULL), PNB_OK);
        pnb__inducing_project(&inducing, &set, s->x, N);
    }
    pnb__inducing_reset(&inducing);
}

static void numbers_are_those_of_the_graph(void **state)
{
    (void)state;
    setting s;
    pnb_error err = PNB_ERROR_INIT;
    pnb__graph *g = NULL;
    double factors[D * M * M] = {0}, b[D * M * N], prior[D], want[D * N];
    set_up(&s, 1, PNB__GP_RBF);
    loss(&s);
    find_b(&s, b);
    for (size_t l = 0; l < D; l++) {
        prior[l] = s.scale[l] + JITTER;
        for (size_t r = 0; r < M; r++)
            for (size_t i = 0; i <= r; i++)
                factors[(l * M + r) * M + i] = s.factors[factor_at(l, r, i)];
    }
    assert_int_equal(pnb__graph_create(&g, s.ctx, PNB__F64, false, &err), PNB_OK);
    pnb__svgp f = {.form = PNB__SVGP_PER_OUTPUT, .n_outputs = D, .m = M, .n = N};
    f.b = pnb__input(g, PNB__REAL, 3, (size_t[]){D, M, N});
    f.prior = pnb__input(g, PNB__REAL, 2, (size_t[]){D, 1});
    f.q_mean = pnb__input(g, PNB__REAL, 2, (size_t[]){D, M});
    f.q_chol = pnb__input(g, PNB__REAL, 3, (size_t[]){D, M, M});
    f.constant = pnb__input(g, PNB__REAL, 2, (size_t[]){D, 1});
    pnb__svgp_inputs(g, &f);
    pnb__grove_side side = {.f = f,
                            .noise = pnb__constant(g, 0.3),
                            .y = pnb__input(g, PNB__REAL, 2, (size_t[]){D, N}),
                            .mixing = pnb__input(g, PNB__REAL, 2, (size_t[]){D, D}),
                            .added_var = JITTER};
    pnb__grove_side_build(&side, N);
    pnb__keep(side.mean);
    pnb__keep(side.var);
    pnb__keep(side.kl);
    assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_OK);
    pnb__write_f64(f.b, b);
    pnb__write_f64(f.prior, prior);
    pnb__write_f64(f.q_mean, s.q_mean);
    pnb__write_f64(f.q_chol, factors);
    pnb__write_f64(f.constant, s.constant);
    pnb__write_f64(side.mixing, s.mixing);
    pnb__write_f64(side.y, s.by_mean);
    assert_int_equal(pnb__svgp_write_inputs(&f, &err), PNB_OK);
    assert_int_equal(pnb__graph_run(g, &err), PNB_OK);
    pnb__read_f64(side.mean, want);
    for (size_t i = 0; i < D * N; i++)
        near("mean", i, s.mean[i], want[i], 1e-12);
    pnb__read_f64(side.var, want);
    for (size_t i = 0; i < D * N; i++)
        near("var", i, s.var[i], want[i], 1e-12);
    near("divergence", 0, pnb__lmc_divergence(&s.lmc), pnb__read_scalar(side.kl), 1e-12);
    near("jitter", 0, pnb__lmc_jitter(&s.lmc), JITTER, 0);
    pnb__graph_free(g);
    tear_down(&s);
}

typedef struct slopes {
    double x[N * Q], z[D * M * Q], lengthscale[D], scale[D], constant[D], q_mean[D * M];
    double mixing[D * D], *factors;
} slopes;

static void find_slopes(setting *s, slopes *to)
{
    memset(to, 0, sizeof *to);
    to->factors = calloc(D * pnb__factors_size(M, 1), sizeof *to->factors);
    assert_non_null(to->factors);
    loss(s);
    const pnb__lmc_slopes by = {s->by_mean, s->by_var, s->weight};
    const pnb__lmc_grad grad = {to->x,        to->z,      to->lengthscale, to->scale,
                                to->constant, to->q_mean, to->factors,     to->mixing};
    pnb__lmc_backward(&s->lmc, &s->p, s->x, N, &by, &grad);
}

static void slopes_are_those_of_the_loss(void **state)
{
    (void)state;
    for (int kind = 0; kind < PNB__N_GP_KINDS; kind++) {
        setting s;
        slopes found;
        if (kind == PNB__GP_COSINE || kind == PNB__GP_WAVE)
            continue; /* of low rank: differences are of no use */
        set_up(&s, 2, (pnb__gp_kind)kind);
        find_slopes(&s, &found);
        check_slopes("x", loss, &s, s.x, N * Q, found.x, 1e-5);
        check_slopes("z", loss, &s, s.z, D * M * Q, found.z, 1e-5);
        check_slopes("lengthscale", loss, &s, s.lengthscale, D, found.lengthscale, 1e-5);
        check_slopes("scale", loss, &s, s.scale, D, found.scale, 1e-5);
        check_slopes("constant", loss, &s, s.constant, D, found.constant, 1e-6);
        check_slopes("q_mean", loss, &s, s.q_mean, D * M, found.q_mean, 1e-6);
        check_slopes("mixing", loss, &s, s.mixing, D * D, found.mixing, 1e-6);
        for (size_t l = 0; l < D; l++)
            for (size_t r = 0; r < M; r++)
                for (size_t i = 0; i <= r; i++)
                    check_slopes("factor", loss, &s, s.factors + factor_at(l, r, i), 1,
                                 found.factors + factor_at(l, r, i), 1e-6);
        free(found.factors);
        tear_down(&s);
    }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    setting s[2];
    slopes found[2];
    for (int i = 0; i < 2; i++) {
        set_up(&s[i], 1 + 2 * i, PNB__GP_MATERN52);
        find_slopes(&s[i], &found[i]);
    }
    assert_memory_equal(s[0].mean, s[1].mean, sizeof s[0].mean);
    assert_memory_equal(s[0].var, s[1].var, sizeof s[0].var);
    assert_memory_equal(found[0].x, found[1].x, sizeof found[0].x);
    assert_memory_equal(found[0].z, found[1].z, sizeof found[0].z);
    assert_memory_equal(found[0].mixing, found[1].mixing, sizeof found[0].mixing);
    for (int i = 0; i < 2; i++) {
        free(found[i].factors);
        tear_down(&s[i]);
    }
}

static void a_process_that_fails_is_named(void **state)
{
    (void)state;
    setting s;
    pnb_error err = PNB_ERROR_INIT;
    set_up(&s, 2, PNB__GP_RBF);
    s.lengthscale[1] = 0;
    assert_int_equal(pnb__lmc_at(&s.lmc, &s.p, s.x, N, s.mean, s.var, &err), PNB_NUMERIC);
    assert_non_null(strstr(err.text, "process 1: the kernel's lengthscale 0"));
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_those_of_the_graph),
                                       cmocka_unit_test(slopes_are_those_of_the_loss),
                                       cmocka_unit_test(threads_change_no_bit),
                                       cmocka_unit_test(a_process_that_fails_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
