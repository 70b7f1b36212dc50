/* Likelihood and alignment by element against the graph's loss, and their slopes. */
#include "adapt/gp/pair_terms.h"
#include "tests/adapt/gp/support.h"

enum { D = 3, N = 5 };

typedef struct setting {
    double y[2][D * N], mean[2][D * N], var[2][D * N], dmean[2][D * N], dvar[2][D * N];
    double noise[2][D], dnoise[2][D];
    pnb__pair_side sides[2];
    pnb__grove_loss_opts opts;
} setting;

static void set_up(setting *s, pnb__align align, size_t n_factors, size_t n_noises)
{
    s->opts = (pnb__grove_loss_opts){0.3, 0.7, align, 50};
    for (uint64_t i = 0; i < 2; i++) {
        fill_normal(s->y[i], D * N, 1 + i);
        fill_normal(s->mean[i], D * N, 3 + i);
        fill_normal(s->var[i], D * N, 5 + i);
        for (size_t k = 0; k < D * N; k++)
            s->var[i][k] = 0.2 + fabs(s->var[i][k]);
        for (size_t d = 0; d < D; d++)
            s->noise[i][d] = 0.4 + 0.2 * (double)i + 0.1 * (double)d;
        s->sides[i] = (pnb__pair_side){.n_outputs = D,
                                       .n_factors = n_factors,
                                       .y = s->y[i],
                                       .mean = s->mean[i],
                                       .var = s->var[i],
                                       .noise = s->noise[i],
                                       .n_noises = n_noises,
                                       .dnoise = s->dnoise[i],
                                       .dmean = s->dmean[i],
                                       .dvar = s->dvar[i]};
    }
}

static double loss(void *user)
{
    setting *s = user;
    pnb__pair_loss_terms t = pnb__pair_terms(s->sides, N, &s->opts);
    return t.fit + t.align;
}

/* The same of the graph's parts. */
static double loss_of_graph(const setting *s)
{
    pnb_ctx *ctx = NULL;
    pnb__graph *g = NULL;
    pnb_error err = {0};
    pnb__tensor *y[2], *mean[2], *var[2], *noise[2], *fit = NULL;
    assert_int_equal(pnb_ctx_create(&ctx, NULL, &err), PNB_OK);
    assert_int_equal(pnb__graph_create(&g, ctx, PNB__F64, false, &err), PNB_OK);
    for (int i = 0; i < 2; i++) {
        y[i] = pnb__input(g, PNB__REAL, 2, (size_t[]){D, N});
        mean[i] = pnb__input(g, PNB__REAL, 2, (size_t[]){D, N});
        var[i] = pnb__input(g, PNB__REAL, 2, (size_t[]){s->sides[i].n_factors, N});
        noise[i] = pnb__input(g, PNB__REAL, 2, (size_t[]){s->sides[i].n_noises, 1});
        pnb__tensor *each = pnb__gauss_expected_log_lik(
            y[i], mean[i], pnb__broadcast_to(var[i], 2, (size_t[]){D, N}), noise[i]);
        fit = fit == NULL ? each : pnb__add(fit, each);
    }
    pnb__tensor *align = pnb__gauss_align(s->opts.align, (pnb__gauss){mean[0], var[0]},
                                          (pnb__gauss){mean[1], var[1]});
    if (s->sides[0].n_factors == 1)
        align = pnb__gauss_align(
            s->opts.align, (pnb__gauss){mean[0], pnb__broadcast_to(var[0], 2, (size_t[]){D, N})},
            (pnb__gauss){mean[1], pnb__broadcast_to(var[1], 2, (size_t[]){D, N})});
    pnb__tensor *total = pnb__add(pnb__affine(fit, -s->opts.elbo_weight / N, 0),
                                  pnb__affine(pnb__mean(align, 0), s->opts.align_weight, 0));
    pnb__keep(total);
    assert_int_equal(pnb__graph_plan(g, NULL, &err), PNB_OK);
    for (int i = 0; i < 2; i++) {
        pnb__write_f64(y[i], s->y[i]);
        pnb__write_f64(noise[i], s->noise[i]);
        pnb__write_f64(mean[i], s->mean[i]);
        pnb__write_f64(var[i], s->var[i]);
    }
    assert_int_equal(pnb__graph_run(g, &err), PNB_OK);
    double value = pnb__read_scalar(total);
    pnb__graph_free(g);
    pnb_ctx_free(ctx);
    return value;
}

static void terms_are_those_of_the_graph(void **state)
{
    (void)state;
    for (int kind = 0; kind < PNB__N_ALIGNS; kind++)
        for (size_t n_factors = 1; n_factors <= D; n_factors += D - 1) {
            for (size_t n_noises = 1; n_noises <= D; n_noises += D - 1) {
                setting s;
                set_up(&s, (pnb__align)kind, n_factors, n_noises);
                near("loss", (size_t)kind, loss(&s), loss_of_graph(&s), 1e-12);
            }
        }
}

static void slopes_are_those_of_the_loss(void **state)
{
    (void)state;
    for (int kind = 0; kind < PNB__N_ALIGNS; kind++)
        for (size_t n_factors = 1; n_factors <= D; n_factors += D - 1) {
            setting s;
            double dmean[2][D * N], dvar[2][D * N], dnoise[2][D];
            const size_t n_noises = kind % 2 == 0 ? D : 1;
            set_up(&s, (pnb__align)kind, n_factors, n_noises);
            loss(&s);
            memcpy(dmean, s.dmean, sizeof dmean);
            memcpy(dvar, s.dvar, sizeof dvar);
            memcpy(dnoise, s.dnoise, sizeof dnoise);
            for (int i = 0; i < 2; i++) {
                check_slopes("mean", loss, &s, s.mean[i], D * N, dmean[i], 1e-7);
                check_slopes("var", loss, &s, s.var[i], n_factors * N, dvar[i], 1e-7);
                check_slopes("noise", loss, &s, s.noise[i], n_noises, dnoise[i], 1e-7);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(terms_are_those_of_the_graph),
                                       cmocka_unit_test(slopes_are_those_of_the_loss)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
