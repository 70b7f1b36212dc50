/* Distillation and hard negatives: values against plain loops, gradients against central
 * differences in f64, and what does not go together. */
#include <math.h>

#include "penumbra/loss.h"
#include "tests/train/fixture.h"

enum { B = 5, H = 3, D = 4, DT = 6 };

typedef struct inputs {
    double image[B * D], text[B * D], negative[H * D];
    double image_lv[B * D], text_lv[B * D], negative_lv[H * D];
    double teacher[2][B * DT], teacher_lv[2][B * DT];
    double scale, bias;
} inputs;

static inputs draw_inputs(void)
{
    inputs in = {.scale = 3, .bias = -1};
    pnb__rng rng;
    pnb__rng_init(&rng, 11, 0);
    double *const x = (double *)&in;
    for (size_t i = 0; i < sizeof in / sizeof(double) - 2; i++)
        x[i] = 0.6 * pnb__rng_normal(&rng);
    return in;
}

/* `width` of the teacher: DT, or D of the divergence. */
static pnb_loss_in view(const inputs *in, bool negatives, size_t width)
{
    return (pnb_loss_in){.n = B,
                         .dim = D,
                         .image = {.mean = in->image, .log_var = in->image_lv},
                         .text = {.mean = in->text, .log_var = in->text_lv},
                         .negative = {.mean = in->negative, .log_var = in->negative_lv},
                         .n_negatives = negatives ? H : 0,
                         .teacher_image = {.mean = in->teacher[0], .log_var = in->teacher_lv[0]},
                         .teacher_text = {.mean = in->teacher[1], .log_var = in->teacher_lv[1]},
                         .teacher_dim = width,
                         .teacher_scale = 2,
                         .scale = in->scale,
                         .bias = in->bias};
}

static pnb_loss_opts only(pnb_loss_term term)
{
    pnb_loss_opts o = pnb_loss_opts_default();
    memset(o.weight, 0, sizeof o.weight);
    o.weight[term] = 1.5;
    return o;
}

static double value(const pnb_ctx *ctx, pnb_loss_term term, const inputs *in, bool negatives)
{
    const pnb_loss_opts o = only(term);
    pnb_loss_in v = view(in, negatives, term == PNB_LOSS_DISTILL_KL ? D : DT);
    pnb_loss_out out = {0};
    ASSERT_OK(pnb_loss_compute(ctx, &o, &v, &out, &err));
    return out.total;
}

/* ---- values ---- */

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double trace(const double *lv)
{
    double sum = 0;
    for (size_t i = 0; i < D; i++)
        sum += exp(lv[i]);
    return sum;
}

/* log sum_j exp(s x_i . y_j) */
static double log_sum(double s, const double *x, const double *y, size_t n, size_t dim)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += exp(s * dot(x, y + j * dim, dim));
    return log(sum);
}

static double plain_distill(const inputs *in)
{
    double sum = 0;
    for (int way = 0; way < 2; way++) {
        const double *x = way == 0 ? in->image : in->text, *y = way == 0 ? in->text : in->image;
        const double *t = in->teacher[way], *u = in->teacher[1 - way];
        for (size_t i = 0; i < B; i++) {
            double of_teacher = log_sum(2, t + i * DT, u, B, DT);
            double of_ours = log_sum(in->scale, x + i * D, y, B, D);
            for (size_t j = 0; j < B; j++)
                sum -= exp(2 * dot(t + i * DT, u + j * DT, DT) - of_teacher) *
                       (in->scale * dot(x + i * D, y + j * D, D) - of_ours) / B / 2;
        }
    }
    return sum;
}

static double plain_kl(const inputs *in)
{
    double sum = 0;
    for (int side = 0; side < 2; side++) {
        const double *m = side == 0 ? in->image : in->text;
        const double *lv = side == 0 ? in->image_lv : in->text_lv;
        for (size_t i = 0; i < B * D; i++) {
            double gap = m[i] - in->teacher[side][i], t = in->teacher_lv[side][i];
            sum += 0.5 * (lv[i] - t + (exp(t) + gap * gap) / exp(lv[i]) - 1) / (B * D);
        }
    }
    return sum;
}

/* Pairs of images and negatives, y = -1, over B. */
static double plain_negatives(const inputs *in, bool with_traces)
{
    double sum = 0;
    for (size_t i = 0; i < B; i++)
        for (size_t h = 0; h < H; h++) {
            double l = dot(in->image + i * D, in->negative + h * D, D);
            if (with_traces)
                l -= (trace(in->image_lv + i * D) + trace(in->negative_lv + h * D)) / 2;
            sum += softplus(in->scale * l + in->bias) / B;
        }
    return sum;
}

/* What InfoNCE's rows of images gain in their sums. */
static double plain_columns(const inputs *in)
{
    double sum = 0;
    for (size_t i = 0; i < B; i++) {
        double own = log_sum(in->scale, in->image + i * D, in->text, B, D);
        double other = log_sum(in->scale, in->image + i * D, in->negative, H, D);
        sum += (log(exp(own) + exp(other)) - own) / B / 2;
    }
    return sum;
}

#define ASSERT_NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-10 * (1 + fabs(b)))

static void test_values(void **state)
{
    const inputs in = draw_inputs();
    ASSERT_NEAR(value(*state, PNB_LOSS_DISTILL, &in, false), 1.5 * plain_distill(&in));
    ASSERT_NEAR(value(*state, PNB_LOSS_DISTILL_KL, &in, false), 1.5 * plain_kl(&in));
    ASSERT_NEAR(value(*state, PNB_LOSS_PPCL, &in, true) - value(*state, PNB_LOSS_PPCL, &in, false),
                1.5 * plain_negatives(&in, true));
    ASSERT_NEAR(value(*state, PNB_LOSS_SIGLIP, &in, true) -
                    value(*state, PNB_LOSS_SIGLIP, &in, false),
                1.5 * plain_negatives(&in, false));
    ASSERT_NEAR(value(*state, PNB_LOSS_CLIP, &in, true) - value(*state, PNB_LOSS_CLIP, &in, false),
                1.5 * plain_columns(&in));
    ASSERT_NEAR(value(*state, PNB_LOSS_VIB, &in, true), value(*state, PNB_LOSS_VIB, &in, false));
}

/* A student that is its teacher: the divergence is 0, and the cross-entropy the teacher's entropy,
 * below which nothing lies. */
static void test_least(void **state)
{
    inputs in = draw_inputs(), other;
    memcpy(in.teacher[0], in.image, sizeof in.image);
    memcpy(in.teacher[1], in.text, sizeof in.text);
    memcpy(in.teacher_lv[0], in.image_lv, sizeof in.image_lv);
    memcpy(in.teacher_lv[1], in.text_lv, sizeof in.text_lv);
    ASSERT_NEAR(value(*state, PNB_LOSS_DISTILL_KL, &in, false), 0.0);
    other = in;
    other.text_lv[3] += 0.1;
    assert_true(value(*state, PNB_LOSS_DISTILL_KL, &other, false) > 0);
}

/* ---- gradients ---- */

static void check(const pnb_ctx *ctx, pnb_loss_term term, inputs *in, bool negatives, double *x,
                  size_t n, const double *gradient)
{
    const double h = 1e-6;
    for (size_t i = 0; i < n; i++) {
        double was = x[i];
        x[i] = was + h;
        double up = value(ctx, term, in, negatives);
        x[i] = was - h;
        double down = value(ctx, term, in, negatives);
        x[i] = was;
        double by_difference = (up - down) / (2 * h);
        if (!(fabs(by_difference - gradient[i]) <= 1e-7 + 1e-5 * fabs(by_difference)))
            fail_msg("%s, entry %zu: %.9g by differences, %.9g", pnb_loss_name(term), i,
                     by_difference, gradient[i]);
    }
}

static void test_gradients(void **state)
{
    static const struct {
        pnb_loss_term term;
        bool negatives;
    } cases[] = {{PNB_LOSS_DISTILL, false},
                 {PNB_LOSS_DISTILL_KL, false},
                 {PNB_LOSS_PPCL, true},
                 {PNB_LOSS_SIGLIP, true},
                 {PNB_LOSS_CLIP, true}};
    for (size_t c = 0; c < PNB_COUNT(cases); c++) {
        inputs in = draw_inputs();
        double d[4][B * D], n[2][H * D];
        const pnb_loss_opts o = only(cases[c].term);
        pnb_loss_in v =
            view(&in, cases[c].negatives, cases[c].term == PNB_LOSS_DISTILL_KL ? D : DT);
        pnb_loss_out out = {
            .d_mean = {d[0], d[1]}, .d_log_var = {d[2], d[3]}, .d_negative = {n[0], n[1]}};
        ASSERT_OK(pnb_loss_compute(*state, &o, &v, &out, &err));
        check(*state, cases[c].term, &in, cases[c].negatives, in.image, B * D, d[0]);
        check(*state, cases[c].term, &in, cases[c].negatives, in.text, B * D, d[1]);
        check(*state, cases[c].term, &in, cases[c].negatives, in.image_lv, B * D, d[2]);
        check(*state, cases[c].term, &in, cases[c].negatives, in.text_lv, B * D, d[3]);
        check(*state, cases[c].term, &in, cases[c].negatives, &in.scale, 1, &out.d_scale);
        if (!cases[c].negatives)
            continue;
        check(*state, cases[c].term, &in, true, in.negative, H * D, n[0]);
        check(*state, cases[c].term, &in, true, in.negative_lv, H * D, n[1]);
    }
}

static void test_refused(void **state)
{
    const inputs in = draw_inputs();
    const pnb_loss_term refuse[] = {PNB_LOSS_PCMEPP, PNB_LOSS_PCME, PNB_LOSS_TRIPLET};
    const double labels[B * B] = {1}, noise[B * 7 * D] = {0};
    pnb_loss_out out = {0};
    for (size_t i = 0; i < PNB_COUNT(refuse); i++) {
        const pnb_loss_opts o = only(refuse[i]);
        pnb_loss_in v = view(&in, true, DT);
        v.image_noise = v.text_noise = noise;
        ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "hard negatives");
    }
    pnb_loss_opts o = only(PNB_LOSS_SIGLIP);
    pnb_loss_in v = view(&in, true, DT);
    v.labels = labels;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "hard negatives");
    o = only(PNB_LOSS_DISTILL);
    v = view(&in, false, DT);
    v.teacher_scale = 0;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "scale");
    v = view(&in, false, DT);
    v.teacher_text.mean = NULL;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "no teacher");
    o = only(PNB_LOSS_DISTILL_KL);
    v = view(&in, false, DT);
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_SHAPE, "one width");
    v = view(&in, false, D);
    v.teacher_image.log_var = NULL;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "with variances");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, ctx_setup, ctx_teardown);
}
