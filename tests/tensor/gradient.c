/* Every row of ops.def against central differences in double precision.
 *
 * The list comes from ops.def itself: a row without a case does not compile. Each case builds a
 * small graph; its output is projected on fixed random numbers, and the gradient of every element
 * of every real input is compared. The checker itself is tested with planted faults. */
#include "tensor/graph_internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_INPUTS = 8, MAX_VARIANTS = 20 };

typedef struct fixture {
    pnb__graph *g;
    pnb__tensor *real[MAX_INPUTS]; /* inputs with a gradient */
    double low[MAX_INPUTS], high[MAX_INPUTS];
    int n_real;
    pnb__tensor *ints[2];
    int32_t int_values[2][64];
    int n_ints;
    pnb__tensor *projection;
} fixture;

static pnb__tensor *real_in(fixture *f, double low, double high, int n_dims, const size_t *shape)
{
    pnb__tensor *t = pnb__input_with_grad(f->g, n_dims, shape);
    f->low[f->n_real] = low;
    f->high[f->n_real] = high;
    f->real[f->n_real++] = t;
    return t;
}

#define SHAPE(...)                                                                                 \
    (int)(sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)), (size_t[])                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define IN(...) real_in(f, -1.5, 1.5, SHAPE(__VA_ARGS__))
#define POSITIVE(...) real_in(f, 0.5, 2.0, SHAPE(__VA_ARGS__))

static pnb__tensor *int_in(fixture *f, const int32_t *values, int n_dims, const size_t *shape)
{
    pnb__tensor *t = pnb__input(f->g, PNB__INT32, n_dims, shape);
    memcpy(f->int_values[f->n_ints], values, pnb__n(t) * sizeof *values);
    f->ints[f->n_ints++] = t;
    return t;
}

/* Each case returns the output of variant v, or NULL when there is no such variant. */
static pnb__tensor *case_linear(fixture *f, int v)
{
    static const pnb__unary acts[] = {PNB__IDENTITY, PNB__GELU, PNB__QUICK_GELU, PNB__TANH};
    if (v >= 10)
        return NULL;
    if (v == 9) { /* x is its own residual */
        pnb__tensor *both = IN(2, 3, 4);
        return pnb__linear(both, IN(4, 4),
                           &(pnb__linear_opts){.residual = both, .act = PNB__IDENTITY});
    }
    bool transpose = v & 1;
    pnb__tensor *x = IN(2, 3, 5), *w = transpose ? IN(5, 4) : IN(4, 5);
    pnb__linear_opts o = {.act = acts[v / 2 % 4], .transpose_w = transpose};
    if (v > 0)
        o.bias = IN(4);
    if (v == 2 || v >= 6)
        o.residual = IN(2, 3, 4);
    if (v >= 7)
        o.col_scale = IN(4);
    return pnb__linear(x, w, &o);
}

static pnb__tensor *case_matmul(fixture *f, int v)
{
    bool ta = v & 1, tb = v >> 1 & 1;
    if (v >= 5)
        return NULL;
    if (v == 4)
        return pnb__matmul(IN(2, 3, 4), false, IN(2, 5, 4), true);
    return pnb__matmul(ta ? IN(4, 3) : IN(3, 4), ta, tb ? IN(5, 4) : IN(4, 5), tb);
}

static pnb__tensor *case_attention(fixture *f, int v)
{
    static const int32_t len[] = {2, 4};
    if (v == 0)
        return pnb__attention(NULL, IN(2, 4, 18), 2, false, NULL);
    if (v == 1)
        return pnb__attention(NULL, IN(2, 4, 12), 1, true, NULL);
    if (v == 2)
        return pnb__attention(IN(2, 2, 6), IN(2, 5, 12), 3, false, NULL);
    if (v == 3)
        return pnb__attention(NULL, IN(2, 4, 12), 2, false, int_in(f, len, SHAPE(2)));
    return NULL;
}

static pnb__tensor *case_layernorm(fixture *f, int v)
{
    if (v == 0)
        return pnb__layernorm(IN(3, 6), POSITIVE(6), IN(6), 1e-5);
    if (v == 1)
        return pnb__layernorm(IN(2, 2, 5), NULL, NULL, 1e-3);
    return NULL;
}

/* Functions with a corner or a pole stay away from it. */
static pnb__tensor *case_unary(fixture *f, int v)
{
    if (v >= PNB__N_UNARY)
        return NULL;
    pnb__unary op = (pnb__unary)v;
    bool positive =
        op == PNB__LOG || op == PNB__SQRT || op == PNB__RECIP || op == PNB__RELU || op == PNB__ABS;
    pnb__tensor *x = positive ? POSITIVE(3, 5) : IN(3, 5);
    return op == PNB__AFFINE ? pnb__affine(x, -1.7, 0.3) : pnb__apply(op, x);
}

static pnb__tensor *case_binary(fixture *f, int v)
{
    if (v >= 16)
        return NULL;
    pnb__binary op = (pnb__binary)(v % 4);
    if (v >= 12)
        return pnb__combine(op, POSITIVE(4), POSITIVE(2, 1));
    pnb__tensor *x = v < 8 ? IN(2, 3, 4) : POSITIVE(2, 3, 4);
    return pnb__combine(op, x, v < 4 ? POSITIVE(2, 3, 4) : v < 8 ? POSITIVE(3, 1) : x);
}

static pnb__tensor *case_sum(fixture *f, int v)
{
    static const int axes[] = {0, 1, 2, -1, PNB__ALL_AXES};
    if (v >= 10)
        return NULL;
    return v < 5 ? pnb__sum(IN(2, 3, 4), axes[v]) : pnb__mean(IN(2, 3, 4), axes[v - 5]);
}

static pnb__tensor *case_softmax(fixture *f, int v)
{
    return v == 0 ? pnb__softmax(IN(3, 5)) : v == 1 ? pnb__log_softmax(IN(3, 5)) : NULL;
}

static pnb__tensor *case_cross_entropy(fixture *f, int v)
{
    static const int32_t targets[] = {4, 0, 2};
    return v == 0 ? pnb__cross_entropy(IN(3, 5), int_in(f, targets, SHAPE(3))) : NULL;
}

static pnb__tensor *case_l2_normalize(fixture *f, int v)
{
    return v == 0 ? pnb__l2_normalize(IN(3, 5), 1e-12) : NULL;
}

static pnb__tensor *case_pairwise_sqdist(fixture *f, int v)
{
    return v == 0 ? pnb__pairwise_sqdist(IN(3, 4), IN(2, 4)) : NULL;
}

static pnb__tensor *case_gather(fixture *f, int v)
{
    static const int32_t ids[] = {3, 0, 3, 1};
    if (v == 0)
        return pnb__gather(IN(4, 3), int_in(f, ids, SHAPE(2, 2)));
    return v == 1 ? pnb__gather(IN(4), int_in(f, ids, SHAPE(4))) : NULL;
}

static pnb__tensor *case_patchify(fixture *f, int v)
{
    return v == 0   ? pnb__patchify(IN(2, 3, 4, 6), 2)
           : v == 1 ? pnb__patchify(IN(1, 1, 5, 4), 2)
                    : NULL;
}

static pnb__tensor *case_concat(fixture *f, int v)
{
    if (v > 2)
        return NULL;
    pnb__tensor *parts[8];
    for (int i = 0; i < 3 && v < 2; i++)
        parts[i] = v == 0 ? IN(2, 1, 3) : IN(1, 2);
    if (v == 2) { /* longer than a node's inputs, with one tensor in several places */
        parts[0] = IN(2, 2);
        parts[1] = IN(2, 1);
        for (int i = 2; i < 8; i++)
            parts[i] = parts[i % 2];
    }
    return pnb__concat(parts, v == 2 ? 8 : 3, v == 1 ? 0 : 1);
}

static pnb__tensor *case_slice(fixture *f, int v)
{
    if (v == 0)
        return pnb__slice(IN(2, 5, 3), 1, 1, 3);
    return v == 1 ? pnb__slice(IN(2, 3, 4), -1, 3, 1) : NULL;
}

/* A view's gradient lands in part of its root, beside what the root gets elsewhere. */
static pnb__tensor *case_view(fixture *f, int v)
{
    pnb__tensor *x = v < 3 ? IN(4, 3) : NULL;
    if (v == 0)
        return pnb__reshape(x, 3, (size_t[]){2, 2, 3});
    if (v == 1)
        return pnb__add(pnb__slice(x, 0, 1, 2), pnb__slice(x, 0, 2, 2));
    if (v == 2)
        return pnb__matmul(pnb__slice(x, 0, 1, 2), false, pnb__apply(PNB__SIN, x), true);
    return NULL;
}

static pnb__tensor *case_broadcast(fixture *f, int v)
{
    if (v == 0)
        return pnb__broadcast_to(IN(3), 3, (size_t[]){2, 4, 3});
    return v == 1 ? pnb__broadcast_to(IN(2, 1), 2, (size_t[]){2, 5}) : NULL;
}

static pnb__tensor *case_permute(fixture *f, int v)
{
    static const int orders[][3] = {{2, 0, 1}, {1, 0, 2}};
    return v < 2 ? pnb__permute(IN(2, 3, 4), orders[v]) : NULL;
}

static double cube(double linear, double x)
{
    return x * x * x + linear * x;
}

static double cube_slope(double linear, double x)
{
    return 3 * x * x + linear;
}

static pnb__tensor *case_function(fixture *f, int v)
{
    const pnb__function fn = {cube, cube_slope, 0.5};
    if (v == 0)
        return pnb__apply_function(IN(3, 100), &fn); /* more than a block */
    if (v == 1) {                                    /* its input has another reader */
        pnb__tensor *x = IN(2, 3);
        return pnb__mul(pnb__apply_function(x, &fn), x);
    }
    return NULL;
}

static pnb__tensor *case_dropout(fixture *f, int v)
{
    return v == 0 ? pnb__dropout(IN(4, 8), 0.4, 7, 3) : NULL;
}

/* All positions or the last, from either end, all of one length or not: 0, 1, the whole. */
static pnb__tensor *case_gru(fixture *f, int v)
{
    static const int32_t lengths[] = {2, 0, 4, 1, 4};
    pnb__gru_opts o = {.reverse = v & 1, .last = v & 2};
    if (v >= 9)
        return NULL;
    size_t n_steps = v == 8 ? 1 : 4; /* 8: one step, W_hh has no part in it */
    pnb__tensor *len = v < 4 ? int_in(f, lengths, SHAPE(5)) : NULL;
    pnb__tensor *gx = IN(5, n_steps, 9);
    return pnb__gru(gx, IN(9, 3), IN(9), len, &o);
}

static pnb__tensor *case_conv2d(fixture *f, int v)
{
    static const struct {
        size_t w[4];
        pnb__conv2d_opts o;
    } variants[] = {
        {{4, 3, 3, 3}, {.stride = 1, .pad = 1}}, {{2, 3, 3, 3}, {.stride = 2, .pad = 1}},
        {{4, 3, 1, 1}, {.stride = 2}},           {{3, 3, 7, 7}, {.stride = 2, .pad = 3}},
        {{1, 3, 2, 3}, {.stride = 3}},           {{5, 3, 1, 1}, {.stride = 1}}};
    if (v >= (int)PNB_COUNT(variants))
        return NULL;
    return pnb__conv2d(IN(2, 5, 6, 3), real_in(f, -1, 1, 4, variants[v].w), &variants[v].o);
}

/* Running buffers of 3 channels, which are weights; each graph moves them a little further. */
static pnb__tensor *running(fixture *f, int which)
{
    static double values[2][3] = {{0.1, -0.2, 0.3}, {0.5, 1, 2}};
    static pnb__param params[2];
    params[which] =
        (pnb__param){.name = "buffer", .n_dims = 1, .shape = {3}, .n = 3, .data = values[which]};
    return pnb__param_tensor(f->g, &params[which]);
}

static pnb__tensor *case_batchnorm(fixture *f, int v)
{
    if (v >= 8)
        return NULL;
    pnb__tensor *x = IN(2, 2, 2, 3);
    pnb__batchnorm_opts o = {.w = POSITIVE(3),
                             .b = IN(3),
                             .running_mean = running(f, 0),
                             .running_var = running(f, 1),
                             .residual = v & 1 ? IN(2, 2, 2, 3) : NULL,
                             .relu = v & 2,
                             .training = v & 4,
                             .eps = 1e-5,
                             .momentum = 0.1};
    pnb__tensor *y = pnb__batchnorm(x, &o);
    return v & 1 ? pnb__mul(y, o.residual) : pnb__mul(y, y); /* others read what it does, too */
}

static pnb__tensor *case_max_pool(fixture *f, int v)
{
    return v == 0   ? pnb__max_pool(IN(2, 5, 6, 3), 3, 2, 1)
           : v == 1 ? pnb__max_pool(IN(1, 4, 4, 2), 2, 2, 0)
                    : NULL;
}

static pnb__tensor *case_inclusion(fixture *f, int v)
{
    pnb__search_inclusion_opts o = {.published = v < 2, .eps = v == 1 ? -10.0 : 0.0};
    if (v > 2)
        return NULL;
    return pnb__inclusion(IN(2, 3), IN(2, 3), IN(2, 3), IN(2, 3), &o);
}

/* Signs have no gradient: they are of a matrix that is not varied. */
static pnb__tensor *case_match_nll(fixture *f, int v)
{
    static const size_t shapes[][4] = {{2, 2, 3, 4}, {1, 1, 1, 1}, {3, 3, 1, 2}, {2, 4, 2, 3}};
    if (v >= 8)
        return NULL;
    const size_t *s = shapes[v % 4];
    pnb__tensor *eye = pnb__input(f->g, PNB__REAL, SHAPE(s[0], s[1])); /* 4 where rows match */
    pnb__match_in in = {.x = IN(s[0], s[2], s[3]), .y = IN(s[1], s[2], s[3])};
    in.scale = POSITIVE(1);
    in.shift = POSITIVE(1);
    in.signs = pnb__affine(eye, 0.5, -1);
    in.factor = v < 4 ? 2 : 1;
    return pnb__match_nll(&in);
}

static pnb__tensor *case_pair_log_sums(fixture *f, int v)
{
    return v == 0   ? pnb__pair_log_sums(IN(5, 3), 2)
           : v == 1 ? pnb__pair_log_sums(IN(2, 1), 0.5)
           : v == 2 ? pnb__cross_log_sums(IN(3, 2), IN(4, 2), 2)
           : v == 3 ? pnb__cross_log_sums(IN(1, 3), IN(1, 3), 0.5)
                    : NULL;
}

/* All rows, and some in the middle of others; one stream, entered where `pairs` says. */
static pnb__tensor *case_draw(fixture *f, int v)
{
    static const int32_t pairs[] = {2, 0, 1, 3}, key[] = {7, -1, 3, 0};
    if (v > 2)
        return NULL;
    const size_t n = 4, dim = v == 2 ? 1 : 3;
    const pnb__draw_in in = {.mean = IN(n, dim),
                             .log_var = IN(n, dim),
                             .pairs = int_in(f, pairs, SHAPE(n)),
                             .key = int_in(f, key, SHAPE(4)),
                             .first = (size_t)v,
                             .n_rows = v == 0 ? n : 2,
                             .n_samples = v == 2 ? 1 : 2};
    return pnb__draw(&in);
}

static pnb__tensor *case_pair_softplus(fixture *f, int v)
{
    return v == 0   ? pnb__pair_softplus(IN(3, 4), IN(5, 4), IN(3), IN(5))
           : v == 1 ? pnb__pair_softplus(IN(4, 2), IN(3, 2), NULL, NULL)
           : v == 2 ? pnb__pair_softplus(IN(1, 1), IN(2, 1), IN(1), NULL)
                    : NULL;
}

static pnb__tensor *case_pair_cross_entropy(fixture *f, int v)
{
    static const int32_t targets[] = {4, 0, 2, 2};
    pnb__tensor *t = v > 1 ? NULL : int_in(f, targets + v, SHAPE(v == 0 ? 4 : 2));
    return v == 0   ? pnb__pair_cross_entropy(IN(4, 3), IN(5, 3), t)
           : v == 1 ? pnb__pair_cross_entropy(IN(2, 1), IN(3, 1), t)
                    : NULL;
}

/* Labels of two columns a row, whose weights are up to `most`. */
static pnb__marks marks_in(fixture *f, const int32_t *columns, size_t n, double most, double base)
{
    pnb__tensor *weights = pnb__input(f->g, PNB__REAL, SHAPE(n, 2));
    return (pnb__marks){.columns = int_in(f, columns, SHAPE(n, 2)),
                        .weights = pnb__affine(weights, most / 4, 0),
                        .base = base};
}

static pnb__tensor *case_pair_labelled(fixture *f, int v)
{
    static const int32_t columns[] = {0, 3, 1, 1, 2, 4}, match[] = {0, 1, 4};
    if (v > 2)
        return NULL;
    pnb__marks marks = marks_in(f, columns, 3, 0.7, v == 0 ? 0 : 0.1);
    if (v == 1)
        marks.match = int_in(f, match, SHAPE(3));
    return v == 2 ? pnb__pair_labelled(IN(3, 1), IN(5, 1), NULL, NULL, &marks)
                  : pnb__pair_labelled(IN(3, 4), IN(5, 4), IN(3), IN(5), &marks);
}

static pnb__tensor *case_pair_margins(fixture *f, int v)
{
    size_t k = v < 2 ? 1 : 2;
    return v < 4    ? pnb__pair_margins(IN(4, k, 3), IN(4, k, 3), 0, 0.2, v % 2 == 1)
           : v == 4 ? pnb__pair_margins(IN(1, 1, 2), IN(1, 1, 2), 0, 0.2, true)
                    : NULL;
}

static pnb__tensor *case_pair_kernels(fixture *f, int v)
{
    pnb__tensor *x = v < 4 ? IN(3, 2) : NULL;
    return v < 2   ? pnb__pair_kernels(x, IN(4, 2), 0.5, v == 1)
           : v < 4 ? pnb__pair_kernels(x, x, 0.7, v == 3)
                   : NULL;
}

/* What shares are made of is not varied. */
static pnb__tensor *case_pair_blend(fixture *f, int v)
{
    return v == 0 ? pnb__pair_blend(pnb__input(f->g, PNB__REAL, SHAPE(3, 2)),
                                    pnb__input(f->g, PNB__REAL, SHAPE(4, 2)), IN(4, 3), 0.3)
                  : NULL;
}

static pnb__tensor *case_match_sums(fixture *f, int v)
{
    static const int32_t columns[] = {0, 1, 1, 0, 2, 2};
    if (v > 5)
        return NULL;
    if (v > 3) { /* a block: the last two rows of three and the last two columns */
        pnb__marks marks = marks_in(f, columns, 3, v == 4 ? 1 : 0.6, v == 4 ? 0 : 0.05);
        pnb__match_in in = {.x = IN(2, 2, 3), .y = IN(2, 2, 3), .factor = 2};
        in.scale = POSITIVE(1);
        in.shift = POSITIVE(1);
        marks.row = marks.column = 1;
        return pnb__match_sums(&in, &marks, v == 4);
    }
    bool is_hard = v % 2 == 0;
    size_t n = v < 2 ? 2 : 3;
    pnb__marks marks = marks_in(f, columns, n, is_hard ? 1 : 0.6, is_hard ? 0 : 0.05);
    pnb__match_in in = {.x = IN(n, 2, 3), .y = IN(n, 2, 3), .factor = 2};
    in.scale = POSITIVE(1);
    in.shift = POSITIVE(1);
    return pnb__match_sums(&in, &marks, is_hard);
}

/* x x^T + n I is positive definite whatever x is. */
static pnb__tensor *positive_definite(fixture *f)
{
    pnb__tensor *x = IN(4, 4);
    pnb__tensor *eye = pnb__input(f->g, PNB__REAL, SHAPE(4, 4));
    return pnb__add(pnb__matmul(x, false, x, true), eye);
}

static pnb__tensor *case_cholesky(fixture *f, int v)
{
    return v == 0 ? pnb__cholesky(positive_definite(f)) : NULL;
}

static pnb__tensor *case_tri_solve(fixture *f, int v)
{
    if (v > 1)
        return NULL;
    pnb__tensor *l = pnb__cholesky(positive_definite(f));
    return pnb__tri_solve(l, IN(4, 3), v == 1);
}

typedef pnb__tensor *(*case_fn)(fixture *f, int variant);
static const struct {
    const char *name;
    case_fn build;
} cases[] = {
#define PNB__OP(NAME, name) {#name, case_##name},
#define PNB__OP_NO_GRAD(NAME, name) {#name, NULL},
#include "tensor/ops.def"
#undef PNB__OP
#undef PNB__OP_NO_GRAD
};

/* ---- the check ---- */

static void write_inputs(const fixture *f, double *const values[])
{
    for (size_t i = 0; i < f->g->n_nodes; i++) { /* inputs that are not varied: the identity */
        pnb__tensor *t = f->g->nodes[i];
        if (t->is_input && !t->is_constant && t->kind == PNB__REAL && !t->wants_grad &&
            t != f->projection) {
            double eye[64] = {0};
            for (size_t d = 0; d < t->shape[0]; d++)
                eye[d * t->shape[1] + d] = 4;
            pnb__write_f64(t, eye);
        }
    }
    for (int i = 0; i < f->n_real; i++)
        pnb__write_f64(f->real[i], values[i]);
    for (int i = 0; i < f->n_ints; i++)
        pnb__write_i32(f->ints[i], f->int_values[i]);
}

static double loss_at(const fixture *f, double *const values[])
{
    pnb_error err = PNB_ERROR_INIT;
    write_inputs(f, values);
    if (pnb__graph_run(f->g, &err) != PNB_OK)
        fail_msg("%s", err.text);
    return pnb__read_scalar(f->g->loss);
}

static bool close_enough(double got, double want)
{
    return isfinite(got) && isfinite(want) && fabs(got - want) <= 1e-7 + 1e-6 * fabs(want);
}

typedef double (*tamper_fn)(double);

/* Central difference of every element of every input; true when all agree. */
static bool gradients_agree(const fixture *f, double *const values[], tamper_fn tamper)
{
    double *grads[MAX_INPUTS];
    bool fine = true;
    loss_at(f, values);
    for (int i = 0; i < f->n_real; i++) {
        grads[i] = malloc(pnb__n(f->real[i]) * sizeof(double));
        if (!pnb__read_grad_f64(f->real[i], grads[i]))
            fail_msg("input %d has no gradient", i);
    }
    for (int i = 0; i < f->n_real; i++) {
        for (size_t j = 0; j < pnb__n(f->real[i]); j++) {
            const double step = 1e-5, at = values[i][j];
            values[i][j] = at + step;
            double up = loss_at(f, values);
            values[i][j] = at - step;
            double down = loss_at(f, values);
            values[i][j] = at;
            double got = tamper == NULL ? grads[i][j] : tamper(grads[i][j]);
            if (!close_enough(got, (up - down) / (2 * step))) {
                if (tamper == NULL)
                    print_error("input %d element %zu: %.12g, difference %.12g\n", i, j, got,
                                (up - down) / (2 * step));
                fine = false;
            }
        }
    }
    for (int i = 0; i < f->n_real; i++)
        free(grads[i]);
    return fine;
}

static bool check_case(const pnb_ctx *ctx, case_fn build, int variant, tamper_fn tamper,
                       bool *exists)
{
    fixture f = {0};
    pnb_error err = PNB_ERROR_INIT;
    assert_int_equal(pnb__graph_create(&f.g, ctx, PNB__F64, true, &err), PNB_OK);
    pnb__tensor *out = build(&f, variant);
    *exists = out != NULL;
    if (out == NULL) {
        assert_int_equal(f.g->error.status, PNB_OK);
        pnb__graph_free(f.g);
        return true;
    }
    pnb__tensor *weights = pnb__input(f.g, PNB__REAL, pnb__n_dims(out), out->shape);
    f.projection = weights;
    pnb__tensor *loss = pnb__sum(pnb__mul(out, weights), PNB__ALL_AXES);
    if (pnb__graph_plan(f.g, loss, &err) != PNB_OK)
        fail_msg("%s", err.text);
    pnb__rng rng;
    pnb__rng_init(&rng, 11, (uint64_t)variant);
    double *values[MAX_INPUTS], *projection = malloc((pnb__n(out) + 1) * sizeof(double));
    for (size_t i = 0; i < pnb__n(out); i++)
        projection[i] = pnb__rng_normal(&rng);
    for (int i = 0; i < f.n_real; i++) {
        values[i] = malloc((pnb__n(f.real[i]) + 1) * sizeof(double));
        for (size_t j = 0; j < pnb__n(f.real[i]); j++)
            values[i][j] = f.low[i] + (f.high[i] - f.low[i]) * pnb__rng_uniform(&rng);
    }
    write_inputs(&f, values);
    pnb__write_f64(weights, projection);
    bool fine = gradients_agree(&f, values, tamper);
    for (int i = 0; i < f.n_real; i++)
        free(values[i]);
    free(projection);
    pnb__graph_free(f.g);
    return fine;
}

static void check_all(pnb_device device)
{
    pnb_ctx *ctx = NULL;
    pnb_ctx_opts opts = {.n_threads = 2, .device = device};
    assert_int_equal(pnb_ctx_create(&ctx, &opts, NULL), PNB_OK);
    for (size_t i = 0; i < PNB_COUNT(cases); i++) {
        bool exists = cases[i].build != NULL;
        for (int v = 0; exists && v < MAX_VARIANTS; v++) {
            if (!check_case(ctx, cases[i].build, v, NULL, &exists))
                fail_msg("gradient of %s, variant %d, is wrong", cases[i].name, v);
            if (v == 0)
                assert_true(exists);
        }
    }
    pnb_ctx_free(ctx);
}

static void test_ref_gradients(void **state)
{
    (void)state;
    check_all(PNB_DEVICE_REF);
}

static void test_cpu_gradients(void **state)
{
    (void)state;
    check_all(PNB_DEVICE_CPU);
}

static double flip_sign(double x)
{
    return -x;
}
static double double_it(double x)
{
    return 2 * x;
}
static double make_zero(double x)
{
    return 0 * x;
}
static double make_nan(double x)
{
    return x + NAN;
}
static double nudge(double x)
{
    return x * 1.0001 + 1e-6;
}

static void test_checker_rejects_planted_faults(void **state)
{
    (void)state;
    static const tamper_fn faults[] = {flip_sign, double_it, make_zero, make_nan, nudge};
    pnb_ctx *ctx = NULL;
    assert_int_equal(pnb_ctx_create(&ctx, NULL, NULL), PNB_OK);
    for (size_t i = 0; i < PNB_COUNT(faults); i++) {
        bool exists;
        assert_false(check_case(ctx, case_layernorm, 0, faults[i], &exists));
        assert_true(exists);
    }
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref_gradients),
        cmocka_unit_test(test_cpu_gradients),
        cmocka_unit_test(test_checker_rejects_planted_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
