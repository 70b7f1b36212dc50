/* Row 1: the loops, behind one table per real type.
 *
 * A kernel gets pointers, sizes, strides (in elements) and a workspace; it allocates nothing and
 * cannot fail on checked sizes; only the mem_ slots may. `ref` fills the whole table in plain C,
 * then `cpu` overwrites slots with BLAS and SIMD, then `cuda` may; the slots are listed once, in
 * kernels.def. Above this folder pointers are opaque: only the mem_ slots move bytes between host
 * and device. All matrices are row-major. Pointers are float* in the f32 table and double* in the
 * f64 one, hence void*. Outputs never overlap inputs unless a slot says so.
 *
 * Everywhere: `accumulate` false means "write", true means "add to what is there".
 * Same inputs, same table and same thread count give the same bits (no atomics, fixed splits). */
#ifndef PNB_KERNELS_KERNELS_H
#define PNB_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "kernels/loss_args.h"

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
    int levels;     /* of STORE_I8: what the other factor is rounded to */
    bool is_conv2d; /* by conv2d_pack, which has an order of its own */
    int bf16_parts; /* by gemm_bf16_pack, likewise, in so many; store is what it was packed from */
} pnb__packed;

/* c = act(alpha * op(a) * op(b) + bias) * col_scale + residual, or += the product when beta is 1.
 * op(a) is (m,k), op(b) is (k,n). With n_batch > 1 every operand steps by its batch stride.
 * beta is 0 or 1; 1 excludes the epilogue (bias, act, col_scale, residual all absent).
 * residual may be c itself. pre, when not NULL, receives the input of act (same layout as c).
 * packed, when not NULL, is read instead of b from its column packed_first on: k is that of packed,
 * alpha and bits are those of the product with b. Not with n_batch > 1.
 * By tables with halves_head_dim, of products that round (gemm_rounded, and gemm_bf16 where
 * halves_gain): a_halves, b_halves (gemm_rounded alone): the factor is bfloat16, and needs no
 * rounding, gemm_bf16 no work then; c_halves: c and pre are written as bfloat16 (beta, col_scale
 * and residual absent). */
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
    void *work;          /* of gemm_i8, gemm_bf16, gemm_rounded: bytes of their _work */
    bool a_halves, b_halves, c_halves;
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
 * whole batch: the workspace is per thread.
 * rounds: factors of all four products (forward: q, k, the weights, v) may be rounded to bfloat16,
 * which tables with halves_gain do; sums are floats; halves: q, k, v, out and their gradients are
 * bfloat16 themselves, and nothing is accumulated. Both may be asked of tables with halves_head_dim
 * alone, halves up to that. */
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
    bool rounds, halves;
} pnb__attention_args;

/* LayerNorm over the last axis: y = (x - mean) * rstd * w + b; w and b may be NULL (1 and 0).
 * mean and rstd (rows) are written by forward and read by backward; NULL allowed in forward.
 * Backward: dx from dy, x, mean, rstd; dw, db (NULL allowed) summed over rows in fixed order using
 * work (layernorm_work bytes). Forward allows y == x.
 * halves: y is written as bfloat16 (not over x), and dy is read so, by tables with halves_head_dim.
 */
typedef struct pnb__layernorm_args {
    size_t rows, width;
    double eps;
    const void *x, *w, *b;
    void *y, *mean, *rstd;
    const void *dy;
    void *dx, *dw, *db, *work;
    bool accumulate_x, accumulate_w;
    bool halves;
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

/* Products of rows of bfloat16: c[i][j] = a_i . b_j, i < m, in floats. k is even, rows of a are lda
 * apart; b is packed in panels of 32 rows: element d of row j stands at
 * ((j/32 k/2 + d/2) 32 + j%32) 2 + d%2. Each sum of k products is right to 2 k 2^-24 |a_i| |b_j|.
 * Its order is the instruction's: see gemm_bf16. Of several terms one sum is made, in their order.
 */
#define PNB__BF16_PANEL 32
typedef struct pnb__bf16_term {
    size_t a, b; /* halves behind a and behind b */
} pnb__bf16_term;
typedef struct pnb__bf16_args {
    size_t m, n_panels, k, lda, ldc;
    const uint16_t *a, *b;
    float *c;                      /* rows of at least 32 n_panels */
    size_t panel_step;             /* halves from a panel of b to the next; 0: 32 k */
    struct pnb__tile_later *later; /* what may be fetched meanwhile; NULL: nothing */
    const pnb__bf16_term *terms;   /* NULL: one, a and b as they are */
    size_t n_terms;
} pnb__bf16_args;
static inline size_t pnb__bf16_n_terms(const pnb__bf16_args *g)
{
    return g->terms != NULL ? g->n_terms : 1;
}
/* Rows i.. of a and the panel of b in term t. */
static inline const uint16_t *pnb__bf16_rows(const pnb__bf16_args *g, size_t i, size_t t)
{
    return g->a + i * g->lda + (g->terms != NULL ? g->terms[t].a : 0);
}
static inline const uint16_t *pnb__bf16_columns(const pnb__bf16_args *g, size_t panel, size_t t)
{
    size_t step = g->panel_step != 0 ? g->panel_step : PNB__BF16_PANEL * g->k;
    return g->b + panel * step + (g->terms != NULL ? g->terms[t].b : 0);
}

/* Lists of the columns that score highest, one to a row: `kept` numbers, from the highest score
 * down, of equal ones the lower number first, PNB__BEST_NONE with -infinity behind the last.
 * Columns are numbered from `first`. NaN and -infinity are never kept. halves: scores are bfloat16,
 * by tables with halves_head_dim. */
#define PNB__BEST_MOST 1024 /* that are kept */
#define PNB__BEST_NONE UINT32_MAX
typedef struct pnb__best_args {
    size_t m, n, ld;           /* scores (m, n), rows ld apart */
    const void *scores;        /* reals */
    bool halves;               /* scores are bfloat16 */
    const unsigned char *only; /* (n) 0: never kept; NULL: all may be */
    uint32_t first;
    size_t kept;     /* 1 .. PNB__BEST_MOST */
    bool goes_on;    /* the lists hold what was found before, under other numbers; else nothing */
    void *best;      /* (m, kept) reals */
    uint32_t *which; /* (m, kept) */
} pnb__best_args;

/* Rows rounded to bfloat16, to nearest: row i of x at to + i ld_to, zeros from `width` up to ld_to.
 * off[i] is no less than the length of what rounding took from it, numbers below the normal range
 * as 0, and for normal floats no more than 1.01 of it and sqrt(width) 2^-74. */
typedef struct pnb__halve_args {
    size_t rows, width, ld, ld_to;
    const void *x;
    uint16_t *to;
    double *off;
} pnb__halve_args;

/* Inner products of a few rows with a few, both in bfloat16 and lying as they are:
 * c[i][j] = a_i . b_j, each right to 2 k 2^-24 |a_i| |b_j|, k even. */
typedef struct pnb__bf16_dots_args {
    size_t m, n, k, lda, ldb, ldc;
    const uint16_t *a, *b;
    float *c;
} pnb__bf16_dots_args;

/* c[i][j] = sum of a_i b_j over 4 groups bytes, a without a sign and b with one: exact. a lies in
 * tiles of 14 rows, b in panels of 32: byte d of row i stands at
 * ((i/14 groups + d/4) 14 + i%14) 4 + d%4, of b with 32 in place of 14. groups <= 16 384. */
#define PNB__I8_TILE 14
#define PNB__I8_PANEL 32
typedef struct pnb__i8_args {
    size_t m, n_panels, groups, ldc;
    const unsigned char *a;
    const signed char *b;
    int32_t *c;
} pnb__i8_args;

/* Rows rounded to bytes with a sign, x ~ scale q: row i of x at to + i ld_to, zeros from `width` up
 * to ld_to; sum of its q. off[i] is no less than the length of what rounding took from it, and no
 * more than 1.01 of it and sqrt(width) (2^-15 scale + 2^-74); a row of numbers below 1e-30 is zeros
 * with a scale of 0. */
typedef struct pnb__byte_rows_args {
    size_t rows, width, ld, ld_to;
    const void *x;
    signed char *to;
    float *scale; /* floats in every table */
    double *off;
    int32_t *sum;
} pnb__byte_rows_args;

/* What rounding to bytes leaves of the samples of a side: row x is x' = scale q. */
typedef struct pnb__sample_side {
    const float *scale, *square, *length, *off; /* |x|^2; length and off: see below */
    const int32_t *sum;                         /* 128 times the sum of q: side 2 */
} pnb__sample_side;
/* Bounds on the values of sample_pairs from products p = sum (q1 + 128) q2 of such rows, placed as
 * there: no pair of samples is nearer than d2 = square1 + square2 - 2 scale1 scale2 (p - sum2) -
 * off1 length2 - length1 off2 less what floats round, for off = 2 |x - x'| of both, length1 = |x'|
 * and length2 = |y|.
 *   is_match:  value[i][q] >= mean_ab s(b - a sqrt(d2 + 1e-6)), a >= 0
 *   otherwise: value[i][q] <= mean_ab sqrt(d2) */
typedef struct pnb__sample_nearest_args {
    size_t n1, n2, n_samples, ld_product, ld_sample, ld;
    bool is_match;
    double a, b;
    const int32_t *products;
    pnb__sample_side one, two; /* [n1 J], [J][ld_sample] */
    void *value;               /* (n1, n2) rows ld apart */
} pnb__sample_nearest_args;

/* Samples of n1 rows against those of n2 others, from products: row i J + a of them is sample a of
 * row i, column b ld_sample + q sample b of row q. With d2 = square1 + square2 - 2 product:
 *   is_match:  value[i][q] = mean_ab s(b - a sqrt(d2 + 1e-6))
 *   otherwise: value[i][q] = mean_ab sqrt(d2)
 * spread[i][q] bounds the distance from the true value, for products that are right to
 * `relative` (square1 + square2) / 2 and samples that are off by a length of `off1` and `off2`. */
typedef struct pnb__sample_pairs_args {
    size_t n1, n2, n_samples, ld_product, ld_sample, ld;
    bool is_match;
    double a, b, relative;
    const void *products, *square1, *square2; /* (n1 J), (J, ld_sample) */
    const void *off1, *off2;                  /* the same */
    void *value, *spread;                     /* (n1, n2) rows ld apart */
} pnb__sample_pairs_args;

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

/* 2-D convolution as torch.nn.Conv2d without bias, dilation or groups, on pictures whose channels
 * lie innermost: x (B,H,W,C) and w (O,C,KH,KW) give y (B,OH,OW,O),
 *   y[b][i][j][o] = sum_{u,v,c} x[b][i stride + u - pad][j stride + v - pad][c] w[o][c][u][v],
 * zero outside x; then y = relu(y * scale[o] + shift[o] + residual). Sums of y over channels and
 * taps are in a fixed order: no picture depends on another one of the batch. */
enum { PNB__CONV2D_TAPS = 256 };
typedef enum pnb__conv2d_pass { PNB__CONV2D, PNB__CONV2D_DX, PNB__CONV2D_DW } pnb__conv2d_pass;
typedef struct pnb__conv2d_args {
    size_t n_batch, height, width, channels, out_channels;
    size_t kernel_h, kernel_w, stride, pad, out_h, out_w; /* at most PNB__CONV2D_TAPS taps */
    const void *x, *w;
    const void *packed;        /* conv2d: w packed by conv2d_pack, or NULL */
    void *y;                   /* conv2d */
    const void *scale, *shift; /* (O), both or none */
    const void *residual;      /* like y, or NULL; not y itself */
    bool relu;
    const void *dy; /* conv2d_dx, conv2d_dw */
    void *dx, *dw;
    bool accumulate; /* of dx or dw */
    void *work;      /* conv2d_work(...) bytes of the pass */
} pnb__conv2d_args;

/* Batch normalisation of x (rows, width), each channel over all rows (Ioffe and Szegedy 2015):
 *   y = relu((x - mean) * rstd * w + b + residual),  rstd = (var + eps)^-1/2
 * batchnorm_moments  frozen: mean and rstd from the running buffers. Else from x, with the biased
 *                    variance; running = (1 - momentum) running + momentum new, where the new
 *                    variance is the unbiased one, as torch; rows >= 2. NULL running: not updated.
 * batchnorm_fold     scale = w rstd and shift = b - mean w rstd, frozen
 * batchnorm_bwd      dz = dy where y > 0 (by y when there is a residual, else made again from x),
 *                    put into dy's place when there is a residual; then d_residual, dw, db and dx
 *                    of dz: through the moments too unless frozen. Any of these may be NULL. */
typedef struct pnb__batchnorm_args {
    size_t rows, width;
    double eps, momentum;
    bool frozen, relu;
    const void *x, *w, *b, *residual;
    void *running_mean, *running_var;
    void *mean, *rstd; /* (width): written by batchnorm_moments, read by the others */
    void *scale, *shift;
    void *y;
    void *dy, *dx, *dw, *db, *d_residual; /* d_residual may be dy */
    bool accumulate_x, accumulate_w, accumulate_b, accumulate_residual;
    void *work; /* batchnorm_work(...) bytes, of moments and backward */
} pnb__batchnorm_args;

/* Maximum over windows of x (B,H,W,C) -> y (B,OH,OW,C) as torch.nn.MaxPool2d: what lies outside is
 * less than everything, NaN is more; of equal ones the first counts, rows before columns. */
typedef struct pnb__pool_args {
    size_t n_batch, height, width, channels, kernel, stride, pad, out_h, out_w;
    const void *x;
    void *y;
    unsigned char *which; /* (B,OH,OW,C) tap of the maximum, row * kernel + column; kernel < 16 */
    const void *dy;
    void *dx;
    bool accumulate;
} pnb__pool_args;

/* One step of a GRU as torch.nn.GRU for `rows` sequences that go on: gx = W_ih x + b_ih and
 * gh = W_hh h + b_hh, 3*width each in the order r, z, n; out = (1-z)*n + z*h.
 * Row i reads gx at row at[i] and writes out at row out_at[i] (NULL: row i); h, gh, gates and
 * h_next are in the order of i. Rows of gh are ld_gh apart: 0 where all have the same. h NULL: 0.
 * gates (rows, 4*width) or NULL: r, z, n and the n part of gh for backward; may be gh where ld_gh
 * is 4*width. h_next (n_next, width) or NULL: out of the first n_next rows again; may be h.
 * Backward reads gates and h. A row gets its gradient from d_next (of its state after this step,
 * for i < n_next) and from d_out, there only if i >= n_next when d_out_ends. dgh may be gates where
 * ld_dgh is 4*width, dh may be d_next; any of the three gradients may be NULL. */
typedef struct pnb__gru_args {
    size_t rows, width, n_next;
    const int32_t *at, *out_at;
    const void *gx, *gh, *h;
    size_t ld_gh;
    void *gates, *out, *h_next;
    const void *d_out, *d_next;
    bool d_out_ends;
    void *dgx, *dgh, *dh;
    size_t ld_dgh;
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

/* Slots that only host memory has: see host.def. */
typedef struct pnb__host_kernels {
#define PNB__KERNEL(column, returns, name, parameters, names) returns(*name) parameters;
#include "kernels/host.def"
} pnb__host_kernels;

/* One slot per loop: kernels.def. */
typedef struct pnb__kernels {
    const char *name;   /* "ref", "cpu-avx2", ... */
    const pnb_ctx *ctx; /* whom it was filled for; what the mem_ slots take */
    pnb__real real;
    bool host_memory;       /* device memory is host memory: a file map can be used as it lies */
    size_t gemm_group;      /* packed_first of gemm is a multiple of it; 0: packing gains nothing */
    size_t gemm_i8_group;   /* the same of gemm_i8 */
    size_t gemm_bf16_group; /* the same of gemm_bf16 */
    int bf16_parts;         /* the most that gemm_bf16 takes: 1, or 3 */
    bool parts_gain;        /* and several are faster than gemm, which is as exact */
    size_t halves_head_dim; /* values between kernels may be kept in bfloat16 where they are rounded
                               to it anyway, with heads of attention up to this; 0: no halves */
    bool halves_gain;       /* and that is faster, not smaller alone: encoding keeps them so too */
    bool i8_halves;         /* gemm_i8 takes a_halves and c_halves as well, with halves_gain */
    void (*products_bf16)(const pnb__bf16_args *a);  /* NULL where floats are as fast */
    void (*dots_bf16)(const pnb__bf16_dots_args *a); /* with products_bf16 */
    void (*products_i8)(const pnb__i8_args *a);      /* NULL where it is not twice as fast */
    /* Steps that are asked for in the same way again and again, kept by a device and asked for at
     * once; all NULL where that gains nothing. From record_begin to record_end the calling thread's
     * slots are noted, not done; other threads' are done as ever. record_end gives NULL where a
     * step waited for the device or moved numbers from or to the host: then nothing was done and
     * nothing is kept. */
    bool (*record_begin)(const pnb_ctx *ctx);
    void *(*record_end)(const pnb_ctx *ctx);
    void (*record_run)(const pnb_ctx *ctx, void *recorded);
    void (*record_free)(const pnb_ctx *ctx, void *recorded);
    pnb__host_kernels host;
#define PNB__KERNEL(column, returns, name, parameters, names) returns(*name) parameters;
#include "kernels/kernels.def"
} pnb__kernels;

/* Fills a table for this context: ref, then what ctx->device and ctx->isa allow on top, then the
 * device's own column where the context has one. */
void pnb__kernels_fill(pnb__kernels *k, const pnb_ctx *ctx, pnb__real real);
/* Without that column: for loops over memory that is the host's, such as embedding sets. */
void pnb__kernels_fill_host(pnb__kernels *k, const pnb_ctx *ctx, pnb__real real);

/* ---- what is in a table, for tests and listings ---- */
typedef enum pnb__kernel_column {
    PNB__KERNEL_MEMORY,
    PNB__KERNEL_REF,
    PNB__KERNEL_FAST,
    PNB__KERNEL_FAST_ONLY,
    PNB__KERNEL_I8,
    PNB__KERNEL_BF16,
    PNB__KERNEL_HALVES
} pnb__kernel_column;
typedef struct pnb__kernel_slot {
    const char *name;
    pnb__kernel_column column; /* what kernels.def and host.def say */
    void (*function)(void);    /* to be compared, not called */
} pnb__kernel_slot;
enum {
#define PNB__KERNEL(column, returns, name, parameters, names) PNB__SLOT_##name,
#include "kernels/kernels.def"
#define PNB__KERNEL(column, returns, name, parameters, names) PNB__SLOT_host_##name,
#include "kernels/host.def"
    PNB__N_SLOTS
};
void pnb__kernels_slots(const pnb__kernels *k, pnb__kernel_slot out[PNB__N_SLOTS]);

/* The layers, for pnb__kernels_fill and for tests that compare one with another. */
void pnb__kernels_ref_f32(pnb__kernels *k);
void pnb__kernels_ref_f64(pnb__kernels *k);
/* rows_alone: no row of a result may depend on how many rows there are. */
void pnb__kernels_cpu_f32(pnb__kernels *k, pnb_isa isa, bool rows_alone);
void pnb__kernels_cpu_f64(pnb__kernels *k, pnb_isa isa);
/* The slots that a tile unit serves, by the unit in plain C; over a filled f32 table. */
void pnb__kernels_emulate_tiles(pnb__kernels *k);

#endif
