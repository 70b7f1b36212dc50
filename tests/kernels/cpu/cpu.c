/* Which table serves which instruction set, where OpenBLAS has the product, and what doubles get.
 */
#include "kernels/cpu/cpu.h"

#include "tests/kernels/harness.h"

/* The table that `f32` and `i8` fill alone. */
static pnb__kernels filled_by(void (*f32)(pnb__kernels *), void (*i8)(pnb__kernels *))
{
    pnb__kernels k;
    pnb__kernels_ref_f32(&k);
    f32(&k);
    i8(&k);
    return k;
}

static void expect_same(const pnb__kernels *got, const pnb__kernels *want)
{
    pnb__kernel_slot a[PNB__N_SLOTS], b[PNB__N_SLOTS];
    pnb__kernels_slots(got, a);
    pnb__kernels_slots(want, b);
    for (size_t i = 0; i < PNB__N_SLOTS; i++)
        if (a[i].function != b[i].function)
            fail_msg("%s: slot %s is not that of %s", got->name, a[i].name, want->name);
    assert_string_equal(got->name, want->name);
    assert_int_equal(got->gemm_group, want->gemm_group);
    assert_int_equal(got->gemm_i8_group, want->gemm_i8_group);
    assert_int_equal(got->gemm_bf16_group, want->gemm_bf16_group);
    assert_int_equal(got->bf16_parts, want->bf16_parts);
    assert_int_equal(got->parts_gain, want->parts_gain);
    assert_true(got->products_bf16 == want->products_bf16);
}

/* Tables are only filled here, so every set can be asked for on every machine. */
static void test_sets(void **state)
{
    (void)state;
    for (int rows_alone = 0; rows_alone < 2; rows_alone++) {
        pnb__kernels k, want;
#if defined(__x86_64__)
        pnb__kernels_ref_f32(&k);
        pnb__kernels_cpu_f32(&k, PNB_ISA_AVX2, rows_alone);
        want = filled_by(pnb__cpu_overwrite_f32_avx2, pnb__cpu_overwrite_i8_avx2);
        expect_same(&k, &want);
        pnb__kernels_ref_f32(&k); /* bytes need more than AVX-512's floats */
        pnb__kernels_cpu_f32(&k, PNB_ISA_AVX512, rows_alone);
        want = filled_by(pnb__cpu_overwrite_f32_avx512, pnb__cpu_overwrite_i8_avx2);
        expect_same(&k, &want);
        pnb__kernels_ref_f32(&k);
        pnb__kernels_cpu_f32(&k, PNB_ISA_AVX512_VNNI, rows_alone);
        want = filled_by(pnb__cpu_overwrite_f32_avx512, pnb__cpu_overwrite_i8_avx512);
        expect_same(&k, &want);
        assert_true(k.products_bf16 == NULL);
        pnb__kernels_ref_f32(&k);
        pnb__kernels_cpu_f32(&k, PNB_ISA_AVX512_BF16, rows_alone);
        pnb__cpu_overwrite_bf16_avx512(&want);
        expect_same(&k, &want);
        pnb__kernels_ref_f32(&k);
        pnb__kernels_cpu_f32(&k, PNB_ISA_AMX, rows_alone);
        pnb__cpu_overwrite_tiles_amx(&want);
        expect_same(&k, &want);
#endif
        pnb__kernels_ref_f32(&k);
        pnb__kernels_cpu_f32(&k, PNB_ISA_GENERIC, rows_alone);
        want = filled_by(pnb__cpu_overwrite_f32_generic, pnb__cpu_overwrite_i8_generic);
        if (!rows_alone) { /* BLAS is faster, but a row's sum may depend on how many there are */
            want.gemm = pnb__cpu_gemm_blas_f32;
            want.gemm_pack_bytes = NULL;
            want.gemm_pack = NULL;
            want.gemm_group = 0;
        }
        expect_same(&k, &want);
        pnb__kernels_emulate_tiles(&k); /* over any table */
        pnb__cpu_overwrite_tiles_emulated(&want);
        expect_same(&k, &want);
    }
}

/* Doubles: three slots of the CPU's on the reference table, whatever the set. */
static void test_doubles(void **state)
{
    (void)state;
    for (int isa = PNB_ISA_GENERIC; isa <= PNB_ISA_AMX; isa++) {
        pnb__kernels k, want;
        pnb__kernels_ref_f64(&want);
        want.name = "cpu-f64";
        want.gemm = pnb__cpu_gemm_blas_f64;
        want.cholesky = pnb__cpu_cholesky_f64;
        want.tri_solve = pnb__cpu_tri_solve_f64;
        pnb__kernels_ref_f64(&k);
        pnb__kernels_cpu_f64(&k, (pnb_isa)isa);
        expect_same(&k, &want);
        assert_int_equal(k.real, PNB__F64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sets), cmocka_unit_test(test_doubles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
