/* The search of latents against the sum it minimises, written out output by output. */
#include "adapt/gp/latent.h"
#include "tests/adapt/gp/support.h"

enum { D = 6, M = 10, Q = 2, N = 5 };

typedef struct setting {
    pnb_ctx *ctx;
    pnb__inducing inducing;
    pnb__inducing_set set;
    double z[M * Q], y[N * D], lengthscale, chol[M * M], b[M];
    double q_mean[D * M], q_chol[D][M * M], constant[D], noise[D];
    bool one_factor;
    pnb__latent_search search;
} setting;

static void factor_of(void *user, size_t output, double *out)
{
    setting *s = user;
    memcpy(out, s->q_chol[s->one_factor ? 0 : output], sizeof s->q_chol[0]);
}

static void set_up(setting *s, pnb__gp_kind kind, bool one_factor)
{
    pnb_error err = {0};
    fill_normal(s->z, M * Q, 1);
    fill_normal(s->y, N * D, 2);
    fill_normal(s->q_mean, D * M, 3);
    fill_normal(s->constant, D, 4);
    fill_normal(s->noise, D, 5);
    for (size_t d = 0; d < D; d++) {
        fill_normal(s->q_chol[d], M * M, 6 + (one_factor ? 0 : d));
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < M; j++)
                s->q_chol[d][i * M + j] *= j > i ? 0 : 0.3;
        s->noise[d] = 0.1 + 0.1 * fabs(s->noise[d]);
    }
    s->one_factor = one_factor;
    s->lengthscale = 1.3;
    assert_int_equal(pnb_ctx_create(&s->ctx, NULL, &err), PNB_OK);
    assert_int_equal(pnb__inducing_init(&s->inducing, s->ctx, M, 1, 1e-6, &err), PNB_OK);
    s->set = (pnb__inducing_set){
        .kernel = {kind, Q, 1, &s->lengthscale, 1.2}, .z = s->z, .chol = s->chol, .b = s->b};
    assert_int_equal(pnb__inducing_factorise(&s->inducing, &s->set, &err), PNB_OK);
    pnb__latent_model model = {.set = &s->set,
                               .m = M,
                               .n_outputs = D,
                               .q_mean = s->q_mean,
                               .constant = s->constant,
                               .noise = s->noise,
                               .factor = factor_of,
                               .user = s,
                               .one_factor = one_factor};
    assert_int_equal(pnb__latent_search_init(&s->search, &s->inducing, &model, &err), PNB_OK);
}

static void tear_down(setting *s)
{
    pnb__latent_search_reset(&s->search);
    pnb__inducing_reset(&s->inducing);
    pnb_ctx_free(s->ctx);
}

/* sum_d [(y - mean)^2 + var] / (2 noise) */
static double by_hand(setting *s, const double *y, const double *x)
{
    double sum = 0;
    pnb__inducing_project(&s->inducing, &s->set, x, 1);
    for (size_t d = 0; d < D; d++) {
        double mean = s->constant[d], var = s->set.kernel.scale;
        for (size_t i = 0; i < M; i++) {
            double t = 0;
            for (size_t p = i; p < M; p++)
                t += s->q_chol[d][p * M + i] * s->b[p];
            mean += s->q_mean[d * M + i] * s->b[i];
            var += t * t - s->b[i] * s->b[i];
        }
        sum += ((y[d] - mean) * (y[d] - mean) + var) / (2 * s->noise[d]);
    }
    return sum;
}

typedef struct place {
    setting *s;
    const double *y;
    double x[Q];
} place;

static double value_of(void *user)
{
    place *p = user;
    return by_hand(p->s, p->y, p->x);
}

/* Ends are minima of the sum: flat, not above where they began, and the values differ from it by
 * one number for each embedding. */
static void ends_are_minima(void **state)
{
    (void)state;
    const pnb__gp_kind some[] = {PNB__GP_RBF, PNB__GP_MATERN52, PNB__GP_MATERN32};
    for (size_t k = 0; k < PNB_COUNT(some); k++)
        for (int one = 0; one < 2; one++) {
            setting s;
            double start[N * Q], x[2][N * Q], value[2][N];
            bool is_converged[N];
            pnb__latent_opts opts = {.max_steps = 200, .tolerance = 1e-14};
            set_up(&s, some[k], one);
            for (uint64_t trial = 0; trial < 2; trial++) {
                pnb__latent_out out = {
                    .x = x[trial], .value = value[trial], .is_converged = is_converged};
                fill_normal(start, N * Q, 50 + trial);
                assert_int_equal(
                    pnb__latent_search_run(&s.search, s.y, N, start, 1, &opts, &out, NULL), PNB_OK);
                for (size_t n = 0; n < N; n++) {
                    const double flat[Q] = {0};
                    place at = {&s, s.y + n * D, {0}};
                    memcpy(at.x, x[trial] + n * Q, sizeof at.x);
                    assert_true(is_converged[n]);
                    check_slopes("slope at the end", value_of, &at, at.x, Q, flat, 1e-4);
                    assert_true(value_of(&at) <= by_hand(&s, at.y, start + n * Q) + 1e-9);
                }
            }
            for (size_t n = 0; n < N; n++) {
                const double *y = s.y + n * D;
                near("difference of two ends", n, value[1][n] - value[0][n],
                     by_hand(&s, y, x[1] + n * Q) - by_hand(&s, y, x[0] + n * Q), 1e-6);
            }
            tear_down(&s);
        }
}

/* The best of several starts is kept, and a batch of one finds the same bits. */
static void rows_and_starts_are_apart(void **state)
{
    (void)state;
    setting s;
    enum { STARTS = 4 };
    double start[N * STARTS * Q], x[N * Q], value[N], alone[Q], single;
    pnb__latent_out out = {.x = x, .value = value}, one = {.x = alone, .value = &single};
    set_up(&s, PNB__GP_RBF, false);
    fill_normal(start, N * STARTS * Q, 9);
    assert_int_equal(pnb__latent_search_run(&s.search, s.y, N, start, STARTS, NULL, &out, NULL),
                     PNB_OK);
    for (size_t n = 0; n < N; n++) {
        double least = INFINITY;
        for (size_t i = 0; i < STARTS; i++) {
            assert_int_equal(pnb__latent_search_run(&s.search, s.y + n * D, 1,
                                                    start + (n * STARTS + i) * Q, 1, NULL, &one,
                                                    NULL),
                             PNB_OK);
            if (single < least) {
                least = single;
                assert_true(value[n] <= single);
                if (value[n] == single)
                    assert_memory_equal(alone, x + n * Q, sizeof alone);
            }
        }
        assert_true(value[n] == least);
    }
    tear_down(&s);
}

static void refuses_what_is_no_number(void **state)
{
    (void)state;
    setting s;
    double start[Q] = {0, NAN}, x[Q];
    pnb__latent_out out = {.x = x};
    pnb_error err = {0};
    set_up(&s, PNB__GP_RBF, false);
    assert_int_equal(pnb__latent_search_run(&s.search, s.y, 1, start, 1, NULL, &out, &err),
                     PNB_NUMERIC);
    assert_non_null(strstr(err.text, "start 0"));
    err = (pnb_error){0};
    s.y[0] = INFINITY;
    assert_int_equal(pnb__latent_search_run(&s.search, s.y, 1, s.z, 1, NULL, &out, &err),
                     PNB_NUMERIC);
    assert_non_null(strstr(err.text, "embedding 0"));
    err = (pnb_error){0};
    assert_int_equal(pnb__latent_search_run(&s.search, s.y, 1, start, 0, NULL, &out, &err),
                     PNB_ARG);
    tear_down(&s);
}

/* The Hessian is that of the latent beside it: where the search came to an end, where its steps ran
 * out, and where it took none. */
static void hessian_is_that_of_the_end(void **state)
{
    (void)state;
    setting s;
    static const size_t n_steps[] = {0, 1, 2, 3, 60};
    double start[N * Q], x[N * Q], hessian[N * Q * Q], again[N * Q], fresh[N * Q * Q];
    set_up(&s, PNB__GP_RBF, false);
    fill_normal(start, N * Q, 50);
    for (size_t k = 0; k < PNB_COUNT(n_steps); k++) {
        const pnb__latent_opts some = {.max_steps = n_steps[k], .tolerance = 1e-14}, none = {0};
        const pnb__latent_out out = {.x = x, .hessian = hessian};
        const pnb__latent_out there = {.x = again, .hessian = fresh};
        assert_int_equal(pnb__latent_search_run(&s.search, s.y, N, start, 1, &some, &out, NULL),
                         PNB_OK);
        assert_int_equal(pnb__latent_search_run(&s.search, s.y, N, x, 1, &none, &there, NULL),
                         PNB_OK);
        for (size_t i = 0; i < N * Q; i++)
            assert_true(x[i] == again[i]);
        for (size_t i = 0; i < N * Q * Q; i++)
            near("hessian", i, hessian[i], fresh[i], 1e-12);
    }
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_minima),
        cmocka_unit_test(hessian_is_that_of_the_end),
        cmocka_unit_test(rows_and_starts_are_apart),
        cmocka_unit_test(refuses_what_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
