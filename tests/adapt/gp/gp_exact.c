/* Exact regression against arithmetic by hand and differences; the collapsed bound against it:
 * below it for any inducing points, equal to it where every input is one. */
#include "adapt/gp/gp_exact.h"
#include "tests/adapt/gp/support.h"

enum { N = 12, Q = 2, D = 3, M = 5, T = 4 };
static const double pi = 3.14159265358979323846;

typedef struct setting {
    pnb_ctx *ctx;
    double x[N * Q], y[N * D], constant[D], lengthscale, test[T * Q];
    pnb__gp_kernel kernel;
    pnb__gp_data data;
} setting;

static void set_up(setting *s)
{
    pnb_error err = {0};
    fill_normal(s->x, N * Q, 1);
    fill_normal(s->y, N * D, 2);
    fill_normal(s->constant, D, 3);
    fill_normal(s->test, T * Q, 4);
    s->lengthscale = 0.8;
    s->kernel = (pnb__gp_kernel){PNB__GP_RBF, Q, 1, &s->lengthscale, 1.5};
    s->data = (pnb__gp_data){N, D, s->x, s->y, s->constant, 0.2};
    assert_int_equal(pnb_ctx_create(&s->ctx, NULL, &err), PNB_OK);
}

static double log_marginal(void *user)
{
    setting *s = user;
    pnb__gp_exact gp;
    assert_int_equal(pnb__gp_exact_fit(&gp, s->ctx, &s->kernel, &s->data, NULL), PNB_OK);
    double value = gp.log_marginal;
    pnb__gp_exact_reset(&gp);
    return value;
}

/* One point: log N(y | c, k + s2) and the posterior at the point and far away. */
static void one_point_is_arithmetic(void **state)
{
    (void)state;
    setting s;
    pnb__gp_exact gp;
    set_up(&s);
    double x[2 * Q] = {s.x[0], s.x[1], 1e3, 1e3}, mean[2], var[2], total = 1.5 + 0.2;
    s.data.n = s.data.n_outputs = 1;
    assert_int_equal(pnb__gp_exact_fit(&gp, s.ctx, &s.kernel, &s.data, NULL), PNB_OK);
    double r = s.y[0] - s.constant[0];
    near("log marginal", 0, gp.log_marginal, -0.5 * (r * r / total + log(2 * pi * total)), 1e-14);
    assert_int_equal(pnb__gp_exact_predict(&gp, x, 2, mean, var, NULL), PNB_OK);
    near("mean", 0, mean[0], s.constant[0] + 1.5 / total * r, 1e-14);
    near("var", 0, var[0], 1.5 - 1.5 * 1.5 / total, 1e-14);
    near("mean", 1, mean[1], s.constant[0], 1e-14);
    near("var", 1, var[1], 1.5, 1e-14);
    pnb__gp_exact_reset(&gp);
    pnb_ctx_free(s.ctx);
}

static void slopes_agree_with_differences(void **state)
{
    (void)state;
    setting s;
    pnb__gp_exact gp;
    set_up(&s);
    double dx[N * Q] = {0}, dl = 0, dscale = 0, dconstant[D] = {0}, dnoise = 0;
    pnb__gp_kernel_grad grad = {.dx = dx, .dlengthscale = &dl, .dscale = &dscale};
    assert_int_equal(pnb__gp_exact_fit(&gp, s.ctx, &s.kernel, &s.data, NULL), PNB_OK);
    assert_int_equal(pnb__gp_exact_slopes(&gp, &grad, dconstant, &dnoise, NULL), PNB_OK);
    check_slopes("x", log_marginal, &s, s.x, N * Q, dx, 1e-7);
    check_slopes("lengthscale", log_marginal, &s, &s.lengthscale, 1, &dl, 1e-7);
    check_slopes("scale", log_marginal, &s, &s.kernel.scale, 1, &dscale, 1e-7);
    check_slopes("constant", log_marginal, &s, s.constant, D, dconstant, 1e-7);
    check_slopes("noise", log_marginal, &s, &s.data.noise, 1, &dnoise, 1e-7);
    pnb__gp_exact_reset(&gp);
    pnb_ctx_free(s.ctx);
}

static double bound_of(setting *s, const double *z, size_t m)
{
    double chol[N * N], b[N * N];
    pnb__inducing inducing;
    pnb__inducing_set set = {.kernel = s->kernel, .z = z, .chol = chol, .b = b};
    pnb__gp_collapsed_out out = {0};
    pnb_error err = {0};
    assert_int_equal(pnb__inducing_init(&inducing, s->ctx, m, N, 0, &err), PNB_OK);
    assert_int_equal(pnb__inducing_factorise(&inducing, &set, &err), PNB_OK);
    assert_int_equal(pnb__gp_collapsed(&inducing, &set, &s->data, &out, &err), PNB_OK);
    pnb__inducing_reset(&inducing);
    return out.bound;
}

static void the_bound_is_a_bound(void **state)
{
    (void)state;
    setting s;
    set_up(&s);
    double exact = log_marginal(&s), z[M * Q];
    for (uint64_t trial = 0; trial < 50; trial++) {
        fill_normal(z, M * Q, 100 + trial);
        double bound = bound_of(&s, z, M);
        if (!(bound <= exact))
            fail_msg("trial %d: bound %.12g above %.12g", (int)trial, bound, exact);
    }
    near("all inputs", 0, bound_of(&s, s.x, N), exact, 1e-9);
    pnb_ctx_free(s.ctx);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    setting s;
    pnb__gp_exact gp = {0};
    pnb_error err = {0};
    set_up(&s);
    s.data.noise = 0;
    assert_int_equal(pnb__gp_exact_fit(&gp, s.ctx, &s.kernel, &s.data, &err), PNB_ARG);
    assert_non_null(strstr(err.text, "noise 0"));
    s.data.noise = 1e-18;
    memcpy(s.x + Q, s.x, Q * sizeof *s.x);
    err = (pnb_error){0};
    assert_int_equal(pnb__gp_exact_fit(&gp, s.ctx, &s.kernel, &s.data, &err), PNB_NUMERIC);
    assert_non_null(strstr(err.text, "points repeat"));
    s.data.n = 0;
    err = (pnb_error){0};
    assert_int_equal(pnb__gp_exact_fit(&gp, s.ctx, &s.kernel, &s.data, &err), PNB_ARG);
    assert_null(gp.chol);
    pnb_ctx_free(s.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_point_is_arithmetic),
        cmocka_unit_test(slopes_agree_with_differences),
        cmocka_unit_test(the_bound_is_a_bound),
        cmocka_unit_test(refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
