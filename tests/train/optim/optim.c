/* Optimisers: rules, single steps against plain scalar code, state on disk. The
 * reference's 20-step trajectories are compared by the golden runner. */
#include "tests/train/fixture.h"

#include <math.h>

#include "train/optim/optim.h"

/* ---- rules ---- */

static void test_which_parameters_decay(void **state)
{
    (void)state;
    assert_false(pnb_optim_is_excluded("visual.conv1.weight", 4));
    assert_false(pnb_optim_is_excluded("visual.positional_embedding", 2));
    assert_false(pnb_optim_is_excluded("text.transformer.resblocks.0.attn.in_proj_weight", 2));
    assert_true(pnb_optim_is_excluded("visual.class_embedding", 1));
    assert_true(pnb_optim_is_excluded("visual.ln_pre.weight", 1));
    assert_true(pnb_optim_is_excluded("text.text_projection.bias", 1));
    assert_true(pnb_optim_is_excluded("logit_scale", 0));
    assert_true(pnb_optim_is_excluded("some.bias.matrix", 2));
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(pnb_optim_name(PNB_OPTIM_ADAMP), "adamp");
    assert_null(pnb_optim_name(PNB_N_OPTIM_KINDS));
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-15 + 1e-12 * fabs(want)))
        fail_msg("got %.17g, wanted %.17g", got, want);
}

/* ---- single steps ---- */

enum { N = 6 };
static const double start[N] = {1, -2, 0.5, 3, -1, 0.25};
static const double slope[N] = {0.3, -0.1, 2, -0.7, 0.05, 0};

/* Two parameters: a matrix that decays and a bias that does not. */
typedef struct pair {
    pnb__param matrix, bias;
    float matrix_data[N], bias_data[N], grad[N];
    pnb__optim *optim;
} pair;

static void make_pair(pair *p, const pnb_ctx *ctx, const pnb_optim_opts *opts)
{
    *p = (pair){.matrix = {.name = "w", .n_dims = 2, .shape = {2, 3}, .n = N, .trainable = true},
                .bias = {.name = "b.bias", .n_dims = 1, .shape = {N}, .n = N, .trainable = true}};
    for (int i = 0; i < N; i++) {
        p->matrix_data[i] = p->bias_data[i] = (float)start[i];
        p->grad[i] = (float)slope[i];
    }
    p->matrix.data = p->matrix_data;
    p->bias.data = p->bias_data;
    p->matrix.grad = p->bias.grad = p->grad;
    pnb__param *const params[2] = {&p->matrix, &p->bias};
    ASSERT_OK(pnb__optim_create(&p->optim, ctx, PNB__F32, params, 2, opts, &err));
    assert_int_equal(p->optim->n_slots, 2);
}

static void assert_close(const float *got, const double *want)
{
    for (int i = 0; i < N; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-6 * (1 + fabs(want[i]))))
            fail_msg("entry %d is %g, wanted %g", i, (double)got[i], want[i]);
}

static void test_adamw_by_hand(void **state)
{
    pnb_optim_opts o = pnb_optim_opts_default();
    o.lr = 0.1;
    pair p;
    make_pair(&p, *state, &o);
    double matrix[N], bias[N], m[N] = {0}, v[N] = {0};
    memcpy(matrix, start, sizeof matrix);
    memcpy(bias, start, sizeof bias);
    for (int t = 1; t <= 3; t++) {
        pnb__optim_step(p.optim, 0.1, 0.5);
        for (int i = 0; i < N; i++) {
            double g = 0.5 * slope[i];
            m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
            v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
            double step =
                m[i] / (1 - pow(o.beta1, t)) / (sqrt(v[i]) / sqrt(1 - pow(o.beta2, t)) + o.eps);
            matrix[i] = matrix[i] * (1 - 0.1 * o.weight_decay) - 0.1 * step;
            bias[i] -= 0.1 * step;
        }
    }
    assert_int_equal(p.optim->step, 3);
    assert_close(p.matrix_data, matrix);
    assert_close(p.bias_data, bias);
    pnb__optim_free(p.optim);
}

static void test_sgd_by_hand(void **state)
{
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        pnb_optim_opts o = pnb_optim_opts_default();
        o.kind = PNB_OPTIM_SGD;
        o.weight_decay = 0.01;
        o.nesterov = nesterov == 1;
        pair p;
        make_pair(&p, *state, &o);
        double w[N], m[N];
        memcpy(w, start, sizeof w);
        for (int t = 1; t <= 3; t++) {
            pnb__optim_step(p.optim, 0.1, 1);
            for (int i = 0; i < N; i++) {
                double g = slope[i] + 0.01 * w[i];
                m[i] = t == 1 ? g : 0.9 * m[i] + g;
                w[i] -= 0.1 * (nesterov ? g + 0.9 * m[i] : m[i]);
            }
        }
        assert_close(p.matrix_data, w);
        pnb__optim_free(p.optim);
    }
}

static void test_clipping(void **state)
{
    pnb_optim_opts o = pnb_optim_opts_default();
    o.grad_clip_norm = 0.5;
    pair p;
    make_pair(&p, *state, &o);
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += 2 * slope[i] * slope[i];
    double norm = pnb__optim_grad_norm(p.optim);
    assert_true(fabs(norm - sqrt(sum)) < 1e-6);
    assert_near(pnb__optim_clip_factor(p.optim, norm), 0.5 / (norm + 1e-6));
    assert_true(pnb__optim_clip_factor(p.optim, 0.1) == 1);
    p.bias.grad = NULL; /* not part of the loss: counts nothing, stays where it is */
    assert_true(fabs(pnb__optim_grad_norm(p.optim) - sqrt(sum / 2)) < 1e-6);
    pnb__optim_step(p.optim, 0.1, 1);
    assert_close(p.bias_data, start);
    pnb__optim_free(p.optim);
}

/* ---- phases ---- */

/* The matrix stands still for two steps, then takes a tenth; the bias goes from all to a half. */
static void set_phases(pair *p)
{
    const pnb__optim_group late = {0, 0.1, 2}, early = {1, 0.5, 2};
    ASSERT_OK(pnb__optim_set_group(p->optim, &p->matrix, &late, &err));
    ASSERT_OK(pnb__optim_set_group(p->optim, &p->bias, &early, &err));
}

static void test_phases_by_hand(void **state)
{
    pnb_optim_opts o = pnb_optim_opts_default();
    pair p;
    make_pair(&p, *state, &o);
    set_phases(&p);
    double matrix[N], bias[N], m[2][N] = {{0}}, v[2][N] = {{0}};
    memcpy(matrix, start, sizeof matrix);
    memcpy(bias, start, sizeof bias);
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += slope[i] * slope[i];
    for (int step = 0; step < 5; step++) {
        bool moves = step >= 2;
        double lr[2] = {moves ? 0.01 : 0, moves ? 0.05 : 0.1};
        double norm = pnb__optim_grad_norm(p.optim);
        assert_true(fabs(norm - sqrt((moves ? 2 : 1) * sum)) < 1e-6); /* what stands still: 0 */
        pnb__optim_step(p.optim, 0.1, 1);
        for (int which = moves ? 0 : 1; which < 2; which++)
            for (int i = 0; i < N; i++) {
                int t = which == 0 ? step - 1 : step + 1; /* counted from its own first update */
                double *w = which == 0 ? matrix : bias, wd = which == 0 ? o.weight_decay : 0;
                m[which][i] = o.beta1 * m[which][i] + (1 - o.beta1) * slope[i];
                v[which][i] = o.beta2 * v[which][i] + (1 - o.beta2) * slope[i] * slope[i];
                w[i] = w[i] * (1 - lr[which] * wd) -
                       lr[which] * m[which][i] / (1 - pow(o.beta1, t)) /
                           (sqrt(v[which][i]) / sqrt(1 - pow(o.beta2, t)) + o.eps);
            }
        assert_close(p.matrix_data, matrix);
        assert_close(p.bias_data, bias);
    }
    pnb__optim_free(p.optim);
}

static void test_phases_resume(void **state)
{
    char *dir = scratch_create(), *path = pnb__path_join(dir, "optimizer.safetensors");
    for (int kind = 0; kind < PNB_N_OPTIM_KINDS; kind++)
        for (int cut = 1; cut < 5; cut++) { /* before, at and behind the change */
            pnb_optim_opts o = pnb_optim_opts_default();
            o.kind = (pnb_optim_kind)kind;
            pair a, b;
            make_pair(&a, *state, &o);
            make_pair(&b, *state, &o);
            set_phases(&a);
            set_phases(&b);
            for (int t = 0; t < cut; t++)
                pnb__optim_step(a.optim, 0.1, 1);
            ASSERT_OK(pnb__optim_save(a.optim, path, &err));
            ASSERT_OK(pnb__optim_load(b.optim, path, &err));
            memcpy(b.matrix_data, a.matrix_data, sizeof a.matrix_data);
            memcpy(b.bias_data, a.bias_data, sizeof a.bias_data);
            for (int t = cut; t < 6; t++) {
                pnb__optim_step(a.optim, 0.1, 1);
                pnb__optim_step(b.optim, 0.1, 1);
            }
            assert_memory_equal(a.matrix_data, b.matrix_data, sizeof a.matrix_data);
            assert_memory_equal(a.bias_data, b.bias_data, sizeof a.bias_data);
            pnb__optim_free(a.optim);
            pnb__optim_free(b.optim);
        }
    pnb__free(path);
    scratch_remove(dir);
}

static void test_bad_phases(void **state)
{
    const pnb_optim_opts o = pnb_optim_opts_default();
    const pnb__optim_group bad[] = {{-1, 1, 0}, {1, NAN, 0}, {1, INFINITY, 0}, {1, 1, -1}};
    pair p;
    make_pair(&p, *state, &o);
    for (size_t i = 0; i < PNB_COUNT(bad); i++)
        ASSERT_FAILS(pnb__optim_set_group(p.optim, &p.matrix, &bad[i], &err), PNB_ARG, "w: shares");
    pnb__optim_free(p.optim);
}

static void test_frozen_parameters_are_left_out(void **state)
{
    float data[1] = {1};
    pnb__param frozen = {.name = "w", .n_dims = 1, .shape = {1}, .n = 1, .data = data};
    pnb__param *const params[1] = {&frozen};
    const pnb_optim_opts o = pnb_optim_opts_default();
    pnb__optim *optim = NULL;
    ASSERT_OK(pnb__optim_create(&optim, *state, PNB__F32, params, 1, &o, &err));
    assert_int_equal(optim->n_slots, 0);
    pnb__optim_step(optim, 1, 1);
    assert_true(data[0] == 1);
    pnb__optim_free(optim);
}

static void test_bad_options(void **state)
{
    pnb__optim *optim = NULL;
    pnb_optim_opts o = pnb_optim_opts_default();
    o.beta2 = 1;
    ASSERT_FAILS(pnb__optim_create(&optim, *state, PNB__F32, NULL, 0, &o, &err), PNB_ARG, "betas");
    o = pnb_optim_opts_default();
    o.lr = NAN;
    ASSERT_FAILS(pnb__optim_create(&optim, *state, PNB__F32, NULL, 0, &o, &err), PNB_ARG,
                 "learning rate");
    assert_null(optim);
}

/* ---- state on disk ---- */

static void test_state_round_trip(void **state)
{
    char *dir = scratch_create(), *path = pnb__path_join(dir, "optimizer.safetensors");
    for (int kind = 0; kind < PNB_N_OPTIM_KINDS; kind++) {
        pnb_optim_opts o = pnb_optim_opts_default();
        o.kind = (pnb_optim_kind)kind;
        pair a, b;
        make_pair(&a, *state, &o);
        make_pair(&b, *state, &o);
        for (int t = 0; t < 3; t++)
            pnb__optim_step(a.optim, 0.1, 1);
        ASSERT_OK(pnb__optim_save(a.optim, path, &err));
        ASSERT_OK(pnb__optim_load(b.optim, path, &err));
        assert_int_equal(b.optim->step, 3);
        memcpy(b.matrix_data, a.matrix_data, sizeof a.matrix_data);
        memcpy(b.bias_data, a.bias_data, sizeof a.bias_data);
        pnb__optim_step(a.optim, 0.1, 1);
        pnb__optim_step(b.optim, 0.1, 1);
        assert_memory_equal(a.matrix_data, b.matrix_data, sizeof a.matrix_data);
        assert_memory_equal(a.bias_data, b.bias_data, sizeof a.bias_data);
        pnb__optim_free(a.optim);
        pnb__optim_free(b.optim);
    }
    pnb__free(path);
    scratch_remove(dir);
}

static void test_state_of_another_run_is_refused(void **state)
{
    char *dir = scratch_create(), *path = pnb__path_join(dir, "optimizer.safetensors");
    pnb_optim_opts o = pnb_optim_opts_default();
    pair a, b;
    make_pair(&a, *state, &o);
    pnb__optim_step(a.optim, 0.1, 1);
    ASSERT_OK(pnb__optim_save(a.optim, path, &err));
    o.kind = PNB_OPTIM_SGD;
    make_pair(&b, *state, &o);
    ASSERT_FAILS(pnb__optim_load(b.optim, path, &err), PNB_FORMAT, "adamw");
    assert_int_equal(b.optim->step, 0);
    pnb__optim_free(b.optim);
    a.matrix.shape[0] = 3;
    a.matrix.shape[1] = 2;
    ASSERT_FAILS(pnb__optim_load(a.optim, path, &err), PNB_SHAPE, "exp_avg.w");
    a.matrix.name = "other";
    ASSERT_FAILS(pnb__optim_load(a.optim, path, &err), PNB_NOT_FOUND, "exp_avg.other");
    pnb__optim_free(a.optim);
    pnb__free(path);
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_parameters_decay),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_adamw_by_hand),
        cmocka_unit_test(test_sgd_by_hand),
        cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_phases_by_hand),
        cmocka_unit_test(test_phases_resume),
        cmocka_unit_test(test_bad_phases),
        cmocka_unit_test(test_frozen_parameters_are_left_out),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_state_round_trip),
        cmocka_unit_test(test_state_of_another_run_is_refused),
    };
    return cmocka_run_group_tests(tests, ctx_setup, ctx_teardown);
}
