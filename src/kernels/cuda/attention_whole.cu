/* Attention of values in bfloat16, forward, where all keys of a head lie in shared memory: heads of
 * up to 64 numbers and up to 256 keys.
 *
 * A block loads the keys and values of a head once and its warps take 16 M queries at a time, each
 * for itself: after the one barrier nobody waits for another. A row's result does not depend on how
 * rows are dealt to warps and blocks. Scores stay in registers, 8 N keys at a time; the softmax of a
 * row is made as they come, by its greatest score so far. Its sum is one of each lane's own until
 * the end. */
#include "kernels/cuda/attention_whole.h"

namespace
{

using namespace pnb__whole;

enum { MOST_KEYS = 256 };

struct running { /* of the two rows of a lane: greatest score, sum of exp(scale (score - it)) */
    float most[2], sum[2];
};

/* Over the four lanes that hold a row. */
template <class Op> __device__ float over_row(float v, Op op)
{
    v = op(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return op(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

/* Scores to weights; sums so far shrink by shrink[r]. */
template <int N>
__device__ void soften(float score[N][4], float unit, running *rows, float shrink[2])
{
    PNB__CUDA_UNROLL
    for (int r = 0; r < 2; r++) {
        float most = rows->most[r], sum = 0;
        PNB__CUDA_UNROLL
        for (int n = 0; n < N; n++)
            most = fmaxf(most, fmaxf(score[n][2 * r], score[n][2 * r + 1]));
        most = over_row(most, pnb__cuda_most());
        const float shift = most == -INFINITY ? 0 : most * unit;
        PNB__CUDA_UNROLL
        for (int n = 0; n < N; n++)
            PNB__CUDA_UNROLL
        for (int e = 2 * r; e < 2 * r + 2; e++) {
            score[n][e] = pnb__cuda_exp2(score[n][e] * unit - shift);
            sum += score[n][e];
        }
        shrink[r] = pnb__cuda_exp2(rows->most[r] * unit - shift);
        rows->sum[r] = rows->sum[r] * shrink[r] + sum;
        rows->most[r] = most;
    }
}

/* What a warp knows of its rows. */
template <int M> struct warp_rows {
    unsigned q[M][STEPS][4];
    float sum[M][EIGHTS][4];
    running state[M];
    int seen[M][2]; /* keys that the rows of this lane see */
    float unit;
};

/* 8 N keys from `at` on; LIMITED: not all rows see all of them. */
template <int M, int N, bool LIMITED>
__device__ void attend(const half_bits *k, const half_bits *v, int at, warp_rows<M> *w)
{
    const int t = lane_here().t;
    float score[M][N][4], shrink[2];
    dots<M, N>(w->q, k + at * PITCH, score);
    PNB__CUDA_UNROLL
    for (int m = 0; m < M; m++) {
        PNB__CUDA_UNROLL
        for (int n = 0; n < N && LIMITED; n++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            if (at + n * 8 + 2 * t + e % 2 >= w->seen[m][e / 2])
                score[m][n][e] = -INFINITY;
        soften<N>(score[m], w->unit, &w->state[m], shrink);
        PNB__CUDA_UNROLL
        for (int d = 0; d < EIGHTS; d++)
            PNB__CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            w->sum[m][d][e] *= shrink[e / 2];
    }
    PNB__CUDA_UNROLL
    for (int n = 0; n < N; n += 2) {
        unsigned x[M][4];
        PNB__CUDA_UNROLL
        for (int m = 0; m < M; m++)
            as_factor(score[m][n], score[m][n + 1], x[m]);
        add_rows<M>(x, v + at * PITCH, n * 8, w->sum);
    }
}

/* All keys, of which every row sees `least` and none more than `most`. */
template <int M, int N>
__device__ void attend_all(const half_bits *k, const half_bits *v, int least, int most,
                           warp_rows<M> *w)
{
    int at = 0;
    for (; at + 8 * N <= least; at += 8 * N)
        attend<M, N, false>(k, v, at, w);
    for (; at < most; at += 8 * N) {
        if (most - at > 4 * N)
            attend<M, N, true>(k, v, at, w);
        else if (most - at > 16)
            attend<M, N / 2, true>(k, v, at, w);
        else
            attend<M, 2, true>(k, v, at, w);
    }
}

/* Rows of a warp from `first` on leave. */
template <int M>
__device__ void finish(const pnb__cuda_attention_args &a, half_bits *tile, const rows_of &out,
                       size_t head, int first, warp_rows<M> *w)
{
    const lane_at l = lane_here();
    PNB__CUDA_UNROLL
    for (int m = 0; m < M; m++) {
        float inverse[2];
        PNB__CUDA_UNROLL
        for (int r = 0; r < 2; r++) {
            const float sum = over_row(w->state[m].sum[r], pnb__cuda_add());
            const int i = first + ROWS * m + l.g + 8 * r;
            inverse[r] = sum > 0 ? 1 / sum : 0;
            if (a.lse != NULL && l.t == 0 && i < out.n)
                a.lse[head * a.n_q + static_cast<size_t>(i)] =
                    sum > 0 ? w->state[m].most[r] * a.scale + logf(sum) : -INFINITY;
        }
        leave(tile + m * ROWS * PITCH, w->sum[m], inverse, out, first + ROWS * m, a.head_dim);
    }
}

/* Queries first.. of a head by a warp; they lie in `tile`. */
template <int M, int N>
__device__ void take(const pnb__cuda_attention_args &a, const half_bits *k, const half_bits *v,
                     half_bits *tile, const rows_of &out, size_t head, int first)
{
    const lane_at l = lane_here();
    const size_t b = head / a.n_heads, at = static_cast<size_t>(first);
    warp_rows<M> w;
    w.unit = a.scale * LOG2_E;
    clear<M>(w.sum);
    PNB__CUDA_UNROLL
    for (int m = 0; m < M; m++) {
        keep(tile, ROWS * m, w.q[m]);
        w.state[m] = running{{-INFINITY, -INFINITY}, {0, 0}};
        PNB__CUDA_UNROLL
        for (int r = 0; r < 2; r++)
            w.seen[m][r] = static_cast<int>(
                pnb__cuda_seen(a, b, at + static_cast<size_t>(ROWS * m + l.g + 8 * r)));
    }
    attend_all<M, N>(k, v, static_cast<int>(pnb__cuda_seen(a, b, at)),
                     static_cast<int>(pnb__cuda_seen_by_tile(a, b, at, M * ROWS)), &w);
    finish<M>(a, tile, out, head, first, &w);
}

/* A block to `each` queries of a head, a multiple of 16 M; shared memory holds `keys` of them. */
template <int M, int N, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS)
    forward_whole(pnb__cuda_attention_args a, int each, int keys)
{
    PNB__CUDA_SHARED(half_bits, shared);
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const size_t parts = (a.n_q + static_cast<size_t>(each) - 1) / static_cast<size_t>(each);
    const size_t head = blockIdx.x / parts, b = head / a.n_heads, h = head % a.n_heads;
    const int begin = static_cast<int>(blockIdx.x % parts) * each;
    const int end = begin + each < static_cast<int>(a.n_q) ? begin + each : static_cast<int>(a.n_q);
    half_bits *k = shared, *v = k + keys * PITCH;
    half_bits *tile = v + keys * PITCH + thread / 32 * M * ROWS * PITCH;
    const rows_of q = head_rows(a, a.q, a.batch_q, a.row_q, a.n_q, b, h);
    const rows_of out = head_rows(a, a.out, a.batch_out, a.row_out, a.n_q, b, h);
    int first = begin + thread / 32 * M * ROWS;
    if (first < end)
        fetch(tile, q, first, M * ROWS, a.head_dim, thread % 32, 32);
    fetch(k, head_rows(a, a.k, a.batch_kv, a.row_kv, a.n_kv, b, h), 0, keys, a.head_dim, thread,
          threads);
    fetch(v, head_rows(a, a.v, a.batch_kv, a.row_kv, a.n_kv, b, h), 0, keys, a.head_dim, thread,
          threads);
    pnb__cuda_fetched();
    __syncthreads();
    while (first < end) {
        take<M, N>(a, k, v, tile, out, head, first);
        first += threads / 32 * M * ROWS;
        if (first < end) {
            __syncwarp(); /* rows that left are read */
            fetch(tile, q, first, M * ROWS, a.head_dim, thread % 32, 32);
            pnb__cuda_fetched();
            __syncwarp();
        }
    }
}

/* Rows that the last tile of keys is worked on as. */
template <int N> int padded(size_t n)
{
    const int n_keys = static_cast<int>(n), whole = n_keys / (8 * N) * 8 * N, left = n_keys - whole;
    return whole + (left > 4 * N ? 8 * N : left > 16 ? 4 * N : left > 0 ? 16 : 0);
}

/* Rounds of up to WARPS warps, all as long as may be; with few heads a block to each round. */
template <int M, int N, int WARPS, int BLOCKS>
void launch_forward(const pnb_ctx *ctx, const pnb__cuda_attention_args &a)
{
    const int tiles = (static_cast<int>(a.n_q) + M * ROWS - 1) / (M * ROWS);
    const int rounds = (tiles + WARPS - 1) / WARPS, warps = (tiles + rounds - 1) / rounds;
    const bool is_many = a.n_batch * a.n_heads >= PNB__CUDA_MANY;
    const int each = (is_many ? rounds : 1) * warps * M * ROWS, keys = padded<N>(a.n_kv);
    const size_t parts = (a.n_q + static_cast<size_t>(each) - 1) / static_cast<size_t>(each);
    const size_t rows = static_cast<size_t>(2 * keys + warps * M * ROWS);
    pnb__cuda_launch(ctx, forward_whole<M, N, WARPS, BLOCKS>,
                     dim3(static_cast<unsigned>(parts * a.n_heads * a.n_batch)),
                     static_cast<unsigned>(32 * warps), rows * PITCH * sizeof(half_bits), a, each,
                     keys);
}

} // namespace

bool pnb__cuda_attention_whole(const pnb_ctx *ctx, const pnb__cuda_attention_args &a)
{
    if (a.n_kv > MOST_KEYS || a.n_q > (size_t)1 << 20 || !fits(a, {a.q, a.k, a.v, a.out}))
        return false;
    if (a.n_q > 0)
        launch_forward<1, 8, 5, 3>(ctx, a);
    return true;
}
