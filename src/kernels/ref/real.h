/* What the reference files share: they are compiled once with real = float and once with
 * real = double. All arithmetic is in double; `real` is only how values are stored. */
#ifndef PNB_KERNELS_REF_REAL_H
#define PNB_KERNELS_REF_REAL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

/* dst = or += value */
#define PUT(dst, value, accumulate)                                                                \
    ((dst) = (real)((accumulate) ? (double)(dst) + (value) : (value)))

#endif
