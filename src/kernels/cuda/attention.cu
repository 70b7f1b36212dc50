/* Attention in floats, forward and backward, without a matrix of all scores.
 *
 * A block takes 64 queries of one head (backward also 64 keys) and walks over tiles of 64 of the
 * other side, which lie in shared memory. Of its 16 x 16 threads, (ty, tx) holds rows 4 ty.. and
 * columns tx, tx + 16.. of a tile of scores, and the same rows and every 16th number of a head of
 * the result. forward   the softmax of a row is made as its tiles come, by its greatest score so
 * far (Milakov and Gimelshein 2018; Dao et al. 2022, algorithm 1) backward  P = exp(scale q.k -
 * lse), D = dO . O, dS = P (dO . v - D): one kernel sums over queries (dk, dv), another one over
 * keys (dq), so nobody adds to what another block adds to Heads of more than 128 numbers go query
 * by query. */
#include "kernels/cuda/attention.h"
#include "kernels/cuda/numbers.h"

namespace
{

enum { TILE = 64, SIDE = 16, EACH = TILE / SIDE };

/* Floats of a tile of rows of a head, one apart from each other's bank. */
template <int D> struct tile {
    float *at;
    __device__ float &operator()(int row, int d) const
    {
        return at[row * (D + 1) + d];
    }
    enum { FLOATS = TILE * (D + 1) };
};

/* Whom a block serves: `each` of n rows from `first` on, of head h of batch item b. */
struct place {
    size_t first, h, b;
};

__device__ place place_of(const pnb__cuda_attention_args &a, size_t n, size_t each)
{
    size_t n_tiles = (n + each - 1) / each, at = blockIdx.x;
    return place{at % n_tiles * each, at / n_tiles % a.n_heads, at / n_tiles / a.n_heads};
}

/* Rows first.. of a side into a tile, zeros behind the last and beyond head_dim. */
template <int D>
__device__ void fill(const tile<D> &t, const float *from, size_t first, size_t n, size_t ld,
                     int width)
{
    for (int i = static_cast<int>(threadIdx.x); i < TILE * D; i += PNB__CUDA_THREADS) {
        size_t row = first + static_cast<size_t>(i / D);
        int d = i % D;
        t(i / D, d) = row < n && d < width ? from[row * ld + static_cast<size_t>(d)] : 0;
    }
}

/* out[r][c] = rows 4 ty + r of a with rows tx + 16 c of b. */
template <int D>
__device__ void dots(const tile<D> &a, const tile<D> &b, int ty, int tx, float out[EACH][EACH])
{
    for (int r = 0; r < EACH; r++)
        for (int c = 0; c < EACH; c++)
            out[r][c] = 0;
    for (int d = 0; d < D; d++) {
        float x[EACH], y[EACH];
        for (int r = 0; r < EACH; r++)
            x[r] = a(ty * EACH + r, d);
        for (int c = 0; c < EACH; c++)
            y[c] = b(tx + SIDE * c, d);
        for (int r = 0; r < EACH; r++)
            for (int c = 0; c < EACH; c++)
                out[r][c] += x[r] * y[c];
    }
}

/* sum[r][d] += sum over j of w(4 ty + r, j) of v(j, tx + 16 d); by_columns: of w(j, 4 ty + r). */
template <int D>
__device__ void weigh(const float *w, const tile<D> &v, int ty, int tx, bool by_columns,
                      float sum[EACH][D / SIDE])
{
    for (int j = 0; j < TILE; j++) {
        float x[EACH];
        for (int r = 0; r < EACH; r++)
            x[r] = by_columns ? w[j * (TILE + 1) + ty * EACH + r]
                              : w[(ty * EACH + r) * (TILE + 1) + j];
        for (int d = 0; d < D / SIDE; d++) {
            float y = v(j, tx + SIDE * d);
            for (int r = 0; r < EACH; r++)
                sum[r][d] += x[r] * y;
        }
    }
}

/* Over the 16 threads that share rows: half a warp. */
template <class Op> __device__ float over_row(float v, Op op)
{
    for (int lane = SIDE / 2; lane > 0; lane /= 2)
        v = op(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

template <int D> __device__ void clear(float sum[EACH][D / SIDE])
{
    for (int r = 0; r < EACH; r++)
        for (int d = 0; d < D / SIDE; d++)
            sum[r][d] = 0;
}

/* ---- forward ---- */

struct running { /* of one row: its greatest score, sum of exp(score - greatest) */
    float most, sum;
};

/* Scores to weights exp(s - most); returns by how much earlier sums shrink. */
__device__ float soften(float score[EACH], running *row)
{
    float most = score[0];
    for (int c = 1; c < EACH; c++)
        most = fmaxf(most, score[c]);
    most = fmaxf(row->most, over_row(most, pnb__cuda_most()));
    float sum = 0;
    for (int c = 0; c < EACH; c++) {
        score[c] = score[c] == -INFINITY ? 0 : expf(score[c] - most);
        sum += score[c];
    }
    float shrink = row->most == -INFINITY ? 0 : expf(row->most - most);
    row->sum = row->sum * shrink + over_row(sum, pnb__cuda_add());
    row->most = most;
    return shrink;
}

template <int D> __global__ void forward(pnb__cuda_attention_args a)
{
    PNB__CUDA_SHARED(float, shared);
    tile<D> q = {shared}, k = {q.at + tile<D>::FLOATS}, v = {k.at + tile<D>::FLOATS};
    float *weights = v.at + tile<D>::FLOATS, sum[EACH][D / SIDE];
    int tx = static_cast<int>(threadIdx.x % SIDE), ty = static_cast<int>(threadIdx.x / SIDE);
    const place here = place_of(a, a.n_q, TILE);
    size_t first = here.first, h = here.h, b = here.b;
    size_t n_seen = pnb__cuda_seen_by_tile(a, b, first, TILE);
    running rows[EACH];
    for (int r = 0; r < EACH; r++)
        rows[r] = running{-INFINITY, 0};
    clear<D>(sum);
    fill(q, pnb__cuda_head(a, a.q, a.batch_q, b, h), first, a.n_q, a.row_q, a.head_dim);
    for (size_t at = 0; at < n_seen; at += TILE) {
        float score[EACH][EACH];
        __syncthreads();
        fill(k, pnb__cuda_head(a, a.k, a.batch_kv, b, h), at, n_seen, a.row_kv, a.head_dim);
        fill(v, pnb__cuda_head(a, a.v, a.batch_kv, b, h), at, n_seen, a.row_kv, a.head_dim);
        __syncthreads();
        dots(q, k, ty, tx, score);
        for (int r = 0; r < EACH; r++) {
            size_t seen = pnb__cuda_seen(a, b, first + static_cast<size_t>(ty * EACH + r));
            for (int c = 0; c < EACH; c++)
                score[r][c] = at + static_cast<size_t>(tx + SIDE * c) < seen ? a.scale * score[r][c]
                                                                             : -INFINITY;
            float shrink = soften(score[r], &rows[r]);
            for (int d = 0; d < D / SIDE; d++)
                sum[r][d] *= shrink;
            for (int c = 0; c < EACH; c++)
                weights[(ty * EACH + r) * (TILE + 1) + tx + SIDE * c] = score[r][c];
        }
        __syncthreads();
        weigh(weights, v, ty, tx, false, sum);
    }
    for (int r = 0; r < EACH; r++) {
        size_t i = first + static_cast<size_t>(ty * EACH + r);
        if (i >= a.n_q)
            continue;
        float *out = pnb__cuda_head(a, a.out, a.batch_out, b, h) + i * a.row_out;
        float inverse = rows[r].sum > 0 ? 1 / rows[r].sum : 0;
        for (int d = 0; d < D / SIDE; d++)
            if (tx + SIDE * d < a.head_dim)
                out[tx + SIDE * d] = sum[r][d] * inverse;
        if (a.lse != NULL && tx == 0)
            a.lse[(b * a.n_heads + h) * a.n_q + i] =
                rows[r].sum > 0 ? rows[r].most + logf(rows[r].sum) : -INFINITY;
    }
}

/* ---- backward ---- */

/* Weights p and ds of a tile of scores, to shared memory: query rows, key columns. */
template <int D> struct scores {
    tile<D> q, k, v, d_out;
    float *p, *ds, *lse, *delta;
};

template <int D> __device__ scores<D> scores_at(float *shared)
{
    scores<D> s;
    s.q.at = shared;
    s.k.at = s.q.at + tile<D>::FLOATS;
    s.v.at = s.k.at + tile<D>::FLOATS;
    s.d_out.at = s.v.at + tile<D>::FLOATS;
    s.p = s.d_out.at + tile<D>::FLOATS;
    s.ds = s.p + TILE * (TILE + 1);
    s.lse = s.ds + TILE * (TILE + 1);
    s.delta = s.lse + TILE;
    return s;
}

template <int D>
__device__ void fill_queries(const pnb__cuda_attention_args &a, const scores<D> &s, size_t b,
                             size_t h, size_t first)
{
    fill(s.q, pnb__cuda_head(a, a.q, a.batch_q, b, h), first, a.n_q, a.row_q, a.head_dim);
    fill(s.d_out, pnb__cuda_head(a, a.d_out, a.batch_out, b, h), first, a.n_q, a.row_out,
         a.head_dim);
    for (size_t i = threadIdx.x; i < TILE; i += PNB__CUDA_THREADS) {
        size_t row = (b * a.n_heads + h) * a.n_q + first + i;
        s.lse[i] = first + i < a.n_q ? a.lse[row] : 0;
        s.delta[i] = first + i < a.n_q ? a.delta[row] : 0;
    }
}

template <int D>
__device__ void fill_keys(const pnb__cuda_attention_args &a, const scores<D> &s, size_t b, size_t h,
                          size_t first)
{
    fill(s.k, pnb__cuda_head(a, a.k, a.batch_kv, b, h), first, a.n_kv, a.row_kv, a.head_dim);
    fill(s.v, pnb__cuda_head(a, a.v, a.batch_kv, b, h), first, a.n_kv, a.row_kv, a.head_dim);
}

template <int D>
__device__ void weigh_tile(const pnb__cuda_attention_args &a, const scores<D> &s, size_t b,
                           size_t first_q, size_t first_k, int ty, int tx)
{
    float score[EACH][EACH], slope[EACH][EACH];
    dots(s.q, s.k, ty, tx, score);
    dots(s.d_out, s.v, ty, tx, slope);
    for (int r = 0; r < EACH; r++) {
        int row = ty * EACH + r;
        size_t i = first_q + static_cast<size_t>(row),
               seen = i < a.n_q ? pnb__cuda_seen(a, b, i) : 0;
        for (int c = 0; c < EACH; c++) {
            int col = tx + SIDE * c;
            bool is_seen = first_k + static_cast<size_t>(col) < seen;
            float p = is_seen ? expf(a.scale * score[r][c] - s.lse[row]) : 0;
            s.p[row * (TILE + 1) + col] = p;
            s.ds[row * (TILE + 1) + col] = is_seen ? a.scale * p * (slope[r][c] - s.delta[row]) : 0;
        }
    }
}

template <int D>
__device__ void put_rows(const pnb__cuda_attention_args &a, float *to, size_t first, size_t n,
                         size_t ld, const float sum[EACH][D / SIDE], bool accumulate, int ty,
                         int tx)
{
    for (int r = 0; r < EACH; r++) {
        size_t i = first + static_cast<size_t>(ty * EACH + r);
        for (int d = 0; d < D / SIDE; d++)
            if (i < n && tx + SIDE * d < a.head_dim)
                pnb__cuda_put(&to[i * ld + static_cast<size_t>(tx + SIDE * d)], sum[r][d],
                              accumulate);
    }
}

/* dk_j = sum_i ds_ij q_i, dv_j = sum_i p_ij dO_i of 64 keys */
template <int D> __global__ void backward_keys(pnb__cuda_attention_args a)
{
    PNB__CUDA_SHARED(float, shared);
    scores<D> s = scores_at<D>(shared);
    float dk[EACH][D / SIDE], dv[EACH][D / SIDE];
    int tx = static_cast<int>(threadIdx.x % SIDE), ty = static_cast<int>(threadIdx.x / SIDE);
    const place here = place_of(a, a.n_kv, TILE);
    size_t first = here.first, h = here.h, b = here.b;
    clear<D>(dk);
    clear<D>(dv);
    fill_keys(a, s, b, h, first);
    for (size_t at = 0; at < a.n_q; at += TILE) {
        if (pnb__cuda_seen_by_tile(a, b, at, TILE) <= first)
            continue; /* the same for all threads */
        __syncthreads();
        fill_queries(a, s, b, h, at);
        __syncthreads();
        weigh_tile(a, s, b, at, first, ty, tx);
        __syncthreads();
        weigh(s.p, s.d_out, ty, tx, true, dv);
        weigh(s.ds, s.q, ty, tx, true, dk);
    }
    put_rows<D>(a, pnb__cuda_head(a, a.dk, a.batch_kv, b, h), first, a.n_kv, a.row_kv, dk,
                a.accumulate_kv, ty, tx);
    put_rows<D>(a, pnb__cuda_head(a, a.dv, a.batch_kv, b, h), first, a.n_kv, a.row_kv, dv,
                a.accumulate_kv, ty, tx);
}

/* dq_i = sum_j ds_ij k_j of 64 queries */
template <int D> __global__ void backward_queries(pnb__cuda_attention_args a)
{
    PNB__CUDA_SHARED(float, shared);
    scores<D> s = scores_at<D>(shared);
    float dq[EACH][D / SIDE];
    int tx = static_cast<int>(threadIdx.x % SIDE), ty = static_cast<int>(threadIdx.x / SIDE);
    const place here = place_of(a, a.n_q, TILE);
    size_t first = here.first, h = here.h, b = here.b;
    size_t n_seen = pnb__cuda_seen_by_tile(a, b, first, TILE);
    clear<D>(dq);
    fill_queries(a, s, b, h, first);
    for (size_t at = 0; at < n_seen; at += TILE) {
        __syncthreads();
        fill_keys(a, s, b, h, at);
        __syncthreads();
        weigh_tile(a, s, b, first, at, ty, tx);
        __syncthreads();
        weigh(s.ds, s.k, ty, tx, false, dq);
    }
    put_rows<D>(a, pnb__cuda_head(a, a.dq, a.batch_q, b, h), first, a.n_q, a.row_q, dq,
                a.accumulate_q, ty, tx);
}

/* ---- heads of any size: a block to a query, or to a key ---- */

__device__ float dot_of(const float *x, const float *y, int n)
{
    float sum = 0;
    for (int d = static_cast<int>(threadIdx.x); d < n; d += PNB__CUDA_THREADS)
        sum += x[d] * y[d];
    return pnb__cuda_block_sum(sum);
}

/* Each thread holds numbers begin + threadIdx.x + 256 e of a head; scores are made again for every
 * 1024 of them. */
enum { WIDE_EACH = 4, WIDE = WIDE_EACH * PNB__CUDA_THREADS };

__device__ void forward_strip(const pnb__cuda_attention_args &a, int begin)
{
    const place here = place_of(a, a.n_q, 1);
    size_t i = here.first, h = here.h, b = here.b, seen = pnb__cuda_seen(a, b, i);
    const float *q = pnb__cuda_head(a, a.q, a.batch_q, b, h) + i * a.row_q;
    const float *k = pnb__cuda_head(a, a.k, a.batch_kv, b, h);
    const float *v = pnb__cuda_head(a, a.v, a.batch_kv, b, h);
    float *out = pnb__cuda_head(a, a.out, a.batch_out, b, h) + i * a.row_out;
    float most = -INFINITY, total = 0, sum[WIDE_EACH] = {0, 0, 0, 0};
    for (size_t j = 0; j < seen; j++) {
        float s = a.scale * dot_of(q, k + j * a.row_kv, a.head_dim), high = fmaxf(most, s);
        float shrink = most == -INFINITY ? 0 : expf(most - high), p = expf(s - high);
        most = high;
        total = total * shrink + p;
        for (int e = 0; e < WIDE_EACH; e++) {
            int d = begin + static_cast<int>(threadIdx.x) + e * PNB__CUDA_THREADS;
            if (d < a.head_dim)
                sum[e] = sum[e] * shrink + p * v[j * a.row_kv + static_cast<size_t>(d)];
        }
    }
    for (int e = 0; e < WIDE_EACH; e++) {
        int d = begin + static_cast<int>(threadIdx.x) + e * PNB__CUDA_THREADS;
        if (d < a.head_dim)
            out[d] = total > 0 ? sum[e] / total : 0;
    }
    if (a.lse != NULL && threadIdx.x == 0)
        a.lse[(b * a.n_heads + h) * a.n_q + i] = total > 0 ? most + logf(total) : -INFINITY;
}

__global__ void forward_wide(pnb__cuda_attention_args a)
{
    for (int begin = 0; begin < a.head_dim; begin += WIDE)
        forward_strip(a, begin);
}

/* ds of query i and key j, and p; all threads get both. */
__device__ float slope_of(const pnb__cuda_attention_args &a, size_t b, size_t h, size_t i, size_t j,
                          float *p)
{
    size_t row = (b * a.n_heads + h) * a.n_q + i;
    const float *q = pnb__cuda_head(a, a.q, a.batch_q, b, h) + i * a.row_q;
    const float *k = pnb__cuda_head(a, a.k, a.batch_kv, b, h) + j * a.row_kv;
    const float *v = pnb__cuda_head(a, a.v, a.batch_kv, b, h) + j * a.row_kv;
    const float *d_out = pnb__cuda_head(a, a.d_out, a.batch_out, b, h) + i * a.row_out;
    *p = expf(a.scale * dot_of(q, k, a.head_dim) - a.lse[row]);
    return a.scale * *p * (dot_of(d_out, v, a.head_dim) - a.delta[row]);
}

__device__ void backward_strip_queries(const pnb__cuda_attention_args &a, int begin)
{
    const place here = place_of(a, a.n_q, 1);
    size_t i = here.first, h = here.h, b = here.b, seen = pnb__cuda_seen(a, b, i);
    const float *k = pnb__cuda_head(a, a.k, a.batch_kv, b, h);
    float *dq = pnb__cuda_head(a, a.dq, a.batch_q, b, h) + i * a.row_q;
    float sum[WIDE_EACH] = {0, 0, 0, 0}, p;
    for (size_t j = 0; j < seen; j++) {
        float ds = slope_of(a, b, h, i, j, &p);
        for (int e = 0; e < WIDE_EACH; e++) {
            int d = begin + static_cast<int>(threadIdx.x) + e * PNB__CUDA_THREADS;
            if (d < a.head_dim)
                sum[e] += ds * k[j * a.row_kv + static_cast<size_t>(d)];
        }
    }
    for (int e = 0; e < WIDE_EACH; e++) {
        int d = begin + static_cast<int>(threadIdx.x) + e * PNB__CUDA_THREADS;
        if (d < a.head_dim)
            pnb__cuda_put(&dq[d], sum[e], a.accumulate_q);
    }
}

__global__ void backward_wide_queries(pnb__cuda_attention_args a)
{
    for (int begin = 0; begin < a.head_dim; begin += WIDE)
        backward_strip_queries(a, begin);
}

__device__ void backward_strip_keys(const pnb__cuda_attention_args &a, int begin)
{
    const place here = place_of(a, a.n_kv, 1);
    size_t j = here.first, h = here.h, b = here.b;
    float dk[WIDE_EACH] = {0, 0, 0, 0}, dv[WIDE_EACH] = {0, 0, 0, 0}, p;
    for (size_t i = 0; i < a.n_q; i++) {
        if (j >= pnb__cuda_seen(a, b, i))
            continue;
        float ds = slope_of(a, b, h, i, j, &p);
        const float *q = pnb__cuda_head(a, a.q, a.batch_q, b, h) + i * a.row_q;
        const float *d_out = pnb__cuda_head(a, a.d_out, a.batch_out, b, h) + i * a.row_out;
        for (int e = 0; e < WIDE_EACH; e++) {
            int d = begin + static_cast<int>(threadIdx.x) + e * PNB__CUDA_THREADS;
            dk[e] += d < a.head_dim ? ds * q[d] : 0;
            dv[e] += d < a.head_dim ? p * d_out[d] : 0;
        }
    }
    size_t at = j * a.row_kv;
    for (int e = 0; e < WIDE_EACH; e++) {
        size_t d =
            static_cast<size_t>(begin) + threadIdx.x + static_cast<size_t>(e) * PNB__CUDA_THREADS;
        if (d >= static_cast<size_t>(a.head_dim))
            continue;
        pnb__cuda_put(&pnb__cuda_head(a, a.dk, a.batch_kv, b, h)[at + d], dk[e], a.accumulate_kv);
        pnb__cuda_put(&pnb__cuda_head(a, a.dv, a.batch_kv, b, h)[at + d], dv[e], a.accumulate_kv);
    }
}

__global__ void backward_wide_keys(pnb__cuda_attention_args a)
{
    for (int begin = 0; begin < a.head_dim; begin += WIDE)
        backward_strip_keys(a, begin);
}

/* D_i = dO_i . O_i, a warp to a row */
template <class T> struct row_products {
    pnb__cuda_attention_args a;
    __device__ void row(size_t group) const
    {
        size_t r = group * (PNB__CUDA_THREADS / PNB__CUDA_WARP) + threadIdx.x / PNB__CUDA_WARP;
        size_t i = r % a.n_q, h = r / a.n_q % a.n_heads, b = r / a.n_q / a.n_heads;
        float sum = 0;
        const T *out = pnb__cuda_head(a, reinterpret_cast<const T *>(a.out), a.batch_out, b, h);
        const T *d_out = pnb__cuda_head(a, reinterpret_cast<const T *>(a.d_out), a.batch_out, b, h);
        for (size_t d = threadIdx.x % PNB__CUDA_WARP;
             b < a.n_batch && d < static_cast<size_t>(a.head_dim); d += PNB__CUDA_WARP)
            sum += pnb__cuda_number(out[i * a.row_out + d]) *
                   pnb__cuda_number(d_out[i * a.row_out + d]);
        sum = pnb__cuda_warp(sum, pnb__cuda_add());
        if (b < a.n_batch && threadIdx.x % PNB__CUDA_WARP == 0)
            a.delta[r] = sum;
    }
};

/* A block to `each` of n rows of every head. */
void launch(const pnb_ctx *ctx, void (*kernel)(pnb__cuda_attention_args), size_t n, size_t each,
            size_t shared, const pnb__cuda_attention_args &a)
{
    if (n > 0)
        pnb__cuda_launch(ctx, kernel,
                         dim3(static_cast<unsigned>((n + each - 1) / each * a.n_heads * a.n_batch)),
                         PNB__CUDA_THREADS, shared, a);
}

template <int D> void run_forward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a)
{
    launch(ctx, forward<D>, a.n_q, TILE, (3 * tile<D>::FLOATS + TILE * (TILE + 1)) * sizeof(float),
           a);
}

template <int D> void run_backward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a)
{
    size_t bytes = (4 * tile<D>::FLOATS + 2 * TILE * (TILE + 1) + 2 * TILE) * sizeof(float);
    launch(ctx, backward_keys<D>, a.n_kv, TILE, bytes, a);
    launch(ctx, backward_queries<D>, a.n_q, TILE, bytes, a);
}

pnb__cuda_attention_args args_of(const pnb__attention_args *g)
{
    pnb__cuda_attention_args a = pnb__cuda_attention_args();
    a.n_batch = g->n_batch;
    a.n_heads = g->n_heads;
    a.n_q = g->n_q;
    a.n_kv = g->n_kv;
    a.head_dim = static_cast<int>(g->head_dim);
    a.batch_q = g->batch_q;
    a.row_q = g->row_q;
    a.batch_kv = g->batch_kv;
    a.row_kv = g->row_kv;
    a.batch_out = g->batch_out;
    a.row_out = g->row_out;
    a.q = static_cast<const float *>(g->q);
    a.k = static_cast<const float *>(g->k);
    a.v = static_cast<const float *>(g->v);
    a.d_out = static_cast<const float *>(g->d_out);
    a.out = static_cast<float *>(g->out);
    a.lse = static_cast<float *>(g->lse);
    a.dq = static_cast<float *>(g->dq);
    a.dk = static_cast<float *>(g->dk);
    a.dv = static_cast<float *>(g->dv);
    a.delta = static_cast<float *>(g->work);
    a.causal = g->causal;
    a.accumulate_q = g->accumulate_q;
    a.accumulate_kv = g->accumulate_kv;
    a.kv_len = g->kv_len;
    a.scale = static_cast<float>(g->scale);
    return a;
}

bool is_empty(const pnb__attention_args *g)
{
    return g->n_batch == 0 || g->n_heads == 0 || g->head_dim == 0;
}

} // namespace

extern "C" size_t pnb__cuda_attention_work(const pnb_ctx *ctx, const pnb__attention_args *a,
                                           bool backward)
{
    (void)ctx;
    return backward ? a->n_batch * a->n_heads * a->n_q * sizeof(float) : 0;
}

extern "C" void pnb__cuda_attention(const pnb_ctx *ctx, const pnb__attention_args *g)
{
    const pnb__cuda_attention_args a = args_of(g);
    if (is_empty(g))
        return;
    if (g->halves || (g->rounds && a.head_dim <= PNB__CUDA_HALVES_WIDTH))
        pnb__cuda_attention_halves(ctx, a, g->halves);
    else if (a.head_dim <= 64)
        run_forward<64>(ctx, a);
    else if (a.head_dim <= 128)
        run_forward<128>(ctx, a);
    else
        launch(ctx, forward_wide, a.n_q, 1, 0, a);
}

extern "C" void pnb__cuda_attention_bwd(const pnb_ctx *ctx, const pnb__attention_args *g)
{
    const pnb__cuda_attention_args a = args_of(g);
    const size_t each = PNB__CUDA_THREADS / PNB__CUDA_WARP;
    if (is_empty(g))
        return;
    const size_t groups = (a.n_batch * a.n_heads * a.n_q + each - 1) / each;
    if (g->halves)
        pnb__cuda_rows(ctx, groups, row_products<unsigned short>{a});
    else
        pnb__cuda_rows(ctx, groups, row_products<float>{a});
    if (g->halves || (g->rounds && a.head_dim <= PNB__CUDA_HALVES_WIDTH)) {
        pnb__cuda_attention_halves_bwd(ctx, a, g->halves);
    } else if (a.head_dim <= 64) {
        run_backward<64>(ctx, a);
    } else if (a.head_dim <= 128) {
        run_backward<128>(ctx, a);
    } else {
        launch(ctx, backward_wide_keys, a.n_kv, 1, 0, a);
        launch(ctx, backward_wide_queries, a.n_q, 1, 0, a);
    }
}
