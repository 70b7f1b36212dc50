/* Sums over d for every row of one block against every row of another, in f64: inner products and
 * squared distances, what mean, csd, the likelihoods on the sphere and all measures over samples
 * are made of, and what an exact search ends with.
 *
 * The order of a sum is the same in every tile, for a row alone, and on every CPU: d of each
 * remainder to 8 by themselves, then those eight in pairs, then what stands behind the last whole
 * eight in its order. Nothing depends on where in a block a pair lies, nor on the instruction set:
 * products are rounded before they are added (-ffp-contract=off), so vectors of 2, 4 or 8 give
 * equal bits. */
#include <string.h>

#include "base/loop.h"
#include "prob/measure.h"

enum { LANES = 8 };

/* Of as many registers as the CPU needs for it. */
typedef double lanes __attribute__((vector_size(64)));

/* The eight sums in pairs, then the n terms that are left of rows a and b. */
static inline double end_sum(const double *sum, const double *a, const double *b, size_t n,
                             bool is_distance)
{
    double total =
        ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    for (size_t d = 0; d < n; d++)
        total += is_distance ? (a[d] - b[d]) * (a[d] - b[d]) : a[d] * b[d];
    return total;
}

#define SUMS_NAME plain
#define SUMS_TARGET
#define SUMS_ROWS 1
#define SUMS_COLS 2
#include "prob/sums.inc"

#if defined(__x86_64__)

#define SUMS_NAME avx2
#define SUMS_TARGET __attribute__((target("avx2")))
#define SUMS_ROWS 2
#define SUMS_COLS 2
#include "prob/sums.inc"

#define SUMS_NAME avx512
#define SUMS_TARGET __attribute__((target("avx512f")))
#define SUMS_ROWS 4
#define SUMS_COLS 4
#include "prob/sums.inc"

pnb_isa pnb__sums_isa(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return PNB_ISA_AVX512;
    return __builtin_cpu_supports("avx2") ? PNB_ISA_AVX2 : PNB_ISA_GENERIC;
}

void pnb__sums_by(pnb_isa isa, const pnb__sums *s, bool is_distance)
{
    if (isa == PNB_ISA_AVX512)
        sum_rows_avx512(s, is_distance);
    else if (isa == PNB_ISA_AVX2)
        sum_rows_avx2(s, is_distance);
    else
        sum_rows_plain(s, is_distance);
}

#else

pnb_isa pnb__sums_isa(void)
{
    return PNB_ISA_GENERIC;
}

void pnb__sums_by(pnb_isa isa, const pnb__sums *s, bool is_distance)
{
    (void)isa;
    sum_rows_plain(s, is_distance);
}

#endif

/* (n_a,D) x (n_b,D) -> (n_a,n_b): sum_d a b, and below sum_d (a-b)^2, which does not cancel as
 * |a|^2 + |b|^2 - 2 a.b would. */
void pnb__sum_products(const pnb__sums *s)
{
    pnb__sums_by(pnb__sums_isa(), s, false);
}

void pnb__sum_distances2(const pnb__sums *s)
{
    pnb__sums_by(pnb__sums_isa(), s, true);
}
