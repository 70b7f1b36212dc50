/* The kernels of a context: by its device and type, with the column of a device on top or without,
 * and the list of what is in a table. */
#include "tests/kernels/harness.h"

static void expect_slots(const pnb__kernels *got, const pnb__kernels *want)
{
    pnb__kernel_slot a[PNB__N_SLOTS], b[PNB__N_SLOTS];
    pnb__kernels_slots(got, a);
    pnb__kernels_slots(want, b);
    for (size_t i = 0; i < PNB__N_SLOTS; i++)
        if (a[i].function != b[i].function)
            fail_msg("slot %s is not that of %s", a[i].name, want->name);
    assert_string_equal(got->name, want->name);
    assert_int_equal(got->real, want->real);
}

static void test_devices(void **state)
{
    (void)state;
    for (int invariant = 0; invariant < 2; invariant++) {
        pnb_ctx ctx = {.n_threads = 1, .device = PNB_DEVICE_REF, .batch_invariant = invariant};
        pnb__kernels k, want;
        pnb__kernels_fill(&k, &ctx, PNB__F32);
        pnb__kernels_ref_f32(&want);
        expect_slots(&k, &want);
        assert_ptr_equal(k.ctx, &ctx);
        pnb__kernels_fill(&k, &ctx, PNB__F64);
        pnb__kernels_ref_f64(&want);
        expect_slots(&k, &want);
        ctx.device = PNB_DEVICE_CPU;
        ctx.isa = PNB_ISA_GENERIC; /* the set where the rows' independence matters */
        pnb__kernels_fill(&k, &ctx, PNB__F32);
        pnb__kernels_ref_f32(&want);
        pnb__kernels_cpu_f32(&want, PNB_ISA_GENERIC, invariant);
        expect_slots(&k, &want);
        assert_int_equal(k.gemm_pack == NULL, !invariant);
        pnb__kernels_fill(&k, &ctx, PNB__F64);
        pnb__kernels_ref_f64(&want);
        pnb__kernels_cpu_f64(&want, PNB_ISA_GENERIC);
        expect_slots(&k, &want);
        assert_ptr_equal(k.ctx, &ctx);
    }
}

/* ---- a device of its own ---- */

static const pnb_ctx *seen_ctx;

static void own_fill(const pnb_ctx *ctx, size_t n, double value, void *y)
{
    (void)ctx;
    (void)n;
    (void)value;
    (void)y;
}

static void own_column(pnb__kernels *k)
{
    seen_ctx = k->ctx;
    k->name = "own";
    k->host_memory = false;
    k->fill = own_fill;
}

/* The column comes last and overwrites what it has; loops over the host's memory do without it. */
static void test_columns(void **state)
{
    (void)state;
    for (int device = 0; device < 2; device++) {
        pnb_ctx ctx = {.n_threads = 1,
                       .device = device ? PNB_DEVICE_CPU : PNB_DEVICE_REF,
                       .column = own_column};
        pnb__kernels k, host;
        pnb__kernels_fill(&k, &ctx, PNB__F32);
        assert_ptr_equal(seen_ctx, &ctx);
        seen_ctx = NULL;
        pnb__kernels_fill_host(&host, &ctx, PNB__F32);
        assert_null(seen_ctx);
        assert_true(k.fill == own_fill && host.fill != own_fill);
        assert_true(!k.host_memory && host.host_memory);
        assert_string_equal(k.name, "own");
        assert_true(k.gemm == host.gemm && k.host.dots == host.host.dots); /* still there */
        assert_ptr_equal(host.ctx, &ctx);
    }
}

/* ---- the list ---- */

static void test_slots(void **state)
{
    (void)state;
    pnb__kernels k;
    pnb__kernel_slot slot[PNB__N_SLOTS];
    pnb__kernels_ref_f32(&k);
    pnb__kernels_slots(&k, slot);
    assert_string_equal(slot[PNB__SLOT_mem_alloc].name, "mem_alloc");
    assert_int_equal(slot[PNB__SLOT_mem_alloc].column, PNB__KERNEL_MEMORY);
    assert_true(slot[PNB__SLOT_gemm].function == (void (*)(void))k.gemm);
    assert_int_equal(slot[PNB__SLOT_gemm].column, PNB__KERNEL_FAST);
    assert_int_equal(slot[PNB__SLOT_gemm_pack].column, PNB__KERNEL_FAST_ONLY);
    assert_int_equal(slot[PNB__SLOT_gemm_i8].column, PNB__KERNEL_I8);
    assert_int_equal(slot[PNB__SLOT_gru].column, PNB__KERNEL_FAST);
    assert_string_equal(slot[PNB__SLOT_host_dots].name, "host.dots");
    assert_true(slot[PNB__SLOT_host_dots].function == (void (*)(void))k.host.dots);
    for (size_t i = 0; i < PNB__N_SLOTS; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(slot[i].name, slot[j].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_devices),
                                       cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_slots)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
