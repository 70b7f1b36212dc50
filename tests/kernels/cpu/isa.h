/* One file of src/kernels/cpu/f32_<isa>.c: the slots that it fills are its own, and its loops are
 * right at every length around its vectors. */
#ifndef PNB_TESTS_KERNELS_CPU_ISA_H
#define PNB_TESTS_KERNELS_CPU_ISA_H

#include "kernels/cpu/cpu.h"

#include "tests/kernels/harness.h"

typedef struct isa_table {
    const char *name;
    pnb_isa isa;
    size_t group; /* columns of a tile: two vectors */
    void (*overwrite)(pnb__kernels *k), (*overwrite_i8)(pnb__kernels *k);
} isa_table;

static const isa_table all_isas[] = {
    {"cpu-generic", PNB_ISA_GENERIC, 8, pnb__cpu_overwrite_f32_generic,
     pnb__cpu_overwrite_i8_generic},
#if defined(__x86_64__)
    {"cpu-avx2", PNB_ISA_AVX2, 16, pnb__cpu_overwrite_f32_avx2, pnb__cpu_overwrite_i8_avx2},
    {"cpu-avx512", PNB_ISA_AVX512, 32, pnb__cpu_overwrite_f32_avx512, pnb__cpu_overwrite_i8_avx512},
#endif
};

/* The slots of the columns that `overwrite` is for change, the others stay. */
static void expect_changed(const pnb__kernels *before, const pnb__kernels *after, bool is_i8)
{
    pnb__kernel_slot old[PNB__N_SLOTS], new[PNB__N_SLOTS];
    pnb__kernels_slots(before, old);
    pnb__kernels_slots(after, new);
    for (size_t i = 0; i < PNB__N_SLOTS; i++) {
        bool is_its =
            is_i8 ? old[i].column == PNB__KERNEL_I8
                  : old[i].column == PNB__KERNEL_FAST || old[i].column == PNB__KERNEL_FAST_ONLY ||
                        old[i].column == PNB__KERNEL_BF16 || old[i].column == PNB__KERNEL_HALVES;
        if ((old[i].function != new[i].function) != is_its)
            fail_msg("slot %s is %s", old[i].name, is_its ? "left as it was" : "overwritten");
    }
}

static void check_slots(const isa_table *t)
{
    pnb__kernels ref, k;
    pnb__kernels_ref_f32(&ref);
    k = ref;
    t->overwrite(&k);
    expect_changed(&ref, &k, false);
    assert_string_equal(k.name, t->name);
    assert_int_equal(k.gemm_group, t->group);
    assert_int_equal(k.gemm_bf16_group, t->group);
    assert_int_equal(k.gemm_i8_group, ref.gemm_i8_group);
    assert_int_equal(k.real, PNB__F32);
    pnb__kernels whole = k;
    t->overwrite_i8(&whole);
    expect_changed(&k, &whole, true);
    assert_int_equal(whole.gemm_i8_group, t->group);
    assert_string_equal(whole.name, t->name);
}

/* No loop is another file's: that one may use instructions that this machine lacks. */
static void check_own(const isa_table *t)
{
    pnb__kernels k;
    pnb__kernel_slot mine[PNB__N_SLOTS], other[PNB__N_SLOTS];
    pnb__kernels_ref_f32(&k);
    t->overwrite(&k);
    t->overwrite_i8(&k);
    pnb__kernels_slots(&k, mine);
    for (size_t a = 0; a < PNB_COUNT(all_isas); a++) {
        if (all_isas[a].isa == t->isa)
            continue;
        pnb__kernels_ref_f32(&k);
        all_isas[a].overwrite(&k);
        all_isas[a].overwrite_i8(&k);
        pnb__kernels_slots(&k, other);
        for (size_t i = 0; i < PNB__N_SLOTS; i++)
            if (mine[i].column != PNB__KERNEL_MEMORY && mine[i].column != PNB__KERNEL_REF &&
                mine[i].function == other[i].function)
                fail_msg("slot %s is that of %s", mine[i].name, all_isas[a].name);
    }
}

/* ---- lengths ---- */

enum { TAIL_ROWS = 3 };

typedef struct tail_case {
    size_t n;
    int x, y, w, unary, axpy, softmax, norm, sum, dots, distance;
} tail_case;

/* Loops over n numbers, over rows of n, and products of n: each with its own way to end. */
static void tail_body(run *r, fixture *x)
{
    const tail_case *c = r->user;
    const pnb__kernels *k = &r->k;
    size_t n = c->n;
    const pnb__layernorm_args norm = {.rows = TAIL_ROWS,
                                      .width = n,
                                      .eps = 1e-3,
                                      .x = P(r, x, c->x),
                                      .w = P(r, x, c->w),
                                      .y = P(r, x, c->norm)};
    const pnb__dots_args dots = {.m = TAIL_ROWS,
                                 .n = TAIL_ROWS,
                                 .k = n,
                                 .lda = n,
                                 .ldb = n,
                                 .ldc = TAIL_ROWS,
                                 .a = P(r, x, c->x),
                                 .b = P(r, x, c->y),
                                 .c = P(r, x, c->dots)};
    k->unary(r->ctx, PNB__QUICK_GELU, n, 1, 0, P(r, x, c->x), P(r, x, c->unary));
    k->axpy(r->ctx, n, -0.5, P(r, x, c->x), P(r, x, c->axpy));
    k->softmax(r->ctx, TAIL_ROWS, n, true, P(r, x, c->x), P(r, x, c->softmax));
    k->layernorm(r->ctx, &norm);
    k->sum(r->ctx, TAIL_ROWS, n, 1, 2, P(r, x, c->x), P(r, x, c->sum), false);
    k->host.dots(r->ctx, &dots);
    k->pairwise_sqdist(r->ctx, TAIL_ROWS, TAIL_ROWS, n, P(r, x, c->x), P(r, x, c->y),
                       P(r, x, c->distance));
}

/* Runs `body` in double on the reference and in float on t, with guards, and compares. */
static void compare_isa(fixture *x, body_fn body, void *user, const isa_table *t,
                        const pnb_ctx *ctx)
{
    double *want[MAX_ARRAYS] = {NULL};
    run r = {.user = user, .is_double = true, .ctx = ctx};
    pnb__kernels_ref_f64(&r.k);
    arrays_reset(x);
    body(&r, x);
    for (int i = 0; i < x->n_arrays; i++) {
        want[i] = malloc((x->arrays[i].n + 1) * sizeof(double));
        assert_non_null(want[i]);
        memcpy(want[i], x->arrays[i].d + GUARD, x->arrays[i].n * sizeof(double));
    }
    pnb__kernels_ref_f32(&r.k);
    t->overwrite(&r.k);
    r.is_double = false;
    arrays_reset(x);
    body(&r, x);
    check_guards(x, t->name);
    check_values(x, want, t->name, 1);
    for (int i = 0; i < x->n_arrays; i++)
        free(want[i]);
    fixture_free(x);
}

/* From one number to a number more than three vectors, from places that are not theirs. */
static void check_tails(const isa_table *t)
{
    pnb_ctx *ctx = test_ctx(t->isa, 1);
    if (ctx == NULL)
        skip();
    for (size_t n = 1; n <= 3 * t->group / 2 + 1; n++) {
        tail_case c = {.n = n};
        fixture x;
        fixture_init(&x, n, 2e-6, 2e-6);
        c.x = input(&x, TAIL_ROWS * n, -2, 2);
        c.y = input(&x, TAIL_ROWS * n, -2, 2);
        c.w = input(&x, n, 0.5, 2);
        c.unary = output(&x, n, false);
        c.axpy = output(&x, n, true);
        c.softmax = output(&x, TAIL_ROWS * n, false);
        c.norm = output(&x, TAIL_ROWS * n, false);
        c.sum = output(&x, TAIL_ROWS, false);
        c.dots = output(&x, TAIL_ROWS * TAIL_ROWS, false);
        c.distance = output(&x, TAIL_ROWS * TAIL_ROWS, false);
        x.abs_tol *= sqrt((double)n) + 1; /* sums of n */
        compare_isa(&x, tail_body, &c, t, ctx);
    }
    pnb_ctx_free(ctx);
}

#endif
