/* Terms beside the ones of one match a row: pseudo positives, labels between 0 and 1, PVSE's three,
 * and uniformity over drawn samples. Each against plain loops of its definition, its gradient
 * against central differences, a gradient with a planted fault, and what is refused. */
#include <math.h>

#include "tests/train/fixture.h"
#include "train/losses/loss.h"

enum { N = 4, D = 6, K = 2, J = 17, N_SAMPLES = 2 * N * J };
_Static_assert(N_SAMPLES > PNB_UNIFORMITY_DRAWN, "some samples must be left out");

/* All that a gradient is taken by, then what is given. */
typedef struct inputs {
    double mean[2][N * D], log_var[2][N * D], residual[2][N * D], scale, bias;
    double noise[2][N * J * D], labels[N * N];
    int32_t drawn[PNB_UNIFORMITY_DRAWN];
} inputs;
enum { N_LEAVES = (sizeof(double[6][N * D]) / sizeof(double)) + 2 };

/* Picture 2 is mixed of its own and that of text 0, picture 3 more of text 1 than of its own. */
static const double mixed_labels[N * N] = {1,    0, 0,    0, 0, 1,     0, 0,
                                           0.25, 0, 0.75, 0, 0, 0.625, 0, 0.375};

static inputs random_inputs(uint64_t seed)
{
    inputs in = {.scale = 1.5, .bias = 2.5};
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 3);
    double *leaf = in.mean[0];
    for (size_t i = 0; i < 6 * N * D; i++)
        leaf[i] = 0.6 * pnb__rng_normal(&rng) - (i >= 2 * N * D && i < 4 * N * D ? 2 : 0);
    double *noise = in.noise[0];
    for (size_t i = 0; i < 2 * N * J * D; i++)
        noise[i] = pnb__rng_normal(&rng);
    memcpy(in.labels, mixed_labels, sizeof in.labels);
    for (size_t i = 0; i < PNB_UNIFORMITY_DRAWN; i++)
        in.drawn[i] = (int32_t)pnb__rng_below(&rng, N_SAMPLES);
    return in;
}

typedef struct term_case {
    const char *what;
    pnb_loss_term term;
    double (*plain)(const inputs *in, const struct term_case *c);
    bool has_labels;
    size_t n_embeddings; /* 0: one */
    bool is_published, is_mean, is_hardest;
} term_case;

static pnb_loss_opts opts_of(const term_case *c)
{
    pnb_loss_opts o = pnb_loss_opts_default();
    memset(o.weight, 0, sizeof o.weight);
    o.weight[c->term] = 1;
    o.n_samples = J;
    o.uniformity_published = o.mmd_published = c->is_published;
    o.triplet_mean = c->is_mean;
    o.triplet_hardest = c->is_hardest;
    return o;
}

static pnb_loss_in view(const inputs *in, const term_case *c)
{
    return (pnb_loss_in){.n = N,
                         .dim = D,
                         .image = {in->mean[0], in->log_var[0], in->residual[0]},
                         .text = {in->mean[1], in->log_var[1], in->residual[1]},
                         .scale = in->scale,
                         .bias = in->bias,
                         .image_noise = in->noise[0],
                         .text_noise = in->noise[1],
                         .n_embeddings = c->n_embeddings,
                         .labels = c->has_labels ? in->labels : NULL,
                         .drawn = in->drawn};
}

static double value(const pnb_ctx *ctx, const term_case *c, const inputs *in)
{
    const pnb_loss_opts o = opts_of(c);
    pnb_loss_in v = view(in, c);
    pnb_loss_out out = {0};
    ASSERT_OK(pnb_loss_compute(ctx, &o, &v, &out, &err));
    return out.total;
}

/* ---- definitions ---- */

static double label(const inputs *in, const term_case *c, int i, int t)
{
    return c->has_labels ? in->labels[i * N + t] : i == t;
}

static double trace(const double *log_var)
{
    double sum = 0;
    for (int d = 0; d < D; d++)
        sum += exp(log_var[d]);
    return sum;
}

/* Of picture i and text t: the cosine's logit, less the traces, or that of their distance. */
static double logit(const inputs *in, pnb_loss_term term, int i, int t)
{
    double dot = 0, apart = 0;
    double u = trace(in->log_var[0] + i * D) + trace(in->log_var[1] + t * D);
    for (int d = 0; d < D; d++) {
        double x = in->mean[0][i * D + d], y = in->mean[1][t * D + d];
        dot += x * y;
        apart += (x - y) * (x - y);
    }
    if (term == PNB_LOSS_SIGLIP)
        return in->scale * dot + in->bias;
    if (term == PNB_LOSS_PPCL)
        return in->scale * (dot - u / 2) + in->bias;
    return -in->scale * (apart + u) + in->bias;
}

static double cross_entropy(double z, double y)
{
    return log1p(exp(-fabs(z))) + fmax(z, 0) - y * z;
}

static double plain_pairs(const inputs *in, const term_case *c)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int t = 0; t < N; t++)
            sum += cross_entropy(logit(in, c->term, i, t), label(in, c, i, t));
    return c->term == PNB_LOSS_PCMEPP ? sum / (N * N) : sum / N;
}

/* y' = the label of the row's match where z reaches the match's, rows of pictures and of texts. */
static double plain_pseudo(const inputs *in, const term_case *c)
{
    double sum = 0;
    for (int way = 0; way < 2; way++)
        for (int row = 0; row < N; row++) {
            int match = 0;
            for (int k = 1; k < N; k++)
                if (way == 0 ? label(in, c, row, k) > label(in, c, row, match)
                             : label(in, c, k, row) > label(in, c, match, row))
                    match = k;
            int mi = way == 0 ? row : match, mt = way == 0 ? match : row;
            double bar = logit(in, c->term, mi, mt), v = label(in, c, mi, mt);
            for (int k = 0; k < N; k++) {
                int i = way == 0 ? row : k, t = way == 0 ? k : row;
                double z = logit(in, c->term, i, t);
                sum += cross_entropy(z, z >= bar ? v : label(in, c, i, t)) / (N * N);
            }
        }
    return sum;
}

static double sample(const inputs *in, int s, int n, int j, int d)
{
    return in->mean[s][n * D + d] +
           exp(in->log_var[s][n * D + d] / 2) * in->noise[s][(n * J + j) * D + d];
}

/* Squared distance of two of all samples, pictures' first. */
static double apart(const inputs *in, int a, int b)
{
    double sum = 0;
    for (int d = 0; d < D; d++) {
        double x = sample(in, a / (N * J), a / J % N, a % J, d);
        double y = sample(in, b / (N * J), b / J % N, b % J, d);
        sum += (x - y) * (x - y);
    }
    return sum;
}

static double plain_pcme(const inputs *in, const term_case *c)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int t = 0; t < N; t++) {
            double p[2] = {0, 0}, y = label(in, c, i, t);
            for (int k = 0; k < J * J; k++) {
                double d2 = apart(in, i * J + k / J, (N + t) * J + k % J);
                double l = -in->scale * sqrt(d2 + 1e-6) + in->bias;
                p[0] += 1 / (1 + exp(-2 * l)) / (J * J);
                p[1] += 1 / (1 + exp(2 * l)) / (J * J);
            }
            sum -= 2 * (y * log(p[0]) + (1 - y) * log(p[1]));
        }
    return sum;
}

static double plain_uniformity(const inputs *in, const term_case *c)
{
    double sum = 0;
    int pairs = 0;
    (void)c;
    for (int p = 0; p < PNB_UNIFORMITY_DRAWN; p++)
        for (int q = 0; q < p; q++, pairs++)
            sum += exp(-2 * apart(in, in->drawn[p], in->drawn[q]));
    return log(sum / pairs);
}

/* sqrt of the squares off the diagonal of the residuals' cosines, over K^2, mean over rows. */
static double plain_diversity(const inputs *in, const term_case *c)
{
    int k = (int)c->n_embeddings, dim = D / k;
    double sum = 0;
    for (int s = 0; s < 2; s++)
        for (int n = 0; n < N; n++) {
            double squares = 0;
            for (int a = 0; a < k; a++)
                for (int b = 0; b < k; b++) {
                    const double *x = in->residual[s] + n * D + a * dim;
                    const double *y = in->residual[s] + n * D + b * dim;
                    double xy = 0, xx = 0, yy = 0;
                    for (int d = 0; d < dim; d++) {
                        xy += x[d] * y[d];
                        xx += x[d] * x[d];
                        yy += y[d] * y[d];
                    }
                    squares += a == b ? 0 : xy * xy / (xx * yy);
                }
            sum += sqrt(squares + 1e-12) / (k * k) / N;
        }
    return sum;
}

/* mean k(x,x') - 2 mean k(x,y) + mean k(y,y') */
static double plain_mmd(const inputs *in, const term_case *c)
{
    int k = PNB_MAX((int)c->n_embeddings, 1), dim = D / k, n = N * k;
    double sum = 0;
    for (int s = 0; s < 2; s++)
        for (int t = 0; t < 2; t++)
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++) {
                    double d2 = 0;
                    for (int d = 0; d < dim; d++) {
                        double e = in->mean[s][a * dim + d] - in->mean[t][b * dim + d];
                        d2 += e * e;
                    }
                    double far = c->is_published ? sqrt(d2 + 1e-12) : d2;
                    sum += (s == t ? 1 : -1) * exp(-0.5 * far) / (n * n);
                }
    return sum;
}

/* Margins of one embedding, over rows and columns, by their mean. */
static double plain_triplet(const inputs *in, const term_case *c)
{
    double sum = 0;
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < N; i++) {
            double most = 0, all = 0, dot[N] = {0};
            for (int t = 0; t < N; t++)
                for (int d = 0; d < D; d++)
                    dot[t] += in->mean[way][i * D + d] * in->mean[1 - way][t * D + d];
            for (int t = 0; t < N; t++) {
                double cost = t == i ? 0 : fmax(0.2 + dot[t] - dot[i], 0);
                most = fmax(most, cost);
                all += cost;
            }
            sum += c->is_hardest ? most / N : all / (N * N);
        }
    return sum;
}

static const term_case cases[] = {
    {"ppcl of labels", PNB_LOSS_PPCL, plain_pairs, .has_labels = true},
    {"siglip of labels", PNB_LOSS_SIGLIP, plain_pairs, .has_labels = true},
    {"pcmepp of labels", PNB_LOSS_PCMEPP, plain_pairs, .has_labels = true},
    {"pcmepp", PNB_LOSS_PCMEPP, plain_pairs, .has_labels = false},
    {"pseudo positives", PNB_LOSS_PCMEPP_PSEUDO, plain_pseudo, .has_labels = false},
    {"pseudo positives of labels", PNB_LOSS_PCMEPP_PSEUDO, plain_pseudo, .has_labels = true},
    {"pcme of labels", PNB_LOSS_PCME, plain_pcme, .has_labels = true},
    {"pcme", PNB_LOSS_PCME, plain_pcme, .has_labels = false},
    {"uniformity of drawn samples", PNB_LOSS_UNIFORMITY, plain_uniformity, .is_published = true},
    {"diversity", PNB_LOSS_DIVERSITY, plain_diversity, .n_embeddings = K},
    {"mmd", PNB_LOSS_MMD, plain_mmd, .has_labels = false},
    {"mmd of several", PNB_LOSS_MMD, plain_mmd, .n_embeddings = K},
    {"mmd published", PNB_LOSS_MMD, plain_mmd, .n_embeddings = K, .is_published = true},
    {"mean margin", PNB_LOSS_TRIPLET, plain_triplet, .is_mean = true},
    {"mean margin to the nearest", PNB_LOSS_TRIPLET, plain_triplet, .is_mean = true,
     .is_hardest = true},
};

static void test_values(void **state)
{
    const pnb_ctx *ctx = *state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            inputs in = random_inputs(seed);
            double got = value(ctx, &cases[i], &in), want = cases[i].plain(&in, &cases[i]);
            if (!(fabs(got - want) <= 1e-12 + 1e-10 * fabs(want)))
                fail_msg("%s: got %.15g, wanted %.15g", cases[i].what, got, want);
        }
}

/* ---- gradients ---- */

typedef struct grads {
    double leaf[N_LEAVES];
} grads;

static grads gradients(const pnb_ctx *ctx, const term_case *c, const inputs *in)
{
    grads g = {{0}};
    const pnb_loss_opts o = opts_of(c);
    pnb_loss_in v = view(in, c);
    pnb_loss_out out = {0};
    for (int s = 0; s < 2; s++) {
        out.d_mean[s] = g.leaf + s * N * D;
        out.d_log_var[s] = g.leaf + (2 + s) * N * D;
        out.d_residual[s] = g.leaf + (4 + s) * N * D;
    }
    ASSERT_OK(pnb_loss_compute(ctx, &o, &v, &out, &err));
    g.leaf[N_LEAVES - 2] = out.d_scale;
    g.leaf[N_LEAVES - 1] = out.d_bias;
    return g;
}

/* Entries that disagree with central differences, every third of them. */
static int count_wrong(const pnb_ctx *ctx, const term_case *c, inputs *in, const grads *g)
{
    int wrong = 0;
    double *x = in->mean[0];
    for (size_t i = 0; i < N_LEAVES; i += i < N_LEAVES - 3 ? 3 : 1) {
        double old = x[i], h = 1e-5;
        x[i] = old + h;
        double up = value(ctx, c, in);
        x[i] = old - h;
        double want = (up - value(ctx, c, in)) / (2 * h);
        x[i] = old;
        wrong += !(fabs(g->leaf[i] - want) <= 1e-8 + 1e-5 * fabs(want));
    }
    return wrong;
}

static void test_gradients(void **state)
{
    const pnb_ctx *ctx = *state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        inputs in = random_inputs(20 + i);
        grads g = gradients(ctx, &cases[i], &in);
        int wrong = count_wrong(ctx, &cases[i], &in, &g);
        if (wrong > 0)
            fail_msg("%s: %d entries disagree", cases[i].what, wrong);
    }
}

static void test_planted_faults_are_found(void **state)
{
    const pnb_ctx *ctx = *state;
    inputs in = random_inputs(40);
    const term_case *c = &cases[9]; /* diversity: its gradient is the residuals' alone */
    const grads right = gradients(ctx, c, &in);
    assert_int_equal(count_wrong(ctx, c, &in, &right), 0);
    for (int fault = 0; fault < 4; fault++) {
        grads g = right;
        for (size_t i = 4 * N * D; i < 6 * N * D; i++)
            g.leaf[i] = fault == 0 ? -g.leaf[i] : fault == 1 ? 2 * g.leaf[i] : fault == 2 ? NAN : 0;
        assert_true(count_wrong(ctx, c, &in, &g) > 0);
    }
}

/* ---- what labels of one match a row are ---- */

/* The identity as labels is no labels. */
static void test_identity_labels(void **state)
{
    const pnb_ctx *ctx = *state;
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        inputs in = random_inputs(60);
        term_case plain = cases[i];
        if (!plain.has_labels)
            continue;
        for (int k = 0; k < N * N; k++)
            in.labels[k] = k % (N + 1) == 0;
        double with = value(ctx, &plain, &in);
        plain.has_labels = false;
        double without = value(ctx, &plain, &in);
        if (!(fabs(with - without) <= 1e-11 * fabs(without)))
            fail_msg("%s: %.15g with the identity, %.15g without", plain.what, with, without);
    }
}

static void refused(const pnb_ctx *ctx, const term_case *c, const pnb_loss_in *v, const char *why)
{
    const pnb_loss_opts o = opts_of(c);
    pnb_loss_out out = {0};
    ASSERT_FAILS(pnb_loss_compute(ctx, &o, v, &out, &err), PNB_ARG, why);
}

static void test_bad_input(void **state)
{
    const pnb_ctx *ctx = *state;
    inputs in = random_inputs(50);
    const pnb_loss_term unlabelled[] = {PNB_LOSS_CLIP, PNB_LOSS_INCLUSION, PNB_LOSS_TRIPLET};
    for (size_t i = 0; i < PNB_COUNT(unlabelled); i++) {
        const term_case c = {"", unlabelled[i], NULL, .has_labels = true};
        pnb_loss_in v = view(&in, &c);
        refused(ctx, &c, &v, "no match by halves");
    }
    pnb_loss_in v = view(&in, &cases[4]);
    v.negative_only = true;
    refused(ctx, &cases[4], &v, "against matches, and none is there");
    v = view(&in, &cases[0]);
    v.negative_only = true;
    refused(ctx, &cases[0], &v, "here nobody does");
    in.labels[3] = 1.5;
    refused(ctx, &cases[0], &v, "label 3 is 1.5");
    v = view(&in, &cases[8]);
    v.drawn = NULL;
    refused(ctx, &cases[8], &v, "give drawn");
    v.drawn = in.drawn;
    in.drawn[5] = N_SAMPLES;
    refused(ctx, &cases[8], &v, "drawn sample 136 of 136");
    const term_case one = {"", PNB_LOSS_DIVERSITY, NULL, .has_labels = false};
    v = view(&in, &one);
    refused(ctx, &one, &v, "several embeddings");
    v = view(&in, &cases[9]);
    v.image.residual = NULL;
    refused(ctx, &cases[9], &v, "several embeddings");
}

/* ---- labels by marks ---- */

/* Two marks a row that exceed a base, of the rows of pictures and of those of texts. */
static void set_marks(const pnb__loss *loss, double e)
{
    int32_t columns[2][2 * N];
    float weights[2][2 * N];
    for (size_t at = 0; at < (size_t)4 * N; at++) {
        size_t way = at / ((size_t)2 * N), k = at % ((size_t)2 * N);
        columns[way][k] = (int32_t)(k / 2);
        weights[way][k] = 0;
    }
    for (size_t way = 0; way < 2; way++)
        for (size_t r = 0; r < N; r++)
            for (size_t c = 0, k = 2 * r; c < N; c++) {
                double label = mixed_labels[way == 0 ? r * N + c : c * N + r];
                if (label > 0) {
                    columns[way][k] = (int32_t)c;
                    weights[way][k++] = (float)((1 - 2 * e) * label);
                }
            }
    const pnb__pair_labels labels = {{columns[0], columns[1]}, {weights[0], weights[1]}};
    ASSERT_OK(pnb__loss_set_labels(loss, &labels, &err));
}

/* The term as a step has it, its labels mixed and smoothed by e. */
static double marked_value(const pnb_ctx *ctx, const term_case *c, const inputs *in, double e)
{
    const size_t shape[2] = {N, D};
    const pnb_loss_opts o = opts_of(c);
    pnb__graph *g = NULL;
    pnb__loss loss;
    pnb__dist side[2];
    ASSERT_OK(pnb__graph_create(&g, ctx, PNB__F64, true, &err));
    for (int s = 0; s < 2; s++)
        side[s] = (pnb__dist){.mean = pnb__input_with_grad(g, 2, shape),
                              .log_var = pnb__input_with_grad(g, 2, shape)};
    const pnb__loss_in graph_in = {.image = side[0],
                                   .text = side[1],
                                   .scale = pnb__constant(g, in->scale),
                                   .bias = pnb__constant(g, in->bias),
                                   .has_labels = true,
                                   .n_marks = 2,
                                   .label_base = e};
    ASSERT_OK(pnb__loss_build(&loss, g, &graph_in, &o, &err));
    ASSERT_OK(pnb__graph_plan(g, loss.total, &err));
    ASSERT_OK(pnb__loss_start(&loss, &err));
    for (int s = 0; s < 2; s++) {
        pnb__write_f64(side[s].mean, in->mean[s]);
        pnb__write_f64(side[s].log_var, in->log_var[s]);
        if (loss.noise[s] != NULL)
            pnb__write_f64(loss.noise[s], in->noise[s]);
    }
    set_marks(&loss, e);
    ASSERT_OK(pnb__graph_run(g, &err));
    double total = pnb__read_scalar(loss.total);
    pnb__graph_free(g);
    return total;
}

/* Marks over a base are the matrix that they stand for. */
static void test_marks_are_labels(void **state)
{
    static const pnb_loss_term terms[] = {PNB_LOSS_PPCL, PNB_LOSS_SIGLIP, PNB_LOSS_PCMEPP,
                                          PNB_LOSS_PCMEPP_PSEUDO, PNB_LOSS_PCME};
    for (size_t i = 0; i < 2 * PNB_COUNT(terms); i++) {
        const term_case c = {"", terms[i / 2], NULL, .has_labels = true};
        const double e = i % 2 == 0 ? 0 : 0.125;
        inputs in = random_inputs(i);
        for (size_t k = 0; k < (size_t)N * N; k++)
            in.labels[k] = e + (1 - 2 * e) * mixed_labels[k];
        double want = value(*state, &c, &in), got = marked_value(*state, &c, &in, e);
        if (!(fabs(got - want) <= 1e-6 * fabs(want)))
            fail_msg("%s, e %g: marks give %.9g, labels %.9g", pnb_loss_name(terms[i / 2]), e, got,
                     want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_planted_faults_are_found),
        cmocka_unit_test(test_identity_labels),
        cmocka_unit_test(test_marks_are_labels),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, ctx_setup, ctx_teardown);
}
