/* Which column serves each slot of a table: what kernels.def says has a faster loop than the
 * reference one is served by it, on every instruction set of this machine. */
#include "tests/kernels/harness.h"

/* "cpu" where the slot is not the reference's. */
static const char *source_of(const pnb__kernel_slot *slot, const pnb__kernel_slot *ref)
{
    if (slot->function == NULL)
        return "none";
    return slot->function == ref->function ? "ref" : "cpu";
}

static const char *wanted(pnb__kernel_column column)
{
    return column == PNB__KERNEL_MEMORY || column == PNB__KERNEL_REF ? "ref" : "cpu";
}

/* The number of slots that are not where the list has them; says which. */
static int misplaced(const pnb__kernels *k, const pnb__kernels *reference)
{
    pnb__kernel_slot slot[PNB__N_SLOTS], ref[PNB__N_SLOTS];
    int n = 0;
    pnb__kernels_slots(k, slot);
    pnb__kernels_slots(reference, ref);
    for (size_t i = 0; i < PNB__N_SLOTS; i++) {
        const char *source = source_of(&slot[i], &ref[i]);
        if (strcmp(source, wanted(slot[i].column)) == 0)
            continue;
        print_message("%s: slot %s is served by %s\n", k->name, slot[i].name, source);
        n++;
    }
    return n;
}

static void fast_loops_are_in_the_tables(void **state)
{
    (void)state;
    pnb__kernels ref;
    pnb__kernels_ref_f32(&ref);
    for (int isa = PNB_ISA_GENERIC; isa <= PNB_ISA_EMULATED; isa++) {
        pnb_ctx *ctx = test_ctx((pnb_isa)isa, 1);
        pnb__kernels k;
        if (ctx == NULL)
            continue;
        ctx->batch_invariant = true; /* no table leaves the product to BLAS then */
        pnb__kernels_fill(&k, ctx, PNB__F32);
        assert_int_equal(misplaced(&k, &ref), 0);
        pnb_ctx_free(ctx);
    }
}

/* A slot that a table forgot is seen and named. */
static void forgotten_slots_are_seen(void **state)
{
    (void)state;
    pnb__kernels ref, k;
    pnb__kernels_ref_f32(&ref);
    pnb__kernels_ref_f32(&k);
    pnb__kernels_cpu_f32(&k, PNB_ISA_GENERIC, true);
    assert_int_equal(misplaced(&k, &ref), 0);
    k.softmax = ref.softmax;
    k.host.dots = ref.host.dots;
    k.gemm_pack = NULL;
    assert_int_equal(misplaced(&k, &ref), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_loops_are_in_the_tables),
        cmocka_unit_test(forgotten_slots_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
