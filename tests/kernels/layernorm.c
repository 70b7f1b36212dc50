/* LayerNorm forward and backward against the f64 reference, and that one against differences. */
#include "tests/kernels/harness.h"

typedef struct norm_case {
    size_t rows, width;
    bool affine, in_place, add_x, add_w, keep;
    double offset;
    int x, w, b, y, mean, rstd, dy, dx, dw, db;
} norm_case;

static void norm_body(run *r, fixture *x)
{
    const norm_case *c = r->user;
    pnb__layernorm_args a = {.rows = c->rows, .width = c->width, .eps = 1e-5};
    a.x = P(r, x, c->x);
    a.w = c->affine ? P(r, x, c->w) : NULL;
    a.b = c->affine ? P(r, x, c->b) : NULL;
    a.y = P(r, x, c->y);
    r->k.layernorm(r->ctx, &a); /* mean and rstd not asked for */
    a.mean = P(r, x, c->mean);
    a.rstd = P(r, x, c->rstd);
    r->k.layernorm(r->ctx, &a);
    a.dy = P(r, x, c->dy);
    a.dx = c->keep ? P(r, x, c->dx) : NULL;
    a.dw = c->affine ? P(r, x, c->dw) : NULL;
    a.db = c->affine ? P(r, x, c->db) : NULL;
    a.accumulate_x = c->add_x, a.accumulate_w = c->add_w;
    size_t bytes = r->k.layernorm_work(r->ctx, c->rows, c->width);
    a.work = work_alloc(bytes);
    r->k.layernorm_bwd(r->ctx, &a);
    work_free(a.work, bytes);
    if (c->in_place) {
        r->k.axpy(r->ctx, c->rows * c->width, 1, a.x, a.y);
        a.x = a.y;
        a.mean = a.rstd = NULL;
        r->k.layernorm(r->ctx, &a);
    }
}

static void check_norm(norm_case c)
{
    fixture x;
    fixture_init(&x, c.rows + c.width, 1e-5 + 2e-6 * fabs(c.offset), 5e-6);
    size_t n = c.rows * c.width;
    c.x = input(&x, n, c.offset - 1, c.offset + 1);
    c.w = input(&x, c.width, -2, 2);
    c.b = input(&x, c.width, -1, 1);
    c.y = output(&x, n, false);
    c.mean = output(&x, c.rows, false);
    c.rstd = output(&x, c.rows, false);
    c.dy = input(&x, n, -1, 1);
    c.dx = output(&x, c.keep ? n : 0, c.add_x);
    c.dw = output(&x, c.affine ? c.width : 0, c.add_w);
    c.db = output(&x, c.affine ? c.width : 0, c.add_w);
    compare_all(&x, norm_body, &c);
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{0, 8},    {1, 2},    {1, 768},  {3, 17},
                                      {33, 100}, {65, 192}, {200, 257}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        for (int bits = 0; bits < 8; bits++) {
            norm_case c = {.rows = sizes[i][0], .width = sizes[i][1], .keep = bits != 5};
            c.affine = bits & 1, c.add_x = bits & 2, c.add_w = bits & 4;
            c.in_place = bits == 3;
            check_norm(c);
        }
    }
}

/* A mean a hundred times the spread: the two-pass variance keeps its digits. */
static void test_large_mean(void **state)
{
    (void)state;
    norm_case c = {.rows = 5, .width = 768, .affine = true, .keep = true, .offset = 100};
    check_norm(c);
}

enum { R = 3, W = 6 };

typedef struct problem {
    double *x, *w, *b, *weight, y[R * W], mean[R], rstd[R];
} problem;

static double problem_loss(void *user)
{
    problem *p = user;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    pnb__layernorm_args a = {.rows = R, .width = W, .eps = 1e-3, .x = p->x, .w = p->w, .b = p->b};
    a.y = p->y, a.mean = p->mean, a.rstd = p->rstd;
    k.layernorm(NULL, &a);
    return dot_values(p->y, p->weight, R * W);
}

static void test_reference(void **state)
{
    (void)state;
    problem p = {.x = random_values(R * W, 1, -2, 3), .w = random_values(W, 2, -1, 2)};
    p.b = random_values(W, 3, -1, 1);
    p.weight = random_values(R * W, 4, -1, 1);
    problem_loss(&p);
    for (int i = 0; i < R; i++) {
        double mean = 0, square = 0;
        for (int j = 0; j < W; j++) {
            mean += p.x[i * W + j] / W;
            square += p.x[i * W + j] * p.x[i * W + j] / W;
        }
        double std = sqrt(square - mean * mean + 1e-3);
        for (int j = 0; j < W; j++) {
            double want = (p.x[i * W + j] - mean) / std * p.w[j] + p.b[j];
            assert_true(is_close(p.y[i * W + j], want, 1e-12, 0));
        }
    }
    double dx[R * W], dw[W], db[W], work[2 * W];
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    pnb__layernorm_args a = {.rows = R, .width = W, .eps = 1e-3, .x = p.x, .w = p.w, .b = p.b};
    a.mean = p.mean, a.rstd = p.rstd, a.dy = p.weight, a.dx = dx, a.dw = dw, a.db = db,
    a.work = work;
    k.layernorm_bwd(NULL, &a);
    check_gradient(problem_loss, &p, p.x, dx, R * W, 1e-8);
    check_gradient(problem_loss, &p, p.w, dw, W, 1e-8);
    check_gradient(problem_loss, &p, p.b, db, W, 1e-8);
    free(p.x), free(p.w), free(p.b), free(p.weight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_large_mean),
                                       cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
