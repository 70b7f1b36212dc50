/* A gemm slot on OpenBLAS against plain sums. All numbers are halves, so that every sum is exact in
 * either type and results must agree to the bit. Includers name `real` and GEMM. */
#ifndef PNB_TESTS_KERNELS_CPU_BLAS_H
#define PNB_TESTS_KERNELS_CPU_BLAS_H

#include "kernels/cpu/cpu.h"

#include "tests/kernels/harness.h"

enum { PAD = 3 };

/* n halves from -1 to 1, with a guard zone on both sides. */
static real *halves(size_t n, uint64_t seed)
{
    real *x = malloc((n + 2 * GUARD) * sizeof *x);
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 3);
    assert_non_null(x);
    for (size_t i = 0; i < n + 2 * GUARD; i++)
        x[i] = (real)pnb__rng_below(&rng, 5) / 2 - 1;
    return x + GUARD;
}

static void free_halves(const real *x)
{
    free((real *)(uintptr_t)x - GUARD);
}

typedef enum finish { PLAIN, ADDS, ALL_PARTS, IN_PLACE, N_FINISHES } finish;

/* What one element should become. */
static real element_of(const pnb__gemm_args *g, size_t item, size_t i, size_t j, real before,
                       real *pre)
{
    const real *a = (const real *)g->a + item * g->batch_a, *b = (const real *)g->b;
    double sum = 0;
    b += item * g->batch_b;
    for (size_t p = 0; p < g->k; p++)
        sum += (double)(g->trans_a ? a[p * g->lda + i] : a[i * g->lda + p]) *
               (double)(g->trans_b ? b[j * g->ldb + p] : b[p * g->ldb + j]);
    sum = g->alpha * sum + (g->beta ? (double)before : 0);
    sum += g->bias ? (double)((const real *)g->bias)[j] : 0;
    *pre = (real)sum;
    if (g->act == PNB__RELU)
        sum = fmax(sum, 0);
    sum *= g->col_scale ? (double)((const real *)g->col_scale)[j] : 1;
    if (g->residual == g->c)
        sum += (double)before;
    else if (g->residual != NULL)
        sum += (double)((const real *)g->residual)[i * g->ld_residual + j];
    return (real)sum;
}

/* Everything in and around c, and in pre where it is given, is what it should be. */
static void run_and_check(const pnb_ctx *ctx, pnb__gemm_args *g, size_t n_c)
{
    real *c = g->c, *before = malloc((n_c + 2 * GUARD) * sizeof *before), unused;
    assert_non_null(before);
    memcpy(before, c - GUARD, (n_c + 2 * GUARD) * sizeof *before);
    real *want = malloc((n_c + 2 * GUARD) * sizeof *want),
         *want_pre = malloc((n_c + 1) * sizeof *want);
    assert_true(want != NULL && want_pre != NULL);
    memcpy(want, before, (n_c + 2 * GUARD) * sizeof *want);
    if (g->pre != NULL)
        memcpy(want_pre, g->pre, n_c * sizeof *want_pre);
    for (size_t item = 0; item < g->n_batch; item++)
        for (size_t i = 0; i < g->m; i++)
            for (size_t j = 0; j < g->n; j++) {
                size_t at = item * g->batch_c + i * g->ldc + j;
                want[GUARD + at] = element_of(g, item, i, j, before[GUARD + at],
                                              g->pre != NULL ? &want_pre[at] : &unused);
            }
    GEMM(ctx, g);
    for (size_t i = 0; i < n_c + 2 * GUARD; i++)
        if (c[(long)i - GUARD] != want[i])
            fail_msg("m %zu n %zu k %zu: element %ld is %g, not %g", g->m, g->n, g->k,
                     (long)i - GUARD, (double)c[(long)i - GUARD], (double)want[i]);
    for (size_t i = 0; g->pre != NULL && i < n_c; i++)
        assert_true(((real *)g->pre)[i] == want_pre[i]);
    free(before);
    free(want);
    free(want_pre);
}

static void check_size(size_t m, size_t n, size_t k, unsigned form, int n_threads)
{
    pnb_ctx ctx = {.n_threads = n_threads};
    pnb__gemm_args g = {.trans_a = form & 1, .trans_b = form & 2, .m = m, .n = n, .k = k};
    finish how = (finish)(form / 4);
    g.n_batch = how <= ADDS ? 2 : 1; /* no epilogue with more */
    g.lda = (g.trans_a ? m : k) + PAD;
    g.ldb = (g.trans_b ? k : n) + PAD;
    g.ldc = g.ld_residual = n + PAD;
    g.batch_a = (g.trans_a ? k : m) * g.lda;
    g.batch_b = (g.trans_b ? n : k) * g.ldb;
    g.batch_c = m * g.ldc;
    g.alpha = 0.5;
    g.beta = how == ADDS;
    g.act = how >= ALL_PARTS ? PNB__RELU : PNB__IDENTITY;
    size_t n_c = g.n_batch * g.batch_c;
    real *pre = halves(n_c, 8), *bias = halves(n, 4), *scale = halves(n, 5);
    real *residual = halves(n_c, 6);
    g.a = halves(g.n_batch * g.batch_a, 1);
    g.b = halves(g.n_batch * g.batch_b, 2);
    g.c = halves(n_c, 7);
    if (how >= ALL_PARTS) {
        g.bias = bias;
        g.col_scale = scale;
        g.pre = pre;
        g.residual = how == IN_PLACE ? g.c : residual;
    }
    run_and_check(n_threads == 0 ? NULL : &ctx, &g, n_c);
    const real *const all[] = {g.a, g.b, g.c, pre, bias, scale, residual};
    for (size_t i = 0; i < PNB_COUNT(all); i++)
        free_halves(all[i]);
}

/* Around the borders of blocks (64 x 256) and of shares of threads, without and with every part. */
static void check_products(void)
{
    static const size_t sizes[][3] = {{1, 1, 1},    {3, 5, 0},    {0, 4, 2},
                                      {4, 0, 2},    {63, 255, 2}, {64, 256, 3},
                                      {65, 257, 3}, {7, 300, 60}, {150, 9, 90}};
    for (size_t i = 0; i < PNB_COUNT(sizes); i++)
        for (unsigned form = 0; form < 4 * N_FINISHES; form++)
            for (int n_threads = 0; n_threads <= 3; n_threads += 3)
                check_size(sizes[i][0], sizes[i][1], sizes[i][2], form, n_threads);
}

#endif
