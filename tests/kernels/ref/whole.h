/* A reference table is whole, of its type, and works with any context or none. Includes name `real`
 * and REAL. */
#ifndef PNB_TESTS_KERNELS_REF_WHOLE_H
#define PNB_TESTS_KERNELS_REF_WHOLE_H

#include "kernels/host.h"

#include "tests/kernels/harness.h"

/* Every slot but those that only pack; memory is the host's. */
static void check_whole(const pnb__kernels *k)
{
    pnb__kernel_slot slot[PNB__N_SLOTS];
    pnb__kernels_slots(k, slot);
    for (size_t i = 0; i < PNB__N_SLOTS; i++)
        assert_int_equal(slot[i].function == NULL,
                         slot[i].column == PNB__KERNEL_FAST_ONLY ||
                             (slot[i].column == PNB__KERNEL_HALVES && REAL == PNB__F64));
    assert_string_equal(k->name, "ref");
    assert_int_equal(k->real, REAL);
    assert_true(k->host_memory && k->mem_alloc == pnb__host_mem_alloc);
    assert_true(k->gemm_group == 0 && k->gemm_i8_group == 1); /* packing gains nothing */
    assert_null(k->ctx);
}

/* Loops step by its own type: what stands behind n numbers stays, and no digit is lost. */
static void check_type(const pnb__kernels *k)
{
    const double third = 1.0 / 3;
    real x[4] = {(real)third, (real)third, (real)third, 7}, y[4] = {0, 0, 0, 7}, sum[2] = {0, 7};
    const pnb__dots_args dots = {1, 1, 3, 3, 3, 1, x, x, sum};
    k->fill(NULL, 3, third, y);
    assert_memory_equal(x, y, sizeof x);
    k->axpy(NULL, 3, 2, x, y);
    assert_true(y[2] == (real)(3 * (double)x[2]) && y[3] == 7);
    k->sum(NULL, 1, 3, 1, 1, x, sum, false);
    assert_true(sum[0] == (real)((double)x[0] + (double)x[1] + (double)x[2]) && sum[1] == 7);
    k->host.dots(NULL, &dots);
    assert_true(sum[0] == (real)((double)x[0] * (double)x[0] + (double)x[1] * (double)x[1] +
                                 (double)x[2] * (double)x[2]));
}

/* One thread whatever the context offers: the same bits. */
static void check_threads_of(const pnb__kernels *k)
{
    enum { N = 5000 };
    real *x = malloc(N * sizeof *x), alone = 0, together = 0;
    pnb_ctx *ctx = test_ctx(PNB_ISA_GENERIC, 3);
    assert_true(x != NULL && ctx != NULL);
    for (size_t i = 0; i < N; i++)
        x[i] = (real)(1 / (1 + (double)i));
    k->sum(NULL, 1, N, 1, 1, x, &alone, false);
    k->sum(ctx, 1, N, 1, 1, x, &together, false);
    assert_true(alone == together && alone > 9);
    pnb_ctx_free(ctx);
    free(x);
}

#endif
