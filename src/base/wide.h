/* Loops in plain C that are worth vectors wider than the two doubles every x86-64 has.
 *
 * PNB__WIDE before a function has it compiled for AVX2 and AVX-512 too, and the machine's best
 * taken when the program starts. No product is fused (-ffp-contract=off) and no sum is taken in
 * another order, so that all give the same bits: nothing is masked by PENUMBRA_CPU, nothing depends
 * on it. For loops over host doubles that are no kernel; what has intrinsics or fuses is in
 * src/kernels/cpu. */
#ifndef PNB_BASE_WIDE_H
#define PNB_BASE_WIDE_H

/* GCC alone knows the levels by name; a sanitizer is not ready when the choice is made. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&       \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PNB__WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PNB__WIDE
#endif

#endif
