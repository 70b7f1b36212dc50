/* The products of the table: in floats, with a factor in bfloat16 or bytes, and with both rounded.
 *
 * All end alike: c = act(product + bias) * col_scale + residual. cuBLASLt adds the bias and a
 * residual by itself; where there is more to do, the product goes to `pre`, to c or, where c is the
 * residual, to memory of its own, and one kernel ends it there. cuBLASLt's own GELU is the tanh
 * form, so it is not asked for that. Few rows (few_rows.cu) need no cuBLASLt.
 *
 * A weight in bfloat16 is packed as (n,k) halves, in bytes as (n,k) bytes, its scales and the sums
 * of its rows behind them. */
#include "kernels/cuda/halves.h"
#include "kernels/cuda/numbers.h"

namespace
{

/* ---- the end of a product ---- */

struct ending {
    pnb__unary act;
    size_t m, n, ld, ldc, ld_residual, batch, batch_c;
    const float *values, *col_scale, *residual; /* values: batch apart, rows ld apart */
    float *c;
    __device__ void operator()(size_t at) const
    {
        size_t j = at % n, i = at / n % m, b = at / n / m;
        float v = pnb__cuda_activation(act, values[b * batch + i * ld + j]);
        if (col_scale != NULL)
            v *= col_scale[j];
        if (residual != NULL)
            v += residual[i * ld_residual + j];
        c[b * batch_c + i * ldc + j] = v;
    }
};

bool is_plain(const pnb__gemm_args *g)
{
    return g->act == PNB__IDENTITY && g->col_scale == NULL && g->pre == NULL;
}

/* p holds the factors; sizes, bias and all that follows the product are g's. */
void multiply_and_end(const pnb_ctx *ctx, const pnb__gemm_args *g, pnb__cuda_product p)
{
    float *c = static_cast<float *>(g->c), *own = NULL;
    p.m = g->m;
    p.n = g->n;
    p.k = g->k;
    p.ldc = p.ldd = g->ldc;
    p.n_batch = g->n_batch;
    p.batch_c = g->batch_c;
    p.alpha = static_cast<float>(g->alpha);
    p.type_c = PNB__CUDA_F32;
    p.bias = g->bias;
    p.c = c;
    if (g->beta != 0 || (is_plain(g) && g->residual != NULL)) {
        p.beta = 1;
        p.d = g->beta != 0 ? c : g->residual;
        p.ldd = g->beta != 0 ? g->ldc : g->ld_residual;
    }
    if (is_plain(g) || g->beta != 0) {
        pnb__cuda_multiply(ctx, &p);
        return;
    }
    if (g->pre != NULL)
        p.c = g->pre;
    else if (g->residual == g->c)
        p.c = own = static_cast<float *>(pnb__cuda_borrow(ctx, g->m * g->n * sizeof *own));
    if (own != NULL)
        p.ldc = g->n;
    if (p.c == NULL)
        return; /* there was no memory; the context knows */
    pnb__cuda_multiply(ctx, &p);
    const ending end = {g->act,
                        g->m,
                        g->n,
                        p.ldc,
                        g->ldc,
                        g->ld_residual,
                        g->batch_c,
                        g->batch_c,
                        static_cast<const float *>(p.c),
                        static_cast<const float *>(g->col_scale),
                        static_cast<const float *>(g->residual),
                        c};
    pnb__cuda_each(ctx, g->n_batch * g->m * g->n, end);
    pnb__cuda_return(ctx, own);
}

/* ---- results in bfloat16 ---- */

/* c in halves: the bias is rounded, as c is; nothing else follows but the activation, whose input
 * goes to `pre` where it is wanted. */
void multiply_to_halves(const pnb_ctx *ctx, const pnb__gemm_args *g, pnb__cuda_product p)
{
    unsigned short *c = static_cast<unsigned short *>(g->c), *bias = NULL;
    unsigned short *pre = g->pre != NULL ? static_cast<unsigned short *>(g->pre) : c;
    if (g->bias != NULL) {
        bias = static_cast<unsigned short *>(pnb__cuda_borrow(ctx, g->n * sizeof *bias));
        if (bias == NULL)
            return;
        pnb__cuda_round_rows(ctx, g->bias, 1, g->n, g->n, bias);
    }
    p.m = g->m;
    p.n = g->n;
    p.k = g->k;
    p.ldc = p.ldd = g->ldc;
    p.n_batch = 1;
    p.alpha = 1;
    p.type_c = PNB__CUDA_BF16;
    p.bias = bias;
    p.c = pre;
    pnb__cuda_multiply(ctx, &p);
    pnb__cuda_return(ctx, bias);
    if (g->act != PNB__IDENTITY || pre != c)
        pnb__cuda_bend_halves(ctx, g->act, g->m, g->n, g->ldc, pre, c);
}

/* ---- factors in parts ----
 * x = x0 + x1 + x2, each what is left of it rounded: the terms of a product stand behind each
 * other, so that one product of a longer k sums them all, the smallest first. */

enum { MOST_TERMS = 6 };

__host__ __device__ inline int n_terms(int parts)
{
    return parts == 1 ? 1 : parts == 2 ? 3 : MOST_TERMS;
}

/* Part of the first factor in term t, 2 1 0 1 0 0 of three parts, and of the second, 0 1 2 0 1 0:
 * two bits each. */
__device__ inline int part_of(int parts, int t, bool is_first)
{
    int at = MOST_TERMS - n_terms(parts) + t;
    return (is_first ? 0x46 : 0x124) >> 2 * at & 3;
}

__device__ inline void split(float x, unsigned short part[3])
{
    for (int i = 0; i < 3; i++) {
        part[i] = pnb__cuda_bf16_of(x);
        x -= pnb__cuda_bf16_widen(part[i]);
    }
}

struct parts_of_rows {
    const float *from;
    unsigned short *to; /* rows of terms * width */
    size_t width, ld;
    int parts;
    __device__ void operator()(size_t i) const
    {
        unsigned short part[3];
        size_t row = i / width, d = i % width;
        int terms = n_terms(parts);
        split(from[row * ld + d], part);
        for (int t = 0; t < terms; t++) {
            int which = part_of(parts, t, true);
            to[(row * static_cast<size_t>(terms) + static_cast<size_t>(t)) * width + d] =
                which == 0   ? part[0]
                : which == 1 ? part[1]
                             : part[2];
        }
    }
};

/* W as (n, terms k) halves from what the weight is stored in, (n,k) or (k,n). */
struct packed_half {
    const void *w;
    unsigned short *to;
    size_t k, ld;
    bool is_rows;
    pnb__store store;
    int parts;
    __device__ void operator()(size_t i) const
    {
        unsigned short part[3] = {0, 0, 0};
        size_t j = i / k, p = i % k, at = is_rows ? j * ld + p : p * ld + j;
        int terms = n_terms(parts);
        if (store == PNB__STORE_REAL)
            split(static_cast<const float *>(w)[at], part);
        else if (store == PNB__STORE_F16)
            split(pnb__cuda_f16_widen(static_cast<const unsigned short *>(w)[at]), part);
        else
            part[0] = static_cast<const unsigned short *>(w)[at];
        for (int t = 0; t < terms; t++) {
            int which = part_of(parts, t, false);
            to[(j * static_cast<size_t>(terms) + static_cast<size_t>(t)) * k + p] =
                which == 0   ? part[0]
                : which == 1 ? part[1]
                             : part[2];
        }
    }
};

/* ---- bytes ---- */

size_t up_to_64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

struct packed_bytes { /* where the parts of packed bytes and of the workspace lie */
    signed char *w;
    float *scales;
    int *sums;
    signed char *levels;
    float *row_scale;
    int *row_zero;
};

packed_bytes parts_of(const pnb__packed *p, size_t m, void *work)
{
    unsigned char *at = static_cast<unsigned char *>(p->data),
                  *row = static_cast<unsigned char *>(work);
    packed_bytes parts = packed_bytes();
    parts.w = reinterpret_cast<signed char *>(at);
    parts.scales = reinterpret_cast<float *>(at + up_to_64(p->n * p->k));
    parts.sums = reinterpret_cast<int *>(parts.scales + p->n);
    if (row == NULL)
        return parts;
    parts.levels = reinterpret_cast<signed char *>(row);
    parts.row_scale = reinterpret_cast<float *>(row + up_to_64(m * p->k));
    parts.row_zero = reinterpret_cast<int *>(parts.row_scale + m);
    return parts;
}

struct row_sums {
    const signed char *w;
    int *sums;
    size_t k;
    __device__ void row(size_t r) const
    {
        int sum = 0;
        for (size_t p = threadIdx.x; p < k; p += blockDim.x)
            sum += w[r * k + p];
        sum = pnb__cuda_block_sum(sum);
        if (threadIdx.x == 0)
            sums[r] = sum;
    }
};

/* Levels u in 0..levels of a row, kept as u - 128; a row that is not finite has the scale NaN. */
struct levels_of_row {
    const float *x;
    size_t k, ld;
    int levels;
    packed_bytes to;
    __device__ void row(size_t r) const
    {
        const float *in = x + r * ld;
        float low = 0, high = 0, off = 0;
        for (size_t p = threadIdx.x; p < k; p += blockDim.x) {
            low = in[p] < low ? in[p] : low;
            high = in[p] > high ? in[p] : high;
            off += in[p] - in[p]; /* NaN where it is not finite */
        }
        low = -pnb__cuda_block(-low, pnb__cuda_most());
        high = pnb__cuda_block(high, pnb__cuda_most());
        off = pnb__cuda_block_sum(off);
        float range = high - low > PNB__I8_LEAST_RANGE ? high - low : 0;
        float scale = range / static_cast<float>(levels), inverse = scale > 0 ? 1 / scale : 0;
        float zero = rintf(-low * inverse);
        for (size_t p = threadIdx.x; p < k; p += blockDim.x) {
            float level = rintf(in[p] * inverse) + zero;
            level = level > 0 ? level : 0;
            level = level < static_cast<float>(levels) ? level : static_cast<float>(levels);
            to.levels[r * k + p] = static_cast<signed char>(static_cast<int>(level) - 128);
        }
        if (threadIdx.x == 0) {
            to.row_scale[r] = off == 0 ? scale : off;
            to.row_zero[r] = static_cast<int>(zero);
        }
    }
};

/* sum (u - z) w = sum (u - 128) w + (128 - z) sum w */
struct widened {
    const int *dots;
    float *c;
    const float *bias;
    packed_bytes parts;
    size_t n, ld, first;
    __device__ void operator()(size_t at) const
    {
        size_t i = at / n, j = at % n;
        double dot =
            static_cast<double>(dots[i * ld + j]) + (128 - static_cast<double>(parts.row_zero[i])) *
                                                        static_cast<double>(parts.sums[first + j]);
        float v = static_cast<float>(dot * static_cast<double>(parts.row_scale[i]) *
                                     static_cast<double>(parts.scales[first + j]));
        c[i * ld + j] = bias != NULL ? v + bias[j] : v;
    }
};

struct moved_levels { /* of a weight */
    const signed char *from;
    signed char *to;
    __device__ void operator()(size_t i) const
    {
        to[i] = from[i];
    }
};
struct moved_scales {
    const float *from;
    float *to;
    __device__ void operator()(size_t i) const
    {
        to[i] = from[i];
    }
};

} // namespace

/* ---- the slots ---- */

extern "C" void pnb__cuda_gemm(const pnb_ctx *ctx, const pnb__gemm_args *g)
{
    pnb__cuda_product p = pnb__cuda_product();
    p.trans_a = g->trans_a;
    p.trans_b = g->trans_b;
    p.lda = g->lda;
    p.ldb = g->ldb;
    p.batch_a = g->batch_a;
    p.batch_b = g->batch_b;
    p.a = g->a;
    p.b = g->b;
    multiply_and_end(ctx, g, p);
}

extern "C" size_t pnb__cuda_gemm_bf16_pack_bytes(size_t k, size_t n, int parts)
{
    return n * k * static_cast<size_t>(n_terms(parts)) * sizeof(unsigned short);
}

extern "C" void pnb__cuda_gemm_bf16_pack(const pnb_ctx *ctx, const pnb__gemm_args *g,
                                         const pnb__packed *to)
{
    pnb__cuda_each(ctx, g->n * g->k,
                   packed_half{g->b, static_cast<unsigned short *>(to->data), g->k, g->ldb,
                               g->trans_b, to->store, to->bf16_parts > 0 ? to->bf16_parts : 1});
}

extern "C" size_t pnb__cuda_gemm_bf16_work(size_t m, size_t k, int parts)
{
    return m * k * static_cast<size_t>(n_terms(parts)) * sizeof(unsigned short);
}

/* g->k counts once in args and `terms` times in the product. */
extern "C" void pnb__cuda_gemm_bf16(const pnb_ctx *ctx, const pnb__gemm_args *g)
{
    pnb__cuda_product p = pnb__cuda_product();
    pnb__gemm_args longer = *g;
    unsigned short *a = static_cast<unsigned short *>(g->work);
    int parts = g->packed->bf16_parts > 0 ? g->packed->bf16_parts : 1;
    longer.k = g->k * static_cast<size_t>(n_terms(parts));
    if (parts > 1)
        pnb__cuda_each(ctx, g->m * g->k,
                       parts_of_rows{static_cast<const float *>(g->a), a, g->k, g->lda, parts});
    else if (!g->a_halves)
        pnb__cuda_round_rows(ctx, g->a, g->m, g->k, g->lda, a);
    p.type = PNB__CUDA_BF16;
    p.trans_b = true;
    p.lda = g->a_halves ? g->lda : longer.k;
    p.ldb = longer.k;
    p.a = g->a_halves ? g->a : a;
    p.b = static_cast<const unsigned short *>(g->packed->data) + g->packed_first * longer.k;
    if (parts == 1 && !g->c_halves && is_plain(g) && g->residual == NULL && p.lda == g->k &&
        pnb__cuda_is_few_rows(g->m, g->k, p.b))
        pnb__cuda_multiply_few_rows(ctx, g, static_cast<const unsigned short *>(p.a),
                                    static_cast<const unsigned short *>(p.b));
    else if (g->c_halves)
        multiply_to_halves(ctx, &longer, p);
    else
        multiply_and_end(ctx, &longer, p);
}

/* What is in halves already needs no place. */
extern "C" size_t pnb__cuda_gemm_rounded_work(const pnb__gemm_args *g)
{
    const size_t m = g->a_halves ? 0 : g->m, n = g->b_halves ? 0 : g->n;
    return (m * g->k + 31 + n * g->k) * sizeof(unsigned short);
}

/* The factors as they lie, transposed or not, in halves: as they came, or rounded to `work`. */
extern "C" void pnb__cuda_gemm_rounded(const pnb_ctx *ctx, const pnb__gemm_args *g)
{
    pnb__cuda_product p = pnb__cuda_product();
    unsigned short *a = static_cast<unsigned short *>(g->work);
    unsigned short *b = g->a_halves ? a : a + (g->m * g->k + 31) / 32 * 32;
    size_t rows_a = g->trans_a ? g->k : g->m, rows_b = g->trans_b ? g->n : g->k;
    size_t width_a = g->trans_a ? g->m : g->k, width_b = g->trans_b ? g->k : g->n;
    p.type = PNB__CUDA_BF16;
    p.trans_a = g->trans_a;
    p.trans_b = g->trans_b;
    p.lda = g->a_halves ? g->lda : width_a;
    p.ldb = g->b_halves ? g->ldb : width_b;
    p.a = g->a_halves ? g->a : a;
    p.b = g->b_halves ? g->b : b;
    if (!g->a_halves)
        pnb__cuda_round_rows(ctx, g->a, rows_a, width_a, g->lda, a);
    if (!g->b_halves)
        pnb__cuda_round_rows(ctx, g->b, rows_b, width_b, g->ldb, b);
    if (g->c_halves)
        multiply_to_halves(ctx, g, p);
    else
        multiply_and_end(ctx, g, p);
}

extern "C" size_t pnb__cuda_gemm_i8_pack_bytes(size_t k, size_t n)
{
    return up_to_64(n * k) + n * (sizeof(float) + sizeof(int));
}

extern "C" void pnb__cuda_gemm_i8_pack(const pnb_ctx *ctx, const signed char *w, const void *scales,
                                       const pnb__packed *to)
{
    const packed_bytes parts = parts_of(to, 0, NULL);
    pnb__cuda_each(ctx, to->n * to->k, moved_levels{w, parts.w});
    pnb__cuda_each(ctx, to->n, moved_scales{static_cast<const float *>(scales), parts.scales});
    pnb__cuda_rows(ctx, to->n, row_sums{w, parts.sums, to->k});
}

extern "C" size_t pnb__cuda_gemm_i8_work(size_t m, size_t k)
{
    return up_to_64(m * k) + m * (sizeof(float) + sizeof(int));
}

/* Exact dots go to where the product ends, as int32, and become floats in place. */
extern "C" void pnb__cuda_gemm_i8(const pnb_ctx *ctx, const pnb__gemm_args *g)
{
    const pnb__packed *packed = g->packed;
    const packed_bytes parts = parts_of(packed, g->m, g->work);
    float *c = static_cast<float *>(g->c), *own = NULL, *to = c;
    size_t ld = g->ldc;
    if (g->pre != NULL)
        to = static_cast<float *>(g->pre);
    else if (g->residual == g->c)
        to = own = static_cast<float *>(pnb__cuda_borrow(ctx, g->m * g->n * sizeof *own));
    if (own != NULL)
        ld = g->n;
    if (to == NULL)
        return;
    pnb__cuda_rows(
        ctx, g->m,
        levels_of_row{static_cast<const float *>(g->a), g->k, g->lda, packed->levels, parts});
    pnb__cuda_product p = pnb__cuda_product();
    p.type = PNB__CUDA_I8;
    p.trans_b = true;
    p.m = g->m;
    p.n = g->n;
    p.k = g->k;
    p.lda = p.ldb = g->k;
    p.ldc = p.ldd = ld;
    p.n_batch = 1;
    p.alpha = 1;
    p.a = parts.levels;
    p.b = parts.w + g->packed_first * g->k;
    p.c = to;
    pnb__cuda_multiply(ctx, &p);
    pnb__cuda_each(ctx, g->m * g->n,
                   widened{reinterpret_cast<const int *>(to), to,
                           static_cast<const float *>(g->bias), parts, g->n, ld, g->packed_first});
    if (!is_plain(g) || g->residual != NULL)
        pnb__cuda_each(ctx, g->m * g->n,
                       ending{g->act, g->m, g->n, ld, g->ldc, g->ld_residual, 0, 0, to,
                              static_cast<const float *>(g->col_scale),
                              static_cast<const float *>(g->residual), c});
    pnb__cuda_return(ctx, own);
}
