/* What losses over all pairs of rows share: they go over strips of rows, whose inner products come
 * of the matrix product, and in backward make the strip again, whose numbers become weights w = d
 * loss / d |x_i - y_j|^2: dx_i = 2 sum_j w_ij (x_i - y_j),  dy_j = 2 sum_i w_ij (y_j - x_i) as
 * products too. Memory is one strip; strips and sums have a fixed order. */
#ifndef PNB_TENSOR_OPS_STRIPS_H
#define PNB_TENSOR_OPS_STRIPS_H

#include "tensor/graph_internal.h"

#define PNB__STRIP ((size_t)1 << 18) /* products held at once */

/* Element number `elements` of device memory. */
static inline unsigned char *pnb__strip_at(const pnb__tensor *t, const void *p, size_t elements)
{
    return (unsigned char *)(uintptr_t)p + elements * pnb__elem_bytes(t);
}

/* c (+)= alpha op(a) b:  (m,k)(k,n) -> (m,n), rows of b and c next to each other */
typedef struct pnb__strip_product {
    size_t m, n, k;
    bool trans_a, trans_b;
    double alpha;
    const void *a, *b;
    void *c;
    bool accumulate;
} pnb__strip_product;
void pnb__strip_multiply(const pnb__tensor *t, const pnb__strip_product *p);

/* d[r] += sums[r] x[r], rows of width dim */
void pnb__add_scaled_rows(const pnb__tensor *t, size_t rows, size_t dim, const void *sums,
                          const void *x, void *d);

/* One strip of weights (m,n) over the rows of x and y; rows (m) is room for sums, cols (n) takes
 * them up. dx and dy are added to and may be NULL. */
typedef struct pnb__strip_weights {
    size_t m, n, dim;
    const void *w, *x, *y;
    void *rows, *cols, *dx, *dy;
    bool add_cols;
} pnb__strip_weights;
/* dx_i = 2 x_i sum_j w_ij - 2 sum_j w_ij y_j; of dy the second half: the first is cols times y,
 * once all strips are done. */
void pnb__spread_weights(const pnb__tensor *t, const pnb__strip_weights *s);

#endif
