/* Optimiser updates: the f64 reference against the algorithms written out on small vectors as the
 * papers' code has them, and the f32 tables against the reference over several steps. */
#include "tests/kernels/harness.h"

typedef void (*slot_fn)(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list);

typedef struct optim_case {
    pnb__optim_args args;
    int which; /* sgd, adam, adamw, adamp, sgdp */
    int steps, param, m, v, grad;
} optim_case;

static slot_fn slot_of(const pnb__kernels *k, int which)
{
    const slot_fn slots[] = {k->sgd, k->adam, k->adamw, k->adamp, k->sgdp};
    return slots[which];
}

static void optim_body(run *r, fixture *x)
{
    const optim_case *c = r->user;
    pnb__optim_args a = c->args;
    a.param = P(r, x, c->param);
    a.m = P(r, x, c->m);
    a.v = P(r, x, c->v);
    r->k.mem_zero(r->ctx, a.m, a.n * (r->is_double ? 8 : 4), NULL);
    r->k.mem_zero(r->ctx, a.v, a.n * (r->is_double ? 8 : 4), NULL);
    for (int step = 1; step <= c->steps; step++) {
        char *grad = P(r, x, c->grad);
        a.grad = grad + (size_t)(step - 1) * a.n * (r->is_double ? 8 : 4);
        a.step = step;
        slot_of(&r->k, c->which)(r->ctx, &a, 1);
    }
}

static pnb__optim_args usual(size_t rows, size_t cols)
{
    return (pnb__optim_args){.n = rows * cols,
                             .rows = rows,
                             .cols = cols,
                             .grad_scale = 0.5,
                             .lr = 0.01,
                             .beta1 = 0.9,
                             .beta2 = 0.98,
                             .eps = 1e-6,
                             .weight_decay = 0.1,
                             .momentum = 0.9,
                             .dampening = 0.1,
                             .delta = 0.1,
                             .wd_ratio = 0.1};
}

static void check_optim(optim_case c)
{
    fixture x;
    fixture_init(&x, c.args.n, 2e-6, 2e-5);
    c.param = output(&x, c.args.n, true);
    c.m = output(&x, c.args.n, true);
    c.v = output(&x, c.args.n, true);
    c.grad = input(&x, c.args.n * (size_t)c.steps, 0.5, 1); /* no cancellation in the moments */
    compare_all(&x, optim_body, &c);
}

static void test_tables(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{0, 3}, {1, 1}, {1, 17}, {33, 20}, {200, 301}, {3, 30000}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        for (int which = 0; which < 5; which++) {
            optim_case c = {.args = usual(sizes[i][0], sizes[i][1]), .which = which, .steps = 3};
            c.args.nesterov = i % 2 && (which == 0 || which > 2);
            c.args.project = i > 1;
            c.args.delta = i == 3 ? 100 : 0.1; /* a delta that makes it project */
            check_optim(c);
        }
    }
    optim_case plain = {.args = usual(5, 9), .steps = 2}; /* SGD without momentum */
    plain.args.momentum = 0;
    check_optim(plain);
}

/* ---- the algorithms again, in vectors of doubles ---- */

enum { ROWS = 3, COLS = 4, N = ROWS * COLS, STEPS = 5 };

typedef struct trace {
    double p[N], m[N], v[N];
} trace;

static double norm(const double *x, int n)
{
    return sqrt(dot_values(x, x, (size_t)n));
}

/* adamp.py _projection: channel view, then layer view. Returns the weight decay ratio. */
static double projection(const double *p, const double *g, double *perturb,
                         const pnb__optim_args *a)
{
    for (int view = 0; view < 2; view++) {
        int width = view ? N : COLS;
        double max = 0;
        for (int r = 0; r < N / width; r++) {
            const double *pr = p + r * width, *gr = g + r * width;
            double cosine = dot_values(pr, gr, (size_t)width) / (norm(pr, width) * norm(gr, width));
            max = fmax(max, fabs(cosine));
        }
        if (max >= a->delta / sqrt(width))
            continue;
        for (int r = 0; r < N / width; r++) {
            double unit[N], *u = perturb + r * width, length = norm(p + r * width, width) + a->eps;
            for (int i = 0; i < width; i++)
                unit[i] = p[r * width + i] / length;
            double along = dot_values(unit, u, (size_t)width);
            for (int i = 0; i < width; i++)
                u[i] -= unit[i] * along;
        }
        return a->wd_ratio;
    }
    return 1;
}

static void adam_again(trace *t, const double *g, const pnb__optim_args *a, int which, int step)
{
    double perturb[N], ratio = 1;
    double bias1 = 1 - pow(a->beta1, step), bias2 = 1 - pow(a->beta2, step);
    for (int i = 0; i < N; i++) {
        double gi = which == 1 ? g[i] + a->weight_decay * t->p[i] : g[i];
        t->m[i] = a->beta1 * t->m[i] + (1 - a->beta1) * gi;
        t->v[i] = a->beta2 * t->v[i] + (1 - a->beta2) * gi * gi;
        double mean = t->m[i];
        if (which == 3 && a->nesterov)
            mean = a->beta1 * mean + (1 - a->beta1) * gi;
        perturb[i] = mean / (sqrt(t->v[i]) / sqrt(bias2) + a->eps);
    }
    if (which == 3 && a->project)
        ratio = projection(t->p, g, perturb, a);
    for (int i = 0; i < N; i++) {
        if (which != 1)
            t->p[i] *= 1 - a->lr * a->weight_decay * ratio;
        t->p[i] -= a->lr / bias1 * perturb[i];
    }
}

static void sgd_again(trace *t, const double *g, const pnb__optim_args *a, int which, int step)
{
    double d[N], ratio = 1;
    for (int i = 0; i < N; i++) {
        double gi = which == 0 ? g[i] + a->weight_decay * t->p[i] : g[i];
        double fresh = which == 0 && step == 1 ? gi : (1 - a->dampening) * gi;
        t->m[i] = a->momentum * t->m[i] + fresh;
        d[i] = a->nesterov ? gi + a->momentum * t->m[i] : t->m[i];
    }
    if (which == 4 && a->project)
        ratio = projection(t->p, g, d, a);
    for (int i = 0; i < N; i++) {
        if (which == 4)
            t->p[i] *= 1 - a->lr * a->weight_decay * ratio / (1 - a->momentum);
        t->p[i] -= a->lr * d[i];
    }
}

static void check_trace(int which, bool nesterov, bool project, double delta)
{
    pnb__optim_args a = usual(ROWS, COLS);
    a.nesterov = nesterov, a.project = project, a.delta = delta, a.lr = 0.1;
    trace want = {.p = {0}}, got = {.p = {0}};
    double *start = random_values(N, 1, -1, 1);
    memcpy(want.p, start, sizeof want.p);
    memcpy(got.p, start, sizeof got.p);
    free(start);
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    for (int step = 1; step <= STEPS; step++) {
        double *grad = random_values(N, 100 + (uint64_t)step, -1, 1), scaled[N];
        for (int i = 0; i < N; i++)
            scaled[i] = 0.5 * grad[i];
        a.param = got.p, a.m = got.m, a.v = which == 0 || which == 4 ? NULL : got.v;
        a.grad = grad, a.step = step;
        slot_of(&k, which)(NULL, &a, 1);
        if (which == 0 || which == 4)
            sgd_again(&want, scaled, &a, which, step);
        else
            adam_again(&want, scaled, &a, which, step);
        for (int i = 0; i < N; i++)
            assert_true(is_close(got.p[i], want.p[i], 1e-13, 1e-13));
        free(grad);
    }
}

static void test_reference(void **state)
{
    (void)state;
    static const double deltas[] = {1e-9, 0.1, 1.2, 100}; /* never, sometimes, by layer, always */
    for (int which = 0; which < 5; which++)
        for (int bits = 0; bits < 4; bits++)
            for (size_t d = 0; d < PNB_COUNT(deltas); d++) {
                bool nesterov = bits & 1 && which != 1 && which != 2;
                check_trace(which, nesterov, bits & 2, deltas[d]);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables),
                                       cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
