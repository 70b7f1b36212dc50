/* Memory of a weight, and its numbers to and from the host, converted from and to the table's real
 * type.
 *
 * Above this room nothing dereferences a weight's data: it may lie on a device. Conversions go
 * through a small block, so no memory is taken. Weights in fewer bits (store other than REAL) are
 * made, read and written by src/models/weights/quantized_weights.c. */
#include <assert.h>

#include "tensor/graph.h"

enum { BLOCK = 512 };

pnb_status pnb__param_alloc(pnb__param *p, const pnb__kernels *k, size_t bytes, pnb_error *err)
{
    return k->mem_alloc(k->ctx, &p->data, PNB_MAX(bytes, (size_t)1), err);
}

void pnb__param_free(pnb__param *p, const pnb__kernels *k, size_t bytes)
{
    k->mem_free(k->ctx, p->data, PNB_MAX(bytes, (size_t)1));
    p->data = NULL;
}

void pnb__param_map(pnb__param *p, const void *mapped)
{
    p->data = (void *)(uintptr_t)mapped; /* read-only until pnb__param_own */
    p->fixed = p->mapped = true;
}

pnb_status pnb__param_own(pnb__param *p, const pnb__kernels *k, size_t bytes, pnb_error *err)
{
    void *mapped = p->data;
    pnb_status status = pnb__param_alloc(p, k, bytes, err);
    if (status == PNB_OK)
        status = k->mem_write(k->ctx, p->data, mapped, bytes, err);
    if (status == PNB_OK) {
        p->mapped = false;
        return PNB_OK;
    }
    if (p->data != mapped)
        pnb__param_free(p, k, bytes);
    p->data = mapped;
    return status;
}

void *pnb__param_on_host(const pnb__param *p, const pnb__kernels *k)
{
    return k->host_memory ? p->data : NULL;
}

pnb_status pnb__param_read_bytes(const pnb__param *p, const pnb__kernels *k, size_t bytes,
                                 void *out, pnb_error *err)
{
    return k->mem_read(k->ctx, out, p->data, bytes, err);
}

pnb_status pnb__param_read_part(const pnb__param *p, const pnb__kernels *k, size_t at, size_t bytes,
                                void *out, pnb_error *err)
{
    return k->mem_read(k->ctx, out, (const unsigned char *)p->data + at, bytes, err);
}

pnb_status pnb__param_write_part(pnb__param *p, const pnb__kernels *k, size_t at, size_t bytes,
                                 const void *from, pnb_error *err)
{
    return k->mem_write(k->ctx, (unsigned char *)p->data + at, from, bytes, err);
}

pnb_status pnb__param_copy(pnb__param *p, const pnb__param *from, const pnb__kernels *k,
                           pnb_error *err)
{
    assert(p->store == PNB__STORE_REAL && from->store == PNB__STORE_REAL && from->n == p->n);
    return k->mem_copy(k->ctx, p->data, from->data, p->n * PNB__REAL_SIZE(k->real), err);
}

void pnb__param_mix(pnb__param *p, double keep, const pnb__param *from, double share,
                    const pnb__kernels *k)
{
    assert(p->store == PNB__STORE_REAL && from->store == PNB__STORE_REAL && from->n == p->n);
    k->unary(k->ctx, PNB__AFFINE, p->n, keep, 0, p->data, p->data);
    k->axpy(k->ctx, p->n, share, from->data, p->data);
}

pnb_status pnb__param_zero(pnb__param *p, const pnb__kernels *k, pnb_error *err)
{
    return k->mem_zero(k->ctx, p->data, p->n * PNB__REAL_SIZE(k->real), err);
}

/* (m,n) += or = alpha op(a) op(b) of contiguous matrices, k wide. */
typedef struct plain_product {
    size_t m, n, k;
    bool trans_a, trans_b;
    int beta;
} plain_product;

static void multiply(const plain_product *p, double alpha, const void *a, const void *b, void *c,
                     const pnb__kernels *k)
{
    const pnb__gemm_args args = {.trans_a = p->trans_a,
                                 .trans_b = p->trans_b,
                                 .m = p->m,
                                 .n = p->n,
                                 .k = p->k,
                                 .lda = p->trans_a ? p->m : p->k,
                                 .ldb = p->trans_b ? p->k : p->n,
                                 .ldc = p->n,
                                 .n_batch = 1,
                                 .alpha = alpha,
                                 .beta = p->beta,
                                 .a = a,
                                 .b = b,
                                 .c = c,
                                 .act = PNB__IDENTITY};
    k->gemm(k->ctx, &args);
}

void pnb__param_add_product(pnb__param *w, double alpha, const pnb__param *b, const pnb__param *a,
                            const pnb__kernels *k)
{
    const plain_product sum = {.m = w->shape[0], .n = w->shape[1], .k = a->shape[0], .beta = 1};
    assert(b->shape[1] == a->shape[0] && b->n == sum.m * sum.k && a->n == sum.k * sum.n);
    multiply(&sum, alpha, b->data, a->data, w->data, k);
}

/* w = w0 + alpha b a: d b = alpha d w a^T, d a = alpha b^T d w. */
void pnb__param_project_grad(const pnb__param *w, double alpha, pnb__param *b, pnb__param *a,
                             const pnb__kernels *k)
{
    size_t out = w->shape[0], in = w->shape[1], rank = a->shape[0];
    const plain_product of_a = {.m = rank, .n = in, .k = out, .trans_a = true};
    const plain_product of_b = {.m = out, .n = rank, .k = in, .trans_b = true};
    a->grad = b->grad = NULL;
    if (w->grad == NULL)
        return;
    a->grad = a->grad_store;
    b->grad = b->grad_store;
    multiply(&of_a, alpha, b->data, w->grad, a->grad, k);
    multiply(&of_b, alpha, w->grad, a->data, b->grad, k);
}

bool pnb__param_is_finite(const pnb__param *p, const pnb__kernels *k)
{
    assert(p->store == PNB__STORE_REAL);
    return k->all_finite(k->ctx, p->n, p->data);
}

pnb_status pnb__param_read(const pnb__param *p, const pnb__kernels *k, size_t at, size_t n,
                           double *out, pnb_error *err)
{
    const unsigned char *device = p->data;
    assert(p->store == PNB__STORE_REAL && at + n <= p->n);
    if (k->real == PNB__F64)
        return k->mem_read(k->ctx, out, device + at * sizeof(double), n * sizeof(double), err);
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t m = PNB_MIN((size_t)BLOCK, n - i);
        float f32[BLOCK];
        pnb_status status =
            k->mem_read(k->ctx, f32, device + (at + i) * sizeof(float), m * sizeof(float), err);
        if (status != PNB_OK)
            return status;
        for (size_t j = 0; j < m; j++)
            out[i + j] = (double)f32[j];
    }
    return PNB_OK;
}

pnb_status pnb__param_write(const pnb__param *p, const pnb__kernels *k, size_t at, size_t n,
                            const double *values, pnb_error *err)
{
    unsigned char *device = p->data;
    assert(p->store == PNB__STORE_REAL && at + n <= p->n);
    if (k->real == PNB__F64)
        return k->mem_write(k->ctx, device + at * sizeof(double), values, n * sizeof(double), err);
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t m = PNB_MIN((size_t)BLOCK, n - i);
        float f32[BLOCK];
        for (size_t j = 0; j < m; j++)
            f32[j] = (float)values[i + j];
        pnb_status status =
            k->mem_write(k->ctx, device + (at + i) * sizeof(float), f32, m * sizeof(float), err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}
