/* The losses: values against plain loops, gradients against central differences in f64, extreme
 * log-variances in f64 and f32, dropped terms, bad input, and a planted fault that the gradient
 * check must find. The reference's own numbers are compared by the golden runner. */
#include "tests/train/fixture.h"

#include <math.h>

#include "penumbra/loss.h"
#include "train/losses/loss.h"

enum { N = 5, N_MASKED = 2, D = 6, J = 7, N_SIDES = 4 };
enum { SCALE, BIAS, POINT_SCALE, POINT_BIAS, N_SCALARS };
static const size_t rows[N_SIDES] = {N, N, N_MASKED, N_MASKED};

/* All inputs of a loss in one record, so that a difference quotient can move any of them. */
typedef struct inputs {
    double mean[N_SIDES][N * D], log_var[N_SIDES][N * D];
    double scalar[N_SCALARS];
    double noise[2][N * J * D];
    bool has_point, negative_only;
} inputs;

static inputs random_inputs(uint64_t seed)
{
    inputs in = {.scalar = {3, -1, 2, -0.5}};
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 1);
    for (int s = 0; s < N_SIDES; s++)
        for (int i = 0; i < N * D; i++) {
            in.mean[s][i] = 0.5 * pnb__rng_normal(&rng);
            in.log_var[s][i] = -2 + pnb__rng_normal(&rng);
        }
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < N * J * D; i++)
            in.noise[s][i] = pnb__rng_normal(&rng);
    return in;
}

static pnb_loss_in view(const inputs *in)
{
    return (pnb_loss_in){.n = N,
                         .n_masked = N_MASKED,
                         .dim = D,
                         .image = {.mean = in->mean[0], .log_var = in->log_var[0]},
                         .text = {.mean = in->mean[1], .log_var = in->log_var[1]},
                         .masked_image = {.mean = in->mean[2], .log_var = in->log_var[2]},
                         .masked_text = {.mean = in->mean[3], .log_var = in->log_var[3]},
                         .image_noise = in->noise[0],
                         .text_noise = in->noise[1],
                         .scale = in->scalar[SCALE],
                         .bias = in->scalar[BIAS],
                         .point_scale = in->has_point ? &in->scalar[POINT_SCALE] : NULL,
                         .point_bias = in->has_point ? &in->scalar[POINT_BIAS] : NULL,
                         .negative_only = in->negative_only};
}

static pnb_loss_opts only(pnb_loss_term term, double weight)
{
    pnb_loss_opts o = pnb_loss_opts_default();
    memset(o.weight, 0, sizeof o.weight);
    o.n_samples = J;
    o.weight[term] = weight;
    o.inclusion_scale = 2;
    o.inclusion_eps = -1;
    return o;
}

static double value(const pnb_ctx *ctx, const pnb_loss_opts *o, const inputs *in)
{
    pnb_loss_in v = view(in);
    pnb_loss_out out = {0};
    ASSERT_OK(pnb_loss_compute(ctx, o, &v, &out, &err));
    return out.total;
}

/* Of several embeddings an input, or of a teacher: tests/train/losses/loss_terms.c and distill.c
 * have them. */
static bool is_of_several(int term)
{
    return term >= PNB_LOSS_DIVERSITY;
}

/* ---- values ---- */

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int d = 0; d < D; d++)
        sum += a[d] * b[d];
    return sum;
}

static double trace(const double *log_var)
{
    double sum = 0;
    for (int d = 0; d < D; d++)
        sum += exp(log_var[d]);
    return sum;
}

/* Logit of pair (i, j) of each pairwise loss, from its definition. */
static double logit(const inputs *in, pnb_loss_term term, int i, int j)
{
    const double *m1 = in->mean[0] + i * D, *m2 = in->mean[1] + j * D;
    double u = trace(in->log_var[0] + i * D) + trace(in->log_var[1] + j * D);
    double a = in->scalar[SCALE], b = in->scalar[BIAS];
    if (in->has_point && (term == PNB_LOSS_SIGLIP || term == PNB_LOSS_PCMEPP)) {
        a = in->scalar[POINT_SCALE];
        b = in->scalar[POINT_BIAS];
    }
    switch (term) {
    case PNB_LOSS_PPCL:
        return a * (dot(m1, m2) - u / 2) + b;
    case PNB_LOSS_SIGLIP:
        return a * dot(m1, m2) + b;
    case PNB_LOSS_PCMEPP:
        return -a * (dot(m1, m1) + dot(m2, m2) - 2 * dot(m1, m2) + u) + b;
    default:
        return a * dot(m1, m2);
    }
}

static double plain_pairs(const inputs *in, pnb_loss_term term)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double l = logit(in, term, i, j);
            sum += softplus(i == j && !in->negative_only ? -l : l);
        }
    return term == PNB_LOSS_PCMEPP ? sum / (N * N) : sum / N;
}

static double plain_clip(const inputs *in)
{
    double sum = 0;
    for (int i = 0; i < N; i++) {
        double row = 0, col = 0;
        for (int j = 0; j < N; j++) {
            row += exp(logit(in, PNB_LOSS_CLIP, i, j));
            col += exp(logit(in, PNB_LOSS_CLIP, j, i));
        }
        sum += log(row) + log(col) - 2 * logit(in, PNB_LOSS_CLIP, i, i);
    }
    return sum / (2 * N);
}

/* mean -log s(c H) with H from the published Eq. 3, term by term as it is printed. */
static double plain_inclusion(const inputs *in, int one, int two, double c, double eps)
{
    double sum = 0;
    size_t n = PNB_MIN(rows[one], rows[two]) * D;
    for (size_t k = 0; k < n; k++) {
        double t[2];
        for (int way = 0; way < 2; way++) {
            int p = way == 0 ? one : two, q = way == 0 ? two : one;
            double l1 = in->log_var[p][k], l2 = in->log_var[q][k];
            double m1 = in->mean[p][k], m2 = in->mean[q][k];
            double w1 = exp(-l1 + eps), w2 = exp(-l2 + eps), a = w1 + w2 / 2;
            double b = 2 * m1 * w1 + m2 * w2, e = m1 * m1 * w1 + m2 * m2 * w2 / 2;
            t[way] = -2 * l1 - l2 - log(a) / 2 + b * b / (4 * a) - e;
        }
        sum += softplus(-c * (t[0] - t[1]));
    }
    return sum / (double)n;
}

static double plain_vib(const inputs *in, double share)
{
    double sum = 0;
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < N * D; i++) {
            double lv = share * in->log_var[s][i];
            sum -= (1 + lv - in->mean[s][i] * in->mean[s][i] - exp(lv)) / 2;
        }
    return sum / (N * D);
}

/* Sample j of row i of a side, one number of it. */
static double sample(const inputs *in, int s, int i, int j, int d)
{
    return in->mean[s][i * D + d] +
           exp(in->log_var[s][i * D + d] / 2) * in->noise[s][(i * J + j) * D + d];
}

static double apart(const inputs *in, const int a[3], const int b[3])
{
    double sum = 0;
    for (int d = 0; d < D; d++) {
        double x = sample(in, a[0], a[1], a[2], d) - sample(in, b[0], b[1], b[2], d);
        sum += x * x;
    }
    return sum;
}

/* Twice the sum over pairs of -log of the mean over samples of s(+-2 l). */
static double plain_pcme(const inputs *in)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double p = 0, sign = i == j && !in->negative_only ? 1 : -1;
            for (int k = 0; k < J * J; k++) {
                double d2 = apart(in, (int[]){0, i, k / J}, (int[]){1, j, k % J});
                double l = -in->scalar[SCALE] * sqrt(d2 + 1e-6) + in->scalar[BIAS];
                p += 1 / (1 + exp(-2 * sign * l)) / (J * J);
            }
            sum -= 2 * log(p);
        }
    return sum;
}

static double plain_uniformity(const inputs *in)
{
    double sum = 0;
    int n = 2 * N * J, pairs = 0;
    for (int p = 0; p < n; p++)
        for (int q = 0; q < p; q++, pairs++) {
            const int a[3] = {p / (N * J), p / J % N, p % J},
                      b[3] = {q / (N * J), q / J % N, q % J};
            sum += exp(-2 * apart(in, a, b));
        }
    return log(sum / pairs);
}

/* log sigma in place of log sigma^2, and the mean of the samples: PCME's code. */
static double plain_published_kl(const inputs *in)
{
    double sum = 0;
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < N * D; i++) {
            double m = 0, half = in->log_var[s][i] / 2;
            for (int j = 0; j < J; j++)
                m += sample(in, s, i / D, j, i % D) / J;
            sum -= (1 + half - m * m - exp(half)) / 2;
        }
    return sum;
}

/* Cosine of halves: two embeddings of D / 2 a row, the best of four pairs. */
static double best_of(const inputs *in, int i, int j, int k)
{
    double best = -1e300;
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) {
            double sum = 0;
            for (int d = 0; d < D / k; d++)
                sum += in->mean[0][i * D + a * (D / k) + d] * in->mean[1][j * D + b * (D / k) + d];
            best = fmax(best, sum);
        }
    return best;
}

static double plain_triplet(const inputs *in, int k, bool hardest)
{
    double sum = 0;
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < N; i++) {
            double most = 0, all = 0, own = best_of(in, i, i, k);
            for (int j = 0; j < N; j++) {
                double other = way == 0 ? best_of(in, i, j, k) : best_of(in, j, i, k);
                double cost = i == j ? 0 : fmax(0.2 + other - own, 0);
                most = fmax(most, cost);
                all += cost;
            }
            sum += hardest ? most : all;
        }
    return sum;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 + 1e-10 * fabs(want)))
        fail_msg("got %.17g, wanted %.17g", got, want);
}

static void test_values_against_loops(void **state)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        inputs in = random_inputs(seed);
        in.has_point = seed % 2 == 1;
        in.negative_only = seed == 2;
        static const pnb_loss_term pairs[] = {PNB_LOSS_PPCL, PNB_LOSS_SIGLIP, PNB_LOSS_PCMEPP};
        for (size_t i = 0; i < PNB_COUNT(pairs); i++) {
            pnb_loss_opts o = only(pairs[i], 0.7);
            assert_near(value(*state, &o, &in), 0.7 * plain_pairs(&in, pairs[i]));
        }
        pnb_loss_opts o = only(PNB_LOSS_CLIP, 2);
        assert_near(value(*state, &o, &in), 2 * plain_clip(&in));
        o = only(PNB_LOSS_INCLUSION, 1);
        assert_near(value(*state, &o, &in), plain_inclusion(&in, 0, 1, 2, -1));
        o = only(PNB_LOSS_IMG_INCLUSION, 1);
        assert_near(value(*state, &o, &in), plain_inclusion(&in, 0, 2, 2, -1));
        o = only(PNB_LOSS_TXT_INCLUSION, 1);
        assert_near(value(*state, &o, &in), plain_inclusion(&in, 1, 3, 2, -1));
        o = only(PNB_LOSS_VIB, 1);
        assert_near(value(*state, &o, &in), plain_vib(&in, 1));
        o.vib_official = true;
        assert_near(value(*state, &o, &in), plain_vib(&in, 0.5));
    }
}

static double value_of_two(const pnb_ctx *ctx, const pnb_loss_opts *o, const inputs *in)
{
    pnb_loss_in v = view(in);
    pnb_loss_out out = {0};
    v.n_embeddings = 2;
    ASSERT_OK(pnb_loss_compute(ctx, o, &v, &out, &err));
    return out.total;
}

static void test_sampled_values_against_loops(void **state)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        inputs in = random_inputs(seed);
        in.negative_only = seed == 2;
        pnb_loss_opts o = only(PNB_LOSS_PCME, 0.3);
        assert_near(value(*state, &o, &in), 0.3 * plain_pcme(&in));
        o = only(PNB_LOSS_UNIFORMITY, 10);
        assert_near(value(*state, &o, &in), 10 * plain_uniformity(&in));
        o = only(PNB_LOSS_PCME_KL, 2);
        assert_near(value(*state, &o, &in), 2 * N * D * plain_vib(&in, 1));
        o.pcme_kl_published = true;
        assert_near(value(*state, &o, &in), 2 * plain_published_kl(&in));
        in.negative_only = false;
        o = only(PNB_LOSS_TRIPLET, 1);
        assert_near(value(*state, &o, &in), plain_triplet(&in, 1, false));
        assert_near(value_of_two(*state, &o, &in), plain_triplet(&in, 2, false));
        o.triplet_hardest = true;
        assert_near(value(*state, &o, &in), plain_triplet(&in, 1, true));
        assert_near(value_of_two(*state, &o, &in), plain_triplet(&in, 2, true));
    }
}

/* The loss of a training graph at some steps; `out` gets its total at each. */
static void totals_of_steps(const pnb_ctx *ctx, const pnb_loss_opts *o, const inputs *in,
                            const int64_t *step, size_t n, double *out)
{
    pnb__graph *g = NULL;
    pnb__loss loss;
    ASSERT_OK(pnb__graph_create(&g, ctx, PNB__F64, false, &err));
    pnb__dist side[2];
    for (int s = 0; s < 2; s++)
        side[s] = (pnb__dist){.mean = pnb__input(g, PNB__REAL, 2, (size_t[]){N, D}),
                              .log_var = pnb__input(g, PNB__REAL, 2, (size_t[]){N, D})};
    const pnb__loss_in loss_in = {.image = side[0],
                                  .text = side[1],
                                  .scale = pnb__constant(g, 3),
                                  .bias = pnb__constant(g, -1),
                                  .draws = true};
    ASSERT_OK(pnb__loss_build(&loss, g, &loss_in, o, &err));
    ASSERT_OK(pnb__graph_plan(g, NULL, &err));
    ASSERT_OK(pnb__loss_start(&loss, &err));
    for (size_t i = 0; i < n; i++) {
        for (int s = 0; s < 2; s++) {
            pnb__write_f64(side[s].mean, in->mean[s]);
            pnb__write_f64(side[s].log_var, in->log_var[s]);
        }
        ASSERT_OK(pnb__loss_set_step(&loss, 7, step[i], NULL, &err));
        ASSERT_OK(pnb__graph_run(g, &err));
        out[i] = pnb__read_scalar(loss.total);
    }
    pnb__graph_free(g);
}

/* A step has draws of its own, the same whenever it is run; warm-up ends at its step. */
static void test_steps(void **state)
{
    static const int64_t steps[] = {0, 1, 0, 5};
    inputs in = random_inputs(1);
    pnb_loss_opts o = only(PNB_LOSS_PCME, 1);
    double total[4];
    totals_of_steps(*state, &o, &in, steps, 4, total);
    assert_true(total[0] == total[2] && total[0] != total[1] && total[1] != total[3]);
    o = only(PNB_LOSS_TRIPLET, 1);
    o.triplet_hardest = true;
    o.triplet_warmup = 5;
    totals_of_steps(*state, &o, &in, steps, 4, total);
    assert_near(total[0], plain_triplet(&in, 1, false));
    assert_near(total[1], plain_triplet(&in, 1, false));
    assert_near(total[3], plain_triplet(&in, 1, true));
}

static void test_total_is_the_sum(void **state)
{
    inputs in = random_inputs(3);
    pnb_loss_opts o = pnb_loss_opts_default();
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
        o.weight[i] = is_of_several(i) ? 0 : 0.1 * (i + 1);
    o.n_samples = J;
    pnb_loss_in v = view(&in);
    pnb_loss_out out = {0};
    ASSERT_OK(pnb_loss_compute(*state, &o, &v, &out, &err));
    double sum = 0;
    for (int i = 0; i < PNB_N_LOSS_TERMS; i++) {
        assert_true((out.term[i] != 0) == !is_of_several(i));
        sum += out.term[i];
    }
    assert_near(out.total, sum);
}

/* ---- gradients ---- */

typedef struct grads {
    double mean[N_SIDES][N * D], log_var[N_SIDES][N * D], scalar[N_SCALARS];
} grads;

static grads gradients(const pnb_ctx *ctx, const pnb_loss_opts *o, const inputs *in)
{
    grads g = {0};
    pnb_loss_in v = view(in);
    pnb_loss_out out = {0};
    for (int s = 0; s < N_SIDES; s++) {
        out.d_mean[s] = g.mean[s];
        out.d_log_var[s] = g.log_var[s];
    }
    ASSERT_OK(pnb_loss_compute(ctx, o, &v, &out, &err));
    const double scalars[N_SCALARS] = {out.d_scale, out.d_bias, out.d_point_scale,
                                       out.d_point_bias};
    memcpy(g.scalar, scalars, sizeof scalars);
    return g;
}

/* Central difference of the loss in one number of `in`. */
static double difference(const pnb_ctx *ctx, const pnb_loss_opts *o, inputs *in, double *x)
{
    double old = *x, h = 1e-5;
    *x = old + h;
    double up = value(ctx, o, in);
    *x = old - h;
    double down = value(ctx, o, in);
    *x = old;
    return (up - down) / (2 * h);
}

static bool agrees(double got, double want)
{
    return fabs(got - want) <= 1e-8 + 1e-5 * fabs(want);
}

/* Number of gradient entries that disagree with differences. */
static int count_wrong(const pnb_ctx *ctx, const pnb_loss_opts *o, inputs *in, const grads *g)
{
    int wrong = 0;
    for (int s = 0; s < N_SIDES; s++)
        for (size_t i = 0; i < rows[s] * D; i += 3) {
            wrong += !agrees(g->mean[s][i], difference(ctx, o, in, &in->mean[s][i]));
            wrong += !agrees(g->log_var[s][i], difference(ctx, o, in, &in->log_var[s][i]));
        }
    for (int i = 0; i < (in->has_point ? N_SCALARS : POINT_SCALE); i++)
        wrong += !agrees(g->scalar[i], difference(ctx, o, in, &in->scalar[i]));
    return wrong;
}

static void test_gradients_against_differences(void **state)
{
    for (int term = 0; term < PNB_N_LOSS_TERMS; term++)
        for (int variant = 0; variant < (is_of_several(term) ? 0 : 2); variant++) {
            inputs in = random_inputs((uint64_t)(10 + term));
            pnb_loss_opts o = only((pnb_loss_term)term, 1.5);
            in.has_point = variant == 1;
            o.inclusion_exact = variant == 1;
            o.vib_official = variant == 1;
            grads g = gradients(*state, &o, &in);
            int wrong = count_wrong(*state, &o, &in, &g);
            if (wrong > 0)
                fail_msg("%s: %d entries disagree", pnb_loss_name((pnb_loss_term)term), wrong);
        }
}

static void test_planted_faults_are_found(void **state)
{
    inputs in = random_inputs(20);
    pnb_loss_opts o = only(PNB_LOSS_PPCL, 1);
    const grads right = gradients(*state, &o, &in);
    assert_int_equal(count_wrong(*state, &o, &in, &right), 0);
    for (int fault = 0; fault < 4; fault++) {
        grads g = right;
        for (int i = 0; i < N * D; i++) {
            double *x = &g.log_var[0][i];
            *x = fault == 0 ? -*x : fault == 1 ? 2 * *x : fault == 2 ? NAN : 0;
        }
        assert_true(count_wrong(*state, &o, &in, &g) > 0);
    }
}

/* ---- extremes ---- */

static bool all_finite(const grads *g)
{
    const double *x = (const double *)g;
    for (size_t i = 0; i < sizeof *g / sizeof *x; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* Log-variances for the images and for everything else. */
static const double extremes[][2] = {{30, 30},   {-30, -30}, {30, -30}, {-30, 30},
                                     {-200, -4}, {-4, -200}, {60, 0},   {0, 60}};

static void test_extreme_log_variances(void **state)
{
    for (size_t e = 0; e < PNB_COUNT(extremes); e++)
        for (int term = 0; term < PNB_N_LOSS_TERMS; term++) {
            if (is_of_several(term))
                continue;
            inputs in = random_inputs(30);
            for (int s = 0; s < N_SIDES; s++)
                for (int i = 0; i < N * D; i++)
                    in.log_var[s][i] = extremes[e][s == 0 ? 0 : 1];
            pnb_loss_opts o = pnb_loss_opts_default();
            memset(o.weight, 0, sizeof o.weight);
            o.weight[term] = 1;
            grads g = gradients(*state, &o, &in);
            if (!all_finite(&g))
                fail_msg("%s at log-variances %g and %g: gradient not finite",
                         pnb_loss_name((pnb_loss_term)term), extremes[e][0], extremes[e][1]);
        }
}

/* The same in single precision, through the graph the trainer uses. */
static void check_f32(const pnb_ctx *ctx, const inputs *in, const pnb_loss_opts *o)
{
    pnb__graph *g = NULL;
    pnb__loss loss;
    pnb__tensor *leaf[2 * N_SIDES];
    ASSERT_OK(pnb__graph_create(&g, ctx, PNB__F32, true, &err));
    for (int s = 0; s < N_SIDES; s++) {
        const size_t shape[2] = {rows[s], D};
        leaf[2 * s] = pnb__input_with_grad(g, 2, shape);
        leaf[2 * s + 1] = pnb__input_with_grad(g, 2, shape);
    }
    pnb__tensor *scale = pnb__input(g, PNB__REAL, 0, NULL),
                *bias = pnb__input(g, PNB__REAL, 0, NULL);
    const pnb__loss_in graph_in = {.image = {.mean = leaf[0], .log_var = leaf[1]},
                                   .text = {.mean = leaf[2], .log_var = leaf[3]},
                                   .masked_image = {.mean = leaf[4], .log_var = leaf[5]},
                                   .masked_text = {.mean = leaf[6], .log_var = leaf[7]},
                                   .scale = scale,
                                   .bias = bias};
    ASSERT_OK(pnb__loss_build(&loss, g, &graph_in, o, &err));
    ASSERT_OK(pnb__graph_plan(g, loss.total, &err));
    ASSERT_OK(pnb__loss_start(&loss, &err));
    for (int s = 0; s < N_SIDES; s++) {
        pnb__write_f64(leaf[2 * s], in->mean[s]);
        pnb__write_f64(leaf[2 * s + 1], in->log_var[s]);
    }
    pnb__write_f64(scale, &in->scalar[SCALE]);
    pnb__write_f64(bias, &in->scalar[BIAS]);
    ASSERT_OK(pnb__loss_set_step(&loss, 0, 0, NULL, &err));
    ASSERT_OK(pnb__graph_run(g, &err));
    assert_true(isfinite(pnb__read_scalar(loss.total)));
    for (int i = 0; i < 2 * N_SIDES; i++) {
        double grad[N * D] = {0};
        pnb__read_grad_f64(leaf[i], grad);
        for (int k = 0; k < N * D; k++)
            if (!isfinite(grad[k]))
                fail_msg("f32: gradient of leaf %d is %g", i, grad[k]);
    }
    pnb__graph_free(g);
}

static void test_extreme_log_variances_f32(void **state)
{
    for (size_t e = 0; e < PNB_COUNT(extremes); e++)
        for (int exact = 0; exact < 2; exact++) {
            inputs in = random_inputs(31);
            in.scalar[SCALE] = 100;
            for (int s = 0; s < N_SIDES; s++)
                for (int i = 0; i < N * D; i++)
                    in.log_var[s][i] = extremes[e][s == 0 ? 0 : 1];
            pnb_loss_opts o = pnb_loss_opts_default();
            o.inclusion_exact = exact == 1;
            for (int i = 0; i < PNB_N_LOSS_TERMS; i++)
                o.weight[i] = !is_of_several(i);
            check_f32(*state, &in, &o);
        }
}

static void test_terms_over_their_limit_are_dropped(void **state)
{
    inputs in = random_inputs(40);
    pnb_loss_opts o = only(PNB_LOSS_VIB, 0.5);
    for (int i = 0; i < N * D; i++)
        in.log_var[0][i] = 20; /* exp(20) / 2 is far over 1e4; the text side stays */
    grads g = gradients(*state, &o, &in);
    pnb_loss_opts text_only = o;
    inputs calm = in;
    memcpy(calm.log_var[0], random_inputs(41).log_var[0], sizeof calm.log_var[0]);
    double both = value(*state, &text_only, &calm), left = value(*state, &o, &in);
    assert_true(left > 0 && left < both);
    for (int i = 0; i < N * D; i++) {
        assert_true(g.log_var[0][i] == 0 && g.mean[0][i] == 0);
        assert_true(g.log_var[1][i] != 0);
    }
    o = only(PNB_LOSS_INCLUSION, 0.5);
    o.inclusion_scale = 1e7;
    g = gradients(*state, &o, &in);
    assert_true(value(*state, &o, &in) == 0);
    for (int i = 0; i < N * D; i++)
        assert_true(g.log_var[0][i] == 0 && g.mean[1][i] == 0);
}

/* Just under the limit nothing is lost, just over it everything. */
static void test_limit_is_sharp(void **state)
{
    inputs in = random_inputs(42);
    pnb_loss_opts o = only(PNB_LOSS_INCLUSION, 1);
    o.inclusion_scale = 1000;
    double v = value(*state, &o, &in);
    assert_true(v > 1);
    o.inclusion_limit = v * (1 + 1e-12);
    assert_true(value(*state, &o, &in) == v);
    o.inclusion_limit = v * (1 - 1e-12);
    assert_true(value(*state, &o, &in) == 0);
}

/* ---- bad input ---- */

static void test_bad_input(void **state)
{
    inputs in = random_inputs(50);
    pnb_loss_opts o = pnb_loss_opts_default();
    pnb_loss_in v = view(&in);
    pnb_loss_out out = {0};
    o.weight[PNB_LOSS_VIB] = -1;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "loss vib is -1");
    o = pnb_loss_opts_default();
    v.n_masked = 0;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_SHAPE, "img_inclusion");
    v.n_masked = N + 1;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_SHAPE, "6 masked rows");
    v = view(&in);
    v.dim = 0;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "width 0");
    v = view(&in);
    v.text.log_var = NULL;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "siglip or clip");
    v = view(&in);
    v.masked_image.log_var = NULL;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "img_inclusion needs");
    v = view(&in);
    v.point_scale = &in.scalar[POINT_SCALE]; /* alone it would be dropped without a word */
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "without point_bias");
    v = view(&in);
    o.inclusion_scale = 0;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "scale 0");
    o = pnb_loss_opts_default();
    o.vib_limit = 0.5;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_ARG, "0.5, 1 is the least");
    o = pnb_loss_opts_default();
    in.mean[0][3] = NAN;
    ASSERT_FAILS(pnb_loss_compute(*state, &o, &v, &out, &err), PNB_NUMERIC, "");
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(pnb_loss_name(PNB_LOSS_PPCL), "ppcl");
    assert_string_equal(pnb_loss_name(PNB_LOSS_TXT_INCLUSION), "txt_inclusion");
    assert_null(pnb_loss_name(PNB_N_LOSS_TERMS));
    assert_non_null(pnb_loss_meaning(PNB_LOSS_VIB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_against_loops),
        cmocka_unit_test(test_sampled_values_against_loops),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_total_is_the_sum),
        cmocka_unit_test(test_gradients_against_differences),
        cmocka_unit_test(test_planted_faults_are_found),
        cmocka_unit_test(test_extreme_log_variances),
        cmocka_unit_test(test_extreme_log_variances_f32),
        cmocka_unit_test(test_terms_over_their_limit_are_dropped),
        cmocka_unit_test(test_limit_is_sharp),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, ctx_setup, ctx_teardown);
}
