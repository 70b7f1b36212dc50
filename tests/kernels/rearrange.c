/* Gather and scatter, patches, im2col; the adjoints by <A x, y> = <x, A^T y>. */
#include "tests/kernels/harness.h"

typedef struct gather_case {
    size_t n, n_table, width;
    int table, y, dy, dtable;
    int32_t *ids;
} gather_case;

static void gather_body(run *r, fixture *x)
{
    const gather_case *c = r->user;
    r->k.gather_rows(r->ctx, c->n, c->width, P(r, x, c->table), c->ids, P(r, x, c->y));
    r->k.scatter_add_rows(r->ctx, c->n, c->n_table, c->width, P(r, x, c->dy), c->ids,
                          P(r, x, c->dtable));
}

static void test_gather(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {
        {0, 3, 4}, {1, 1, 1}, {9, 4, 17}, {100, 7, 192}, {300, 50, 33}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        gather_case c = {sizes[i][0], sizes[i][1], sizes[i][2], 0, 0, 0, 0, NULL};
        fixture x;
        fixture_init(&x, i, 1e-5, 1e-6);
        c.table = input(&x, c.n_table * c.width, -1, 1);
        c.y = output(&x, c.n * c.width, false);
        c.dy = input(&x, c.n * c.width, -1, 1);
        c.dtable = output(&x, c.n_table * c.width, true);
        c.ids = malloc((c.n + 1) * sizeof *c.ids);
        assert_non_null(c.ids);
        for (size_t j = 0; j < c.n; j++)
            c.ids[j] = (int32_t)(j * j % c.n_table);
        compare_all(&x, gather_body, &c);
        free(c.ids);
    }
}

typedef struct patch_case {
    size_t bchw[4], patch;
    bool accumulate;
    int x, y, dy, dx;
} patch_case;

static void patch_body(run *r, fixture *x)
{
    const patch_case *c = r->user;
    r->k.patchify(r->ctx, c->bchw, c->patch, P(r, x, c->x), P(r, x, c->y));
    r->k.patchify_bwd(r->ctx, c->bchw, c->patch, P(r, x, c->dy), P(r, x, c->dx), c->accumulate);
}

static void test_patches(void **state)
{
    (void)state;
    static const size_t shapes[][5] = {
        {1, 3, 4, 4, 2}, {2, 3, 17, 20, 4}, {3, 1, 8, 8, 8}, {0, 3, 8, 8, 4}, {4, 3, 64, 48, 16}};
    for (size_t i = 0; i < PNB_COUNT(shapes); i++) {
        const size_t *s = shapes[i];
        patch_case c = {{s[0], s[1], s[2], s[3]}, s[4], i % 2, 0, 0, 0, 0};
        size_t n = s[0] * s[1] * s[2] * s[3];
        size_t n_out = s[0] * s[1] * (s[2] / s[4]) * (s[3] / s[4]) * s[4] * s[4];
        fixture x;
        fixture_init(&x, i, 0, 1e-7);
        c.x = input(&x, n, -1, 1);
        c.y = output(&x, n_out, false);
        c.dy = input(&x, n_out, -1, 1);
        c.dx = output(&x, n, c.accumulate);
        compare_all(&x, patch_body, &c);
    }
}

/* Feature order of a patch: channel, then row, then column; patches row by row. */
static void test_patch_order(void **state)
{
    (void)state;
    double x[2 * 4 * 4], y[2 * 4 * 4];
    for (int i = 0; i < 32; i++)
        x[i] = i;
    const size_t bchw[4] = {1, 2, 4, 4};
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.patchify(NULL, bchw, 2, x, y);
    static const double second[8] = {2, 3, 6, 7, 18, 19, 22, 23};
    for (int i = 0; i < 8; i++)
        assert_true(y[8 + i] == second[i]);
    assert_true(y[16] == 8);
}

typedef struct conv_case {
    pnb__conv_args args;
    int x, col, dcol, dx;
} conv_case;

static void conv_body(run *r, fixture *x)
{
    const conv_case *c = r->user;
    pnb__conv_args a = c->args;
    a.x = P(r, x, c->x);
    a.col = P(r, x, c->col);
    r->k.im2col(r->ctx, &a);
    a.dcol = P(r, x, c->dcol);
    a.dx = P(r, x, c->dx);
    r->k.col2im(r->ctx, &a);
}

static size_t conv_out(size_t n, size_t kernel, const pnb__conv_args *a)
{
    return (n + 2 * a->pad - a->dilation * (kernel - 1) - 1) / a->stride + 1;
}

static const pnb__conv_args convs[] = {{.n_batch = 2,
                                        .channels = 3,
                                        .height = 7,
                                        .width = 9,
                                        .kernel_h = 3,
                                        .kernel_w = 3,
                                        .stride = 1,
                                        .pad = 1,
                                        .dilation = 1},
                                       {.n_batch = 1,
                                        .channels = 2,
                                        .height = 11,
                                        .width = 8,
                                        .kernel_h = 5,
                                        .kernel_w = 2,
                                        .stride = 2,
                                        .pad = 3,
                                        .dilation = 2},
                                       {.n_batch = 3,
                                        .channels = 1,
                                        .height = 4,
                                        .width = 4,
                                        .kernel_h = 1,
                                        .kernel_w = 1,
                                        .stride = 1,
                                        .pad = 0,
                                        .dilation = 1},
                                       {.n_batch = 1,
                                        .channels = 3,
                                        .height = 3,
                                        .width = 3,
                                        .kernel_h = 7,
                                        .kernel_w = 7,
                                        .stride = 2,
                                        .pad = 3,
                                        .dilation = 1}};

static void test_conv(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(convs); i++) {
        conv_case c = {.args = convs[i]};
        pnb__conv_args *a = &c.args;
        a->out_h = conv_out(a->height, a->kernel_h, a);
        a->out_w = conv_out(a->width, a->kernel_w, a);
        a->accumulate = i % 2;
        size_t n = a->n_batch * a->channels * a->height * a->width;
        size_t n_col = a->n_batch * a->out_h * a->out_w * a->channels * a->kernel_h * a->kernel_w;
        fixture x;
        fixture_init(&x, i, 1e-6, 1e-6);
        c.x = input(&x, n, -1, 1);
        c.col = output(&x, n_col, false);
        c.dcol = input(&x, n_col, -1, 1);
        c.dx = output(&x, n, a->accumulate);
        compare_all(&x, conv_body, &c);
    }
}

/* A convolution by im2col against the sum written out, and the adjoint. */
static void test_conv_reference(void **state)
{
    (void)state;
    pnb__conv_args a = convs[1];
    a.out_h = conv_out(a.height, a.kernel_h, &a);
    a.out_w = conv_out(a.width, a.kernel_w, &a);
    size_t n = a.channels * a.height * a.width, taps = a.channels * a.kernel_h * a.kernel_w;
    size_t places = a.out_h * a.out_w;
    double *x = random_values(n, 1, -1, 1), *dcol = random_values(places * taps, 2, -1, 1);
    double *col = random_values(places * taps, 3, 0, 1), *dx = random_values(n, 4, 0, 1);
    a.x = x, a.col = col, a.dcol = dcol, a.dx = dx;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    k.im2col(NULL, &a);
    k.col2im(NULL, &a);
    assert_true(is_close(dot_values(col, dcol, places * taps), dot_values(x, dx, n), 1e-10, 0));
    for (long oy = 0; oy < (long)a.out_h; oy++)
        for (long ox = 0; ox < (long)a.out_w; ox++)
            for (long t = 0; t < (long)taps; t++) {
                long c = t / 10, ky = t / 2 % 5, kx = t % 2;
                long py = oy * 2 + ky * 2 - 3, px = ox * 2 + kx * 2 - 3;
                bool inside = py >= 0 && px >= 0 && py < 11 && px < 8;
                double want = inside ? x[(c * 11 + py) * 8 + px] : 0;
                assert_true(col[(oy * (long)a.out_w + ox) * (long)taps + t] == want);
            }
    free(x), free(dcol), free(col), free(dx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather), cmocka_unit_test(test_patches),
        cmocka_unit_test(test_patch_order), cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
