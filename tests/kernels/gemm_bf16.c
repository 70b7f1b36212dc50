/* The product in bfloat16: every table against sums in double of factors rounded here, around the
 * tile borders, with the epilogue, from weights of every type; the bits of the instruction and of
 * the tile unit; results that depend neither on threads nor on other rows. */
#include "tests/kernels/packed_product.h"

#include "kernels/bf16.h"
#include "kernels/gemm_rows.h"

static product make_product(size_t m, size_t n, size_t k)
{
    product p = {.m = m, .n = n, .k = k, .trans_b = true, .parts = 1, .rel_tol = 2e-6};
    p.a = product_values(m * k, 1, -1, 1), p.b = product_values(n * k, 2, -1, 1);
    p.bias = product_values(n, 3, -1, 1), p.scale = product_values(n, 4, -1, 1);
    p.residual = product_values(m * n, 5, -1, 1);
    p.weight = p.b;
    p.abs_tol = 1e-6 * sqrt((double)k) + 2e-6;
    return p;
}

/* The weight as `store` keeps it; values of f16 come from the float's upper bits. */
static uint16_t *stored(const product *p)
{
    size_t n = p->n * p->k;
    uint16_t *half = malloc((n + 1) * sizeof *half);
    assert_non_null(half);
    for (size_t i = 0; i < n; i++) {
        int exponent = 0;
        float size = frexpf(fabsf(p->b[i]), &exponent);
        int sign = p->b[i] < 0 ? 0x8000 : 0, fraction = (int)((size * 2 - 1) * 1024);
        half[i] = (uint16_t)(p->store == PNB__STORE_BF16 ? pnb__bf16_of(p->b[i])
                             : exponent < -13            ? sign
                                                         : sign | (exponent + 14) << 10 | fraction);
    }
    return half;
}

/* A factor as the product takes it: rounded, or, in parts, as it is. */
static double taken(const product *p, float x)
{
    return (double)(p->parts > 1 ? x : pnb__bf16_widen(pnb__bf16_of(x)));
}

/* What W holds at (j, p) in that store. */
static double weight_at(const product *p, const uint16_t *half, size_t j, size_t q)
{
    size_t at = p->trans_b ? j * p->k + q : q * p->n + j;
    return taken(p, p->store == PNB__STORE_REAL   ? p->b[at]
                    : p->store == PNB__STORE_BF16 ? pnb__bf16_widen(half[at])
                                                  : pnb__f16_widen(half[at]));
}

/* Every table within the rounding of sums in floats, the same bits for every number of threads. */
static void check(const product *of)
{
    product p = *of;
    size_t n = p.n - p.first;
    uint16_t *half = stored(&p);
    double *want = calloc(p.m * n + 1, sizeof *want);
    assert_non_null(want);
    p.weight = p.store == PNB__STORE_REAL ? (void *)p.b : half;
    for (size_t i = 0; i < p.m * n; i++) {
        for (size_t q = 0; q < p.k; q++)
            want[i] += taken(&p, p.a[i / n * p.k + q]) * weight_at(&p, half, p.first + i % n, q);
        want[i] = finished(&p, want[i], i / n, i % n);
    }
    check_tables(&p, want);
    free(want);
    free(half);
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 1},    {2, 33, 17},  {15, 96, 256}, {29, 65, 257},
                                      {61, 70, 3},  {13, 47, 64}, {33, 31, 130}, {28, 64, 34},
                                      {1, 37, 264}, {2, 5, 8},    {3, 70, 512},  {4, 64, 56},
                                      {3, 33, 769}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        product p = make_product(sizes[i][0], sizes[i][1], sizes[i][2]);
        for (int c = 0; c < 4; c++) {
            p.epilogue = c & 1;
            p.trans_b = c & 2;
            p.store = (pnb__store)((size_t)c + i) % PNB__STORE_I8;
            check(&p);
        }
        free_product(&p);
    }
}

static void test_slices(void **state)
{
    (void)state;
    product p = make_product(17, 96, 70);
    p.first = 32; /* the widest group of all tables */
    p.epilogue = true;
    check(&p);
    free_product(&p);
}

/* Large enough for the threads' grid. */
static void test_rows_do_not_matter(void **state)
{
    (void)state;
    product p = make_product(61, 160, 96);
    check(&p);
    for (p.parts = 1; p.parts <= 3; p.parts++)
        check_rows_alone(&p);
    free_product(&p);
}

/* Three parts are a float's product: its tolerance, and no more. What two leave out is below 2^-16
 * of |a| |b| each. Values of many sizes, so that small parts count; weights of every type. */
static void test_parts(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 1}, {2, 33, 17}, {15, 70, 256}, {9, 40, 300}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        product p = make_product(sizes[i][0], sizes[i][1], sizes[i][2]);
        for (size_t q = 0; q < p.m * p.k; q += 3)
            p.a[q] *= ldexpf(1, -(int)(q % 14));
        for (int c = 0; c < 8; c++) {
            p.parts = c & 4 ? 3 : 2;
            p.epilogue = c & 1;
            p.trans_b = c & 2;
            p.store = (pnb__store)((size_t)c + i) % PNB__STORE_I8;
            p.abs_tol = (p.parts == 3 ? 4e-7 : 4e-6) * sqrt((double)p.k) + 1e-6;
            check(&p);
        }
        free_product(&p);
    }
}

/* What the second and third part are for: a sum that cancels in the first one is still there. */
static void test_parts_keep_what_cancels(void **state)
{
    (void)state;
    enum { K = 64 };
    product p = make_product(1, 1, K);
    for (size_t q = 0; q < K; q++) {
        p.a[q] = q % 2 ? 1 : -1;
        p.b[q] = 1 + (q % 2 ? 0x1p-10f : 0) + (q == 1 ? 0x1p-20f : 0);
    }
    const float want[] = {0, 0, K / 2 * 0x1p-10f, K / 2 * 0x1p-10f + 0x1p-20f};
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (p.parts = 1; p.parts <= k.bf16_parts; p.parts++) {
            float *c = multiply(&k, ctx, &p);
            assert_true(c[0] == want[p.parts]);
            free(c);
        }
        pnb_ctx_free(ctx);
    }
    free_product(&p);
}

/* The sums of kernels.def for tables, to the bit: those of the instruction are the reference's,
 * those of tiles are written out here; numbers below the normal range among the factors. */
static float tile_sum(const product *p, size_t i, size_t j)
{
    float sum = 0;
    for (size_t q = 0; q < p->k; q += 32) {
        float part[2] = {0, 0};
        for (size_t r = q; r < PNB_MIN(q + 32, p->k); r++)
            part[r % 2] = pnb__bf16_fma(pnb__bf16_of(p->a[i * p->k + r]),
                                        pnb__bf16_of(p->b[j * p->k + r]), part[r % 2]);
        sum = pnb__flushed(sum + pnb__flushed(part[0] + part[1]));
    }
    return sum;
}

static void test_bits_of_sums(void **state)
{
    (void)state;
    product p = make_product(35, 66, 171);
    for (size_t i = 0; i < p.m * p.k; i += 5)
        p.a[i] *= ldexpf(1, -(int)(i % 130));
    for (size_t i = 0; i < p.n * p.k; i += 3)
        p.b[i] *= ldexpf(1, -(int)(i % 140));
    pnb__kernels ref;
    pnb__kernels_ref_f32(&ref);
    float *want = multiply(&ref, NULL, &p), *tiles = malloc(p.m * p.n * sizeof *tiles);
    assert_non_null(tiles);
    for (size_t i = 0; i < p.m * p.n; i++)
        tiles[i] = tile_sum(&p, i / p.n, i % p.n);
    assert_memory_not_equal(want, tiles, p.m * p.n * sizeof *tiles);
    for (int t = 5; t < CUDA_TABLE; t++) { /* AVX512_BF16, AMX, emulated */
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        float *c = multiply(&k, ctx, &p);
        assert_memory_equal(c, t == 5 ? want : tiles, p.m * p.n * sizeof *c);
        free(c);
        pnb_ctx_free(ctx);
    }
    free(want);
    free(tiles);
    free_product(&p);
}

/* A row with NaN or infinity spoils itself and no other. */
static void test_special_rows(void **state)
{
    (void)state;
    product p = make_product(5, 33, 40);
    p.a[40 + 7] = NAN;
    p.a[3 * 40 + 39] = 3e38f; /* above what the middle of the last step rounds to: stays finite */
    p.a[4 * 40] = 3.4e38f;    /* rounds to infinity */
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 2, &ctx))
            continue;
        float *c = multiply(&k, ctx, &p);
        for (size_t i = 0; i < p.m * p.n; i++)
            assert_int_equal(isfinite(c[i]) != 0, i / p.n != 1 && i / p.n != 4);
        free(c);
        pnb_ctx_free(ctx);
    }
    free_product(&p);
}

/* ---- factors as they lie ---- */

/* op(a) (m,k), op(b) (k,n) from the product's own by `p->trans_b` and trans_a; c begins as the
 * residual where it is added to. */
static float *multiply_live(const pnb__kernels *k, const pnb_ctx *ctx, const product *p,
                            bool trans_a, int beta)
{
    pnb__gemm_args g = pnb__gemm_rows(p->m, p->n, p->k, trans_a, p->trans_b);
    size_t n_work = k->gemm_rounded_work(&g);
    void *work = work_alloc(n_work);
    float *c = malloc((p->m * p->n + 1) * sizeof *c);
    assert_non_null(c);
    memcpy(c, p->residual, p->m * p->n * sizeof *c);
    c[p->m * p->n] = 7;
    g.beta = beta, g.a = p->a, g.b = p->b, g.c = c, g.work = work;
    if (p->epilogue)
        g.bias = p->bias, g.act = PNB__GELU;
    k->gemm_rounded(ctx, &g);
    assert_true(c[p->m * p->n] == 7);
    work_free(work, n_work);
    return c;
}

static double expected_live(const product *p, bool trans_a, int beta, size_t i, size_t j)
{
    double v = 0;
    for (size_t q = 0; q < p->k; q++) {
        float x = p->a[trans_a ? q * p->m + i : i * p->k + q];
        float y = p->b[p->trans_b ? j * p->k + q : q * p->n + j];
        v += (double)pnb__bf16_widen(pnb__bf16_of(x)) * (double)pnb__bf16_widen(pnb__bf16_of(y));
    }
    if (!p->epilogue)
        return v + beta * (double)p->residual[i * p->n + j];
    v += (double)p->bias[j];
    return 0.5 * v * (1 + erf(v / sqrt(2)));
}

/* Every table within the rounding of sums, the same bits for one thread and three. */
static void check_live(const product *p, bool trans_a, int beta)
{
    for (int t = 0; t < N_TABLES; t++) {
        float *one = NULL;
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            pnb__kernels k;
            pnb_ctx *ctx;
            if (!table_at(t, &k, n_threads, &ctx))
                continue;
            float *c = multiply_live(&k, ctx, p, trans_a, beta);
            for (size_t i = 0; i < p->m * p->n; i++) {
                double want = expected_live(p, trans_a, beta, i / p->n, i % p->n);
                if (!is_close((double)c[i], want, 1e-6 * sqrt((double)p->k) + 2e-6, 2e-6))
                    fail_msg("%s, %d threads, (%zu,%zu,%zu) %d%d beta %d [%zu]: got %.9g, want "
                             "%.9g",
                             k.name, n_threads, p->m, p->n, p->k, trans_a, p->trans_b, beta, i,
                             (double)c[i], want);
            }
            if (one != NULL)
                assert_memory_equal(one, c, p->m * p->n * sizeof *c);
            free(one);
            one = c;
            pnb_ctx_free(ctx);
        }
        free(one);
    }
}

static void test_live_factors(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 1},    {2, 33, 17},  {15, 96, 64}, {29, 65, 33},
                                      {61, 70, 31}, {33, 31, 66}, {97, 128, 96}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        product p = make_product(sizes[i][0], sizes[i][1], sizes[i][2]);
        for (int c = 0; c < 4; c++) {
            p.trans_b = c & 1;
            for (int beta = 0; beta <= 1; beta++) {
                p.epilogue = beta == 0 && (size_t)c % 3 == i % 3;
                check_live(&p, c & 2, beta);
            }
        }
        free_product(&p);
    }
}

/* The sums are those of the packed product, to the bit. */
static void test_live_as_packed(void **state)
{
    (void)state;
    product p = make_product(35, 66, 171);
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 2, &ctx))
            continue;
        float *packed = multiply(&k, ctx, &p), *live = multiply_live(&k, ctx, &p, false, 0);
        if (t == 0 || t > 4) /* the others multiply live factors by gemm, in an order of its own */
            assert_memory_equal(packed, live, p.m * p.n * sizeof *live);
        free(packed);
        free(live);
        pnb_ctx_free(ctx);
    }
    free_product(&p);
}

enum { HALF_M = 5, HALF_N = 6, HALF_K = 9, HALF_PAD = 3 };

/* A factor of `rows` rows, HALF_PAD numbers between them, as floats and as halves. */
typedef struct factor {
    float floats[HALF_K * (HALF_K + HALF_PAD)];
    uint16_t halves[HALF_K * (HALF_K + HALF_PAD)];
} factor;

static void draw_factor(factor *f, uint64_t seed)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 0);
    for (size_t i = 0; i < PNB_COUNT(f->floats); i++) {
        f->floats[i] = (float)pnb__rng_normal(&rng);
        f->halves[i] = pnb__bf16_of(f->floats[i]);
    }
}

/* Bit 0: a transposed, 1: b transposed, 2: a in halves, 3: b in halves. */
static void multiply_given(const pnb__kernels *k, const pnb_ctx *ctx, const factor *a,
                           const factor *b, int bits, float c[HALF_M * HALF_N])
{
    pnb__gemm_args g = pnb__gemm_rows(HALF_M, HALF_N, HALF_K, bits & 1, bits & 2);
    g.lda += HALF_PAD, g.ldb += HALF_PAD;
    g.a_halves = bits & 4, g.b_halves = bits & 8;
    g.a = g.a_halves ? (const void *)a->halves : a->floats;
    g.b = g.b_halves ? (const void *)b->halves : b->floats;
    g.c = c;
    size_t n_work = k->gemm_rounded_work(&g);
    g.work = work_alloc(n_work);
    k->gemm_rounded(ctx, &g);
    wait_for(k, ctx);
    work_free(g.work, n_work);
}

/* The bits of the floats that they were rounded from, whatever lies between rows. */
static void test_given_halves(void **state)
{
    (void)state;
    factor *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    float *want = malloc(HALF_M * HALF_N * sizeof *want),
          *got = malloc(HALF_M * HALF_N * sizeof *got);
    assert_true(a != NULL && b != NULL && want != NULL && got != NULL);
    draw_factor(a, 1);
    draw_factor(b, 2);
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 1, &ctx))
            continue;
        for (int bits = 0; bits < 16 && k.halves_head_dim > 0; bits++) {
            multiply_given(&k, ctx, a, b, bits & 3, want);
            multiply_given(&k, ctx, a, b, bits, got);
            assert_memory_equal(got, want, HALF_M * HALF_N * sizeof *want);
        }
        pnb_ctx_free(ctx);
    }
    free(a);
    free(b);
    free(want);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_halves), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_slices),       cmocka_unit_test(test_rows_do_not_matter),
        cmocka_unit_test(test_parts),        cmocka_unit_test(test_parts_keep_what_cancels),
        cmocka_unit_test(test_bits_of_sums), cmocka_unit_test(test_special_rows),
        cmocka_unit_test(test_live_factors), cmocka_unit_test(test_live_as_packed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
