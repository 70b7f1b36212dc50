/* Numbers of a weight to and from the host, converted from and to the table's real type.
 *
 * Above this room nothing dereferences a weight's data: it may lie on a device. Conversions go
 * through a small block, so no memory is taken. Weights in fewer bits (store other than REAL) are
 * read and written by src/models/quantized_weights.c. */
#include <assert.h>

#include "tensor/graph.h"

enum { BLOCK = 512 };

void pnb__param_read(const pnb__param *p, const pnb__kernels *k, size_t at, size_t n, double *out)
{
    const unsigned char *device = p->data;
    assert(p->store == PNB__STORE_REAL && at + n <= p->n);
    if (k->real == PNB__F64) {
        k->mem_read(out, device + at * sizeof(double), n * sizeof(double));
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t m = PNB_MIN((size_t)BLOCK, n - i);
        float f32[BLOCK];
        k->mem_read(f32, device + (at + i) * sizeof(float), m * sizeof(float));
        for (size_t j = 0; j < m; j++)
            out[i + j] = (double)f32[j];
    }
}

void pnb__param_write(const pnb__param *p, const pnb__kernels *k, size_t at, size_t n,
                      const double *values)
{
    unsigned char *device = p->data;
    assert(p->store == PNB__STORE_REAL && at + n <= p->n);
    if (k->real == PNB__F64) {
        k->mem_write(device + at * sizeof(double), values, n * sizeof(double));
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t m = PNB_MIN((size_t)BLOCK, n - i);
        float f32[BLOCK];
        for (size_t j = 0; j < m; j++)
            f32[j] = (float)values[i + j];
        k->mem_write(device + (at + i) * sizeof(float), f32, m * sizeof(float));
    }
}

double pnb__param_read_scalar(const pnb__param *p, const pnb__kernels *k)
{
    double value;
    pnb__param_read(p, k, 0, 1, &value);
    return value;
}
