/* The product with a weight of signed bytes: every table against integers counted out here, around
 * the tile borders, the epilogue, slices, extremes that must not saturate, rows that are zero,
 * constant or not finite; results that depend neither on threads nor on other rows. */
#include "tests/kernels/harness.h"

typedef struct product {
    size_t m, n, k, first; /* first column taken of the packed weight of n columns */
    float *a, *bias, *residual;
    signed char *w;
    float *scales;
    bool epilogue;
    int levels;
} product;

static product make_product(size_t m, size_t n, size_t k, float low, float high)
{
    product p = {.m = m, .n = n, .k = k, .levels = PNB__I8_LEVELS_7BIT};
    p.a = malloc((m * k + 1) * sizeof *p.a);
    p.w = malloc(n * k + 1);
    p.scales = malloc(n * sizeof *p.scales);
    p.bias = malloc(n * sizeof *p.bias);
    p.residual = malloc(m * n * sizeof *p.residual);
    assert_true(p.a && p.w && p.scales && p.bias && p.residual);
    pnb__rng rng;
    pnb__rng_init(&rng, m * 7 + n * 3 + k, 1);
    for (size_t i = 0; i < m * k; i++)
        p.a[i] = low + (high - low) * (float)pnb__rng_uniform(&rng);
    for (size_t i = 0; i < n * k; i++)
        p.w[i] = (signed char)(254 * pnb__rng_uniform(&rng) - 127);
    for (size_t j = 0; j < n; j++) {
        p.scales[j] = (float)(0.001 + 0.01 * pnb__rng_uniform(&rng));
        p.bias[j] = (float)pnb__rng_uniform(&rng);
    }
    for (size_t i = 0; i < m * n; i++)
        p.residual[i] = (float)pnb__rng_uniform(&rng);
    return p;
}

static void free_product(product *p)
{
    free(p->a);
    free(p->w);
    free(p->scales);
    free(p->bias);
    free(p->residual);
}

/* Element (i, j) counted out: levels of the row, an integer sum, two scales. */
static double expected(const product *p, size_t i, size_t j)
{
    float least = 0, greatest = 0;
    for (size_t q = 0; q < p->k; q++) {
        least = fminf(least, p->a[i * p->k + q]);
        greatest = fmaxf(greatest, p->a[i * p->k + q]);
    }
    float range = greatest - least > 1e-30f ? greatest - least : 0;
    float scale = range / (float)p->levels, inverse = scale > 0 ? 1 / scale : 0;
    long zero = lrintf(-least * inverse), sum = 0;
    for (size_t q = 0; q < p->k; q++) {
        long level = lrintf(p->a[i * p->k + q] * inverse) + zero;
        level = level < 0 ? 0 : level > p->levels ? p->levels : level;
        sum += (level - zero) * p->w[(p->first + j) * p->k + q];
    }
    double v = (double)scale * (double)p->scales[p->first + j] * (double)sum;
    if (!p->epilogue)
        return v;
    v += (double)p->bias[j];
    return 0.5 * v * (1 + erf(v / sqrt(2))) + (double)p->residual[i * (p->n - p->first) + j];
}

/* c (m, n - first) by the table; the caller frees. */
static float *multiply(const pnb__kernels *k, const pnb_ctx *ctx, const product *p)
{
    size_t n = p->n - p->first, n_work = k->gemm_i8_work(p->m, p->k);
    pnb__packed packed = {.k = p->k,
                          .n = p->n,
                          .bytes = k->gemm_i8_pack_bytes(p->k, p->n),
                          .store = PNB__STORE_I8,
                          .levels = p->levels};
    packed.data = work_alloc(packed.bytes);
    void *work = work_alloc(n_work);
    float *c = malloc((p->m * n + 1) * sizeof *c);
    assert_non_null(c);
    k->gemm_i8_pack(ctx, p->w, p->scales, &packed);
    pnb__gemm_args g = {.trans_b = true, .m = p->m, .n = n, .k = p->k, .lda = p->k, .ldb = p->k};
    g.ldc = n, g.n_batch = 1, g.alpha = 1, g.act = p->epilogue ? PNB__GELU : PNB__IDENTITY;
    g.a = p->a, g.c = c, g.packed = &packed, g.packed_first = p->first, g.work = work;
    if (p->epilogue)
        g.bias = p->bias, g.residual = p->residual, g.ld_residual = n;
    k->gemm_i8(ctx, &g);
    work_free(packed.data, packed.bytes);
    work_free(work, n_work);
    return c;
}

static void check_levels(const product *p)
{
    size_t n = p->n - p->first;
    for (int t = 0; t < N_TABLES; t++) {
        float *one = NULL;
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            pnb__kernels k;
            pnb_ctx *ctx;
            if (!table_at(t, &k, n_threads, &ctx))
                continue;
            float *c = multiply(&k, ctx, p);
            for (size_t i = 0; i < p->m * n; i++) {
                double want = expected(p, i / n, i % n);
                if (!is_close((double)c[i], want, 1e-5, 2e-6))
                    fail_msg("%s, %d threads, (%zu,%zu,%zu) [%zu]: got %.9g, want %.9g", k.name,
                             n_threads, p->m, p->n, p->k, i, (double)c[i], want);
            }
            if (one != NULL)
                assert_memory_equal(one, c, p->m * n * sizeof *c);
            free(one);
            one = c;
            pnb_ctx_free(ctx);
        }
        free(one);
    }
}

static void check(product *p)
{
    p->levels = PNB__I8_LEVELS_7BIT;
    check_levels(p);
    p->levels = PNB__I8_LEVELS_8BIT;
    check_levels(p);
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 1},    {2, 33, 17},   {15, 96, 256}, {29, 65, 257},
                                      {61, 130, 3}, {13, 47, 768}, {5, 31, 3074}, {28, 64, 64}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        product p = make_product(sizes[i][0], sizes[i][1], sizes[i][2], -2, 3);
        check(&p);
        p.epilogue = true;
        check(&p);
        free_product(&p);
    }
}

static void test_slices(void **state)
{
    (void)state;
    product p = make_product(17, 96, 70, -1, 1);
    p.first = 32; /* the widest group of all tables */
    p.epilogue = true;
    check(&p);
    free_product(&p);
}

/* All levels at the top against all weights at one end: the largest sums there are. */
static void test_extremes_do_not_saturate(void **state)
{
    (void)state;
    product p = make_product(6, 40, 4096, 1, 1);
    for (size_t i = 0; i < p.n * p.k; i++)
        p.w[i] = i / p.k % 2 ? 127 : -127;
    check(&p);
    free_product(&p);
}

static void test_special_rows(void **state)
{
    (void)state;
    enum { M = 6, N = 33, K = 40 };
    product p = make_product(M, N, K, -1, 1);
    for (size_t q = 0; q < K; q++) {
        p.a[q] = 0;        /* zero row */
        p.a[K + q] = 2.5f; /* constant rows */
        p.a[2 * K + q] = -3;
        p.a[3 * K + q] = 1e-42f; /* below the normal range: the scale vanishes */
    }
    check(&p);
    p.a[4 * K + 7] = NAN;
    p.a[5 * K + 39] = -INFINITY;
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 2, &ctx))
            continue;
        float *c = multiply(&k, ctx, &p);
        for (size_t i = 0; i < M * N; i++)
            assert_int_equal(isnan(c[i]) != 0, i / N >= 4);
        free(c);
        pnb_ctx_free(ctx);
    }
    free_product(&p);
}

/* Large enough for the threads' grid; a row's bits are the same alone. */
static void test_rows_do_not_matter(void **state)
{
    (void)state;
    product p = make_product(45, 160, 300, -1, 2);
    check(&p);
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 3, &ctx))
            continue;
        float *whole = multiply(&k, ctx, &p);
        product part = p;
        for (part.m = 1; part.m < p.m; part.m += 11) {
            float *c = multiply(&k, ctx, &part);
            assert_memory_equal(whole, c, part.m * p.n * sizeof *c);
            free(c);
        }
        free(whole);
        pnb_ctx_free(ctx);
    }
    free_product(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_slices),
                                       cmocka_unit_test(test_extremes_do_not_saturate),
                                       cmocka_unit_test(test_special_rows),
                                       cmocka_unit_test(test_rows_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
