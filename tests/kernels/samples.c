/* Samples against samples: every table beside the f64 reference, the reference beside the formulas
 * pair by pair, bounds that hold for products with errors, coincident samples, and far ones. */
#include "tests/kernels/harness.h"

typedef struct strip_case {
    size_t n1, n2, j, dim;
    bool backward;
    int x, y, sx, sy, signs, scale, shift, products, nll, d_nll, d_scale, d_shift;
} strip_case;

static void get_products(run *r, const strip_case *c, const void *x, const void *y, void *out)
{
    const pnb__gemm_args g = {.trans_b = true,
                              .m = c->n1 * c->j,
                              .n = c->n2 * c->j,
                              .k = c->dim,
                              .lda = c->dim,
                              .ldb = c->dim,
                              .ldc = c->n2 * c->j,
                              .n_batch = 1,
                              .alpha = 1,
                              .a = x,
                              .b = y,
                              .c = out,
                              .act = PNB__IDENTITY};
    r->k.gemm(r->ctx, &g);
}

static void set_signs(const run *r, const strip_case *c, void *signs)
{
    for (size_t i = 0; i < c->n1 * c->n2; i++) {
        double v = i % c->n2 == i / c->n2 ? 1 : -1;
        if (r->is_double)
            ((double *)signs)[i] = v;
        else
            ((float *)signs)[i] = (float)v;
    }
}

static void strip_body(run *r, fixture *f)
{
    const strip_case *c = r->user;
    pnb__match_args a = {.n1 = c->n1, .n2 = c->n2, .n_samples = c->j, .dim = c->dim, .factor = 2};
    a.x = P(r, f, c->x), a.y = P(r, f, c->y);
    a.scale = P(r, f, c->scale), a.shift = P(r, f, c->shift);
    a.signs = P(r, f, c->signs), a.products = P(r, f, c->products), a.nll = P(r, f, c->nll);
    set_signs(r, c, P(r, f, c->signs));
    r->k.row_squares(r->ctx, c->n1 * c->j, c->dim, a.x, P(r, f, c->sx));
    r->k.row_squares(r->ctx, c->n2 * c->j, c->dim, a.y, P(r, f, c->sy));
    a.square_x = P(r, f, c->sx), a.square_y = P(r, f, c->sy);
    get_products(r, c, a.x, a.y, a.products);
    r->k.match_strip(r->ctx, &a);
    if (!c->backward)
        return;
    a.d_nll = P(r, f, c->d_nll), a.d_scale = P(r, f, c->d_scale), a.d_shift = P(r, f, c->d_shift);
    r->k.match_strip_bwd(r->ctx, &a);
}

static void check_strip(strip_case c, double spread)
{
    fixture f;
    fixture_init(&f, c.n1 * 100 + c.j, 2e-5, 2e-5);
    size_t pairs = c.n1 * c.n2;
    c.x = input(&f, c.n1 * c.j * c.dim, -spread, spread);
    c.y = input(&f, c.n2 * c.j * c.dim, -spread, spread);
    c.sx = output(&f, c.n1 * c.j, false);
    c.sy = output(&f, c.n2 * c.j, false);
    c.signs = output(&f, pairs, true);
    c.scale = input(&f, 1, 2, 3);
    c.shift = input(&f, 1, 2, 3);
    c.products = output(&f, pairs * c.j * c.j, false);
    c.nll = output(&f, pairs, false);
    c.d_nll = input(&f, pairs, -1, 1);
    c.d_scale = output(&f, pairs, !c.backward);
    c.d_shift = output(&f, pairs, !c.backward);
    compare_all(&f, strip_body, &c);
}

static void strips(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        check_strip((strip_case){.n1 = 1, .n2 = 1, .j = 1, .dim = 1, .backward = backward}, 1);
        check_strip((strip_case){.n1 = 3, .n2 = 5, .j = 3, .dim = 7, .backward = backward}, 0.5);
        check_strip((strip_case){.n1 = 2, .n2 = 33, .j = 2, .dim = 65, .backward = backward}, 0.2);
    }
}

/* nll of one pair of J = 1 samples: -log s(2 sign (shift - scale d)). */
static double one_pair(double x, double y, double sign, double scale, double shift)
{
    double nll, sx = x * x, sy = y * y, product = x * y;
    pnb__kernels k;
    pnb__kernels_ref_f64(&k);
    const pnb__match_args a = {.n1 = 1,
                               .n2 = 1,
                               .n_samples = 1,
                               .dim = 1,
                               .factor = 2,
                               .x = &x,
                               .y = &y,
                               .square_x = &sx,
                               .square_y = &sy,
                               .signs = &sign,
                               .scale = &scale,
                               .shift = &shift,
                               .products = &product,
                               .nll = &nll};
    k.match_strip(NULL, &a);
    return nll;
}

/* Nothing overflows, and both tails are exact: -log s(z) is |z| where a match is far. */
static void far_and_near(void **state)
{
    (void)state;
    assert_true(is_close(one_pair(1, 2, 1, 1e4, 0), 2e4 * sqrt(1 + 1e-6), 0, 1e-12));
    assert_true(is_close(one_pair(1, 2, 1, 1e4, 1e4 * sqrt(1 + 1e-6)), log(2), 1e-9, 0));
    assert_true(is_close(one_pair(1, 2, -1, 20, 0), exp(-40 * sqrt(1 + 1e-6)), 0, 1e-12));
    assert_true(one_pair(1, 2, -1, 1e4, 0) == 0);
    /* coincident samples: the floor's root, and not what rounding left */
    assert_true(is_close(one_pair(1e3, 1e3, 1, 1, 0), log1p(exp(2e-3)), 0, 1e-12));
    assert_true(
        is_close(one_pair(1e3, 1e3 + 1e-5, 1, 1, 0), log1p(exp(2 * sqrt(1e-10 + 1e-6))), 0, 1e-9));
}

/* A number that is none ends in the loss of its pair and in no other, in every table. */
static void none_is_not_lost(void **state)
{
    enum { PAIRS = 3, SAMPLES = 3 };
    (void)state;
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels table;
        pnb_ctx *ctx = NULL;
        if (!table_at(t, &table, 1, &ctx))
            continue;
        float x[SAMPLES] = {1, 2, 3}, y[PAIRS * SAMPLES], products[SAMPLES * PAIRS * SAMPLES];
        float square_x[SAMPLES] = {1, 4, 9}, square_y[PAIRS * SAMPLES], nll[PAIRS];
        const float signs[PAIRS] = {1, -1, 1}, scale = 2, shift = 1;
        for (size_t i = 0; i < PAIRS * SAMPLES; i++) {
            y[i] = (float)i - 4;
            square_y[i] = y[i] * y[i];
            for (size_t j = 0; j < SAMPLES; j++)
                products[j * PAIRS * SAMPLES + i] = x[j] * y[i];
        }
        products[PAIRS * SAMPLES + SAMPLES] = NAN; /* of the second pair */
        pnb__match_args a = {.n1 = 1, .n2 = PAIRS, .n_samples = SAMPLES, .dim = 1, .factor = 2};
        a.x = x, a.y = y, a.square_x = square_x, a.square_y = square_y, a.signs = signs;
        a.scale = &scale, a.shift = &shift, a.products = products, a.nll = nll;
        table.match_strip(ctx, &a);
        wait_for(&table, ctx);
        assert_true(isfinite(nll[0]) && isnan(nll[1]) && isfinite(nll[2]));
        pnb_ctx_free(ctx);
    }
}

/* Samples so near each other that products of floats leave nothing of their distance, in every
 * table: it is taken from the differences. */
static void near_in_every_table(void **state)
{
    const double want = -log(1 / (1 + exp(-2 * (1 - 20 * sqrt(0.0625 * 0.0625 + 1e-6)))));
    (void)state;
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels table;
        pnb_ctx *ctx = NULL;
        if (!table_at(t, &table, 1, &ctx))
            continue;
        float x = 1000, y = 1000.0625F, square_x = x * x, square_y = y * y, product = x * y, nll;
        const float sign = 1, scale = 20, shift = 1;
        pnb__match_args a = {.n1 = 1, .n2 = 1, .n_samples = 1, .dim = 1, .factor = 2};
        a.x = &x, a.y = &y, a.square_x = &square_x, a.square_y = &square_y, a.signs = &sign;
        a.scale = &scale, a.shift = &shift, a.products = &product, a.nll = &nll;
        table.match_strip(ctx, &a);
        wait_for(&table, ctx);
        assert_true(is_close((double)nll, want, 0, 1e-5));
        pnb_ctx_free(ctx);
    }
}

/* ---- sample_pairs ---- */

typedef struct pairs_case {
    size_t n1, n2, j, pad;
    bool is_match;
    int products, square1, square2, off1, off2, value, spread;
} pairs_case;

static void pairs_body(run *r, fixture *f)
{
    const pairs_case *c = r->user;
    const pnb__sample_pairs_args a = {.n1 = c->n1,
                                      .n2 = c->n2,
                                      .n_samples = c->j,
                                      .ld_product = c->j * (c->n2 + c->pad),
                                      .ld_sample = c->n2 + c->pad,
                                      .ld = c->n2,
                                      .is_match = c->is_match,
                                      .a = 10,
                                      .b = 12,
                                      .relative = 1e-5,
                                      .products = P(r, f, c->products),
                                      .square1 = P(r, f, c->square1),
                                      .square2 = P(r, f, c->square2),
                                      .off1 = P(r, f, c->off1),
                                      .off2 = P(r, f, c->off2),
                                      .value = P(r, f, c->value),
                                      .spread = P(r, f, c->spread)};
    r->k.host.sample_pairs(r->ctx, &a);
}

static void check_pairs(size_t n1, size_t n2, size_t j, size_t pad, bool is_match)
{
    fixture f;
    pairs_case c = {.n1 = n1, .n2 = n2, .j = j, .pad = pad, .is_match = is_match};
    fixture_init(&f, n1 * 1000 + n2 * 10 + j, 1e-5, 1e-3);
    c.products = input(&f, n1 * j * j * (n2 + pad), -0.4, 0.4);
    c.square1 = input(&f, n1 * j, 0.5, 1.5);
    c.square2 = input(&f, j * (n2 + pad), 0.5, 1.5);
    c.off1 = input(&f, n1 * j, 0, 1e-3);
    c.off2 = input(&f, j * (n2 + pad), 0, 1e-3);
    c.value = output(&f, n1 * n2, false);
    c.spread = output(&f, n1 * n2, false);
    compare_all(&f, pairs_body, &c);
}

static void pairs_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 8, 15, 16, 17, 33};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        for (size_t j = 1; j < 4; j++)
            check_pairs(1 + i % 3, sizes[i], j, i % 2, (i + j) % 2);
}

/* True squared distance t; a product that is off by up to err/2: the truth lies within the bound.
 * From coincident samples, where a root is steepest, to far ones. */
static void bounds_hold(void **state)
{
    (void)state;
    static const double truth[] = {0, 1e-9, 1e-7, 1e-6, 1e-5, 1e-3, 0.1, 1, 2};
    static const double as[] = {0.5, 5, 30, -4}, bs[] = {0, 5, 30};
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (size_t i = 0; i < PNB_COUNT(truth) * PNB_COUNT(as) * PNB_COUNT(bs) * 10; i++) {
            double d2 = truth[i % 9], a = as[i / 9 % 4], b = bs[i / 36 % 3], square = 1;
            double off = (((double)(i / 108 % 5)) - 2) / 2 * 1e-5; /* of (1 + 1)/2 */
            bool is_match = i / 540 % 2 != 0;
            float s1 = (float)square, s2 = s1, product = (float)(square - d2 / 2 + off);
            float value, spread;
            const float moved = i % 2 ? 1e-4f : 0.0f; /* of each sample */
            const pnb__sample_pairs_args args = {.n1 = 1,
                                                 .n2 = 1,
                                                 .n_samples = 1,
                                                 .ld_product = 1,
                                                 .ld_sample = 1,
                                                 .ld = 1,
                                                 .is_match = is_match,
                                                 .a = a,
                                                 .b = b,
                                                 .relative = 1.3e-5,
                                                 .products = &product,
                                                 .square1 = &s1,
                                                 .square2 = &s2,
                                                 .off1 = &moved,
                                                 .off2 = &moved,
                                                 .value = &value,
                                                 .spread = &spread};
            k.host.sample_pairs(ctx, &args);
            double d = sqrt(d2) + (double)(2 * moved), want = d; /* the samples lie so far apart */
            if (is_match)
                want = 1 / (1 + exp(a * sqrt(d * d + 1e-6) - b));
            if (!(fabs((double)value - want) <= (double)spread) || !(spread < 10))
                fail_msg("%s: d2 %g, a %g, b %g: %g, true %g, bound %g", k.name, d2, a, b,
                         (double)value, want, (double)spread);
        }
        pnb_ctx_free(ctx);
    }
}

/* ---- products of bfloat16 ---- */

static float widened(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Sums over every row and panel, within the bound that kernels.h states; nothing beside c. */
static void products_of_halves(void **state)
{
    (void)state;
    pnb_ctx *ctx;
    pnb__kernels k;
    for (int t = 0; t < N_TABLES; t++) {
        if (!table_at(t, &k, 1, &ctx))
            continue;
        /* AVX512_BF16, AMX, emulated; a device has it from its host's table, whatever that is */
        if (t < CUDA_TABLE)
            assert_int_equal(k.products_bf16 != NULL, t >= 5);
        for (size_t c = 0; k.products_bf16 != NULL && c < 24; c++) {
            size_t m = (const size_t[]){1, 3, 4, 13, 14, 15, 33, 0}[c % 8], n_panels = 1 + c / 8;
            size_t depth = 2 * (1 + c * 7), n = 32 * n_panels, ldc = n + c % 3;
            size_t lda = depth + 2 * (c % 4);
            uint16_t *a = calloc(m * lda + 1, sizeof *a), *b = calloc(n * depth, sizeof *b);
            float *out = calloc(m * ldc + 1, sizeof *out);
            pnb__rng rng;
            assert_true(a != NULL && b != NULL && out != NULL);
            pnb__rng_init(&rng, c, 1);
            for (size_t i = 0; i < m * lda; i++) /* signs and exponents around 1 */
                a[i] = (uint16_t)((pnb__rng_u32(&rng) & 0x81ff) | 0x3e00);
            for (size_t i = 0; i < n * depth; i++)
                b[i] = (uint16_t)((pnb__rng_u32(&rng) & 0x81ff) | 0x3e00);
            out[m * ldc] = 7;
            const pnb__bf16_args args = {.m = m,
                                         .n_panels = n_panels,
                                         .k = depth,
                                         .lda = lda,
                                         .ldc = ldc,
                                         .a = a,
                                         .b = b,
                                         .c = out};
            k.products_bf16(&args);
            assert_true(out[m * ldc] == 7);
            for (size_t i = 0; i < m * n; i++) {
                double sum = 0, xx = 0, yy = 0;
                for (size_t d = 0; d < depth; d++) {
                    double x = widened(a[i / n * lda + d]);
                    size_t j = i % n;
                    double y = widened(b[((j / 32 * depth / 2 + d / 2) * 32 + j % 32) * 2 + d % 2]);
                    sum += x * y, xx += x * x, yy += y * y;
                }
                double bound = 2 * (double)depth * 0x1p-24 * sqrt(xx * yy);
                assert_true(fabs((double)out[i / n * ldc + i % n] - sum) <= bound);
            }
            free(a);
            free(b);
            free(out);
        }
        pnb_ctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strips),
        cmocka_unit_test(far_and_near),
        cmocka_unit_test(none_is_not_lost),
        cmocka_unit_test(near_in_every_table),
        cmocka_unit_test(pairs_sizes),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(products_of_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
