/* The GRU step: tables against each other, the reference against torch's equations and
 * differences. */
#include "tests/kernels/harness.h"

/* Rows, which of them go on, and whether they are found through an index; gates in place or not. */
typedef struct gru_case {
    size_t rows, width, n_next, n_all; /* n_all: rows of gx and out, of which `rows` are taken */
    bool accumulate, indexed, first, ends;
    int gx, gh, h, gates, out, next, d_out, d_next, dgx, dgh, dh;
    int32_t at[40];
} gru_case;

static void gru_body(run *r, fixture *x)
{
    const gru_case *c = r->user;
    size_t w = c->width;
    pnb__gru_args a = {.rows = c->rows, .width = w, .n_next = c->n_next};
    a.at = a.out_at = c->indexed ? c->at : NULL;
    a.gx = P(r, x, c->gx), a.gh = P(r, x, c->gh);
    a.ld_gh = c->first ? 0 : c->indexed ? 4 * w : 3 * w;
    a.h = c->first ? NULL : P(r, x, c->h);
    a.gates = P(r, x, c->gates), a.out = P(r, x, c->out), a.h_next = P(r, x, c->next);
    if (c->indexed && !c->first) { /* the gates over what the product left */
        a.gh = a.gates;
        for (size_t i = 0; i < c->rows * 4 * w; i++)
            if (r->is_double)
                ((double *)a.gates)[i] = ((double *)P(r, x, c->gh))[i];
            else
                ((float *)a.gates)[i] = ((float *)P(r, x, c->gh))[i];
    }
    r->k.gru(r->ctx, &a);
    a.d_out = P(r, x, c->d_out), a.d_next = P(r, x, c->d_next);
    a.d_out_ends = c->ends;
    a.dgx = P(r, x, c->dgx), a.dgh = P(r, x, c->dgh), a.dh = P(r, x, c->dh);
    a.ld_dgh = 3 * w;
    a.accumulate_gx = a.accumulate_gh = a.accumulate_h = c->accumulate;
    r->k.gru_bwd(r->ctx, &a);
}

static void check_step(gru_case c, uint64_t seed)
{
    fixture x;
    size_t n = c.rows * c.width, all = c.n_all * c.width;
    fixture_init(&x, seed, 1e-6, 1e-6);
    for (size_t i = 0; i < c.rows; i++) /* rows from the last to the first, every second one */
        c.at[i] = (int32_t)(c.n_all - 1 - 2 * i);
    c.gx = input(&x, 3 * all, -3, 3);
    c.gh = input(&x, 4 * n + 3 * c.width, -3, 3);
    c.h = input(&x, n, -1, 1);
    c.gates = output(&x, 4 * n, false);
    c.out = output(&x, all, c.indexed); /* rows that no sequence writes stay */
    c.next = output(&x, c.n_next * c.width, false);
    c.d_out = input(&x, all, -1, 1);
    c.d_next = input(&x, c.n_next * c.width, -1, 1);
    c.dgx = output(&x, 3 * all, c.accumulate || c.indexed);
    c.dgh = output(&x, 3 * n, c.accumulate);
    c.dh = output(&x, n, c.accumulate);
    compare_all(&x, gru_body, &c);
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{0, 3, 0},   {1, 1, 1},    {5, 17, 3},
                                      {16, 64, 0}, {13, 33, 13}, {20, 700, 7}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        for (unsigned kind = 0; kind < 16; kind++) {
            gru_case c = {.rows = sizes[i][0], .width = sizes[i][1], .n_next = sizes[i][2]};
            c.accumulate = kind & 1, c.indexed = kind & 2, c.first = kind & 4, c.ends = kind & 8;
            c.n_all = c.indexed ? 2 * c.rows : c.rows;
            check_step(c, 16 * i + kind);
        }
}

/* The state may be written over the one it was made from, and a gradient over the one after. */
static void test_in_place(void **state)
{
    enum { ROWS = 3, W = 19, N = ROWS * W };
    (void)state;
    double *gx = random_values(3 * N, 1, -2, 2), *gh = random_values(3 * N, 2, -2, 2);
    double *h = random_values(N, 3, -1, 1), *d = random_values(N, 4, -1, 1);
    float fx[3 * N], fh[3 * N], state_of[N], apart[N], gates[4 * N], out[N], dh[N], carried[N];
    for (int i = 0; i < 3 * N; i++)
        fx[i] = (float)gx[i], fh[i] = (float)gh[i];
    for (int i = 0; i < N; i++)
        state_of[i] = (float)h[i], carried[i] = (float)d[i];
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        float now[N], back[N], d_gates[3 * N];
        memcpy(now, state_of, sizeof now);
        memcpy(back, carried, sizeof back);
        pnb__gru_args a = {.rows = ROWS, .width = W, .n_next = ROWS, .gx = fx, .gh = fh};
        a.ld_gh = a.ld_dgh = 3 * W;
        a.h = state_of, a.h_next = apart, a.out = out, a.gates = gates;
        k.gru(ctx, &a);
        a.h = a.h_next = now;
        k.gru(ctx, &a);
        assert_memory_equal(now, apart, sizeof now);
        a.h = state_of, a.d_out = out, a.d_next = carried, a.dh = dh, a.dgh = d_gates;
        k.gru_bwd(ctx, &a);
        a.d_next = a.dh = back;
        k.gru_bwd(ctx, &a);
        assert_memory_equal(back, dh, sizeof back);
        pnb_ctx_free(ctx);
    }
    free(gx), free(gh), free(h), free(d);
}

enum { R = 2, W = 3 };

typedef struct problem {
    double *gx, *gh, *h, *weight, out[R * W], gates[4 * R * W];
} problem;

static pnb__gru_args problem_args(problem *p)
{
    pnb__gru_args a = {.rows = R, .width = W, .gx = p->gx, .gh = p->gh, .h = p->h};
    a.ld_gh = a.ld_dgh = 3 * W;
    a.out = p->out, a.gates = p->gates;
    return a;
}

static double problem_loss(void *user)
{
    problem *p = user;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    pnb__gru_args a = problem_args(p);
    k.gru(NULL, &a);
    return dot_values(p->out, p->weight, R * W);
}

static double logistic(double x)
{
    return 0.5 * (1 + tanh(x / 2));
}

static void test_reference(void **state)
{
    (void)state;
    problem p = {.gx = random_values(3 * R * W, 1, -2, 2),
                 .gh = random_values(3 * R * W, 2, -2, 2)};
    p.h = random_values(R * W, 3, -1, 1);
    p.weight = random_values(R * W, 4, -1, 1);
    problem_loss(&p);
    for (int i = 0; i < R; i++)
        for (int j = 0; j < W; j++) {
            const double *gx = p.gx + i * 3 * W + j, *gh = p.gh + i * 3 * W + j;
            double r = logistic(gx[0] + gh[0]), z = logistic(gx[W] + gh[W]);
            double n = tanh(gx[2 * W] + r * gh[2 * W]);
            double want = n + z * (p.h[i * W + j] - n);
            assert_true(is_close(p.out[i * W + j], want, 1e-14, 0));
        }
    double dgx[3 * R * W], dgh[3 * R * W], dh[R * W];
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    pnb__gru_args a = problem_args(&p);
    a.d_out = p.weight, a.dgx = dgx, a.dgh = dgh, a.dh = dh;
    k.gru_bwd(NULL, &a);
    check_gradient(problem_loss, &p, p.gx, dgx, 3 * R * W, 1e-8);
    check_gradient(problem_loss, &p, p.gh, dgh, 3 * R * W, 1e-8);
    check_gradient(problem_loss, &p, p.h, dh, R * W, 1e-8);
    free(p.gx), free(p.gh), free(p.h), free(p.weight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_in_place),
                                       cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
