/* Row 1: the loops, behind one table per real type.
 *
 * A kernel gets pointers, sizes, strides (in elements) and a workspace; it allocates nothing and
 * cannot fail on checked sizes. `ref` fills the whole table in plain C, then `cpu` overwrites slots
 * with BLAS and SIMD, then `cuda` may. Above this folder pointers are opaque: only the mem_ slots
 * move bytes between host and device. All matrices are row-major. Pointers are float* in the f32
 * table and double* in the f64 one, hence void*. Outputs never overlap inputs unless a slot says
 * so.
 *
 * Everywhere: `accumulate` false means "write", true means "add to what is there".
 * Same inputs, same table and same thread count give the same bits (no atomics, fixed splits). */
#ifndef PNB_KERNELS_KERNELS_H
#define PNB_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

typedef enum pnb__real { PNB__F32, PNB__F64 } pnb__real;
#define PNB__REAL_SIZE(real) ((real) == PNB__F32 ? sizeof(float) : sizeof(double))

/* X(NAME, name): y = f(x); GELU is the erf form, GELU_TANH the tanh form, QUICK_GELU x*s(1.702x).
 * SOFTPLUS, LOG_SIGMOID and SIGMOID must neither overflow nor lose the tail; AFFINE = alpha*x+beta.
 * RSQRT_EPS = 1/sqrt(x + beta). CLAMP_EXP = exp(min(x, alpha)). LOG/SQRT/RECIP as in C. */
#define PNB__UNARY_LIST(X)                                                                         \
    X(EXP, exp)                                                                                    \
    X(LOG, log)                                                                                    \
    X(SQRT, sqrt)                                                                                  \
    X(SQUARE, square)                                                                              \
    X(ABS, abs)                                                                                    \
    X(RECIP, recip)                                                                                \
    X(SIN, sin)                                                                                    \
    X(COS, cos)                                                                                    \
    X(TANH, tanh)                                                                                  \
    X(SIGMOID, sigmoid)                                                                            \
    X(LOG_SIGMOID, log_sigmoid)                                                                    \
    X(SOFTPLUS, softplus)                                                                          \
    X(RELU, relu)                                                                                  \
    X(GELU, gelu)                                                                                  \
    X(GELU_TANH, gelu_tanh)                                                                        \
    X(QUICK_GELU, quick_gelu)                                                                      \
    X(AFFINE, affine)
typedef enum pnb__unary {
#define PNB__UNARY_ENUM(NAME, name) PNB__##NAME,
    PNB__UNARY_LIST(PNB__UNARY_ENUM)
#undef PNB__UNARY_ENUM
        PNB__N_UNARY,
    PNB__IDENTITY = -1 /* for epilogues: no activation */
} pnb__unary;

typedef enum pnb__binary { PNB__ADD, PNB__SUB, PNB__MUL, PNB__DIV, PNB__N_BINARY } pnb__binary;

/* How a weight is kept in memory: in the table's real type or in something smaller. */
typedef enum pnb__store {
    PNB__STORE_REAL,
    PNB__STORE_BF16,
    PNB__STORE_F16,
    PNB__STORE_I8 /* signed bytes and a scale for each output channel */
} pnb__store;

/* A factor (k,n) rearranged once into the order in which the products of one table read it, by
 * gemm_pack. Columns are found in groups: see gemm_group. data is NULL while there is none. */
typedef struct pnb__packed {
    size_t k, n, bytes;
    void *data;
    pnb__store store;
    int levels; /* of STORE_I8: what the other factor is rounded to */
} pnb__packed;

/* c = act(alpha * op(a) * op(b) + bias) * col_scale + residual, or += the product when beta is 1.
 * op(a) is (m,k), op(b) is (k,n). With n_batch > 1 every operand steps by its batch stride.
 * beta is 0 or 1; 1 excludes the epilogue (bias, act, col_scale, residual all absent).
 * residual may be c itself. pre, when not NULL, receives the input of act (same layout as c).
 * packed, when not NULL, is read instead of b from its column packed_first on: k is that of packed,
 * alpha and bits are those of the product with b. Not with n_batch > 1. */
typedef struct pnb__gemm_args {
    bool trans_a, trans_b;
    size_t m, n, k, lda, ldb, ldc;
    size_t n_batch, batch_a, batch_b, batch_c;
    double alpha;
    int beta;
    const void *a, *b;
    void *c;
    const void *bias;      /* (n) or NULL */
    pnb__unary act;        /* PNB__IDENTITY for none */
    const void *col_scale; /* (n) or NULL: LayerScale */
    const void *residual;  /* (m,n), rows ld_residual apart, or NULL; not with n_batch > 1 */
    size_t ld_residual;
    void *pre; /* (m,n) rows ldc apart, or NULL */
    const pnb__packed *packed;
    size_t packed_first; /* a multiple of the table's gemm_group */
    void *work;          /* gemm_i8 only: gemm_i8_work bytes */
} pnb__gemm_args;

/* Activations of an integer product are rounded to this many levels above 0. In 7 bits the sums of
 * two products of bytes fit 16 bits, where AVX2's multiply-add saturates; 8 bits are as fast with
 * VNNI and slower than floats without. */
#define PNB__I8_LEVELS_7BIT 127
#define PNB__I8_LEVELS_8BIT 255
#define PNB__I8_LEAST_RANGE 1e-30f /* a row whose values differ by less counts as zero */

/* Multi-head attention of one batch: out = softmax(scale * Q K^T [+ masks]) V per head.
 * Element (b, t, h, d) of q lies at q + b*batch_q + t*row_q + h*head_dim + d; k and v alike with
 * batch_kv and row_kv; out is like q with batch_out, row_out. lse (B,H,n_q) receives
 * log-sum-exp of the scaled scores (needed by backward); NULL when not wanted.
 * causal: query i (aligned to the end: position n_kv - n_q + i) sees keys <= its position.
 * kv_len: number of valid keys of each batch item, or NULL for all. Never holds n_q x n_kv for a
 * whole batch: the workspace is per thread. */
typedef struct pnb__attention_args {
    size_t n_batch, n_heads, n_q, n_kv, head_dim;
    size_t batch_q, row_q, batch_kv, row_kv, batch_out, row_out;
    const void *q, *k, *v;
    void *out, *lse;
    bool causal;
    const int32_t *kv_len;
    double scale;
    void *work; /* attention_work(...) bytes */
    /* backward only: gradients laid out exactly like their values; written or accumulated */
    const void *d_out;
    void *dq, *dk, *dv;
    bool accumulate_q, accumulate_kv;
} pnb__attention_args;

/* LayerNorm over the last axis: y = (x - mean) * rstd * w + b; w and b may be NULL (1 and 0).
 * mean and rstd (rows) are written by forward and read by backward; NULL allowed in forward.
 * Backward: dx from dy, x, mean, rstd; dw, db (NULL allowed) summed over rows in fixed order using
 * work (layernorm_work bytes). Forward allows y == x. */
typedef struct pnb__layernorm_args {
    size_t rows, width;
    double eps;
    const void *x, *w, *b;
    void *y, *mean, *rstd;
    const void *dy;
    void *dx, *dw, *db, *work;
    bool accumulate_x, accumulate_w;
} pnb__layernorm_args;

/* Element-wise with broadcasting over up to 5 dims: a stride of 0 repeats. y is contiguous. */
#define PNB__DIMS 5
typedef struct pnb__binary_args {
    pnb__binary op;
    size_t dims[PNB__DIMS];                          /* outermost first, padded with 1 */
    size_t stride_a[PNB__DIMS], stride_b[PNB__DIMS]; /* 0 where broadcast */
    const void *a, *b;
    void *y;
    /* backward: which = 0 for da, 1 for db; sums over broadcast axes into d (in a fixed order) */
    const void *dy;
    void *d;
    int which;
    bool accumulate;
} pnb__binary_args;

/* Copies (or adds) a strided block of up to 5 dims. */
typedef struct pnb__copy_args {
    size_t dims[PNB__DIMS], stride_src[PNB__DIMS], stride_dst[PNB__DIMS];
    const void *src;
    void *dst;
    bool accumulate;
} pnb__copy_args;

/* Gaussian rows against each other, element by element; see SPEC of `inclusion` in docs/numerics.
 * h[i] = inc(1,2) - inc(2,1) per dimension from m1, lv1, m2, lv2 (n elements each).
 * published: the form of the ProLIP code, with precision factor exp(eps); else the exact integral.
 * Finite values and gradients for log-variances in [-30, 30] (f32 too). */
typedef struct pnb__inclusion_args {
    size_t n;
    bool published;
    double eps;
    const void *m1, *lv1, *m2, *lv2;
    void *h;
    const void *dh;
    void *dm1, *dlv1, *dm2, *dlv2; /* any may be NULL */
    bool accumulate[4];
} pnb__inclusion_args;

/* Many rows against few: c[i][j] = a_i . b_j, i < m, j < n. Any n is right, up to about 16 is what
 * it is for: a is read once, at the speed of memory. */
typedef struct pnb__dots_args {
    size_t m, n, k, lda, ldb, ldc;
    const void *a, *b;
    void *c;
} pnb__dots_args;

/* Sums over d of inclusion's terms for every row of 1 (n1) against every row of 2 (n2), variances
 * in place of their logarithms. With S12 = v1 + 2 v2, S21 = v2 + 2 v1, delta = m1 - m2:
 *   h[i][j] = weight_log sum log(S21/S12) + weight_distance sum delta^2 (v2 - v1)/(S12 S21)
 *   spread[i][j] = |weight_distance| sum delta^2 (S12 + S21)/(S12 S21), >= 3 |second sum|
 * Rows are `width` apart, results ld. Every v > 0; (S12 S21) must be a normal number. */
typedef struct pnb__inclusion_rows_args {
    size_t n1, n2, width, ld;
    const void *m1, *v1, *m2, *v2;
    double weight_log, weight_distance;
    void *h, *spread;
} pnb__inclusion_rows_args;

typedef struct pnb__conv_args { /* im2col of x (B,C,H,W) into col (B, OH*OW, C*KH*KW), and its
                                   adjoint */
    size_t n_batch, channels, height, width, kernel_h, kernel_w, stride, pad, dilation;
    size_t out_h, out_w;
    const void *x;
    void *col;
    const void *dcol;
    void *dx;
    bool accumulate;
} pnb__conv_args;

/* One GRU step as torch.nn.GRU: gx = W_ih x + b_ih and gh = W_hh h + b_hh, (rows, 3*width) each in
 * the order r, z, n; h_new = (1-z)*n + z*h. Backward needs gx, gh, h again; gives dgx, dgh, dh. */
typedef struct pnb__gru_args {
    size_t rows, width;
    const void *gx, *gh, *h;
    void *h_new;
    const void *dh_new;
    void *dgx, *dgh, *dh;
    bool accumulate_gx, accumulate_gh, accumulate_h;
} pnb__gru_args;

/* One buffer of a flat list: n numbers. */
typedef struct pnb__flat {
    void *data;
    size_t n;
} pnb__flat;

/* One parameter in an optimiser's list: n contiguous values are updated in place. See
 * include/penumbra/optim.h for the algorithms; step counts from 1. adamp: rows x cols is the
 * (channel) view of the parameter. */
typedef struct pnb__optim_args {
    size_t n, rows, cols;
    void *param;
    const void *grad; /* multiplied by grad_scale (clipping, accumulation) before use */
    void *m, *v;      /* first and second moment; m is the momentum buffer of sgd */
    double grad_scale, lr, beta1, beta2, eps, weight_decay, momentum, dampening;
    double delta, wd_ratio; /* AdamP / SGDP */
    bool nesterov, project; /* project: parameter has more than one dimension */
    int64_t step;
} pnb__optim_args;

/* X-free table: one slot per loop. `ctx` gives threads. n is always a count of elements. */
typedef struct pnb__kernels {
    const char *name; /* "ref", "cpu-avx2", ... */
    pnb__real real;

    bool host_memory; /* device memory is host memory: a file map can be used as it lies */

    /* memory of the device; host code touches device bytes through these only */
    void *(*mem_alloc)(
        size_t bytes); /* 64-byte aligned (huge pages where it helps); NULL = none left */
    void (*mem_free)(void *p, size_t bytes);
    void (*mem_write)(void *device, const void *host, size_t bytes);
    void (*mem_read)(void *host, const void *device, size_t bytes);
    void (*mem_zero)(const pnb_ctx *ctx, void *device, size_t bytes);

    void (*gemm)(const pnb_ctx *ctx, const pnb__gemm_args *a);
    /* For a factor of many products. Bytes of op(b) (k,n) packed, and packing it from b, ldb and
     * trans_b of the arguments into to->data; NULL and gemm_group 0 in a table that gains nothing.
     * b holds what to->store says, reals or halves (STORE_I8: see below); halves stay halves and
     * are widened in the product, which is as exact as with the widened weight. */
    size_t (*gemm_pack_bytes)(size_t k, size_t n, pnb__store store);
    void (*gemm_pack)(const pnb_ctx *ctx, const pnb__gemm_args *a, const pnb__packed *to);
    size_t gemm_group;
    /* The product with a weight of signed bytes: b is packed from W (n,k), W[j][p] = scales[j] *
     * byte, trans_b set, alpha 1, beta 0, n_batch 1, k < 2^16. Each row of a is rounded to
     * s (u - z), u in 0..packed->levels, from its least and greatest value and 0. Sums are exact;
     * scales and epilogue are in the table's real type. A row that is not finite gives NaN. */
    size_t (*gemm_i8_pack_bytes)(size_t k, size_t n);
    void (*gemm_i8_pack)(const pnb_ctx *ctx, const signed char *w, const void *scales,
                         const pnb__packed *to);
    size_t (*gemm_i8_work)(size_t m, size_t k);
    void (*gemm_i8)(const pnb_ctx *ctx, const pnb__gemm_args *a);
    size_t gemm_i8_group; /* packed_first is a multiple of it */
    size_t (*attention_work)(const pnb_ctx *ctx, const pnb__attention_args *a, bool backward);
    void (*attention)(const pnb_ctx *ctx, const pnb__attention_args *a);
    void (*attention_bwd)(const pnb_ctx *ctx, const pnb__attention_args *a);
    size_t (*layernorm_work)(const pnb_ctx *ctx, size_t rows, size_t width);
    void (*layernorm)(const pnb_ctx *ctx, const pnb__layernorm_args *a);
    void (*layernorm_bwd)(const pnb_ctx *ctx, const pnb__layernorm_args *a);

    /* y may be x. Backward: dx (=|+=) dy * f'(x); gets both x and y (y may be NULL unless the op is
     * EXP, SQRT, RECIP, TANH or SIGMOID, x may be NULL for those); dx may be dy when not adding. */
    void (*unary)(const pnb_ctx *ctx, pnb__unary op, size_t n, double alpha, double beta,
                  const void *x, void *y);
    void (*unary_bwd)(const pnb_ctx *ctx, pnb__unary op, size_t n, double alpha, const void *x,
                      const void *y, const void *dy, void *dx, bool accumulate);
    void (*binary)(const pnb_ctx *ctx,
                   const pnb__binary_args *a); /* y may be an unbroadcast input */
    void (*binary_bwd)(const pnb_ctx *ctx, const pnb__binary_args *a);
    void (*copy)(const pnb_ctx *ctx, const pnb__copy_args *a);
    void (*axpy)(const pnb_ctx *ctx, size_t n, double alpha, const void *x,
                 void *y); /* y += alpha x */
    void (*fill)(const pnb_ctx *ctx, size_t n, double value, void *y);

    /* x (outer, n, inner) -> y (outer, inner) = scale * sum over n; backward spreads dy. */
    void (*sum)(const pnb_ctx *ctx, size_t outer, size_t n, size_t inner, double scale,
                const void *x, void *y, bool accumulate);
    void (*sum_bwd)(const pnb_ctx *ctx, size_t outer, size_t n, size_t inner, double scale,
                    const void *dy, void *dx, bool accumulate);
    /* Over all buffers of the list, in f64, added up in their order: one number comes back. */
    double (*sum_squares)(const pnb_ctx *ctx, const pnb__flat *buffers, size_t n_buffers);
    bool (*all_finite)(const pnb_ctx *ctx, size_t n, const void *x);

    /* rows of `width`; y may be x. log: log-softmax. Backward uses y only. */
    void (*softmax)(const pnb_ctx *ctx, size_t rows, size_t width, bool log, const void *x,
                    void *y);
    void (*softmax_bwd)(const pnb_ctx *ctx, size_t rows, size_t width, bool log, const void *y,
                        const void *dy, void *dx, bool accumulate);
    /* loss[r] = lse(x[r]) - x[r][target[r]]; lse (rows) kept for backward. Targets are checked. */
    void (*cross_entropy)(const pnb_ctx *ctx, size_t rows, size_t width, const void *x,
                          const int32_t *target, void *loss, void *lse);
    void (*cross_entropy_bwd)(const pnb_ctx *ctx, size_t rows, size_t width, const void *x,
                              const int32_t *target, const void *lse, const void *dloss, void *dx,
                              bool accumulate);
    /* y = x / max(||x||, eps) per row; inv_norm (rows) kept for backward. y may be x. */
    void (*l2_normalize)(const pnb_ctx *ctx, size_t rows, size_t width, double eps, const void *x,
                         void *y, void *inv_norm);
    void (*l2_normalize_bwd)(const pnb_ctx *ctx, size_t rows, size_t width, double eps,
                             const void *y, const void *inv_norm, const void *dy, void *dx,
                             bool accumulate);
    /* d2[i][j] = ||x_i - y_j||^2, i < m, j < n; exact zeros for equal rows; backward needs x, y. */
    void (*pairwise_sqdist)(const pnb_ctx *ctx, size_t m, size_t n, size_t width, const void *x,
                            const void *y, void *d2);
    void (*pairwise_sqdist_bwd)(const pnb_ctx *ctx, const size_t mnw[3], const void *x,
                                const void *y, const void *dd2, void *dx, void *dy,
                                const bool accumulate[2]); /* dx or dy may be NULL */

    /* y[i] = table[ids[i]], rows of `width`; backward adds rows in order of i (deterministic). */
    void (*gather_rows)(const pnb_ctx *ctx, size_t n, size_t width, const void *table,
                        const int32_t *ids, void *y);
    void (*scatter_add_rows)(const pnb_ctx *ctx, size_t n, size_t n_table, size_t width,
                             const void *dy, const int32_t *ids, void *dtable);
    /* x (B,3,H,W) -> y (B, H/p*W/p, 3*p*p), patch features ordered channel, y, x; and its adjoint
     */
    void (*patchify)(const pnb_ctx *ctx, const size_t bchw[4], size_t patch, const void *x,
                     void *y);
    void (*patchify_bwd)(const pnb_ctx *ctx, const size_t bchw[4], size_t patch, const void *dy,
                         void *dx, bool accumulate);
    void (*im2col)(const pnb_ctx *ctx, const pnb__conv_args *a);
    void (*col2im)(const pnb_ctx *ctx, const pnb__conv_args *a);
    void (*gru)(const pnb_ctx *ctx, const pnb__gru_args *a);
    void (*gru_bwd)(const pnb_ctx *ctx, const pnb__gru_args *a);

    /* y = keep ? x/(1-p) : 0; keep(i) from Philox(seed, stream, i): the same map gives backward. */
    void (*dropout)(const pnb_ctx *ctx, size_t n, double p, uint64_t seed, uint64_t stream,
                    const void *x, void *y, bool accumulate);
    /* the k largest of each row, descending, ties to the lower index; k <= width */
    void (*top_k)(const pnb_ctx *ctx, size_t rows, size_t width, size_t k, const void *x,
                  void *values, int32_t *indices);
    void (*inclusion)(const pnb_ctx *ctx, const pnb__inclusion_args *a);
    void (*inclusion_bwd)(const pnb_ctx *ctx, const pnb__inclusion_args *a);
    void (*inclusion_rows)(const pnb_ctx *ctx, const pnb__inclusion_rows_args *a);
    void (*dots)(const pnb_ctx *ctx, const pnb__dots_args *a);

    /* Lower Cholesky factor of a (n,n) (lower triangle read), zeros above the diagonal. Returns
     * false when a is not positive definite. Solve: x (n,m) from op(L) x = b, op by transpose. */
    bool (*cholesky)(const pnb_ctx *ctx, size_t n, const void *a, void *l);
    void (*tri_solve)(const pnb_ctx *ctx, size_t n, size_t m, bool transpose, const void *l,
                      const void *b, void *x); /* x may be b */

    /* All parameters of a list at once; nothing comes back to the host. */
    void (*sgd)(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list);
    void (*adam)(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list); /* L2 decay */
    void (*adamw)(const pnb_ctx *ctx, const pnb__optim_args *list,
                  size_t n_list); /* decay decoupled, before the update */
    void (*adamp)(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list);
    void (*sgdp)(const pnb_ctx *ctx, const pnb__optim_args *list, size_t n_list);
} pnb__kernels;

/* Fills a table for this context: ref, then what ctx->device and ctx->isa allow on top. */
void pnb__kernels_fill(pnb__kernels *k, const pnb_ctx *ctx, pnb__real real);

/* The layers, for pnb__kernels_fill and for tests that compare one with another. */
void pnb__kernels_ref_f32(pnb__kernels *k);
void pnb__kernels_ref_f64(pnb__kernels *k);
/* rows_alone: no row of a result may depend on how many rows there are. */
void pnb__kernels_cpu_f32(pnb__kernels *k, pnb_isa isa, bool rows_alone);
void pnb__kernels_cpu_f64(pnb__kernels *k, pnb_isa isa);

#endif
