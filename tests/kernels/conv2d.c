/* The conv2d slots: kernels, strides and paddings of every kind against the f64 reference, which is
 * itself compared with the sum written out; the adjoints; the epilogue. */
#include "tests/kernels/harness.h"

typedef struct conv2d_case {
    pnb__conv2d_args args;
    bool packs, finishes, residual;
    int x, w, y, scale, shift, b_residual, dy, dx, dw;
} conv2d_case;

static pnb__conv2d_args shape_of(const size_t s[9])
{
    pnb__conv2d_args a = {.n_batch = s[0],
                          .height = s[1],
                          .width = s[2],
                          .channels = s[3],
                          .out_channels = s[4],
                          .kernel_h = s[5],
                          .kernel_w = s[6],
                          .stride = s[7],
                          .pad = s[8]};
    a.out_h = (a.height + 2 * a.pad - a.kernel_h) / a.stride + 1;
    a.out_w = (a.width + 2 * a.pad - a.kernel_w) / a.stride + 1;
    return a;
}

static size_t n_x(const pnb__conv2d_args *a)
{
    return a->n_batch * a->height * a->width * a->channels;
}

static size_t n_w(const pnb__conv2d_args *a)
{
    return a->out_channels * a->channels * a->kernel_h * a->kernel_w;
}

static size_t n_y(const pnb__conv2d_args *a)
{
    return a->n_batch * a->out_h * a->out_w * a->out_channels;
}

static void run_pass(run *r, pnb__conv2d_args *a, pnb__conv2d_pass pass)
{
    size_t bytes = r->k.conv2d_work(r->ctx, a, pass);
    a->work = work_alloc(bytes);
    if (pass == PNB__CONV2D)
        r->k.conv2d(r->ctx, a);
    else if (pass == PNB__CONV2D_DX)
        r->k.conv2d_dx(r->ctx, a);
    else
        r->k.conv2d_dw(r->ctx, a);
    wait_for(&r->k, r->ctx);
    work_free(a->work, bytes);
    a->work = NULL;
}

static void conv2d_body(run *r, fixture *x)
{
    const conv2d_case *c = r->user;
    pnb__conv2d_args a = c->args;
    size_t bytes = r->k.conv2d_pack_bytes(&a);
    void *packed = c->packs ? work_alloc(bytes) : NULL;
    a.x = P(r, x, c->x);
    a.w = P(r, x, c->w);
    a.y = P(r, x, c->y);
    a.scale = c->finishes ? P(r, x, c->scale) : NULL;
    a.shift = c->finishes ? P(r, x, c->shift) : NULL;
    a.residual = c->residual ? P(r, x, c->b_residual) : NULL;
    if (packed != NULL)
        r->k.conv2d_pack(r->ctx, &a, packed);
    a.packed = packed;
    run_pass(r, &a, PNB__CONV2D);
    if (packed != NULL)
        work_free(packed, bytes);
    a.dy = P(r, x, c->dy);
    a.dx = P(r, x, c->dx);
    a.dw = P(r, x, c->dw);
    run_pass(r, &a, PNB__CONV2D_DX);
    run_pass(r, &a, PNB__CONV2D_DW);
}

static void check_conv2d(conv2d_case c)
{
    pnb__conv2d_args *a = &c.args;
    size_t depth = a->kernel_h * a->kernel_w * PNB_MAX(a->channels, a->out_channels);
    bool transforms = a->kernel_h == 3 && a->kernel_w == 3 && a->stride == 1; /* Winograd */
    double terms = (double)(depth + a->n_batch * a->out_h * a->out_w);
    fixture x;
    fixture_init(&x, n_x(a), (transforms ? 1.5e-5 : 4e-6) * sqrt(terms), 2e-6);
    c.x = input(&x, n_x(a), -1, 1);
    c.w = input(&x, n_w(a), -1, 1);
    c.y = output(&x, n_y(a), false);
    c.scale = input(&x, a->out_channels, -1, 1);
    c.shift = input(&x, a->out_channels, -1, 1);
    c.b_residual = input(&x, n_y(a), -1, 1);
    c.dy = input(&x, n_y(a), -1, 1);
    c.dx = output(&x, n_x(a), a->accumulate);
    c.dw = output(&x, n_w(a), a->accumulate);
    compare_all(&x, conv2d_body, &c);
}

/* batch, height, width, channels, outputs, kernel, stride, pad */
static const size_t shapes[][9] = {
    {0, 8, 8, 3, 5, 3, 3, 1, 1},     {1, 1, 1, 1, 1, 1, 1, 1, 0},
    {2, 7, 9, 3, 5, 3, 3, 1, 1},     {1, 11, 8, 2, 7, 5, 2, 2, 3},
    {2, 6, 5, 17, 33, 1, 1, 1, 0},   {2, 7, 6, 5, 40, 1, 1, 2, 0},
    {1, 3, 3, 3, 4, 7, 7, 2, 3},     {2, 21, 19, 3, 16, 7, 7, 2, 3},
    {1, 9, 9, 40, 36, 3, 3, 2, 1},   {1, 8, 10, 4, 3, 2, 2, 3, 0},
    {3, 5, 5, 6, 4, 1, 3, 3, 2},     {1, 6, 6, 90, 50, 3, 3, 1, 1},
    {2, 14, 14, 33, 35, 3, 3, 1, 1}, {3, 3, 2, 40, 64, 3, 3, 1, 2},
    {1, 17, 12, 33, 50, 3, 3, 1, 0}, {1, 8, 8, 3, 2, 3, 3, 2, 0},
    {1, 13, 6, 8, 16, 3, 3, 1, 0},
};

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < PNB_COUNT(shapes); i++) {
        conv2d_case c = {.args = shape_of(shapes[i]), .packs = i % 2};
        check_conv2d(c);
        c.args.accumulate = true;
        check_conv2d(c);
    }
}

static void test_epilogue(void **state)
{
    (void)state;
    for (int bits = 1; bits < 8; bits++)
        for (size_t i = 2; i < 6; i++) {
            conv2d_case c = {.args = shape_of(shapes[i]),
                             .packs = bits % 2,
                             .finishes = bits & 1,
                             .residual = bits & 2};
            c.args.relu = bits & 4;
            check_conv2d(c);
        }
}

/* Several strips of outputs, stretches of depth and blocks of rows. */
static void test_large(void **state)
{
    (void)state;
    static const size_t large[][9] = {{2, 30, 28, 64, 72, 3, 3, 1, 1},
                                      {1, 17, 15, 64, 420, 1, 1, 1, 0},
                                      {3, 28, 28, 80, 70, 3, 3, 2, 1}};
    for (size_t i = 0; i < PNB_COUNT(large); i++)
        check_conv2d((conv2d_case){.args = shape_of(large[i]), .finishes = true, .packs = true});
}

/* The error of 3x3 kernels at stride 1 against double, by the largest result: normal numbers, the
 * most channels that are transformed, pictures that the tiles do not divide. */
static double worst_error(const pnb__kernels *k, const pnb_ctx *ctx, size_t channels,
                          pnb__conv2d_pass pass)
{
    pnb__conv2d_args a = shape_of((const size_t[9]){1, 10, 7, channels, channels, 3, 3, 1, 1});
    run r = {.k = *k, .ctx = ctx};
    pnb__rng rng;
    pnb__rng_init(&rng, channels, 1);
    size_t n = pass == PNB__CONV2D_DW ? n_w(&a) : n_y(&a);
    float *x = malloc(n_x(&a) * sizeof *x), *w = malloc(n_w(&a) * sizeof *w);
    float *y = malloc(n * sizeof *y);
    double *x64 = malloc(n_x(&a) * sizeof *x64), *w64 = malloc(n_w(&a) * sizeof *w64);
    double *y64 = malloc(n * sizeof *y64), worst = 0, largest = 0;
    assert_true(x && w && y && x64 && w64 && y64);
    for (size_t i = 0; i < n_x(&a); i++)
        x64[i] = (double)(x[i] = (float)pnb__rng_normal(&rng));
    for (size_t i = 0; i < n_w(&a); i++)
        w64[i] = (double)(w[i] = (float)pnb__rng_normal(&rng));
    a.x = a.dy = x, a.w = w, a.y = a.dx = a.dw = y;
    run_pass(&r, &a, pass);
    pnb__kernels_ref_f64(&r.k);
    a.x = a.dy = x64, a.w = w64, a.y = a.dx = a.dw = y64;
    run_pass(&r, &a, pass);
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(y64[i]));
        if (!(fabs((double)y[i] - y64[i]) <= worst))
            worst = fabs((double)y[i] - y64[i]);
    }
    free(x), free(w), free(y), free(x64), free(w64), free(y64);
    return worst / largest;
}

static void test_error(void **state)
{
    (void)state;
    for (int t = 0; t < N_TABLES; t++)
        for (size_t channels = 64; channels <= 256; channels *= 2) {
            pnb__kernels k;
            pnb_ctx *ctx;
            if (!table_at(t, &k, 2, &ctx))
                continue;
            for (int pass = PNB__CONV2D; pass <= PNB__CONV2D_DW; pass++) {
                double error = worst_error(&k, ctx, channels, (pnb__conv2d_pass)pass);
                if (!(error < 2e-5))
                    fail_msg("%s, %zu channels, pass %d: error %g of the largest", k.name, channels,
                             pass, error);
            }
            pnb_ctx_free(ctx);
        }
}

/* Pictures of a batch do not change each other's bits; but cuBLASLt chooses its kernel, and with it
 * the order of a sum, by how many rows a product has: on a device they may. */
static void test_images_alone(void **state)
{
    (void)state;
    static const size_t sizes[2][9] = {{3, 9, 11, 5, 18, 3, 3, 1, 1},
                                       {3, 9, 11, 40, 36, 3, 3, 1, 1}};
#ifdef PNB_TEST_ON_DEVICE
    skip();
#endif
    for (int t = 0; t < 2 * N_TABLES; t++) {
        run r = {0};
        pnb_ctx *ctx;
        if (!table_at(t / 2, &r.k, 2, &ctx))
            continue;
        r.ctx = ctx;
        pnb__conv2d_args all = shape_of(sizes[t % 2]), one = all;
        one.n_batch = 1;
        float *x = malloc(n_x(&all) * sizeof *x), *w = malloc(n_w(&all) * sizeof *w);
        float *y = malloc(n_y(&all) * sizeof *y), *alone = malloc(n_y(&one) * sizeof *alone);
        assert_true(x && w && y && alone);
        for (size_t i = 0; i < n_x(&all); i++)
            x[i] = sinf((float)i);
        for (size_t i = 0; i < n_w(&all); i++)
            w[i] = cosf((float)i);
        all.x = x, all.w = one.w = w, all.y = y;
        one.x = x + n_x(&one), one.y = alone;
        run_pass(&r, &all, PNB__CONV2D);
        run_pass(&r, &one, PNB__CONV2D);
        assert_memory_equal(alone, y + n_y(&one), n_y(&one) * sizeof *y);
        free(x), free(w), free(y), free(alone);
        pnb_ctx_free(ctx);
    }
}

/* The reference is the sum that pnb__conv2d_args says, and its adjoints are adjoints. */
static void test_reference(void **state)
{
    (void)state;
    static const size_t sizes[9] = {2, 11, 8, 2, 3, 5, 2, 2, 3};
    pnb__conv2d_args a = shape_of(sizes);
    double *x = random_values(n_x(&a), 1, -1, 1), *w = random_values(n_w(&a), 2, -1, 1);
    double *dy = random_values(n_y(&a), 3, -1, 1), *y = random_values(n_y(&a), 4, 0, 1);
    double *dx = random_values(n_x(&a), 5, 0, 1), *dw = random_values(n_w(&a), 6, 0, 1);
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    a.x = x, a.w = w, a.y = y, a.dy = dy, a.dx = dx, a.dw = dw;
    k.conv2d(NULL, &a);
    k.conv2d_dx(NULL, &a);
    k.conv2d_dw(NULL, &a);
    for (size_t n = 0; n < n_y(&a); n++) {
        long o = (long)(n % 3), j = (long)(n / 3 % a.out_w), i = (long)(n / 3 / a.out_w % a.out_h);
        long b = (long)(n / 3 / a.out_w / a.out_h);
        double want = 0;
        for (long t = 0; t < 20; t++) {
            long c = t / 10, u = t / 2 % 5, v = t % 2, py = 2 * i + u - 3, px = 2 * j + v - 3;
            if (py >= 0 && px >= 0 && py < 11 && px < 8)
                want += x[((b * 11 + py) * 8 + px) * 2 + c] * w[(o * 2 + c) * 10 + u * 2 + v];
        }
        assert_true(is_close(y[n], want, 1e-12, 1e-12));
    }
    assert_true(is_close(dot_values(y, dy, n_y(&a)), dot_values(x, dx, n_x(&a)), 1e-10, 0));
    assert_true(is_close(dot_values(y, dy, n_y(&a)), dot_values(w, dw, n_w(&a)), 1e-10, 0));
    free(x), free(w), free(dy), free(y), free(dx), free(dw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),       cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_large),        cmocka_unit_test(test_error),
        cmocka_unit_test(test_images_alone), cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
