/* Attention whose products have factors in bfloat16 and sums in floats, forward and backward.
 *
 * A block of 4 warps takes 64 queries of a head (keys, where gradients of keys are summed), a warp
 * 16 of them, or 128 and 32, so that what is read of a tile serves twice as many rows; it walks
 * over tiles of 64 of the other side in shared memory, as attention.cu does; of halves the next
 * tile comes while one is worked on. Scores stay in the registers of the warp that made them:
 * rounded, they are the factor of the next product (tensor_core.h). Values come as floats or as
 * halves, and results leave as what q is. Columns behind the last key cost nothing by sixteens, nor
 * do rows behind the last query.
 *   forward    S = Q K^T, P = exp(scale S - most), O = P V
 *   of keys    S^T = K Q^T, dP^T = V dO^T, dS = scale P (dP - D), dV = P^T dO, dK = dS^T Q
 *   of queries the same by rows, dQ = dS K */
#include "kernels/cuda/attention.h"
#include "kernels/cuda/tensor_core.h"

namespace
{

enum { TILE = 64, THREADS = 128, WARPS = THREADS / 32, ROWS = 16, N_TILES = TILE / 8 };
#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

typedef unsigned short half_bits;

/* Whom a block serves, and which rows of its tile this lane of a warp holds. */
struct place {
    size_t first, h, b;
    int warp, g, t;
};

__device__ place place_of(const pnb__cuda_attention_args &a, size_t n, size_t each)
{
    size_t n_tiles = (n + each - 1) / each, at = blockIdx.x;
    int lane = static_cast<int>(threadIdx.x % 32);
    return place{at % n_tiles * each,
                 at / n_tiles % a.n_heads,
                 at / n_tiles / a.n_heads,
                 static_cast<int>(threadIdx.x / 32),
                 lane / 4,
                 lane % 4};
}

/* ---- tiles ---- */

__device__ half_bits rounded(float x)
{
    return pnb__cuda_bf16_of(x);
}
__device__ half_bits rounded(half_bits x)
{
    return x;
}

/* Eight numbers as halves; from is 16 bytes aligned. */
__device__ uint4 eight(const float *from)
{
    const float4 *at = reinterpret_cast<const float4 *>(from);
    float4 x = at[0], y = at[1];
    return uint4{pnb__cuda_pack(x.x, x.y), pnb__cuda_pack(x.z, x.w), pnb__cuda_pack(y.x, y.y),
                 pnb__cuda_pack(y.z, y.w)};
}
__device__ uint4 eight(const half_bits *from)
{
    return *reinterpret_cast<const uint4 *>(from);
}

/* Rows first.. into a tile of `rows` rows of D, zeros behind the last and beyond head_dim. */
template <int D, class T>
__device__ void fill(half_bits *tile, const T *from, size_t first, size_t n, size_t ld, int width,
                     bool is_wide, int rows = TILE)
{
    for (int i = static_cast<int>(threadIdx.x); i < rows * (D / 8); i += THREADS) {
        int row = i / (D / 8), d = i % (D / 8) * 8;
        size_t at = first + static_cast<size_t>(row);
        const T *in = from + at * ld + d;
        uint4 x = uint4{0, 0, 0, 0};
        if (at < n && is_wide && d < width) {
            x = eight(in);
        } else if (at < n && d < width) {
            unsigned part[4];
            for (int j = 0; j < 4; j++) {
                unsigned low = d + 2 * j < width ? rounded(in[2 * j]) : 0;
                unsigned high = d + 2 * j + 1 < width ? rounded(in[2 * j + 1]) : 0;
                part[j] = low | high << 16;
            }
            x = uint4{part[0], part[1], part[2], part[3]};
        }
        *reinterpret_cast<uint4 *>(tile + row * (D + 8) + d) = x;
    }
}

/* The same of halves that can be read 16 bytes at a time, without waiting. */
template <int D>
__device__ void fetch(half_bits *tile, const half_bits *from, size_t first, size_t n, size_t ld,
                      int width, int rows = TILE)
{
    PNB__CUDA_UNROLL
    for (int i = static_cast<int>(threadIdx.x); i < rows * (D / 8); i += THREADS) {
        int row = i / (D / 8), d = i % (D / 8) * 8;
        size_t at = first + static_cast<size_t>(row);
        bool is_there = at < n && d < width;
        pnb__cuda_fetch16(tile + row * (D + 8) + d, is_there ? from + at * ld + d : from, is_there);
    }
}

/* Tiles of 8 columns, by twos, that hold one of n columns from `at` on. */
__device__ int used_tiles(size_t at, size_t n)
{
    size_t left = n > at ? n - at : 0;
    return left >= TILE ? static_cast<int>(N_TILES) : static_cast<int>((left + 15) / 16 * 2);
}

/* out[m][n] = rows r0 + 16 m.. of a with rows 8 n.. of b, for n < used; 0 for others. FULL: all are
 * used, and nothing stands between one instruction and the next. */
template <int D, int M, bool FULL>
__device__ void dots(const half_bits *a, int r0, const half_bits *b, int used,
                     float out[M][N_TILES][4])
{
    PNB__CUDA_UNROLL
    for (int m = 0; m < M; m++)
        PNB__CUDA_UNROLL
    for (int n = 0; n < N_TILES; n++)
        PNB__CUDA_UNROLL
    for (int e = 0; e < 4; e++)
        out[m][n][e] = 0;
    PNB__CUDA_UNROLL
    for (int k = 0; k < D; k += 16) {
        unsigned x[M][4], y[4];
        PNB__CUDA_UNROLL
        for (int m = 0; m < M; m++)
            pnb__cuda_load_a(a, D + 8, r0 + ROWS * m, k, x[m]);
        PNB__CUDA_UNROLL
        for (int n = 0; n < N_TILES; n += 2) {
            if (!FULL && n >= used)
                break;
            pnb__cuda_load_b(b, D + 8, n * 8, k, y);
            PNB__CUDA_UNROLL
            for (int m = 0; m < M; m++) {
                pnb__cuda_mma(out[m][n], x[m], y);
                pnb__cuda_mma(out[m][n + 1], x[m], y + 2);
            }
        }
    }
}

/* sum[m] += w[m] v, w (16, 8 used) weights in registers, v rows of a tile */
template <int D, int M, bool FULL>
__device__ void weigh(const float w[M][N_TILES][4], const half_bits *v, int used,
                      float sum[M][D / 8][4])
{
    PNB__CUDA_UNROLL
    for (int k = 0; k < N_TILES; k += 2) {
        if (!FULL && k >= used)
            break;
        unsigned x[M][4];
        PNB__CUDA_UNROLL
        for (int m = 0; m < M; m++) {
            x[m][0] = pnb__cuda_pack(w[m][k][0], w[m][k][1]);
            x[m][1] = pnb__cuda_pack(w[m][k][2], w[m][k][3]);
            x[m][2] = pnb__cuda_pack(w[m][k + 1][0], w[m][k + 1][1]);
            x[m][3] = pnb__cuda_pack(w[m][k + 1][2], w[m][k + 1][3]);
        }
        PNB__CUDA_UNROLL
        for (int d = 0; d < D; d += 16) {
            unsigned y[4];
            pnb__cuda_load_b_rows(v, D + 8, k * 8, d, y);
            PNB__CUDA_UNROLL
            for (int m = 0; m < M; m++) {
                pnb__cuda_mma(sum[m][d / 8], x[m], y);
                pnb__cuda_mma(sum[m][d / 8 + 1], x[m], y + 2);
            }
        }
    }
}

template <int D> __device__ void clear(float sum[D / 8][4])
{
    PNB__CUDA_UNROLL
    for (int d = 0; d < D / 8; d++)
        PNB__CUDA_UNROLL
    for (int e = 0; e < 4; e++)
        sum[d][e] = 0;
}

/* Two numbers beside each other; of halves nothing is added to. */
__device__ void put(float *to, float low, float high, bool has_both, bool accumulate)
{
    pnb__cuda_put(to, low, accumulate);
    if (has_both)
        pnb__cuda_put(to + 1, high, accumulate);
}
__device__ void put(half_bits *to, float low, float high, bool has_both, bool)
{
    unsigned both = pnb__cuda_pack(low, high);
    if (has_both && reinterpret_cast<uintptr_t>(to) % 4 == 0) {
        *reinterpret_cast<unsigned *>(to) = both;
        return;
    }
    to[0] = static_cast<half_bits>(both & 0xffff);
    if (has_both)
        to[1] = static_cast<half_bits>(both >> 16);
}

/* Rows `first` and first + 8 of a warp's 16, as this lane holds them. */
template <int D, class T>
__device__ void put_rows(T *to, size_t first, size_t n, size_t ld, int width,
                         const float sum[D / 8][4], bool accumulate)
{
    int t = static_cast<int>(threadIdx.x % 4);
    PNB__CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        size_t i = first + static_cast<size_t>(8 * r);
        PNB__CUDA_UNROLL
        for (int d = 0; d < D / 8 && i < n; d++) {
            int at = d * 8 + 2 * t;
            if (at < width)
                put(&to[i * ld + static_cast<size_t>(at)], sum[d][2 * r], sum[d][2 * r + 1],
                    at + 1 < width, accumulate);
        }
    }
}

/* Over the four lanes that hold a row. */
template <class Op> __device__ float over_row(float v, Op op)
{
    v = op(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return op(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

/* ---- forward ---- */

struct running { /* of the two rows of a lane: greatest score, sum of exp(scale (score - it)) */
    float most[2], sum[2];
};

/* Scores to weights; sums so far shrink by shrink[r]. */
__device__ void soften(float score[N_TILES][4], float unit, running *rows, float shrink[2])
{
    PNB__CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        float most = -INFINITY, sum = 0;
        PNB__CUDA_UNROLL
        for (int n = 0; n < N_TILES; n++)
            most = fmaxf(most, fmaxf(score[n][2 * r], score[n][2 * r + 1]));
        most = fmaxf(rows->most[r], over_row(most, pnb__cuda_most()));
        float shift = most == -INFINITY ? 0 : most * unit;
        PNB__CUDA_UNROLL
        for (int n = 0; n < N_TILES; n++)
            for (int e = 2 * r; e < 2 * r + 2; e++) {
                score[n][e] = exp2f(score[n][e] * unit - shift);
                sum += score[n][e];
            }
        shrink[r] = exp2f(rows->most[r] * unit - shift);
        rows->sum[r] = rows->sum[r] * shrink[r] + over_row(sum, pnb__cuda_add());
        rows->most[r] = most;
    }
}

template <int D, class T> struct values { /* q, k, v and out as what they are stored in */
    const T *q, *k, *v;
    T *out;
};

/* First row of this lane in tile m of its warp. */
template <int M> __device__ size_t row_of(const place &p, int m)
{
    return p.first + static_cast<size_t>((p.warp * M + m) * ROWS + p.g);
}

/* One tile of keys: its share of the sums of this lane's rows, which see `seen` keys of it. */
template <int D, int M, bool FULL>
__device__ void attend(const half_bits *q, const half_bits *k, const half_bits *v, const place &p,
                       const int seen[M][2], int used, float unit, running rows[M],
                       float sum[M][D / 8][4])
{
    float score[M][N_TILES][4], shrink[2];
    dots<D, M, FULL>(q, p.warp * M * ROWS, k, used, score);
    PNB__CUDA_UNROLL
    for (int m = 0; m < M; m++) {
        PNB__CUDA_UNROLL
        for (int n = 0; n < N_TILES && !FULL; n++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            if (n * 8 + 2 * p.t + e % 2 >= seen[m][e / 2])
                score[m][n][e] = -INFINITY;
        soften(score[m], unit, &rows[m], shrink);
        PNB__CUDA_UNROLL
        for (int d = 0; d < D / 8; d++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            sum[m][d][e] *= shrink[e / 2];
    }
    weigh<D, M, FULL>(score, v, used, sum);
}

/* The rows of a lane leave. */
template <int D, int M, class T>
__device__ void finish(const pnb__cuda_attention_args &a, T *out, const place &p,
                       const running rows[M], float sum[M][D / 8][4])
{
    PNB__CUDA_UNROLL
    for (int m = 0; m < M; m++) {
        PNB__CUDA_UNROLL
        for (int d = 0; d < D / 8; d++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            sum[m][d][e] *= rows[m].sum[e / 2] > 0 ? 1 / rows[m].sum[e / 2] : 0;
        put_rows<D>(pnb__cuda_head(a, out, a.batch_out, p.b, p.h), row_of<M>(p, m), a.n_q,
                    a.row_out, a.head_dim, sum[m], false);
        PNB__CUDA_UNROLL
        for (int r = 0; r < 2; r++) {
            size_t i = row_of<M>(p, m) + static_cast<size_t>(8 * r);
            if (a.lse != NULL && p.t == 0 && i < a.n_q)
                a.lse[(p.b * a.n_heads + p.h) * a.n_q + i] =
                    rows[m].sum[r] > 0 ? rows[m].most[r] * a.scale + logf(rows[m].sum[r])
                                       : -INFINITY;
        }
    }
}

/* Keys of the tile at `at` that a row sees, at most 64. */
__device__ int seen_here(size_t seen, size_t at)
{
    size_t left = seen > at ? seen - at : 0;
    return left < TILE ? static_cast<int>(left) : static_cast<int>(TILE);
}

/* K and V of tile `at`; ASYNC: they arrive by the next pnb__cuda_fetched. */
template <int D, class T, bool ASYNC> struct loader {
    static __device__ void load(const pnb__cuda_attention_args &a, const values<D, T> &x,
                                const place &p, size_t at, size_t n, half_bits *kv, bool is_wide)
    {
        fill<D>(kv, pnb__cuda_head(a, x.k, a.batch_kv, p.b, p.h), at, n, a.row_kv, a.head_dim,
                is_wide);
        fill<D>(kv + TILE * (D + 8), pnb__cuda_head(a, x.v, a.batch_kv, p.b, p.h), at, n, a.row_kv,
                a.head_dim, is_wide);
    }
    static __device__ void load_q(const pnb__cuda_attention_args &a, const values<D, T> &x,
                                  const place &p, half_bits *q, int rows, bool is_wide)
    {
        fill<D>(q, pnb__cuda_head(a, x.q, a.batch_q, p.b, p.h), p.first, a.n_q, a.row_q, a.head_dim,
                is_wide, rows);
    }
};
template <int D> struct loader<D, half_bits, true> {
    static __device__ void load(const pnb__cuda_attention_args &a, const values<D, half_bits> &x,
                                const place &p, size_t at, size_t n, half_bits *kv, bool)
    {
        fetch<D>(kv, pnb__cuda_head(a, x.k, a.batch_kv, p.b, p.h), at, n, a.row_kv, a.head_dim);
        fetch<D>(kv + TILE * (D + 8), pnb__cuda_head(a, x.v, a.batch_kv, p.b, p.h), at, n, a.row_kv,
                 a.head_dim);
    }
    static __device__ void load_q(const pnb__cuda_attention_args &a, const values<D, half_bits> &x,
                                  const place &p, half_bits *q, int rows, bool)
    {
        fetch<D>(q, pnb__cuda_head(a, x.q, a.batch_q, p.b, p.h), p.first, a.n_q, a.row_q,
                 a.head_dim, rows);
    }
};

template <int D, int M> constexpr size_t forward_bytes(bool is_async)
{
    return (WARPS * M * ROWS + (is_async ? 4 : 2) * TILE) * (D + 8) * sizeof(half_bits);
}

/* What a block's rows see: of each row, and the least and most of a warp's. */
template <int M> struct sight {
    size_t rows[M][2], least;
    bool has_rows;
};

template <int M> __device__ sight<M> look(const pnb__cuda_attention_args &a, const place &p)
{
    sight<M> s;
    size_t first = p.first + static_cast<size_t>(p.warp * M * ROWS);
    PNB__CUDA_UNROLL
    for (int m = 0; m < M; m++)
        PNB__CUDA_UNROLL
    for (int r = 0; r < 2; r++)
        s.rows[m][r] = pnb__cuda_seen(a, p.b, row_of<M>(p, m) + static_cast<size_t>(8 * r));
    s.least = pnb__cuda_seen(a, p.b, first);
    s.has_rows = first < a.n_q;
    return s;
}

/* Two places for tiles where they come ahead, one where they are waited for. */
template <int D, class T, bool ASYNC, int M>
__global__ void __launch_bounds__(THREADS)
    forward(pnb__cuda_attention_args a, values<D, T> x, bool is_wide)
{
    PNB__CUDA_SHARED(half_bits, shared);
    half_bits *q = shared, *kv = q + WARPS * M * ROWS * (D + 8);
    const place p = place_of(a, a.n_q, WARPS * M * ROWS);
    const size_t n_seen = pnb__cuda_seen_by_tile(a, p.b, p.first, WARPS * M * ROWS);
    const sight<M> s = look<M>(a, p);
    const float unit = a.scale * LOG2_E;
    float sum[M][D / 8][4];
    running rows[M];
    int side = 0;
    PNB__CUDA_UNROLL
    for (int m = 0; m < M; m++) {
        rows[m] = running{{-INFINITY, -INFINITY}, {0, 0}};
        clear<D>(sum[m]);
    }
    if (n_seen > 0)
        loader<D, T, ASYNC>::load(a, x, p, 0, n_seen, kv, is_wide);
    loader<D, T, ASYNC>::load_q(a, x, p, q, WARPS * M * ROWS, is_wide);
    for (size_t at = 0; at < n_seen; at += TILE) {
        half_bits *k = kv + side * 2 * TILE * (D + 8), *v = k + TILE * (D + 8);
        pnb__cuda_fetched();
        __syncthreads();
        if (ASYNC && at + TILE < n_seen) {
            side = 1 - side;
            loader<D, T, ASYNC>::load(a, x, p, at + TILE, n_seen, kv + side * 2 * TILE * (D + 8),
                                      is_wide);
        }
        if (s.has_rows && at + TILE <= s.least) { /* a warp together */
            int all[M][2];
            attend<D, M, true>(q, k, v, p, all, N_TILES, unit, rows, sum);
        } else if (s.has_rows) {
            int here[M][2];
            PNB__CUDA_UNROLL
            for (int m = 0; m < M; m++)
                PNB__CUDA_UNROLL
            for (int r = 0; r < 2; r++)
                here[m][r] = seen_here(s.rows[m][r], at);
            attend<D, M, false>(q, k, v, p, here, used_tiles(at, n_seen), unit, rows, sum);
        }
        if (!ASYNC && at + TILE < n_seen) {
            __syncthreads();
            loader<D, T, ASYNC>::load(a, x, p, at + TILE, n_seen, kv, is_wide);
        }
    }
    if (s.has_rows)
        finish<D, M>(a, x.out, p, rows, sum);
}

/* ---- backward ---- */

template <class T> struct slopes { /* the values of backward as what they are stored in */
    const T *q, *k, *v, *d_out;
    T *dq, *dk, *dv;
};

struct tiles {
    half_bits *q, *k, *v, *d_out;
    float *lse, *delta; /* of the queries, lse times log2 e */
    int *seen;          /* keys from the tile's first key on that a query sees */
};

template <int D> __device__ tiles tiles_at(half_bits *shared)
{
    const int n = TILE * (D + 8);
    tiles s;
    s.q = shared;
    s.k = s.q + n;
    s.v = s.k + n;
    s.d_out = s.v + n;
    s.lse = reinterpret_cast<float *>(s.d_out + n);
    s.delta = s.lse + TILE;
    s.seen = reinterpret_cast<int *>(s.delta + TILE);
    return s;
}

template <int D, class T>
__device__ void fill_queries(const pnb__cuda_attention_args &a, const slopes<T> &x, const tiles &s,
                             const place &p, size_t first, bool is_wide)
{
    fill<D>(s.q, pnb__cuda_head(a, x.q, a.batch_q, p.b, p.h), first, a.n_q, a.row_q, a.head_dim,
            is_wide);
    fill<D>(s.d_out, pnb__cuda_head(a, x.d_out, a.batch_out, p.b, p.h), first, a.n_q, a.row_out,
            a.head_dim, is_wide);
}

template <int D, class T>
__device__ void fill_keys(const pnb__cuda_attention_args &a, const slopes<T> &x, const tiles &s,
                          const place &p, size_t first, bool is_wide)
{
    fill<D>(s.k, pnb__cuda_head(a, x.k, a.batch_kv, p.b, p.h), first, a.n_kv, a.row_kv, a.head_dim,
            is_wide);
    fill<D>(s.v, pnb__cuda_head(a, x.v, a.batch_kv, p.b, p.h), first, a.n_kv, a.row_kv, a.head_dim,
            is_wide);
}

/* What the softmax left of the queries of a tile, against keys from first_k on. */
__device__ void fill_facts(const pnb__cuda_attention_args &a, const tiles &s, const place &p,
                           size_t first_q, size_t first_k)
{
    int i = static_cast<int>(threadIdx.x);
    size_t row = first_q + static_cast<size_t>(i);
    if (i >= TILE)
        return;
    size_t at = (p.b * a.n_heads + p.h) * a.n_q + row,
           seen = row < a.n_q ? pnb__cuda_seen(a, p.b, row) : 0;
    s.lse[i] = row < a.n_q ? a.lse[at] * LOG2_E : 0;
    s.delta[i] = row < a.n_q ? a.delta[at] : 0;
    seen = seen > first_k ? seen - first_k : 0;
    s.seen[i] = seen < TILE ? static_cast<int>(seen) : static_cast<int>(TILE);
}

/* Score and slope of query `query`, key `key` of the tiles to p and dS. */
__device__ void to_weights(const pnb__cuda_attention_args &a, const tiles &s, int query, int key,
                           float *score, float *slope)
{
    bool is_seen = key < s.seen[query];
    float p = is_seen ? exp2f(*score * a.scale * LOG2_E - s.lse[query]) : 0;
    *slope = is_seen ? a.scale * p * (*slope - s.delta[query]) : 0;
    *score = p;
}

template <int D, class T>
__global__ void __launch_bounds__(THREADS)
    backward_keys(pnb__cuda_attention_args a, slopes<T> x, bool is_wide)
{
    PNB__CUDA_SHARED(half_bits, shared);
    const tiles s = tiles_at<D>(shared);
    const place p = place_of(a, a.n_kv, TILE);
    float dk[1][D / 8][4], dv[1][D / 8][4];
    clear<D>(dk[0]);
    clear<D>(dv[0]);
    fill_keys<D>(a, x, s, p, p.first, is_wide);
    for (size_t at = 0; at < a.n_q; at += TILE) {
        float score[1][N_TILES][4], slope[1][N_TILES][4];
        if (pnb__cuda_seen_by_tile(a, p.b, at, TILE) <= p.first)
            continue; /* the same for all threads */
        __syncthreads();
        fill_queries<D>(a, x, s, p, at, is_wide);
        fill_facts(a, s, p, at, p.first);
        __syncthreads();
        int used = used_tiles(at, a.n_q);
        dots<D, 1, false>(s.k, p.warp * ROWS, s.q, used, score);
        dots<D, 1, false>(s.v, p.warp * ROWS, s.d_out, used, slope);
        PNB__CUDA_UNROLL
        for (int n = 0; n < N_TILES; n++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            to_weights(a, s, n * 8 + 2 * p.t + e % 2, p.warp * ROWS + p.g + e / 2 * 8,
                       &score[0][n][e], &slope[0][n][e]);
        weigh<D, 1, false>(score, s.d_out, used, dv);
        weigh<D, 1, false>(slope, s.q, used, dk);
    }
    put_rows<D>(pnb__cuda_head(a, x.dk, a.batch_kv, p.b, p.h), row_of<1>(p, 0), a.n_kv, a.row_kv,
                a.head_dim, dk[0], a.accumulate_kv);
    put_rows<D>(pnb__cuda_head(a, x.dv, a.batch_kv, p.b, p.h), row_of<1>(p, 0), a.n_kv, a.row_kv,
                a.head_dim, dv[0], a.accumulate_kv);
}

template <int D, class T>
__global__ void __launch_bounds__(THREADS)
    backward_queries(pnb__cuda_attention_args a, slopes<T> x, bool is_wide)
{
    PNB__CUDA_SHARED(half_bits, shared);
    const tiles s = tiles_at<D>(shared);
    const place p = place_of(a, a.n_q, TILE);
    size_t n_seen = pnb__cuda_seen_by_tile(a, p.b, p.first, TILE);
    float dq[1][D / 8][4];
    clear<D>(dq[0]);
    fill_queries<D>(a, x, s, p, p.first, is_wide);
    for (size_t at = 0; at < n_seen; at += TILE) {
        float score[1][N_TILES][4], slope[1][N_TILES][4];
        __syncthreads();
        fill_keys<D>(a, x, s, p, at, is_wide);
        fill_facts(a, s, p, p.first, at);
        __syncthreads();
        int used = used_tiles(at, n_seen);
        dots<D, 1, false>(s.q, p.warp * ROWS, s.k, used, score);
        dots<D, 1, false>(s.d_out, p.warp * ROWS, s.v, used, slope);
        PNB__CUDA_UNROLL
        for (int n = 0; n < N_TILES; n++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            to_weights(a, s, p.warp * ROWS + p.g + e / 2 * 8, n * 8 + 2 * p.t + e % 2,
                       &score[0][n][e], &slope[0][n][e]);
        weigh<D, 1, false>(slope, s.k, used, dq);
    }
    put_rows<D>(pnb__cuda_head(a, x.dq, a.batch_q, p.b, p.h), row_of<1>(p, 0), a.n_q, a.row_q,
                a.head_dim, dq[0], a.accumulate_q);
}

/* ---- starts ---- */

dim3 blocks_of(const pnb__cuda_attention_args &a, size_t n, size_t each)
{
    return dim3(static_cast<unsigned>((n + each - 1) / each * a.n_heads * a.n_batch));
}

/* Rows of all sides can be read 16 bytes at a time. */
bool is_wide(const pnb__cuda_attention_args &a, size_t size)
{
    size_t each = 16 / size;
    uintptr_t at = reinterpret_cast<uintptr_t>(a.q) | reinterpret_cast<uintptr_t>(a.k) |
                   reinterpret_cast<uintptr_t>(a.v) | reinterpret_cast<uintptr_t>(a.d_out);
    return at % 16 == 0 &&
           (a.batch_q | a.row_q | a.batch_kv | a.row_kv | a.batch_out | a.row_out) % each == 0 &&
           a.head_dim % 8 == 0;
}

template <int D, class T, bool ASYNC, int M>
void launch_forward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a, bool wide)
{
    const values<D, T> x = {reinterpret_cast<const T *>(a.q), reinterpret_cast<const T *>(a.k),
                            reinterpret_cast<const T *>(a.v), reinterpret_cast<T *>(a.out)};
    pnb__cuda_launch(ctx, forward<D, T, ASYNC, M>, blocks_of(a, a.n_q, WARPS * M * ROWS), THREADS,
                     forward_bytes<D, M>(ASYNC), a, x, wide);
}

/* Many queries: 32 to a warp. Wider heads leave no registers for that. */
template <int D, class T, bool ASYNC>
void run_forward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a, bool wide)
{
    const int most = D <= 80 ? 2 : 1;
    if (a.n_q == 0)
        return;
    if (a.n_q > 2 * TILE && a.n_batch * a.n_heads >= PNB__CUDA_MANY)
        launch_forward<D, T, ASYNC, most>(ctx, a, wide);
    else
        launch_forward<D, T, ASYNC, 1>(ctx, a, wide);
}

template <int D>
void run_forward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a, bool are_halves)
{
    bool wide = is_wide(a, are_halves ? sizeof(half_bits) : sizeof(float));
    if (are_halves && wide)
        run_forward<D, half_bits, true>(ctx, a, wide);
    else if (are_halves)
        run_forward<D, half_bits, false>(ctx, a, wide);
    else
        run_forward<D, float, false>(ctx, a, wide);
}

template <int D, class T> void run_backward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a)
{
    const slopes<T> x = {reinterpret_cast<const T *>(a.q), reinterpret_cast<const T *>(a.k),
                         reinterpret_cast<const T *>(a.v), reinterpret_cast<const T *>(a.d_out),
                         reinterpret_cast<T *>(a.dq),      reinterpret_cast<T *>(a.dk),
                         reinterpret_cast<T *>(a.dv)};
    size_t bytes = 4 * TILE * (D + 8) * sizeof(half_bits) + 3 * TILE * sizeof(float);
    if (a.n_kv > 0)
        pnb__cuda_launch(ctx, backward_keys<D, T>, blocks_of(a, a.n_kv, TILE), THREADS, bytes, a, x,
                         is_wide(a, sizeof(T)));
    if (a.n_q > 0)
        pnb__cuda_launch(ctx, backward_queries<D, T>, blocks_of(a, a.n_q, TILE), THREADS, bytes, a,
                         x, is_wide(a, sizeof(T)));
}

template <class T> void run_backward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a)
{
    if (a.head_dim <= 64)
        run_backward<64, T>(ctx, a);
    else if (a.head_dim <= 80)
        run_backward<80, T>(ctx, a);
    else
        run_backward<128, T>(ctx, a);
}

} // namespace

void pnb__cuda_attention_halves(const pnb_ctx *ctx, const pnb__cuda_attention_args &a,
                                bool are_halves)
{
    if (a.head_dim <= 64)
        run_forward<64>(ctx, a, are_halves);
    else if (a.head_dim <= 80)
        run_forward<80>(ctx, a, are_halves);
    else
        run_forward<128>(ctx, a, are_halves);
}

void pnb__cuda_attention_halves_bwd(const pnb_ctx *ctx, const pnb__cuda_attention_args &a,
                                    bool are_halves)
{
    if (are_halves)
        run_backward<half_bits>(ctx, a);
    else
        run_backward<float>(ctx, a);
}
