/* Attention whose products have factors in bfloat16 and sums in floats, forward and backward.
 *
 * A block of 4 warps takes 64 queries of a head (keys, where gradients of keys are summed), a warp
 * 16 of them; it walks over tiles of 64 of the other side in shared memory, as attention.cu does;
 * the next tile comes while one is worked on, of halves without waiting. Scores stay in the
 * registers of the warp that made them: rounded, they are the factor of the next product
 * (tensor_core.h). Values come as floats or as halves, and results leave as what q is. The last
 * tile is worked on as one of 16 columns where it has no more.
 *
 *   forward      S = Q K^T, P = exp(scale S - most), O = P V
 *
 *   of keys      S^T = K Q^T, dP^T = V dO^T, dS = P (dP - D), dV = P^T dO, dK = scale dS^T Q
 *
 *   of queries   the same by rows, dQ = scale dS K
 *
 * Queries behind the last are zeros in the tiles, so they add nothing in backward. Keys behind the
 * last have scores of 0, which may lie far above all others: they are left out by name, as is what
 * single queries do not see. */
#include "kernels/cuda/attention.h"
#include "kernels/cuda/tensor_core.h"

namespace
{

enum { TILE = 64, THREADS = 128, WARPS = THREADS / 32, ROWS = 16, N_TILES = TILE / 8 };
#define LOG2_E 1.4426950408889634f

typedef unsigned short half_bits;

/* Whom a block serves, and which rows of its tile this lane of a warp holds. */
struct place {
    size_t first, h, b;
    int warp, g, t;
};

__device__ place place_of(const pnb__cuda_attention_args &a, size_t n)
{
    size_t n_tiles = (n + TILE - 1) / TILE, at = blockIdx.x;
    int lane = static_cast<int>(threadIdx.x % 32);
    return place{at % n_tiles * TILE,
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

/* Rows first.. into a tile of rows of D, zeros behind the last and beyond head_dim. */
template <int D, class T>
__device__ void fill(half_bits *tile, const T *from, size_t first, size_t n, size_t ld, int width,
                     bool is_wide)
{
    for (int i = static_cast<int>(threadIdx.x); i < TILE * (D / 8); i += THREADS) {
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

/* The same of halves that can be read 16 bytes at a time, without waiting. A thread takes the same
 * columns of every so many rows where rows divide like that. */
template <int D>
__device__ void fetch(half_bits *tile, const half_bits *from, size_t first, size_t n, size_t ld,
                      int width)
{
    constexpr int each = D / 8, step = THREADS / each;
    const int thread = static_cast<int>(threadIdx.x);
    const int left =
        static_cast<int>(PNB_MIN(n > first ? n - first : 0, static_cast<size_t>(TILE)));
    from += first * ld;
    if constexpr (THREADS % each == 0) {
        const int row = thread / each, d = thread % each * 8, rows = d < width ? left : 0;
        const half_bits *at = from + static_cast<size_t>(row) * ld + d;
        PNB__CUDA_UNROLL
        for (int k = row; k < row + TILE; k += step, at += static_cast<size_t>(step) * ld)
            pnb__cuda_fetch16(tile + k * (D + 8) + d, at, k < rows);
    } else {
        for (int i = thread; i < TILE * each; i += THREADS) {
            const int row = i / each, d = i % each * 8;
            pnb__cuda_fetch16(tile + row * (D + 8) + d, from + static_cast<size_t>(row) * ld + d,
                              row < left && d < width);
        }
    }
}

/* What a tile is worked on as: f.width<N>() with N tiles of 8 columns for the columns left. */
template <class F> __device__ void by_width(size_t left, F f)
{
    if (left > 16)
        f.template width<N_TILES>();
    else
        f.template width<2>();
}

/* out[n] = rows r0.. of a with rows 8 n.. of b */
template <int D, int N>
__device__ void dots(const half_bits *a, int r0, const half_bits *b, float out[N][4])
{
    PNB__CUDA_UNROLL
    for (int n = 0; n < N; n++)
        PNB__CUDA_UNROLL
    for (int e = 0; e < 4; e++)
        out[n][e] = 0;
    PNB__CUDA_UNROLL
    for (int k = 0; k < D; k += 16) {
        unsigned x[4], y[4];
        pnb__cuda_load_a(a, D + 8, r0, k, x);
        PNB__CUDA_UNROLL
        for (int n = 0; n < N; n += 2) {
            pnb__cuda_load_b(b, D + 8, n * 8, k, y);
            pnb__cuda_mma(out[n], x, y);
            pnb__cuda_mma(out[n + 1], x, y + 2);
        }
    }
}

/* sum += w v, w (16, 8 N) weights in registers, v rows of a tile */
template <int D, int N>
__device__ void weigh(const float w[N][4], const half_bits *v, float sum[D / 8][4])
{
    PNB__CUDA_UNROLL
    for (int k = 0; k < N; k += 2) {
        unsigned x[4] = {pnb__cuda_pack(w[k][0], w[k][1]), pnb__cuda_pack(w[k][2], w[k][3]),
                         pnb__cuda_pack(w[k + 1][0], w[k + 1][1]),
                         pnb__cuda_pack(w[k + 1][2], w[k + 1][3])};
        PNB__CUDA_UNROLL
        for (int d = 0; d < D; d += 16) {
            unsigned y[4];
            pnb__cuda_load_b_rows(v, D + 8, k * 8, d, y);
            pnb__cuda_mma(sum[d / 8], x, y);
            pnb__cuda_mma(sum[d / 8 + 1], x, y + 2);
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
template <int N>
__device__ void soften(float score[N][4], float unit, running *rows, float shrink[2])
{
    PNB__CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        float most = -INFINITY, sum = 0;
        PNB__CUDA_UNROLL
        for (int n = 0; n < N; n++)
            most = fmaxf(most, fmaxf(score[n][2 * r], score[n][2 * r + 1]));
        most = fmaxf(rows->most[r], over_row(most, pnb__cuda_most()));
        float shift = most == -INFINITY ? 0 : most * unit;
        PNB__CUDA_UNROLL
        for (int n = 0; n < N; n++)
            PNB__CUDA_UNROLL
        for (int e = 2 * r; e < 2 * r + 2; e++) {
            score[n][e] = pnb__cuda_exp2(score[n][e] * unit - shift);
            sum += score[n][e];
        }
        shrink[r] = pnb__cuda_exp2(rows->most[r] * unit - shift);
        rows->sum[r] = rows->sum[r] * shrink[r] + over_row(sum, pnb__cuda_add());
        rows->most[r] = most;
    }
}

template <int D, class T> struct values { /* q, k, v and out as what they are stored in */
    const T *q, *k, *v;
    T *out;
};

/* First row of this lane. */
__device__ size_t row_of(const place &p)
{
    return p.first + static_cast<size_t>(p.warp * ROWS + p.g);
}

/* One tile of keys: its share of the sums of this lane's two rows, which see `seen` keys of it. */
template <int D> struct attending {
    const half_bits *q, *k, *v;
    const place &p;
    const int *seen; /* NULL: both see all */
    float unit;
    running *rows;
    float (*sum)[4];

    template <int N> __device__ void width() const
    {
        float score[N][4], shrink[2];
        dots<D, N>(q, p.warp * ROWS, k, score);
        PNB__CUDA_UNROLL
        for (int n = 0; n < N && seen != NULL; n++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            if (n * 8 + 2 * p.t + e % 2 >= seen[e / 2])
                score[n][e] = -INFINITY;
        soften<N>(score, unit, rows, shrink);
        PNB__CUDA_UNROLL
        for (int d = 0; d < D / 8; d++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            sum[d][e] *= shrink[e / 2];
        weigh<D, N>(score, v, sum);
    }
};

/* The rows of a lane leave. */
template <int D, class T>
__device__ void finish(const pnb__cuda_attention_args &a, T *out, const place &p,
                       const running &rows, float sum[D / 8][4])
{
    PNB__CUDA_UNROLL
    for (int d = 0; d < D / 8; d++)
        PNB__CUDA_UNROLL
    for (int e = 0; e < 4; e++)
        sum[d][e] *= rows.sum[e / 2] > 0 ? 1 / rows.sum[e / 2] : 0;
    put_rows<D>(pnb__cuda_head(a, out, a.batch_out, p.b, p.h), row_of(p), a.n_q, a.row_out,
                a.head_dim, sum, false);
    PNB__CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        size_t i = row_of(p) + static_cast<size_t>(8 * r);
        if (a.lse != NULL && p.t == 0 && i < a.n_q)
            a.lse[(p.b * a.n_heads + p.h) * a.n_q + i] =
                rows.sum[r] > 0 ? rows.most[r] * a.scale + logf(rows.sum[r]) : -INFINITY;
    }
}

/* Keys of the tile at `at` that a row sees, at most 64. */
__device__ int seen_here(size_t seen, size_t at)
{
    size_t left = seen > at ? seen - at : 0;
    return left < TILE ? static_cast<int>(left) : static_cast<int>(TILE);
}

/* Rows into a tile. ASYNC: they arrive by the next pnb__cuda_fetched. */
template <int D, class T, bool ASYNC> struct loader {
    static __device__ void load(half_bits *tile, const T *from, size_t first, size_t n, size_t ld,
                                int width, bool is_wide)
    {
        fill<D>(tile, from, first, n, ld, width, is_wide);
    }
};
template <int D> struct loader<D, half_bits, true> {
    static __device__ void load(half_bits *tile, const half_bits *from, size_t first, size_t n,
                                size_t ld, int width, bool)
    {
        fetch<D>(tile, from, first, n, ld, width);
    }
};

/* K and V of the tile at `at`, of which n are there. */
template <int D, class T, bool ASYNC>
__device__ void load_kv(const pnb__cuda_attention_args &a, const T *k, const T *v, const place &p,
                        size_t at, size_t n, half_bits *kv, bool is_wide)
{
    loader<D, T, ASYNC>::load(kv, pnb__cuda_head(a, k, a.batch_kv, p.b, p.h), at, n, a.row_kv,
                              a.head_dim, is_wide);
    loader<D, T, ASYNC>::load(kv + TILE * (D + 8), pnb__cuda_head(a, v, a.batch_kv, p.b, p.h), at,
                              n, a.row_kv, a.head_dim, is_wide);
}

template <int D> constexpr size_t forward_bytes()
{
    return 5 * TILE * (D + 8) * sizeof(half_bits);
}

template <int D, class T, bool ASYNC>
__global__ void __launch_bounds__(THREADS, D <= 64 ? 4 : 1)
    forward(pnb__cuda_attention_args a, values<D, T> x, bool is_wide)
{
    PNB__CUDA_SHARED(half_bits, shared);
    half_bits *q = shared, *kv = q + TILE * (D + 8);
    const place p = place_of(a, a.n_q);
    const size_t n_seen = pnb__cuda_seen_by_tile(a, p.b, p.first, TILE);
    const size_t first = p.first + static_cast<size_t>(p.warp * ROWS);
    const size_t least = pnb__cuda_seen(a, p.b, first); /* of a warp's rows */
    const size_t seen[2] = {pnb__cuda_seen(a, p.b, row_of(p)),
                            pnb__cuda_seen(a, p.b, row_of(p) + 8)};
    float sum[D / 8][4];
    running rows = {{-INFINITY, -INFINITY}, {0, 0}};
    clear<D>(sum);
    if (n_seen > 0)
        load_kv<D, T, ASYNC>(a, x.k, x.v, p, 0, n_seen, kv, is_wide);
    loader<D, T, ASYNC>::load(q, pnb__cuda_head(a, x.q, a.batch_q, p.b, p.h), p.first, a.n_q,
                              a.row_q, a.head_dim, is_wide);
    for (size_t at = 0, side = 0; at < n_seen; at += TILE, side ^= 1) {
        half_bits *k = kv + side * 2 * TILE * (D + 8), *v = k + TILE * (D + 8);
        pnb__cuda_fetched();
        __syncthreads();
        if (at + TILE < n_seen)
            load_kv<D, T, ASYNC>(a, x.k, x.v, p, at + TILE, n_seen,
                                 kv + (side ^ 1) * 2 * TILE * (D + 8), is_wide);
        const int here[2] = {seen_here(seen[0], at), seen_here(seen[1], at)};
        attending<D> tile = {q, k, v, p, here, a.scale * LOG2_E, &rows, sum};
        if (first >= a.n_q)
            continue; /* a warp together */
        if (at + TILE <= least) {
            tile.seen = NULL;
            tile.template width<N_TILES>();
        } else {
            by_width(n_seen - at, tile);
        }
    }
    if (first < a.n_q)
        finish<D>(a, x.out, p, rows, sum);
}

/* ---- backward ---- */

template <class T> struct slopes { /* the values of backward as what they are stored in */
    const T *q, *k, *v, *d_out;
    T *dq, *dk, *dv;
};

/* The two places for tiles that move, and the one of tiles that stay. */
struct tiles {
    half_bits *mine[2], *others[2]; /* q and dO where queries move, k and v where keys do */
    float2 *facts;                  /* of queries: lse times log2 e, delta */
    int *seen;                      /* keys from the tile's first key on that a query sees */
};

template <int D> __device__ tiles tiles_at(half_bits *shared, int side)
{
    const int n = TILE * (D + 8);
    half_bits *moving = shared + (2 + 2 * side) * n;
    float2 *facts = reinterpret_cast<float2 *>(shared + 6 * n) + side * TILE;
    int *seen = reinterpret_cast<int *>(reinterpret_cast<float2 *>(shared + 6 * n) + 2 * TILE);
    return tiles{{shared, shared + n}, {moving, moving + n}, facts, seen + side * TILE};
}

template <int D> constexpr size_t backward_bytes()
{
    return 6 * TILE * (D + 8) * sizeof(half_bits) + 2 * TILE * (sizeof(float2) + sizeof(int));
}

/* Queries from `first` on and the gradients of their results. */
template <int D, class T, bool ASYNC>
__device__ void load_queries(const pnb__cuda_attention_args &a, const slopes<T> &x, const place &p,
                             half_bits *const to[2], size_t first, bool is_wide)
{
    loader<D, T, ASYNC>::load(to[0], pnb__cuda_head(a, x.q, a.batch_q, p.b, p.h), first, a.n_q,
                              a.row_q, a.head_dim, is_wide);
    loader<D, T, ASYNC>::load(to[1], pnb__cuda_head(a, x.d_out, a.batch_out, p.b, p.h), first,
                              a.n_q, a.row_out, a.head_dim, is_wide);
}

/* What the softmax left of the queries of a tile, against keys from first_k on. */
__device__ void load_facts(const pnb__cuda_attention_args &a, const tiles &s, const place &p,
                           size_t first_q, size_t first_k)
{
    int i = static_cast<int>(threadIdx.x);
    size_t row = first_q + static_cast<size_t>(i);
    if (i >= TILE)
        return;
    size_t at = (p.b * a.n_heads + p.h) * a.n_q + row,
           seen = row < a.n_q ? pnb__cuda_seen(a, p.b, row) : 0;
    s.facts[i] = row < a.n_q ? float2{a.lse[at] * LOG2_E, a.delta[at]} : float2{0, 0};
    seen = seen > first_k ? seen - first_k : 0;
    s.seen[i] = seen < TILE ? static_cast<int>(seen) : static_cast<int>(TILE);
}

/* Score and slope of a query to p and dS / scale. */
__device__ void to_weights(float unit, float2 fact, bool is_seen, float *score, float *slope)
{
    float p = is_seen ? pnb__cuda_exp2(*score * unit - fact.x) : 0;
    *slope = is_seen ? p * (*slope - fact.y) : 0;
    *score = p;
}

/* One tile of queries: its share of dK and dV of this warp's keys. */
template <int D, bool MASKED> struct to_keys {
    const tiles &s;
    const place &p;
    float unit;
    float (*dk)[4], (*dv)[4];

    template <int N> __device__ void width() const
    {
        float score[N][4], slope[N][4];
        dots<D, N>(s.mine[0], p.warp * ROWS, s.others[0], score);
        dots<D, N>(s.mine[1], p.warp * ROWS, s.others[1], slope);
        PNB__CUDA_UNROLL
        for (int n = 0; n < N; n++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++) {
            int query = n * 8 + 2 * p.t + e % 2, key = p.warp * ROWS + p.g + e / 2 * 8;
            to_weights(unit, s.facts[query], !MASKED || key < s.seen[query], &score[n][e],
                       &slope[n][e]);
        }
        weigh<D, N>(score, s.others[1], dv);
        weigh<D, N>(slope, s.others[0], dk);
    }
};

/* One tile of keys: its share of dQ of this warp's queries. */
template <int D, bool MASKED> struct to_queries {
    const tiles &s;
    const place &p;
    float unit;
    float (*dq)[4];

    template <int N> __device__ void width() const
    {
        float score[N][4], slope[N][4];
        const int query = p.warp * ROWS + p.g;
        const float2 facts[2] = {s.facts[query], s.facts[query + 8]};
        dots<D, N>(s.mine[0], p.warp * ROWS, s.others[0], score);
        dots<D, N>(s.mine[1], p.warp * ROWS, s.others[1], slope);
        PNB__CUDA_UNROLL
        for (int n = 0; n < N; n++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            to_weights(unit, facts[e / 2],
                       !MASKED || n * 8 + 2 * p.t + e % 2 < s.seen[query + e / 2 * 8], &score[n][e],
                       &slope[n][e]);
        weigh<D, N>(slope, s.others[0], dq);
    }
};

template <int D> __device__ void scale_by(float scale, float sum[D / 8][4])
{
    PNB__CUDA_UNROLL
    for (int d = 0; d < D / 8; d++)
        PNB__CUDA_UNROLL
    for (int e = 0; e < 4; e++)
        sum[d][e] *= scale;
}

template <int D, class T, bool ASYNC, bool MASKED>
__global__ void __launch_bounds__(THREADS, D <= 64 ? 3 : 1)
    backward_keys(pnb__cuda_attention_args a, slopes<T> x, bool is_wide)
{
    PNB__CUDA_SHARED(half_bits, shared);
    const place p = place_of(a, a.n_kv);
    const bool has_rows = p.first + static_cast<size_t>(p.warp * ROWS) < a.n_kv; /* of a warp */
    float dk[D / 8][4], dv[D / 8][4];
    size_t begin = 0; /* earlier queries see none of these keys; the same for all threads */
    clear<D>(dk);
    clear<D>(dv);
    while (MASKED && begin < a.n_q && pnb__cuda_seen_by_tile(a, p.b, begin, TILE) <= p.first)
        begin += TILE;
    load_kv<D, T, ASYNC>(a, x.k, x.v, p, p.first, a.n_kv, shared, is_wide);
    if (begin < a.n_q) {
        const tiles first = tiles_at<D>(shared, 0);
        load_queries<D, T, ASYNC>(a, x, p, first.others, begin, is_wide);
        load_facts(a, first, p, begin, p.first);
    }
    for (size_t at = begin, side = 0; at < a.n_q; at += TILE, side ^= 1) {
        const tiles s = tiles_at<D>(shared, static_cast<int>(side));
        pnb__cuda_fetched();
        __syncthreads();
        if (at + TILE < a.n_q) {
            const tiles next = tiles_at<D>(shared, static_cast<int>(side ^ 1));
            load_queries<D, T, ASYNC>(a, x, p, next.others, at + TILE, is_wide);
            load_facts(a, next, p, at + TILE, p.first);
        }
        if (has_rows)
            by_width(a.n_q - at, to_keys<D, MASKED>{s, p, a.scale * LOG2_E, dk, dv});
    }
    scale_by<D>(a.scale, dk);
    put_rows<D>(pnb__cuda_head(a, x.dk, a.batch_kv, p.b, p.h), row_of(p), a.n_kv, a.row_kv,
                a.head_dim, dk, a.accumulate_kv);
    put_rows<D>(pnb__cuda_head(a, x.dv, a.batch_kv, p.b, p.h), row_of(p), a.n_kv, a.row_kv,
                a.head_dim, dv, a.accumulate_kv);
}

template <int D, class T, bool ASYNC, bool MASKED>
__global__ void __launch_bounds__(THREADS, D <= 64 ? 3 : 1)
    backward_queries(pnb__cuda_attention_args a, slopes<T> x, bool is_wide)
{
    PNB__CUDA_SHARED(half_bits, shared);
    const place p = place_of(a, a.n_q);
    const size_t n_seen = pnb__cuda_seen_by_tile(a, p.b, p.first, TILE);
    const bool has_rows = p.first + static_cast<size_t>(p.warp * ROWS) < a.n_q; /* of a warp */
    const tiles first = tiles_at<D>(shared, 0);
    float dq[D / 8][4];
    clear<D>(dq);
    load_queries<D, T, ASYNC>(a, x, p, first.mine, p.first, is_wide);
    if (n_seen > 0) {
        load_kv<D, T, ASYNC>(a, x.k, x.v, p, 0, a.n_kv, first.others[0], is_wide);
        load_facts(a, first, p, p.first, 0);
    }
    for (size_t at = 0, side = 0; at < n_seen; at += TILE, side ^= 1) {
        const tiles s = tiles_at<D>(shared, static_cast<int>(side));
        pnb__cuda_fetched();
        __syncthreads();
        if (at + TILE < n_seen) {
            const tiles next = tiles_at<D>(shared, static_cast<int>(side ^ 1));
            load_kv<D, T, ASYNC>(a, x.k, x.v, p, at + TILE, a.n_kv, next.others[0], is_wide);
            load_facts(a, next, p, p.first, at + TILE);
        }
        if (has_rows && (MASKED || at + TILE > n_seen))
            by_width(n_seen - at, to_queries<D, true>{s, p, a.scale * LOG2_E, dq});
        else if (has_rows)
            to_queries<D, false>{s, p, a.scale * LOG2_E, dq}.template width<N_TILES>();
    }
    scale_by<D>(a.scale, dq);
    put_rows<D>(pnb__cuda_head(a, x.dq, a.batch_q, p.b, p.h), row_of(p), a.n_q, a.row_q, a.head_dim,
                dq, a.accumulate_q);
}

/* ---- starts ---- */

dim3 blocks_of(const pnb__cuda_attention_args &a, size_t n)
{
    return dim3(static_cast<unsigned>((n + TILE - 1) / TILE * a.n_heads * a.n_batch));
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

template <int D, class T, bool ASYNC>
void run_forward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a, bool wide)
{
    const values<D, T> x = {reinterpret_cast<const T *>(a.q), reinterpret_cast<const T *>(a.k),
                            reinterpret_cast<const T *>(a.v), reinterpret_cast<T *>(a.out)};
    if (a.n_q > 0)
        pnb__cuda_launch(ctx, forward<D, T, ASYNC>, blocks_of(a, a.n_q), THREADS,
                         forward_bytes<D>(), a, x, wide);
}

template <int D>
void run_forward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a, bool are_halves)
{
    if (are_halves)
        run_forward<D, half_bits, true>(ctx, a, true);
    else
        run_forward<D, float, false>(ctx, a, is_wide(a, sizeof(float)));
}

template <int D, class T, bool ASYNC, bool MASKED>
void launch_backward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a, bool wide)
{
    const slopes<T> x = {reinterpret_cast<const T *>(a.q), reinterpret_cast<const T *>(a.k),
                         reinterpret_cast<const T *>(a.v), reinterpret_cast<const T *>(a.d_out),
                         reinterpret_cast<T *>(a.dq),      reinterpret_cast<T *>(a.dk),
                         reinterpret_cast<T *>(a.dv)};
    if (a.n_kv > 0)
        pnb__cuda_launch(ctx, backward_keys<D, T, ASYNC, MASKED>, blocks_of(a, a.n_kv), THREADS,
                         backward_bytes<D>(), a, x, wide);
    if (a.n_q > 0)
        pnb__cuda_launch(ctx, backward_queries<D, T, ASYNC, MASKED>, blocks_of(a, a.n_q), THREADS,
                         backward_bytes<D>(), a, x, wide);
}

template <int D>
void run_backward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a, bool are_halves)
{
    if (are_halves && !a.causal && a.kv_len == NULL)
        launch_backward<D, half_bits, true, false>(ctx, a, true);
    else if (are_halves)
        launch_backward<D, half_bits, true, true>(ctx, a, true);
    else
        launch_backward<D, float, false, true>(ctx, a, is_wide(a, sizeof(float)));
}

/* Halves that cannot be read 16 bytes at a time are no tower's: one form for all widths. */
bool lie_apart(const pnb__cuda_attention_args &a, bool are_halves)
{
    return are_halves && !is_wide(a, sizeof(half_bits));
}

} // namespace

void pnb__cuda_attention_halves(const pnb_ctx *ctx, const pnb__cuda_attention_args &a,
                                bool are_halves)
{
    if (lie_apart(a, are_halves))
        run_forward<PNB__CUDA_HALVES_WIDTH, half_bits, false>(ctx, a, false);
    else if (a.head_dim <= 64)
        run_forward<64>(ctx, a, are_halves);
    else if (a.head_dim <= 80)
        run_forward<80>(ctx, a, are_halves);
    else
        run_forward<PNB__CUDA_HALVES_WIDTH>(ctx, a, are_halves);
}

void pnb__cuda_attention_halves_bwd(const pnb_ctx *ctx, const pnb__cuda_attention_args &a,
                                    bool are_halves)
{
    if (lie_apart(a, are_halves))
        launch_backward<PNB__CUDA_HALVES_WIDTH, half_bits, false, true>(ctx, a, false);
    else if (a.head_dim <= 64)
        run_backward<64>(ctx, a, are_halves);
    else if (a.head_dim <= 80)
        run_backward<80>(ctx, a, are_halves);
    else
        run_backward<PNB__CUDA_HALVES_WIDTH>(ctx, a, are_halves);
}
