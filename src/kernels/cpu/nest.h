/* Strided loops over up to 5 axes, with axes joined where memory allows, so that the innermost run
 * is as long as possible. Shared by element-wise operations and copies. */
#ifndef PNB_KERNELS_CPU_NEST_H
#define PNB_KERNELS_CPU_NEST_H

#include "kernels/kernels.h"

#define NEST_ARRAYS 2

typedef struct nest {
    int n; /* axes, at least 1; the last is the innermost */
    size_t dims[PNB__DIMS], stride[NEST_ARRAYS][PNB__DIMS];
    size_t n_outer; /* product of all dims but the last */
} nest;

/* Appends an axis; joins it with the one before if both arrays continue across. */
static inline void nest_append(nest *l, size_t dim, size_t stride_a, size_t stride_b)
{
    if (dim == 1)
        return;
    int last = l->n - 1;
    if (last >= 0 && l->stride[0][last] == stride_a * dim && l->stride[1][last] == stride_b * dim) {
        l->dims[last] *= dim;
    } else {
        l->dims[++last] = dim;
        l->n++;
    }
    l->stride[0][last] = stride_a;
    l->stride[1][last] = stride_b;
}

static inline nest nest_make(const size_t dims[PNB__DIMS], const size_t stride_a[PNB__DIMS],
                             const size_t stride_b[PNB__DIMS])
{
    nest l = {.n_outer = 1};
    for (int d = 0; d < PNB__DIMS; d++)
        nest_append(&l, dims[d], stride_a[d], stride_b[d]);
    if (l.n == 0) {
        l.n = 1;
        l.dims[0] = l.stride[0][0] = l.stride[1][0] = 1;
    }
    for (int d = 0; d < l.n - 1; d++)
        l.n_outer *= l.dims[d];
    return l;
}

/* Where outer iteration i starts in both arrays. */
static inline void nest_at(const nest *l, size_t i, size_t at[NEST_ARRAYS])
{
    at[0] = at[1] = 0;
    for (int d = l->n - 2; d >= 0; d--) {
        size_t index = i % l->dims[d];
        i /= l->dims[d];
        at[0] += index * l->stride[0][d];
        at[1] += index * l->stride[1][d];
    }
}

#endif
