/* The GRU step: tables against each other, the reference against torch's equations and
 * differences. */
#include "tests/kernels/harness.h"

typedef struct gru_case {
    size_t rows, width;
    bool accumulate;
    int gx, gh, h, h_new, dh_new, dgx, dgh, dh;
} gru_case;

static void gru_body(run *r, fixture *x)
{
    const gru_case *c = r->user;
    pnb__gru_args a = {.rows = c->rows, .width = c->width};
    a.gx = P(r, x, c->gx), a.gh = P(r, x, c->gh), a.h = P(r, x, c->h);
    a.h_new = P(r, x, c->h_new);
    r->k.gru(r->ctx, &a);
    a.dh_new = P(r, x, c->dh_new);
    a.dgx = P(r, x, c->dgx), a.dgh = P(r, x, c->dgh), a.dh = P(r, x, c->dh);
    a.accumulate_gx = a.accumulate_gh = a.accumulate_h = c->accumulate;
    r->k.gru_bwd(r->ctx, &a);
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{0, 3}, {1, 1}, {5, 17}, {16, 64}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        gru_case c = {.rows = sizes[i][0], .width = sizes[i][1], .accumulate = i % 2};
        size_t n = c.rows * c.width;
        fixture x;
        fixture_init(&x, i, 1e-6, 1e-6);
        c.gx = input(&x, 3 * n, -3, 3);
        c.gh = input(&x, 3 * n, -3, 3);
        c.h = input(&x, n, -1, 1);
        c.h_new = output(&x, n, false);
        c.dh_new = input(&x, n, -1, 1);
        c.dgx = output(&x, 3 * n, c.accumulate);
        c.dgh = output(&x, 3 * n, c.accumulate);
        c.dh = output(&x, n, c.accumulate);
        compare_all(&x, gru_body, &c);
    }
}

enum { R = 2, W = 3 };

typedef struct problem {
    double *gx, *gh, *h, *weight, h_new[R * W];
} problem;

static double problem_loss(void *user)
{
    problem *p = user;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    pnb__gru_args a = {.rows = R, .width = W, .gx = p->gx, .gh = p->gh, .h = p->h};
    a.h_new = p->h_new;
    k.gru(NULL, &a);
    return dot_values(p->h_new, p->weight, R * W);
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
            assert_true(is_close(p.h_new[i * W + j], want, 1e-14, 0));
        }
    double dgx[3 * R * W], dgh[3 * R * W], dh[R * W];
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    pnb__gru_args a = {.rows = R, .width = W, .gx = p.gx, .gh = p.gh, .h = p.h};
    a.dh_new = p.weight, a.dgx = dgx, a.dgh = dgh, a.dh = dh;
    k.gru_bwd(NULL, &a);
    check_gradient(problem_loss, &p, p.gx, dgx, 3 * R * W, 1e-8);
    check_gradient(problem_loss, &p, p.gh, dgh, 3 * R * W, 1e-8);
    check_gradient(problem_loss, &p, p.h, dh, R * W, 1e-8);
    free(p.gx), free(p.gh), free(p.h), free(p.weight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
