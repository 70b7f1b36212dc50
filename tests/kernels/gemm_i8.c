/* The product with a weight of signed bytes: every table against integers counted out here, around
 * the tile borders, the epilogue, slices, extremes that must not saturate, rows that are zero,
 * constant or not finite; results that depend neither on threads nor on other rows. */
#include "tests/kernels/packed_product.h"

/* Scales stand in p.scale, bytes in p.weight: the caller's, as free_weight frees them. */
static product make_product(size_t m, size_t n, size_t k, float low, float high)
{
    product p = {.m = m, .n = n, .k = k, .trans_b = true, .store = PNB__STORE_I8};
    signed char *w = malloc(n * k + 1);
    pnb__rng rng;
    assert_non_null(w);
    p.a = product_values(m * k, 1, low, high), p.scale = product_values(n, 2, 0.001f, 0.011f);
    p.bias = product_values(n, 3, 0, 1), p.residual = product_values(m * n, 4, 0, 1);
    p.abs_tol = 1e-5, p.rel_tol = 2e-6;
    pnb__rng_init(&rng, m * 7 + n * 3 + k, 1);
    for (size_t i = 0; i < n * k; i++)
        w[i] = (signed char)(254 * pnb__rng_uniform(&rng) - 127);
    p.weight = w;
    return p;
}

static signed char *weight_of(const product *p)
{
    return (signed char *)(uintptr_t)p->weight;
}

static void free_all(product *p)
{
    free(weight_of(p));
    free_product(p);
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
        sum += (level - zero) * weight_of(p)[(p->first + j) * p->k + q];
    }
    return finished(p, (double)scale * (double)p->scale[p->first + j] * (double)sum, i, j);
}

static void check_levels(const product *p)
{
    size_t n = p->n - p->first;
    double *want = calloc(p->m * n + 1, sizeof *want);
    assert_non_null(want);
    for (size_t i = 0; i < p->m * n; i++)
        want[i] = expected(p, i / n, i % n);
    check_tables(p, want);
    free(want);
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
        free_all(&p);
    }
}

static void test_slices(void **state)
{
    (void)state;
    product p = make_product(17, 96, 70, -1, 1);
    p.first = 32; /* the widest group of all tables */
    p.epilogue = true;
    check(&p);
    free_all(&p);
}

/* All levels at the top against all weights at one end: the largest sums there are. */
static void test_extremes_do_not_saturate(void **state)
{
    (void)state;
    product p = make_product(6, 40, 4096, 1, 1);
    for (size_t i = 0; i < p.n * p.k; i++)
        weight_of(&p)[i] = i / p.k % 2 ? 127 : -127;
    check(&p);
    free_all(&p);
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
    free_all(&p);
}

/* Large enough for the threads' grid. */
static void test_rows_do_not_matter(void **state)
{
    (void)state;
    product p = make_product(45, 160, 300, -1, 2);
    check(&p);
    check_rows_alone(&p);
    free_all(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_slices),
                                       cmocka_unit_test(test_extremes_do_not_saturate),
                                       cmocka_unit_test(test_special_rows),
                                       cmocka_unit_test(test_rows_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
