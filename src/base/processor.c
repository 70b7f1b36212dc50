/* What the processor has and what the system lets a process use of it.
 *
 * Registers beyond those of SSE are the system's to save when it changes between processes, so a
 * set counts only where XCR0 says that it does. Tiles are 8 KB a thread: Linux saves them for
 * processes that asked (arch_prctl, ARCH_REQ_XCOMP_PERM; Documentation/arch/x86/xstate.rst), once
 * and for all their threads. To be refused is normal: an older kernel, a virtual machine without
 * them, a signal stack too small. */
#include "base/base.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    REQ_XCOMP_PERM = 0x1023, /* of asm/prctl.h, which older headers lack */
    XTILE_DATA = 18,         /* the part of the saved state that holds tiles */
    AMX_BF16_BIT = 22,       /* of leaf 7, EDX */
    AMX_TILE_BIT = 24,
    AMX_INT8_BIT = 25
};

/* __builtin_cpu_supports knows the operating system's part (saved registers) but, in Clang 14, not
 * F16C, which the avx2 kernels use to read half precision. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

/* XCR0: the parts of the state that the system saves; 17 and 18 are tiles. */
static bool saves_tiles(void)
{
    unsigned a, b, c, d, low, high;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0)
        return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3;
}

static void look_for_tiles(pnb__cpu *cpu)
{
    unsigned a, b, c, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0)
        return;
    cpu->amx_tile = (d >> AMX_TILE_BIT & 1) != 0;
    cpu->amx_int8 = (d >> AMX_INT8_BIT & 1) != 0;
    cpu->amx_bf16 = (d >> AMX_BF16_BIT & 1) != 0;
    cpu->amx_allowed =
        cpu->amx_tile && saves_tiles() && syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILE_DATA) == 0;
}

/* Whose products by AVX-512 BF16 run at 0.65 of the rate of floats (`info --cpu` on an Emerald
 * Rapids, by PENUMBRA_CPU=avx512bf16 and avx512vnni): the tiles are what is fast there. */
static bool is_intel(void)
{
    unsigned most, b = 0, c = 0, d = 0;
    return __get_cpuid(0, &most, &b, &c, &d) != 0 && b == signature_INTEL_ebx &&
           c == signature_INTEL_ecx && d == signature_INTEL_edx;
}

/* Three leaves of 16 letters each, with blanks at the ends. */
static void look_for_name(char name[64])
{
    unsigned words[12] = {0};
    char text[sizeof words + 1] = "";
    size_t n = 0;
    for (unsigned i = 0; i < 3; i++)
        if (__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                        &words[4 * i + 3]) == 0)
            return;
    memcpy(text, words, sizeof words);
    const char *trimmed = pnb__trimmed(text, strlen(text), &n);
    snprintf(name, 64, "%.*s", (int)n, trimmed);
}

pnb__cpu pnb__cpu_look(void)
{
    pnb__cpu cpu = {.name = ""};
    __builtin_cpu_init();
    look_for_name(cpu.name);
    cpu.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    cpu.vnni = __builtin_cpu_supports("avx512vnni");
    cpu.bf16 = __builtin_cpu_supports("avx512bf16");
    cpu.bf16_gains = cpu.bf16 && !is_intel();
    look_for_tiles(&cpu);
    return cpu;
}
#else
pnb__cpu pnb__cpu_look(void)
{
    return (pnb__cpu){.name = ""};
}
#endif

/* Each set is taken for one that has those before it, as every processor made has them. */
pnb_isa pnb__cpu_best(const pnb__cpu *cpu)
{
    if (!cpu->avx2)
        return PNB_ISA_GENERIC;
    if (!cpu->avx512)
        return PNB_ISA_AVX2;
    if (!cpu->vnni)
        return PNB_ISA_AVX512;
    if (!cpu->bf16)
        return PNB_ISA_AVX512_VNNI;
    return cpu->amx_allowed && cpu->amx_int8 && cpu->amx_bf16 ? PNB_ISA_AMX : PNB_ISA_AVX512_BF16;
}

pnb_isa pnb__cpu_fastest(const pnb__cpu *cpu)
{
    pnb_isa best = pnb__cpu_best(cpu);
    return best == PNB_ISA_AVX512_BF16 && !cpu->bf16_gains ? PNB_ISA_AVX512_VNNI : best;
}
