/* What the reference files share: they are compiled once with real = float and once with
 * real = double. All arithmetic is in double; `real` is only how values are stored. */
#ifndef PNB_KERNELS_REF_REAL_H
#define PNB_KERNELS_REF_REAL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/loop.h"
#include "kernels/bf16.h"
#include "kernels/kernels.h"

/* dst = or += value */
#define PUT(dst, value, accumulate)                                                                \
    ((dst) = (real)((accumulate) ? (double)(dst) + (value) : (value)))

/* Number i of an array of reals, or of halves; and to it. */
#define VALUE(array, i, halves)                                                                    \
    ((halves) ? (double)pnb__bf16_widen(((const uint16_t *)(array))[i])                            \
              : (double)((const real *)(array))[i])
#define PUT_VALUE(array, i, halves, value)                                                         \
    do {                                                                                           \
        if (halves)                                                                                \
            ((uint16_t *)(array))[i] = pnb__bf16_of((float)(value));                               \
        else                                                                                       \
            ((real *)(array))[i] = (real)(value);                                                  \
    } while (0)

#endif
