/* Row 2: tensors, the graph and its tape.
 *
 * A graph is built once, planned once and run many times. Building is sticky: an op that fails
 * records its error in the graph and returns NULL, NULL in gives NULL out, and pnb__graph_plan
 * reports the first error. Planning fixes the order of forward and backward steps and one arena
 * with every buffer's place in it; running allocates nothing. Gradients exist only where asked.
 *
 * Values live in device memory: write inputs and read results with the functions below only.
 * Shape letters: B batch, T tokens, C width, H heads, D embedding. Row-major, outermost first. */
#ifndef PNB_TENSOR_GRAPH_H
#define PNB_TENSOR_GRAPH_H

#include "kernels/kernels.h"

typedef struct pnb__graph pnb__graph;
typedef struct pnb__tensor pnb__tensor;

/* A named weight outside any graph. Several graphs may use it. `data` is device memory, possibly a
 * read-only file map. After a run with gradients, `grad` points to its gradient: in the graph's
 * arena until that graph runs again, or, when `grad_store` is set by the owner, in that buffer,
 * to which every run ADDS (accumulation over micro-batches; the owner zeroes it). */
typedef struct pnb__param {
    const char *name;
    int n_dims;
    size_t shape[PNB__DIMS];
    size_t n; /* elements */
    void *data;
    pnb__store store;    /* what data holds; other than REAL only as the weight of a linear */
    const void *scales;  /* of STORE_I8: (N), W[n][k] = scales[n] * data[n][k] */
    int i8_levels;       /* of STORE_I8: what the other factor of a product is rounded to */
    int bf16_parts;      /* graphs without gradients multiply by it in bfloat16 (gemm_bf16), in 1
                          * part, or in 2 or 3 where that is faster than floats; 0: in floats */
    bool trains_in_bf16; /* as pnb__graph_round_products says */
    void *grad, *grad_store;
    bool trainable;
    bool fixed;      /* the owner promises that data will not change: it may be packed */
    bool mapped;     /* data lies in a file map: its pages may be dropped and come again */
    int64_t n_moves; /* of a running buffer: batches that moved it, ever */
    /* Of the matrix (N, K) as the second factor W^T, or (K, N) as W. NULL until a graph packs it;
     * then it stays as it is, so graphs of several threads may share the weight. */
    _Atomic(const pnb__packed *) packed;
} pnb__param;

/* Gives back what inference graphs packed; before data changes or goes. */
void pnb__param_unpack(pnb__param *p, const pnb__kernels *k);

/* Memory of `bytes` for its data, and back. Errors  NOMEM */
pnb_status pnb__param_alloc(pnb__param *p, const pnb__kernels *k, size_t bytes, pnb_error *err);
void pnb__param_free(pnb__param *p, const pnb__kernels *k, size_t bytes);
/* Its data is a place in a file map; only where device memory is the host's. */
void pnb__param_map(pnb__param *p, const void *mapped);
/* Mapped data becomes memory of its own; it stays mapped when that fails. Errors  NOMEM, IO */
pnb_status pnb__param_own(pnb__param *p, const pnb__kernels *k, size_t bytes, pnb_error *err);
/* The data where device memory is the host's, NULL elsewhere: to fill or save it without a copy. */
void *pnb__param_on_host(const pnb__param *p, const pnb__kernels *k);
pnb_status pnb__param_read_bytes(const pnb__param *p, const pnb__kernels *k, size_t bytes,
                                 void *out, pnb_error *err);
/* Bytes from `at` on, as they lie on the device, to the host and back. Errors  IO */
pnb_status pnb__param_read_part(const pnb__param *p, const pnb__kernels *k, size_t at, size_t bytes,
                                void *out, pnb_error *err);
pnb_status pnb__param_write_part(pnb__param *p, const pnb__kernels *k, size_t at, size_t bytes,
                                 const void *from, pnb_error *err);
/* The numbers of another weight of as many; both are REAL and of table k. Errors  IO */
pnb_status pnb__param_copy(pnb__param *p, const pnb__param *from, const pnb__kernels *k,
                           pnb_error *err);
/* p = keep p + share from, as many numbers, REAL and of table k */
void pnb__param_mix(pnb__param *p, double keep, const pnb__param *from, double share,
                    const pnb__kernels *k);
/* All of it 0. Errors  IO */
pnb_status pnb__param_zero(pnb__param *p, const pnb__kernels *k, pnb_error *err);
/* w += alpha b a, of matrices: b (N,r), a (r,K), w (N,K). */
void pnb__param_add_product(pnb__param *w, double alpha, const pnb__param *b, const pnb__param *a,
                            const pnb__kernels *k);
/* Gradients of b and a in that sum from w->grad, into their grad_store: alpha dW a^T and
 * alpha b^T dW; their grad is that, or NULL where w has none. */
void pnb__param_project_grad(const pnb__param *w, double alpha, pnb__param *b, pnb__param *a,
                             const pnb__kernels *k);
bool pnb__param_is_finite(const pnb__param *p, const pnb__kernels *k); /* `store` is REAL */
/* n numbers of a weight from element `at` on; `store` is REAL. Exact in both directions for numbers
 * of the table's real type. Errors  IO: those of mem_read and mem_write */
pnb_status pnb__param_read(const pnb__param *p, const pnb__kernels *k, size_t at, size_t n,
                           double *out, pnb_error *err);
pnb_status pnb__param_write(const pnb__param *p, const pnb__kernels *k, size_t at, size_t n,
                            const double *values, pnb_error *err);

typedef enum pnb__kind { PNB__REAL, PNB__INT32 } pnb__kind; /* element kind of a tensor */

/* ---- life of a graph ---- */
/* with_grad false: no backward, buffers are reused as soon as possible. `ctx` must outlive it. */
pnb_status pnb__graph_create(pnb__graph **out, const pnb_ctx *ctx, pnb__real real, bool with_grad,
                             pnb_error *err);
void pnb__graph_free(pnb__graph *g);
bool pnb__graph_has_grad(const pnb__graph *g);
/* From now on weights that join the graph get no gradient, whether they are trained elsewhere or
 * not: what is wanted is that of inputs (pixels). Before building; normalisation by batches ends
 * with it. */
void pnb__graph_freeze(pnb__graph *g);
bool pnb__graph_is_frozen(const pnb__graph *g);
/* Keeps t's value readable after a run. */
void pnb__keep(pnb__tensor *t);
/* Keeps t's gradient readable after a run (tests, gradient of inputs). */
void pnb__keep_grad(pnb__tensor *t);
/* Ends building. `loss` (one element) may be NULL without gradients. First building error, if any.
 */
pnb_status pnb__graph_plan(pnb__graph *g, pnb__tensor *loss, pnb_error *err);
/* Runs forward, then backward if planned with a loss. NUMERIC when an op found its input invalid,
 * IO when inputs did not reach the device. */
pnb_status pnb__graph_run(pnb__graph *g, pnb_error *err);
/* One run step by step, each waited for before the next: what it was, "linear (50432, 3072) of
 * 768", and seconds. Not of a graph that is kept by a device: the sum is more than a run takes. */
pnb_status pnb__graph_time_steps(pnb__graph *g,
                                 void (*tell)(void *user, const char *what, double seconds),
                                 void *user, pnb_error *err);
/* In runs from here on `watch` is called as soon as a parameter of the graph has all of its
 * gradient, in the order in which backward is done with them; NULL: nobody watches. After plan. */
void pnb__graph_watch_grads(pnb__graph *g, void (*watch)(void *user, pnb__param *p), void *user);
size_t pnb__graph_arena_bytes(const pnb__graph *g); /* after plan */
/* Planning then finds places for all values and takes no memory for them: to learn what a graph
 * would need. Nothing can be written or run. */
void pnb__graph_only_plan(pnb__graph *g);
double pnb__graph_flops(const pnb__graph *g); /* multiply-adds*2 of GEMM and attention, one run */
/* Number mixed into every dropout stream: set it to the step so that a resumed run draws alike. */
void pnb__graph_set_stream(pnb__graph *g, uint64_t stream);
const pnb__kernels *pnb__graph_kernels(const pnb__graph *g);

/* Segments (gradient checkpointing, Chen et al. 2016): with checkpointing on, the nodes built
 * between pnb__segment_begin and pnb__segment_end keep nothing from forward to backward except the
 * segment's result; backward runs them forward again. The same bits for less memory and about a
 * third more work. Set before building; segments do not nest. */
void pnb__graph_set_checkpointing(pnb__graph *g, bool on);

/* With it on, linears of the weights that train in bf16 round both factors of their products,
 * forward and backward, and sum in floats (gemm_rounded). Weights and gradients stay floats. Before
 * the first node; graphs in doubles stay in them. */
void pnb__graph_round_products(pnb__graph *g, bool on);
size_t pnb__segment_begin(const pnb__graph *g);
void pnb__segment_end(pnb__graph *g, size_t begin, const pnb__tensor *result);

/* ---- leaves ---- */
pnb__tensor *pnb__input(pnb__graph *g, pnb__kind kind, int n_dims, const size_t *shape);
/* An input whose gradient is wanted (pixels that are attacked, losses of their own graph). */
pnb__tensor *pnb__input_with_grad(pnb__graph *g, int n_dims, const size_t *shape);
pnb__tensor *pnb__param_tensor(pnb__graph *g, pnb__param *p); /* same tensor for the same p */
pnb__tensor *pnb__constant(pnb__graph *g, double value);      /* shape () */

/* Host <-> device, after plan. Elements are converted from/to the graph's real type. Sticky as
 * building is: a graph whose inputs could not be written fails when it runs, and after reading one
 * asks once whether all of it came; until then what was read may be anything. */
void pnb__write_f32(pnb__tensor *t, const float *host);
void pnb__write_f64(pnb__tensor *t, const double *host);
void pnb__write_i32(pnb__tensor *t, const int32_t *host);
void pnb__read_f32(const pnb__tensor *t, float *host);
void pnb__read_f64(const pnb__tensor *t, double *host);
void pnb__read_i32(const pnb__tensor *t, int32_t *host);
bool pnb__read_grad_f64(const pnb__tensor *t, double *host); /* false: it has no gradient */
double pnb__read_scalar(const pnb__tensor *t);
pnb_status pnb__graph_check(pnb__graph *g, pnb_error *err); /* and forgets it */

size_t pnb__dim(const pnb__tensor *t, int axis); /* 0 for NULL; negative axes count from the end */
int pnb__n_dims(const pnb__tensor *t);
size_t pnb__n(const pnb__tensor *t);

/* ---- ops; each is one row of ops.def, shapes as (input) -> (output) ---- */

/* y = act(x W^T + b) * col_scale + residual. x (..., K), W (N, K), b (N), col_scale (N) and
 * residual (..., N) may be NULL, act PNB__IDENTITY. transpose_w: W is (K, N), y = x W. */
typedef struct pnb__linear_opts {
    pnb__tensor *bias, *col_scale, *residual;
    pnb__unary act;
    bool transpose_w;
} pnb__linear_opts;
pnb__tensor *pnb__linear(pnb__tensor *x, pnb__tensor *w,
                         const pnb__linear_opts *opts /* NULL ok */);
/* May a slice of the rows of weight w (N, K) begin at `row`? Always, unless w is stored in fewer
 * bits than the graph's real type. */
bool pnb__linear_can_begin(const pnb__graph *g, const pnb__param *w, size_t row);
/* c = op(a) op(b) over the last two dims; leading dims equal (batched) or absent. */
pnb__tensor *pnb__matmul(pnb__tensor *a, bool trans_a, pnb__tensor *b, bool trans_b);

/* Self: q NULL, kv = (B, T, 3C) holding q|k|v. Cross or partial: q (B, Tq, C), kv (B, T, 2C).
 * kv_len (B) int32 or NULL. -> (B, Tq, C). Scores scaled by head_dim^-1/2. */
pnb__tensor *pnb__attention(pnb__tensor *q, pnb__tensor *kv, size_t n_heads, bool causal,
                            pnb__tensor *kv_len);
pnb__tensor *pnb__layernorm(pnb__tensor *x, pnb__tensor *w, pnb__tensor *b, double eps);
pnb__tensor *pnb__apply(pnb__unary op, pnb__tensor *x);                    /* element-wise */
pnb__tensor *pnb__affine(pnb__tensor *x, double alpha, double beta);       /* alpha*x + beta */
pnb__tensor *pnb__combine(pnb__binary op, pnb__tensor *a, pnb__tensor *b); /* numpy broadcasting */
#define pnb__add(a, b) pnb__combine(PNB__ADD, a, b)
#define pnb__sub(a, b) pnb__combine(PNB__SUB, a, b)
#define pnb__mul(a, b) pnb__combine(PNB__MUL, a, b)
#define pnb__div(a, b) pnb__combine(PNB__DIV, a, b)
/* y = f(x) element by element on the host, in doubles; slope gives f'. For few numbers. Both get
 * the parameter beside x. A value that is not finite ends the run as NUMERIC. */
typedef struct pnb__function {
    double (*value)(double parameter, double x);
    double (*slope)(double parameter, double x);
    double parameter;
} pnb__function;
pnb__tensor *pnb__apply_function(pnb__tensor *x, const pnb__function *f);
/* Sum or mean over one axis (removed). axis PNB__ALL_AXES: everything -> (). */
#define PNB__ALL_AXES 99
pnb__tensor *pnb__sum(pnb__tensor *x, int axis);
pnb__tensor *pnb__mean(pnb__tensor *x, int axis);
pnb__tensor *pnb__softmax(pnb__tensor *x);     /* last axis */
pnb__tensor *pnb__log_softmax(pnb__tensor *x); /* last axis */
/* x (R, K), targets (R) int32 in [0, K) -> per-row loss (R) */
pnb__tensor *pnb__cross_entropy(pnb__tensor *x, pnb__tensor *targets);
pnb__tensor *pnb__l2_normalize(pnb__tensor *x, double eps);        /* last axis */
pnb__tensor *pnb__pairwise_sqdist(pnb__tensor *x, pnb__tensor *y); /* (M,D),(N,D) -> (M,N) */
/* Rows of table (R, ...) at ids (any shape, int32): shape(ids) + (...). Backward scatters. */
pnb__tensor *pnb__gather(pnb__tensor *table, pnb__tensor *ids);
pnb__tensor *pnb__patchify(pnb__tensor *pixels, size_t patch); /* (B,3,H,W)->(B,N,3pp) */
pnb__tensor *pnb__concat(pnb__tensor *const *parts, size_t n, int axis);
pnb__tensor *pnb__slice(pnb__tensor *x, int axis, size_t begin, size_t n);  /* view on axis 0 */
pnb__tensor *pnb__reshape(pnb__tensor *x, int n_dims, const size_t *shape); /* a view */
pnb__tensor *pnb__broadcast_to(pnb__tensor *x, int n_dims, const size_t *shape);
pnb__tensor *pnb__permute(pnb__tensor *x, const int *axes);
pnb__tensor *pnb__dropout(pnb__tensor *x, double p, uint64_t seed, uint64_t stream);
/* Convolution of pictures with channels innermost: x (B,H,W,C), w (O,C,KH,KW) -> (B,OH,OW,O). In a
 * graph without gradients it may end in y = relu(y * scale + shift + residual), where `folded`
 * (2,O) is scale and shift. */
typedef struct pnb__conv2d_opts {
    size_t stride, pad;
    pnb__tensor *folded, *residual; /* or NULL */
    bool relu;
} pnb__conv2d_opts;
pnb__tensor *pnb__conv2d(pnb__tensor *x, pnb__tensor *w, const pnb__conv2d_opts *opts);
/* Batch normalisation of x (..., C): y = relu((x - mean) (var + eps)^-1/2 * w + b + residual).
 * training: moments of x, and every run moves the running buffers towards them, which must be
 * weights that are not trained and not fixed; else by the running buffers, which stay. */
typedef struct pnb__batchnorm_opts {
    pnb__tensor *w, *b, *running_mean, *running_var; /* (C) */
    pnb__tensor *residual;                           /* like x, or NULL */
    bool relu, training;
    double eps, momentum;
} pnb__batchnorm_opts;
pnb__tensor *pnb__batchnorm(pnb__tensor *x, const pnb__batchnorm_opts *opts);
/* A convolution and the batch normalisation of it; one op where nothing is trained. */
pnb__tensor *pnb__conv2d_batchnorm(pnb__tensor *x, pnb__tensor *w, size_t stride, size_t pad,
                                   const pnb__batchnorm_opts *norm);
/* Maximum over windows of (B,H,W,C), outside less than everything: torch's MaxPool2d. */
pnb__tensor *pnb__max_pool(pnb__tensor *x, size_t kernel, size_t stride, size_t pad);
/* A GRU over whole sequences from the state 0, gates in torch's order r, z, n. gx (B,T,3C) is
 * W_ih x + b_ih of every position, w_hh (3C,C), b_hh (3C); lengths (B) int32 in [0,T] or NULL: T.
 * -> the state after each position (B,T,C), 0 beyond a length; `last`: the state after the last
 * step alone (B,C), 0 where the length is 0. reverse: from a sequence's last position to its first.
 * Positions beyond a length cost nothing but their gx, whose gradient is 0. */
typedef struct pnb__gru_opts {
    bool reverse, last;
} pnb__gru_opts;
pnb__tensor *pnb__gru(pnb__tensor *gx, pnb__tensor *w_hh, pnb__tensor *b_hh, pnb__tensor *lengths,
                      const pnb__gru_opts *opts);
/* lengths (B) int32 in [0,T] -> (B,T): 0 at positions below the length, -inf beyond: what is added
 * to scores before a softmax over positions. No gradient. */
pnb__tensor *pnb__length_mask(pnb__tensor *lengths, size_t n_positions);
/* Soft contrastive loss of every pair over J samples of each side (PCME Eq. 5 to 7).
 *   nll[i][t] = log J^2 - log sum_jk s(factor sign (shift - scale sqrt(|x_ij - y_tk|^2 + 1e-6)))
 * x (B1,J,D), y (B2,J,D), scale and shift (), signs (B1,B2) of 1 and -1 -> (B1,B2); s the logistic.
 * Memory for a strip of pairs' distances, never for B1 B2 J^2; they are made again for backward. */
typedef struct pnb__match_in {
    pnb__tensor *x, *y, *scale, *shift, *signs;
    double factor;
} pnb__match_in;
pnb__tensor *pnb__match_nll(const pnb__match_in *in);
/* Labels of all pairs without a matrix of them: Y_ij = base + sum_k [columns_ik = j] weights_ik,
 * both (B1,K), columns int32 in [0,B2); match (B1) int32 or NULL says where the match of a row
 * stands. */
typedef struct pnb__marks {
    pnb__tensor *columns, *weights, *match;
    double base;
    size_t row,
        column; /* match_sums alone, which may have a block of the pairs: its first of each */
} pnb__marks;
/* -> (B1): sum_t Y_it nll_it of a match + (1 - Y_it) nll_it of none, nll as match_nll with its
 * signs for Y; `is_hard`: labels are 1 and 0 alone, which is half the work */
pnb__tensor *pnb__match_sums(const pnb__match_in *in, const pnb__marks *marks, bool is_hard);
/* x (N,D), N >= 2 -> (N-1): log sum_{j > i} exp(-rate |x_i - x_j|^2), a strip of rows at a time;
 * of two sets x (N,D) and y (M,D) -> (N), over all j of y */
pnb__tensor *pnb__pair_log_sums(pnb__tensor *x, double rate);
pnb__tensor *pnb__cross_log_sums(pnb__tensor *x, pnb__tensor *y, double rate);
/* Samples x_ij = mean_i + exp(log_var_i / 2) e_ij of rows first .. of mean and log_var (B,D)
 * -> (n_rows,J,D). e ~ N(0,1) of a stream: `pairs` (B) int32 says where in it a row is, `key` (4)
 * int32 which stream it is (pnb__draw_args), so that any block of rows has the draws it has among
 * all. Noise is held neither forward nor backward. */
typedef struct pnb__draw_in {
    pnb__tensor *mean, *log_var, *pairs, *key;
    size_t first, n_rows, n_samples;
} pnb__draw_in;
pnb__tensor *pnb__draw(const pnb__draw_in *in);
/* Losses over all pairs of x (B1,D) and y (B2,D), a strip of rows at a time, so that memory does
 * not grow with B1 B2: with l_ij = x_i . y_j + row_i + col_j, row (B1) and col (B2) or NULL,
 *   pair_softplus       -> (B1): sum_j log(1 + exp(l_ij))
 *   pair_cross_entropy  -> (B1): log sum_j exp(l_ij) - l_i,t(i), targets t (B1) int32 in [0,B2)
 *   pair_labelled       -> (B1): sum_j log(1 + exp(l_ij)) - Y_ij l_ij; with marks.match pairs that
 *                       score as high as the match of their row take its label
 *   pair_blend          -> (B1,D'): sum_j softmax_j(scale x_i . y_j) v_j, v (B2,D'), the gradient
 *                       of v alone
 * Backward makes the logits again. */
pnb__tensor *pnb__pair_labelled(pnb__tensor *x, pnb__tensor *y, pnb__tensor *row, pnb__tensor *col,
                                const pnb__marks *marks);
pnb__tensor *pnb__pair_blend(pnb__tensor *x, pnb__tensor *y, pnb__tensor *v, double scale);
/* x (B1,K,D), y (B2,K,D) -> (B1): [margin + s_ij - s_im]+ summed over j != m, or the largest, s_ij
 * the largest of the K x K products of a pair, row i's match m = first + i; of equal ones the first
 * has the gradient */
pnb__tensor *pnb__pair_margins(pnb__tensor *x, pnb__tensor *y, size_t first, double margin,
                               bool is_hardest);
/* x (B1,D), y (B2,D) -> (B1): sum_j exp(-gamma f), f = |x_i - y_j|^2, or sqrt(it + 1e-12) */
pnb__tensor *pnb__pair_kernels(pnb__tensor *x, pnb__tensor *y, double gamma, bool is_root);
pnb__tensor *pnb__pair_softplus(pnb__tensor *x, pnb__tensor *y, pnb__tensor *row, pnb__tensor *col);
pnb__tensor *pnb__pair_cross_entropy(pnb__tensor *x, pnb__tensor *y, pnb__tensor *targets);
/* Per-dimension hypothesis H of SPEC section 2 (ProLIP Eq. 3): h[i] = inc(1,2) - inc(2,1). */
typedef struct pnb__search_inclusion_opts {
    bool published;
    double eps;
} pnb__search_inclusion_opts;
pnb__tensor *pnb__inclusion(pnb__tensor *mean1, pnb__tensor *log_var1, pnb__tensor *mean2,
                            pnb__tensor *log_var2, const pnb__search_inclusion_opts *opts);
pnb__tensor *pnb__cholesky(pnb__tensor *a);                                  /* (n,n) -> lower L */
pnb__tensor *pnb__tri_solve(pnb__tensor *l, pnb__tensor *b, bool transpose); /* op(L) x = b */

#endif
