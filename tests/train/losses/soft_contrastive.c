/* PCME's losses against their definitions in doubles, pair by pair and sample by sample, gradients
 * by central differences and by PCME's Eq. (5); one pair, one sample, samples that coincide or lie
 * far apart, strips of many pairs, and the same bits for every number of threads. */
#include "tests/adapt/world.h"

#include "train/losses/soft_contrastive.h"

enum { B = 3, J = 4, D = 5, N_IN = 4 * B * D + 2 };

/* Inputs in one row: image mean, image log_var, text mean, text log_var, scale, shift. */
static double inputs[N_IN], noise[2][B * J * D];

static double sample(int side, size_t b, size_t j, size_t d)
{
    const double *mean = inputs + 2 * side * B * D, *log_var = mean + B * D;
    return mean[b * D + d] + exp(0.5 * log_var[b * D + d]) * noise[side][(b * J + j) * D + d];
}

/* As the paper writes it: e^l/(e^l + e^-l), its mean over samples, its logarithm. */
static double wanted_loss(void)
{
    double a = inputs[N_IN - 2], b = inputs[N_IN - 1], sum = 0;
    for (size_t i = 0; i < B; i++)
        for (size_t t = 0; t < B; t++) {
            double p = 0;
            for (size_t j = 0; j < J; j++)
                for (size_t k = 0; k < J; k++) {
                    double square = 0;
                    for (size_t d = 0; d < D; d++) {
                        double x = sample(0, i, j, d) - sample(1, t, k, d);
                        square += x * x;
                    }
                    double l = (i == t ? 1 : -1) * (-a * sqrt(square + 1e-6) + b);
                    p += exp(l) / (exp(l) + exp(-l)) / (J * J);
                }
            sum -= log(p);
        }
    return 2 * sum;
}

static double wanted_divergence(int side)
{
    const double *mean = inputs + 2 * side * B * D, *log_var = mean + B * D;
    double sum = 0;
    for (size_t i = 0; i < B * D; i++)
        sum -= 0.5 * (1 + log_var[i] - mean[i] * mean[i] - exp(log_var[i]));
    return sum;
}

static void formula_and_gradients(void **state)
{
    pnb_ctx *ctx = make_ctx();
    pnb__graph *g = NULL;
    pnb_error err = PNB_ERROR_INIT;
    pnb__tensor *leaf[6], *eps[2], *signs;
    double square[B * B], grad[B * D];
    pnb__rng rng;
    (void)state;
    pnb__rng_init(&rng, 4, 0);
    for (size_t i = 0; i < N_IN; i++)
        inputs[i] = i >= N_IN - 2 ? 1.3 : 0.5 * pnb__rng_normal(&rng);
    for (size_t i = 0; i < B * J * D; i++)
        noise[0][i] = pnb__rng_normal(&rng), noise[1][i] = pnb__rng_normal(&rng);
    for (size_t i = 0; i < B * B; i++)
        square[i] = i / B == i % B ? 1 : -1;
    assert_ok(pnb__graph_create(&g, ctx, PNB__F64, true, &err), &err);
    for (int i = 0; i < 6; i++) {
        leaf[i] = pnb__input_with_grad(g, i < 4 ? 2 : 0, (size_t[]){B, D});
        pnb__keep_grad(leaf[i]);
    }
    for (int s = 0; s < 2; s++)
        eps[s] = pnb__input(g, PNB__REAL, 3, (size_t[]){B, J, D});
    signs = pnb__input(g, PNB__REAL, 2, (size_t[]){B, B});
    const pnb__sampled_side image = {.mean = leaf[0], .log_var = leaf[1], .noise = eps[0]};
    const pnb__sampled_side text = {.mean = leaf[2], .log_var = leaf[3], .noise = eps[1]};
    pnb__tensor *loss = pnb__soft_contrastive(&image, &text, leaf[4], leaf[5], signs);
    pnb__tensor *vib = pnb__add(pnb__sampled_divergence(leaf[0], leaf[1]),
                                pnb__sampled_divergence(leaf[2], leaf[3]));
    pnb__tensor *total = pnb__add(loss, vib);
    pnb__keep(loss);
    pnb__keep(vib);
    assert_ok(pnb__graph_plan(g, total, &err), &err);
    for (int i = 0; i < 6; i++)
        pnb__write_f64(leaf[i], inputs + (i < 4 ? i * B * D : N_IN - 6 + i));
    pnb__write_f64(eps[0], noise[0]);
    pnb__write_f64(eps[1], noise[1]);
    pnb__write_f64(signs, square);
    assert_ok(pnb__graph_run(g, &err), &err);
    require_near(pnb__read_scalar(loss), wanted_loss(), 1e-10, "loss");
    require_near(pnb__read_scalar(vib), wanted_divergence(0) + wanted_divergence(1), 1e-10, "vib");
    for (int i = 0; i < 6; i++) {
        size_t n = i < 4 ? B * D : 1, at = i < 4 ? (size_t)i * B * D : (size_t)(N_IN - 6 + i);
        assert_true(pnb__read_grad_f64(leaf[i], grad));
        for (size_t k = 0; k < n; k++) {
            double kept = inputs[at + k], h = 1e-5, up, down;
            inputs[at + k] = kept + h;
            up = wanted_loss() + wanted_divergence(0) + wanted_divergence(1);
            inputs[at + k] = kept - h;
            down = wanted_loss() + wanted_divergence(0) + wanted_divergence(1);
            inputs[at + k] = kept;
            if (!(fabs(grad[k] - (up - down) / (2 * h)) < 1e-6))
                fail_msg("input %d, number %zu: gradient %g, wanted %g", i, k, grad[k],
                         (up - down) / (2 * h));
        }
    }
    pnb__graph_free(g);
    pnb_ctx_free(ctx);
}

/* ---- samples given ---- */

typedef struct pairs_run {
    size_t n, j, dim;
    pnb__real real;
    int n_threads;
    double *x, *y, *signs, scale, shift;
    double *nll, *dx, *dy, d_scalars[2];
} pairs_run;

static void run_pairs(pairs_run *r)
{
    pnb_ctx *ctx = NULL;
    pnb__graph *g = NULL;
    pnb_error err = PNB_ERROR_INIT;
    const pnb_ctx_opts opts = {.n_threads = r->n_threads};
    assert_ok(pnb_ctx_create(&ctx, &opts, &err), &err);
    assert_ok(pnb__graph_create(&g, ctx, r->real, true, &err), &err);
    pnb__tensor *x = pnb__input_with_grad(g, 3, (size_t[]){r->n, r->j, r->dim});
    pnb__tensor *y = pnb__input_with_grad(g, 3, (size_t[]){r->n, r->j, r->dim});
    pnb__tensor *scale = pnb__input_with_grad(g, 0, NULL),
                *shift = pnb__input_with_grad(g, 0, NULL);
    pnb__tensor *signs = pnb__input(g, PNB__REAL, 2, (size_t[]){r->n, r->n});
    pnb__tensor *nll = pnb__soft_contrastive_pairs(x, y, scale, shift, signs);
    pnb__tensor *leaf[] = {x, y, scale, shift};
    for (int i = 0; i < 4; i++)
        pnb__keep_grad(leaf[i]);
    pnb__keep(nll);
    assert_ok(pnb__graph_plan(g, pnb__sum(nll, PNB__ALL_AXES), &err), &err);
    pnb__write_f64(x, r->x);
    pnb__write_f64(y, r->y);
    pnb__write_f64(scale, &r->scale);
    pnb__write_f64(shift, &r->shift);
    pnb__write_f64(signs, r->signs);
    assert_ok(pnb__graph_run(g, &err), &err);
    pnb__read_f64(nll, r->nll);
    double *out[] = {r->dx, r->dy, r->d_scalars, r->d_scalars + 1};
    for (int i = 0; i < 4; i++)
        assert_true(pnb__read_grad_f64(leaf[i], out[i]));
    pnb__graph_free(g);
    pnb_ctx_free(ctx);
}

static pairs_run make_run(size_t n, size_t j, size_t dim, double spread)
{
    size_t samples = n * j * dim;
    pairs_run r = {.n = n, .j = j, .dim = dim, .real = PNB__F64, .n_threads = 1};
    double *memory = calloc(4 * samples + 2 * n * n, sizeof *memory);
    pnb__rng rng;
    assert_non_null(memory);
    pnb__rng_init(&rng, n * 100 + j, 3);
    r.x = memory, r.y = memory + samples, r.dx = r.y + samples, r.dy = r.dx + samples;
    r.signs = r.dy + samples, r.nll = r.signs + n * n;
    for (size_t i = 0; i < 2 * samples; i++) /* floats, so that both precisions see the same */
        memory[i] = (double)(float)(spread * pnb__rng_normal(&rng));
    for (size_t i = 0; i < n * n; i++)
        r.signs[i] = i / n == i % n ? 1 : -1;
    r.scale = 3, r.shift = 2;
    return r;
}

static void require_close(const double *got, const double *want, size_t n, double tol,
                          const char *what)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tol * (most + 1e-12)))
            fail_msg("%s %zu: %.9g, wanted %.9g", what, i, got[i], want[i]);
}

/* d nll / d l_jk = -2 m w_jk (1 - s(2 m l_jk)), w_jk the pair's share of the mean probability: the
 * gradients of a, b and x are that times dl/da = -d, dl/db = 1, dl/dx = -a (x - y)/d. */
static void gradient_identity(void **state)
{
    (void)state;
    pairs_run r = make_run(3, 4, 5, 0.4);
    double da = 0, db = 0, dx[3 * 4 * 5] = {0};
    run_pairs(&r);
    for (size_t pair = 0; pair < 9; pair++) {
        double p[16], d[16], sum = 0, m = r.signs[pair];
        for (size_t k = 0; k < 16; k++) {
            double square = 1e-6;
            for (size_t e = 0; e < 5; e++) {
                double apart =
                    r.x[(pair / 3 * 4 + k / 4) * 5 + e] - r.y[(pair % 3 * 4 + k % 4) * 5 + e];
                square += apart * apart;
            }
            d[k] = sqrt(square);
            p[k] = 1 / (1 + exp(-2 * m * (r.shift - r.scale * d[k])));
            sum += p[k];
        }
        require_near(r.nll[pair], -log(sum / 16), 1e-12, "nll");
        for (size_t k = 0; k < 16; k++) {
            double dl = -2 * m * p[k] / sum * (1 - p[k]);
            da -= dl * d[k];
            db += dl;
            for (size_t e = 0; e < 5; e++) {
                size_t at = (pair / 3 * 4 + k / 4) * 5 + e;
                dx[at] -= dl * r.scale * (r.x[at] - r.y[(pair % 3 * 4 + k % 4) * 5 + e]) / d[k];
            }
        }
    }
    require_near(r.d_scalars[0], da, 1e-11, "a");
    require_near(r.d_scalars[1], db, 1e-11, "b");
    require_close(r.dx, dx, 60, 1e-11, "x");
    free(r.x);
}

/* Floats beside doubles, over several strips (of 2^18 products) and odd sizes. */
static void precisions_and_threads(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 1}, {1, 3, 2}, {5, 1, 7}, {3, 7, 33}, {90, 7, 16}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        const size_t *s = sizes[i], samples = s[0] * s[1] * s[2], pairs = s[0] * s[0];
        pairs_run r = make_run(s[0], s[1], s[2], 0.3);
        double *want = calloc(2 * samples + 2 * pairs, sizeof *want);
        assert_non_null(want);
        run_pairs(&r);
        memcpy(want, r.nll, pairs * sizeof *want);
        memcpy(want + pairs, r.dx, 2 * samples * sizeof *want);
        r.real = PNB__F32;
        for (r.n_threads = 1; r.n_threads <= 3; r.n_threads++) {
            double first[2];
            run_pairs(&r);
            require_close(r.nll, want, pairs, 2e-6, "nll");
            require_close(r.dx, want + pairs, 2 * samples, 2e-5, "gradient");
            if (r.n_threads == 1)
                memcpy(first, r.d_scalars, sizeof first);
            assert_memory_equal(first, r.d_scalars, sizeof first);
        }
        free(want);
        free(r.x);
    }
}

/* Samples that coincide have the floor's distance and a gradient of 0; a times distance of 1e4 and
 * more is the loss itself, not infinity. In floats. */
static void coincident_and_far(void **state)
{
    (void)state;
    pairs_run r = make_run(2, 3, 40, 1);
    r.real = PNB__F32;
    for (size_t i = 0; i < 2 * 3 * 40; i++)
        r.x[i] = r.y[i] = 0.25 * (double)(i % 40); /* all six samples of both sides are one */
    run_pairs(&r);
    double z = 2 * (r.shift - r.scale * 1e-3);
    require_near(r.nll[0], log1p(exp(-z)), 1e-6, "match");
    require_near(r.nll[1], log1p(exp(z)), 1e-5, "no match");
    for (size_t i = 0; i < 2 * 3 * 40; i++)
        assert_true(fabs(r.dx[i]) < 1e-2);
    for (size_t i = 0; i < 3 * 40; i++)
        r.x[i] = 1e3 * (i % 40 == 0); /* image 0 goes far away */
    r.scale = 20;
    run_pairs(&r);
    assert_true(r.nll[0] > 3e4 && r.nll[0] < 5e4 && r.nll[1] == 0);
    for (size_t i = 0; i < 2 * 3 * 40; i++)
        assert_true(isfinite(r.dx[i]) && isfinite(r.dy[i]));
    free(r.x);
}

/* ---- uniformity ---- */

static void uniformity(void **state)
{
    (void)state;
    enum { N = 700, W = 3 }; /* more than a strip of 2^18 / N rows */
    static double x[N * W], grad[N * W];
    pnb_ctx *ctx = make_ctx();
    pnb_error err = PNB_ERROR_INIT;
    pnb__rng rng;
    pnb__rng_init(&rng, 5, 0);
    for (size_t i = 0; i < N * W; i++)
        x[i] = pnb__rng_normal(&rng);
    for (size_t n = 2; n <= N; n += N - 2) {
        pnb__graph *g = NULL;
        double sum = 0, slope = 0;
        assert_ok(pnb__graph_create(&g, ctx, PNB__F64, true, &err), &err);
        pnb__tensor *in = pnb__input_with_grad(g, 2, (size_t[]){n, W});
        pnb__tensor *out = pnb__uniformity(in);
        pnb__keep_grad(in);
        pnb__keep(out);
        assert_ok(pnb__graph_plan(g, out, &err), &err);
        pnb__write_f64(in, x);
        assert_ok(pnb__graph_run(g, &err), &err);
        for (size_t i = 0; i < n * n; i++) {
            double square = 0;
            for (size_t d = 0; d < W; d++)
                square +=
                    (x[i / n * W + d] - x[i % n * W + d]) * (x[i / n * W + d] - x[i % n * W + d]);
            sum += i / n < i % n ? exp(-2 * square) : 0;
            slope += i / n == 1 ? exp(-2 * square) * -4 * (x[W] - x[i % n * W]) : 0;
        }
        require_near(pnb__read_scalar(out), log(sum / (0.5 * (double)(n * (n - 1)))), 1e-11,
                     "uniformity");
        assert_true(pnb__read_grad_f64(in, grad));
        require_near(grad[W], slope / sum, 1e-11, "gradient of row 1");
        pnb__graph_free(g);
    }
    pnb_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formula_and_gradients),
        cmocka_unit_test(gradient_identity),
        cmocka_unit_test(precisions_and_threads),
        cmocka_unit_test(coincident_and_far),
        cmocka_unit_test(uniformity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
