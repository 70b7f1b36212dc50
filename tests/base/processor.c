/* What the processor offers: sets come with those before them, and the best is by what was found;
 * tiles count only where processor and system give them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void best_follows_what_was_found(void **state)
{
    (void)state;
    pnb__cpu cpu = {.name = ""};
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_GENERIC);
    cpu.avx512 = true; /* without AVX2 it is no set of ours */
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_GENERIC);
    cpu.avx512 = false;
    cpu.avx2 = true;
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_AVX2);
    cpu.avx512 = true;
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_AVX512);
    cpu.vnni = true;
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_AVX512_VNNI);
    cpu.bf16 = cpu.amx_tile = cpu.amx_int8 = cpu.amx_bf16 = true; /* the system refused */
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_AVX512_BF16);
    cpu.amx_allowed = true;
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_AMX);
    cpu.amx_bf16 = false;
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_AVX512_BF16);
}

/* An instruction that is slower than floats is there for who asks for it by name alone. */
static void fastest_passes_over_slow_halves(void **state)
{
    (void)state;
    pnb__cpu cpu = {.avx2 = true, .avx512 = true, .vnni = true};
    assert_int_equal(pnb__cpu_fastest(&cpu), PNB_ISA_AVX512_VNNI);
    cpu.bf16 = true;
    assert_int_equal(pnb__cpu_best(&cpu), PNB_ISA_AVX512_BF16);
    assert_int_equal(pnb__cpu_fastest(&cpu), PNB_ISA_AVX512_VNNI);
    cpu.bf16_gains = true;
    assert_int_equal(pnb__cpu_fastest(&cpu), PNB_ISA_AVX512_BF16);
    cpu.bf16_gains = false;
    cpu.amx_tile = cpu.amx_int8 = cpu.amx_bf16 = cpu.amx_allowed = true;
    assert_int_equal(pnb__cpu_fastest(&cpu), PNB_ISA_AMX);
}

/* Asking twice gives the same: the permission for tiles, once given, stays. */
static void looks_alike_each_time(void **state)
{
    (void)state;
    pnb__cpu a = pnb__cpu_look(), b = pnb__cpu_look();
    assert_int_equal(pnb__cpu_best(&a), pnb__cpu_best(&b));
    assert_string_equal(a.name, b.name);
    assert_true(a.amx_tile || !a.amx_allowed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(best_follows_what_was_found),
                                       cmocka_unit_test(fastest_passes_over_slow_halves),
                                       cmocka_unit_test(looks_alike_each_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
