/* The gemm slot: every combination of transposes, sizes around the tile borders, the whole
 * epilogue, adding, in-place residuals, batches; the f64 reference against a sum written out here.
 */
#include "tests/kernels/harness.h"

typedef struct gemm_case {
    size_t m, n, k, n_batch;
    bool ta, tb, bias, scale, residual, in_place, pre;
    int beta;
    pnb__unary act;
    double alpha;
    int a, b, c, b_bias, b_scale, b_residual, b_pre;
    size_t pad; /* leading dimensions are larger than the rows by this */
} gemm_case;

static pnb__gemm_args gemm_args_of(const gemm_case *g)
{
    pnb__gemm_args a = {.trans_a = g->ta, .trans_b = g->tb, .m = g->m, .n = g->n, .k = g->k};
    a.lda = (g->ta ? g->m : g->k) + g->pad;
    a.ldb = (g->tb ? g->k : g->n) + g->pad;
    a.ldc = g->n + g->pad;
    a.n_batch = g->n_batch;
    a.batch_a = (g->ta ? g->k : g->m) * a.lda;
    a.batch_b = (g->tb ? g->n : g->k) * a.ldb;
    a.batch_c = g->m * a.ldc;
    a.alpha = g->alpha;
    a.beta = g->beta;
    a.act = g->act;
    a.ld_residual = a.ldc;
    return a;
}

static void gemm_body(run *r, fixture *x)
{
    const gemm_case *g = r->user;
    pnb__gemm_args a = gemm_args_of(g);
    a.a = P(r, x, g->a);
    a.b = P(r, x, g->b);
    a.c = P(r, x, g->c);
    a.bias = g->bias ? P(r, x, g->b_bias) : NULL;
    a.col_scale = g->scale ? P(r, x, g->b_scale) : NULL;
    a.residual = g->in_place ? a.c : g->residual ? P(r, x, g->b_residual) : NULL;
    a.pre = g->pre ? P(r, x, g->b_pre) : NULL;
    r->k.gemm(r->ctx, &a);
}

static void check_gemm(gemm_case g)
{
    fixture x;
    fixture_init(&x, 1 + g.m + 100 * g.n + 10000 * g.k, 1e-6 * sqrt((double)g.k + 1) + 2e-6, 2e-6);
    pnb__gemm_args a = gemm_args_of(&g);
    x.threads_change_bits = true; /* OpenBLAS's own edges, in the generic table */
    g.a = input(&x, a.batch_a * g.n_batch, -1, 1);
    g.b = input(&x, a.batch_b * g.n_batch, -1, 1);
    bool keeps = g.beta || g.in_place || g.pad > 0; /* what lies between rows stays */
    g.c = output(&x, a.batch_c * g.n_batch, keeps);
    g.b_bias = input(&x, g.n, -1, 1);
    g.b_scale = input(&x, g.n, -2, 2);
    g.b_residual = input(&x, g.m * a.ldc, -1, 1);
    g.b_pre = output(&x, g.pre ? a.batch_c * g.n_batch : 0, keeps);
    compare_all(&x, gemm_body, &g);
}

static const gemm_case plain = {.n_batch = 1, .act = PNB__IDENTITY, .alpha = 1};

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{0, 5, 3},   {5, 0, 3},     {3, 4, 0},     {1, 1, 1},
                                      {1, 33, 17}, {13, 31, 16},  {14, 32, 256}, {15, 33, 257},
                                      {29, 65, 5}, {70, 400, 3},  {6, 16, 513},  {100, 7, 300},
                                      {2, 9, 768}, {15, 33, 769}, {6, 16, 1537}, {5, 300, 700}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        for (int t = 0; t < 4; t++) {
            gemm_case g = plain;
            g.m = sizes[i][0], g.n = sizes[i][1], g.k = sizes[i][2];
            g.ta = t & 1, g.tb = t & 2;
            g.pad = i % 3;
            check_gemm(g);
            g.beta = 1;
            g.alpha = -0.5;
            check_gemm(g);
        }
    }
}

static void test_epilogue(void **state)
{
    (void)state;
    static const pnb__unary acts[] = {PNB__IDENTITY,   PNB__GELU, PNB__GELU_TANH,
                                      PNB__QUICK_GELU, PNB__RELU, PNB__TANH};
    for (int bits = 0; bits < 32; bits++) {
        gemm_case g = plain;
        g.m = 31, g.n = 45, g.k = 780, g.tb = true;
        g.bias = bits & 1, g.scale = bits & 2, g.residual = bits & 4, g.pre = bits & 8;
        g.in_place = bits & 16;
        g.act = acts[bits % 6];
        g.pad = (size_t)(bits % 2);
        g.alpha = bits % 3 ? 1 : 0.125;
        check_gemm(g);
    }
    gemm_case g = plain; /* nothing to multiply: the epilogue still runs */
    g.m = 9, g.n = 40, g.bias = true, g.act = PNB__GELU, g.residual = true;
    check_gemm(g);
}

static void test_batches(void **state)
{
    (void)state;
    for (size_t n_batch = 0; n_batch <= 7; n_batch++) {
        gemm_case g = plain;
        g.m = 19, g.n = 35, g.k = 21, g.n_batch = n_batch;
        g.ta = n_batch & 1;
        g.bias = g.pre = true;
        g.act = PNB__TANH;
        check_gemm(g);
    }
}

/* Large enough for several strips and stretches and for more than one thread. */
static void test_large(void **state)
{
    (void)state;
    for (int t = 0; t < 3; t++) {
        gemm_case g = plain;
        g.m = 61, g.n = 801, g.k = 800;
        g.ta = t == 2, g.tb = t == 0;
        g.bias = g.residual = true;
        g.act = PNB__GELU;
        check_gemm(g);
    }
}

/* More rows than a strip keeps in the second cache where rows of c are 4 KB apart. */
static void test_tall(void **state)
{
    (void)state;
    for (int bits = 0; bits < 3; bits++) {
        gemm_case g = plain;
        g.m = 300, g.n = 40, g.k = 800, g.pad = 1024 - g.n;
        g.bias = bits & 1;
        g.act = bits & 1 ? PNB__GELU : PNB__IDENTITY;
        g.beta = bits == 2; /* not with an epilogue */
        check_gemm(g);
    }
}

/* Two factors of numbers, and a product of them with an activation. */
enum { BITS_M = 45, BITS_N = 83, BITS_K = 800, BITS_FAR = 1024 };

static pnb__gemm_args bits_product(float *a, size_t lda, float *b, float *c)
{
    for (int i = 0; i < BITS_M * BITS_K; i++)
        a[(size_t)(i / BITS_K) * lda + (size_t)(i % BITS_K)] = (float)(i * 31 % 101) * 0.01f - 0.5f;
    for (int i = 0; i < BITS_N * BITS_K; i++)
        b[i] = (float)(i * 17 % 103) * 0.01f - 0.5f;
    return (pnb__gemm_args){.trans_b = true,
                            .m = BITS_M,
                            .n = BITS_N,
                            .k = BITS_K,
                            .lda = lda,
                            .ldb = BITS_K,
                            .ldc = BITS_N,
                            .n_batch = 1,
                            .alpha = 1,
                            .act = PNB__GELU,
                            .a = a,
                            .b = b,
                            .c = c};
}

/* Rows of a that are read where they lie and rows that must be packed first, because they are 2 KB
 * apart, give the same bits. */
static void test_distance_of_rows_does_not_matter(void **state)
{
    (void)state;
    static float near_rows[BITS_M * BITS_K], far_rows[BITS_M * BITS_FAR], b[BITS_N * BITS_K];
    static float want[BITS_M * BITS_N], got[BITS_M * BITS_N];
    for (int isa = PNB_ISA_AVX2; isa <= PNB_ISA_AMX; isa++) {
        pnb_ctx *ctx = test_ctx((pnb_isa)isa, 2);
        if (!ctx)
            continue;
        pnb__kernels k;
        pnb__kernels_fill(&k, ctx, PNB__F32);
        pnb__gemm_args g = bits_product(near_rows, BITS_K, b, want);
        k.gemm(ctx, &g);
        g = bits_product(far_rows, BITS_FAR, b, got);
        k.gemm(ctx, &g);
        assert_memory_equal(want, got, sizeof want);
        pnb_ctx_free(ctx);
    }
}

/* An element's bits depend neither on how many rows there are nor on the number of threads. */
static void test_rows_do_not_matter(void **state)
{
    (void)state;
    static float a[BITS_M * BITS_K], b[BITS_N * BITS_K];
    static float whole[BITS_M * BITS_N], part[BITS_M * BITS_N];
    for (int isa = PNB_ISA_AVX2; isa <= PNB_ISA_AMX; isa++) {
        for (int rows = 1; rows <= BITS_M; rows += 4) {
            pnb_ctx *ctx = test_ctx((pnb_isa)isa, 1 + rows % 3);
            if (!ctx)
                continue;
            pnb__kernels k;
            pnb__kernels_fill(&k, ctx, PNB__F32);
            pnb__gemm_args g = bits_product(a, BITS_K, b, whole);
            k.gemm(ctx, &g);
            g.m = (size_t)rows, g.c = part;
            k.gemm(ctx, &g);
            assert_memory_equal(whole, part, (size_t)rows * BITS_N * sizeof(float));
            pnb_ctx_free(ctx);
        }
    }
}

/* c by b and by b packed from `stored`, the same values in the type `store`, from column `first` of
 * it on: the same bits; nothing outside is written. */
static void check_packed(const pnb__kernels *k, const pnb_ctx *ctx,
                         const pnb__gemm_args *plain_args, size_t first, pnb__store store,
                         const void *stored)
{
    pnb__gemm_args g = *plain_args;
    pnb__packed packed = {
        .k = g.k, .n = g.n, .bytes = k->gemm_pack_bytes(g.k, g.n, store), .store = store};
    packed.data = work_alloc(packed.bytes);
    g.b = stored;
    k->gemm_pack(ctx, &g, &packed);
    g.b = plain_args->b;
    size_t n = g.n - first, bytes = (g.m * n + 1) * sizeof(float);
    float *want = malloc(bytes), *got = malloc(bytes);
    assert_true(want != NULL && got != NULL);
    g.b = (const float *)g.b + (g.trans_b ? first * g.ldb : first);
    g.n = g.ldc = n;
    g.c = want;
    k->gemm(ctx, &g);
    g.b = NULL;
    g.packed = &packed, g.packed_first = first;
    g.c = got;
    k->gemm(ctx, &g);
    assert_memory_equal(want, got, g.m * n * sizeof(float));
    free(want);
    free(got);
    work_free(packed.data, packed.bytes);
}

/* A value that a half holds exactly; 0 or in the normal range. */
static uint16_t to_half(float x, pnb__store store)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (store == PNB__STORE_BF16)
        return (uint16_t)(bits >> 16);
    int exponent;
    float size = frexpf(fabsf(x), &exponent); /* |x| = size 2^exponent, size in [0.5, 1) */
    uint32_t sign = bits >> 31 << 15;
    return (uint16_t)(x == 0 ? sign
                             : sign | (uint32_t)(exponent + 14) << 10 |
                                   (uint32_t)((size * 2 - 1) * 1024));
}

static void check_stores(const pnb__kernels *k, const pnb_ctx *ctx, const pnb__gemm_args *g,
                         size_t n_values)
{
    uint16_t *half = malloc(n_values * sizeof *half);
    assert_non_null(half);
    for (pnb__store store = PNB__STORE_REAL; store <= PNB__STORE_F16; store++) {
        for (size_t i = 0; i < n_values; i++)
            half[i] = to_half(((const float *)g->b)[i], store);
        const void *stored = store == PNB__STORE_REAL ? g->b : half;
        check_packed(k, ctx, g, 0, store, stored);
        if (g->n > k->gemm_group)
            check_packed(k, ctx, g, k->gemm_group, store, stored);
    }
    free(half);
}

static void check_packed_sizes(const pnb__kernels *k, const pnb_ctx *ctx)
{
    static const size_t sizes[][3] = {{1, 1, 1},      {2, 33, 17},    {15, 96, 256},
                                      {29, 65, 257},  {61, 801, 300}, {198, 32, 768},
                                      {14, 400, 800}, {3, 65, 1537}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++) {
        size_t m = sizes[i][0], n = sizes[i][1], depth = sizes[i][2];
        size_t n_values = (n + 3) * (depth + 3);
        float *a = malloc(m * depth * sizeof *a), *b = malloc(n_values * sizeof *b);
        assert_true(a != NULL && b != NULL);
        for (size_t j = 0; j < m * depth; j++)
            a[j] = (float)(j * 31 % 101) * 0.01f - 0.5f;
        for (size_t j = 0; j < n_values; j++) /* halves hold them */
            b[j] = ((float)(j * 17 % 103) - 51) / 64;
        for (int t = 0; t < 2; t++) {
            pnb__gemm_args g = {.trans_b = t, .m = m, .n = n, .k = depth, .lda = depth};
            g.ldb = (t ? depth : n) + 3;
            g.n_batch = 1, g.alpha = 1, g.act = PNB__GELU, g.a = a, g.b = b;
            check_stores(k, ctx, &g, n_values);
        }
        free(a);
        free(b);
    }
}

static void test_packed(void **state)
{
    (void)state;
    int n_checked = 0;
    for (int isa = PNB_ISA_GENERIC; isa <= PNB_ISA_EMULATED; isa++) {
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            pnb_ctx *ctx = test_ctx((pnb_isa)isa, n_threads);
            if (!ctx)
                continue;
            pnb__kernels k;
            pnb__kernels_fill(&k, ctx, PNB__F32);
            assert_int_equal(k.gemm_group > 0, k.gemm_pack != NULL);
            if (k.gemm_pack != NULL)
                check_packed_sizes(&k, ctx);
            n_checked += k.gemm_pack != NULL;
            pnb_ctx_free(ctx);
        }
    }
    if (n_checked == 0)
        skip(); /* no instruction set of this machine packs */
}

static void test_f64(void **state)
{
    (void)state;
    enum { M = 37, N = 29, K = 41 };
    double *a = random_values(M * K, 1, -1, 1), *b = random_values(K * N, 2, -1, 1);
    double bias[N], c[M * N];
    for (int j = 0; j < N; j++)
        bias[j] = j;
    for (int table = 0; table < 2; table++) {
        pnb_ctx *ctx = test_ctx(PNB_ISA_GENERIC, 2);
        pnb__kernels k;
        pnb__kernels_ref_f64(&k);
        if (table)
            pnb__kernels_cpu_f64(&k, PNB_ISA_GENERIC);
        pnb__gemm_args g = {.m = M, .n = N, .k = K, .lda = K, .ldb = N, .ldc = N, .n_batch = 1};
        g.alpha = 2, g.act = PNB__TANH, g.a = a, g.b = b, g.c = c, g.bias = bias;
        k.gemm(ctx, &g);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                long double sum = 0;
                for (int p = 0; p < K; p++)
                    sum += (long double)a[i * K + p] * b[p * N + j];
                assert_true(is_close(c[i * N + j], (double)tanhl(2 * sum + j), 1e-13, 1e-13));
            }
        pnb_ctx_free(ctx);
    }
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_epilogue),
                                       cmocka_unit_test(test_batches),
                                       cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_tall),
                                       cmocka_unit_test(test_distance_of_rows_does_not_matter),
                                       cmocka_unit_test(test_rows_do_not_matter),
                                       cmocka_unit_test(test_packed),
                                       cmocka_unit_test(test_f64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
