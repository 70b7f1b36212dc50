/* What the tests of products with a packed weight share: the product as arrays, one multiplication
 * by a table, every table against values counted out by the test, rows that do not matter. */
#ifndef PNB_TEST_KERNELS_PACKED_PRODUCT_H
#define PNB_TEST_KERNELS_PACKED_PRODUCT_H

#include "tests/kernels/harness.h"

/* act(a W^T + bias) * scale + residual; all but a and the weight only with `epilogue`. */
typedef struct product {
    size_t m, n, k, first; /* first column taken of the packed weight of n columns */
    bool trans_b, epilogue;
    pnb__store store;    /* of weight: (n,k), or (k,n) unless trans_b */
    int levels, parts;   /* of STORE_I8, of the others */
    const void *weight;  /* what a table packs; the test's own */
    float *a, *b, *bias; /* b: the weight in floats, where it begins as that */
    float *scale;        /* LayerScale; of STORE_I8 the scales of the rows of W instead */
    float *residual;
    double abs_tol, rel_tol;
} product;

static inline float *product_values(size_t n, uint64_t seed, float low, float high)
{
    float *x = malloc((n + 1) * sizeof *x);
    pnb__rng rng;
    assert_non_null(x);
    pnb__rng_init(&rng, seed, n);
    for (size_t i = 0; i < n; i++)
        x[i] = low + (high - low) * (float)pnb__rng_uniform(&rng);
    return x;
}

static inline void free_product(product *p)
{
    float *const all[] = {p->a, p->b, p->bias, p->scale, p->residual};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        free(all[i]);
}

/* The epilogue on an exact sum. */
static inline double finished(const product *p, double v, size_t i, size_t j)
{
    if (!p->epilogue)
        return v;
    v += (double)p->bias[j];
    v = 0.5 * v * (1 + erf(v / sqrt(2)));
    v *= p->store == PNB__STORE_I8 ? 1 : (double)p->scale[j];
    return v + (double)p->residual[i * (p->n - p->first) + j];
}

/* c (m, n - first) by the table; the caller frees. */
static inline float *multiply(const pnb__kernels *k, const pnb_ctx *ctx, const product *p)
{
    bool is_i8 = p->store == PNB__STORE_I8;
    size_t n = p->n - p->first;
    size_t n_work = is_i8 ? k->gemm_i8_work(p->m, p->k) : k->gemm_bf16_work(p->m, p->k, p->parts);
    pnb__packed packed = {.k = p->k,
                          .n = p->n,
                          .bytes = is_i8 ? k->gemm_i8_pack_bytes(p->k, p->n)
                                         : k->gemm_bf16_pack_bytes(p->k, p->n, p->parts),
                          .store = p->store,
                          .levels = p->levels,
                          .bf16_parts = p->parts};
    packed.data = work_alloc(packed.bytes);
    void *work = work_alloc(n_work);
    float *c = malloc((p->m * n + 1) * sizeof *c);
    assert_non_null(c);
    c[p->m * n] = 7;
    pnb__gemm_args g = {.trans_b = p->trans_b, .m = p->m, .n = p->n, .k = p->k, .lda = p->k};
    g.ldb = p->trans_b ? p->k : p->n, g.b = p->weight;
    g.n_batch = 1, g.alpha = 1, g.act = p->epilogue ? PNB__GELU : PNB__IDENTITY;
    if (is_i8)
        k->gemm_i8_pack(ctx, p->weight, p->scale, &packed);
    else
        k->gemm_bf16_pack(ctx, &g, &packed);
    g.b = NULL, g.n = n, g.ldc = n;
    g.a = p->a, g.c = c, g.packed = &packed, g.packed_first = p->first, g.work = work;
    if (p->epilogue) {
        g.bias = p->bias, g.residual = p->residual, g.ld_residual = n;
        g.col_scale = is_i8 ? NULL : p->scale;
    }
    (is_i8 ? k->gemm_i8 : k->gemm_bf16)(ctx, &g);
    assert_true(c[p->m * n] == 7);
    work_free(packed.data, packed.bytes);
    work_free(work, n_work);
    return c;
}

/* Every table that takes so many parts within the tolerance of `want` (m, n - first), the same bits
 * for every number of threads. */
static inline void check_tables(const product *p, const double *want)
{
    size_t n = p->n - p->first;
    for (int t = 0; t < N_TABLES; t++) {
        float *one = NULL;
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            pnb__kernels k;
            pnb_ctx *ctx;
            if (!table_at(t, &k, n_threads, &ctx))
                continue;
            float *c = p->parts <= k.bf16_parts ? multiply(&k, ctx, p) : NULL;
            for (size_t i = 0; c != NULL && i < p->m * n; i++)
                if (!is_close((double)c[i], want[i], p->abs_tol, p->rel_tol))
                    fail_msg("%s, %d threads, (%zu,%zu,%zu) store %d, %d parts [%zu]: got %.9g, "
                             "want %.9g",
                             k.name, n_threads, p->m, p->n, p->k, p->store, p->parts, i,
                             (double)c[i], want[i]);
            if (one != NULL && c != NULL)
                assert_memory_equal(one, c, p->m * n * sizeof *c);
            free(one);
            one = c;
            pnb_ctx_free(ctx);
        }
        free(one);
    }
}

/* A row's bits are the same alone. */
static inline void check_rows_alone(const product *p)
{
    for (int t = 0; t < N_TABLES; t++) {
        pnb__kernels k;
        pnb_ctx *ctx;
        if (!table_at(t, &k, 3, &ctx))
            continue;
        bool is_blas =
            p->store != PNB__STORE_I8 && k.gemm_group == 0 && (t == 1 || t == CUDA_TABLE);
        if (is_blas || p->parts > k.bf16_parts) { /* BLAS chooses by the number of rows */
            pnb_ctx_free(ctx);
            continue;
        }
        float *whole = multiply(&k, ctx, p);
        product part = *p;
        for (part.m = 1; part.m < p->m; part.m += 11) {
            float *c = multiply(&k, ctx, &part);
            assert_memory_equal(whole, c, part.m * p->n * sizeof *c);
            free(c);
        }
        free(whole);
        pnb_ctx_free(ctx);
    }
}

#endif
