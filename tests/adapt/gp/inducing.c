/* The factor of inducing points: what it is, what it does with points that repeat, its slopes. */
#include "adapt/gp/inducing.h"
#include "tests/adapt/gp/support.h"

enum { M = 7, N = 5, Q = 2 };

typedef struct setting {
    pnb_ctx *ctx;
    pnb__inducing inducing;
    pnb__inducing_set set;
    double z[M * Q], x[N * Q], lengthscale, chol[M * M], b[M * N];
    double db[M * N], dchol[M * M], dprior; /* weights of the loss */
} setting;

static void set_up(setting *s)
{
    pnb_error err = {0};
    fill_normal(s->z, M * Q, 1);
    fill_normal(s->x, N * Q, 2);
    fill_normal(s->db, M * N, 3);
    fill_normal(s->dchol, M * M, 4);
    s->dprior = 0.7;
    s->lengthscale = 0.9;
    assert_int_equal(pnb_ctx_create(&s->ctx, NULL, &err), PNB_OK);
    assert_int_equal(pnb__inducing_init(&s->inducing, s->ctx, M, N, 1e-6, &err), PNB_OK);
    s->set = (pnb__inducing_set){.kernel = {PNB__GP_MATERN52, Q, 1, &s->lengthscale, 1.3},
                                 .z = s->z,
                                 .chol = s->chol,
                                 .b = s->b};
}

static void tear_down(setting *s)
{
    pnb__inducing_reset(&s->inducing);
    pnb_ctx_free(s->ctx);
}

/* sum db B + sum of the lower triangle of dchol L + dprior k(x,x) */
static double loss(void *user)
{
    setting *s = user;
    double sum = s->dprior * s->set.kernel.scale;
    assert_int_equal(pnb__inducing_factorise(&s->inducing, &s->set, NULL), PNB_OK);
    pnb__inducing_project(&s->inducing, &s->set, s->x, N);
    for (size_t i = 0; i < M * N; i++)
        sum += s->db[i] * s->b[i];
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j <= i; j++)
            sum += s->dchol[i * M + j] * s->chol[i * M + j];
    return sum;
}

static void factor_is_that_of_the_kernel(void **state)
{
    (void)state;
    setting s;
    double k[M * M], cross[M * N];
    set_up(&s);
    loss(&s);
    pnb__gp_kernel_matrix(&s.set.kernel, s.z, M, s.z, M, k);
    pnb__gp_kernel_matrix(&s.set.kernel, s.z, M, s.x, N, cross);
    for (size_t i = 0; i < M; i++) {
        for (size_t j = 0; j < M; j++) {
            double sum = 0;
            for (size_t p = 0; p < M; p++)
                sum += s.chol[i * M + p] * s.chol[j * M + p];
            near("L L^T", i * M + j, sum, k[i * M + j] + (i == j ? 1e-6 : 0), 1e-13);
        }
        for (size_t j = 0; j < N; j++) {
            double sum = 0;
            for (size_t p = 0; p < M; p++)
                sum += s.chol[i * M + p] * s.b[p * N + j];
            near("L B", i * N + j, sum, cross[i * N + j], 1e-13);
        }
    }
    assert_true(s.set.jitter_used == 1e-6);
    tear_down(&s);
}

static void slopes_agree_with_differences(void **state)
{
    (void)state;
    setting s;
    double dx[N * Q] = {0}, dz[M * Q] = {0}, dl = 0, dscale = 0, db[M * N];
    pnb__gp_kernel_grad grad = {dx, dz, &dl, &dscale};
    set_up(&s);
    loss(&s);
    memcpy(db, s.db, sizeof db);
    pnb__inducing_slopes slopes = {.db = db, .dchol = s.dchol, .dprior = s.dprior};
    pnb__inducing_backward(&s.inducing, &s.set, s.x, N, &slopes, &grad);
    check_slopes("x", loss, &s, s.x, N * Q, dx, 1e-6);
    check_slopes("z", loss, &s, s.z, M * Q, dz, 1e-5);
    check_slopes("lengthscale", loss, &s, &s.lengthscale, 1, &dl, 1e-5);
    check_slopes("scale", loss, &s, &s.set.kernel.scale, 1, &dscale, 1e-5);
    tear_down(&s);
}

/* Two points in one place: the jitter grows until the factor exists, and says so. */
static void repeated_points_need_more_jitter(void **state)
{
    (void)state;
    setting s;
    pnb_error err = {0};
    set_up(&s);
    pnb__inducing_reset(&s.inducing);
    assert_int_equal(pnb__inducing_init(&s.inducing, s.ctx, M, N, 0, &err), PNB_OK);
    memcpy(s.z + Q, s.z, Q * sizeof *s.z);
    assert_int_equal(pnb__inducing_factorise(&s.inducing, &s.set, &err), PNB_OK);
    assert_true(s.set.jitter_used > 0 && s.set.jitter_used < 1e-6);
    tear_down(&s);
}

static void refuses_what_is_no_number(void **state)
{
    (void)state;
    setting s;
    pnb_error err = {0};
    set_up(&s);
    s.z[3] = NAN;
    assert_int_equal(pnb__inducing_factorise(&s.inducing, &s.set, &err), PNB_NUMERIC);
    assert_non_null(strstr(err.text, "inducing point 1 is not finite"));
    s.z[3] = 0;
    s.lengthscale = 0;
    err = (pnb_error){0};
    assert_int_equal(pnb__inducing_factorise(&s.inducing, &s.set, &err), PNB_NUMERIC);
    assert_non_null(strstr(err.text, "lengthscale 0"));
    pnb__inducing none;
    err = (pnb_error){0};
    assert_int_equal(pnb__inducing_init(&none, s.ctx, 0, N, 0, &err), PNB_ARG);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factor_is_that_of_the_kernel),
        cmocka_unit_test(slopes_agree_with_differences),
        cmocka_unit_test(repeated_points_need_more_jitter),
        cmocka_unit_test(refuses_what_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
