/* The max_pool slots: windows at every border, ties, infinities, NaN. */
#include "tests/kernels/harness.h"

typedef struct pool_case {
    pnb__pool_args args;
    int x, y, dy, dx;
} pool_case;

static size_t n_out(const pnb__pool_args *a)
{
    return a->n_batch * a->out_h * a->out_w * a->channels;
}

static void pool_body(run *r, fixture *x)
{
    const pool_case *c = r->user;
    pnb__pool_args a = c->args;
    a.x = P(r, x, c->x), a.y = P(r, x, c->y), a.dy = P(r, x, c->dy), a.dx = P(r, x, c->dx);
    a.which = NULL;
    r->k.max_pool(r->ctx, &a); /* as inference asks it */
    a.which = malloc(n_out(&a) + 1);
    assert_non_null(a.which);
    r->k.max_pool(r->ctx, &a);
    r->k.max_pool_bwd(r->ctx, &a);
    free(a.which);
}

static pnb__pool_args shape_of(const size_t s[7])
{
    pnb__pool_args a = {.n_batch = s[0],
                        .height = s[1],
                        .width = s[2],
                        .channels = s[3],
                        .kernel = s[4],
                        .stride = s[5],
                        .pad = s[6]};
    a.out_h = (a.height + 2 * a.pad - a.kernel) / a.stride + 1;
    a.out_w = (a.width + 2 * a.pad - a.kernel) / a.stride + 1;
    return a;
}

static void test_shapes(void **state)
{
    (void)state;
    static const size_t shapes[][7] = {{0, 4, 4, 3, 3, 2, 1},    {1, 1, 1, 1, 3, 2, 1},
                                       {2, 7, 8, 5, 3, 2, 1},    {1, 9, 9, 33, 2, 2, 0},
                                       {1, 8, 5, 16, 3, 1, 1},   {2, 10, 11, 7, 2, 3, 0},
                                       {3, 40, 24, 64, 3, 2, 1}, {1, 6, 6, 2, 5, 2, 2}};
    for (size_t i = 0; i < PNB_COUNT(shapes); i++) {
        pool_case c = {.args = shape_of(shapes[i])};
        pnb__pool_args *a = &c.args;
        a->accumulate = i % 2;
        fixture x;
        fixture_init(&x, i, 1e-6, 1e-6);
        size_t n = a->n_batch * a->height * a->width * a->channels;
        c.x = input(&x, n, -1, 1);
        c.y = output(&x, n_out(a), false);
        c.dy = input(&x, n_out(a), -1, 1);
        c.dx = output(&x, n, a->accumulate);
        compare_all(&x, pool_body, &c);
    }
}

/* One channel of 3x3 windows over 3x3 pixels: what is in the middle sees all. */
static void check_middle(const float x[9], size_t want)
{
    static const size_t sizes[7] = {1, 3, 3, 1, 3, 1, 1};
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        pnb__pool_args a = shape_of(sizes);
        float y[9];
        unsigned char which[9];
        a.x = x, a.y = y, a.which = which;
        k.max_pool(ctx, &a);
        if (which[4] != want || memcmp(&y[4], &x[want], sizeof *y) != 0)
            fail_msg("%s: the maximum is %g of tap %d, not tap %zu", k.name, (double)y[4], which[4],
                     want);
        pnb_ctx_free(ctx);
    }
}

static void test_ties_and_extremes(void **state)
{
    (void)state;
    check_middle((float[9]){1, 2, 5, 0, 5, 1, 5, 2, 2}, 2);
    check_middle((float[9]){-3, -2, -4, -2, -9, -3, -2, -5, -6}, 1);
    check_middle((float[9]){-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                            -INFINITY, -INFINITY, -INFINITY},
                 0);
    check_middle((float[9]){1, 2, 3, 4, NAN, 6, 7, INFINITY, 9}, 4);
    check_middle((float[9]){NAN, 2, 3, 4, 5, 6, 7, 8, 9}, 0);
}

/* Pixels outside count as less than everything: a corner of negative numbers is not 0. */
static void test_outside_is_least(void **state)
{
    (void)state;
    static const size_t sizes[7] = {1, 2, 2, 1, 3, 2, 1};
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        pnb__pool_args a = shape_of(sizes);
        const float x[4] = {-7, -3, -5, -4};
        float y[1];
        a.x = x, a.y = y;
        k.max_pool(ctx, &a);
        assert_true(y[0] == -3);
        pnb_ctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_ties_and_extremes),
                                       cmocka_unit_test(test_outside_is_least)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
