/* The best columns of each row, as lists that go on from one call to the next.
 *
 * A block reads a row in tiles of 2048 scores, the next one while it looks at this, and looks only
 * whether one of them reaches the last score of the list: nearly all tiles behind the first ones
 * hold none, so they cost what reading them does. What beats the last is gathered in shared memory,
 * in the order of the columns, and sorted (bitonic) when there is no room for another tile's, which
 * raises the limit. Few rows are cut in parts, a block each, whose lists are merged by the same
 * kernel. Scores and numbers have one order, so lists do not depend on how the work was divided. */
#include "kernels/cuda/tensor_core.h"

namespace
{

enum {
    EACH = 8,
    TILE = EACH * PNB__CUDA_THREADS,
    ROOM = 2 * TILE, /* at most PNB__BEST_MOST in the list, and a tile */
    LEAST_PART = 2 * TILE,
    WARPS = PNB__CUDA_THREADS / PNB__CUDA_WARP
};

struct best_job {
    size_t n, ld, per_part, kept;
    const void *scores;        /* T, float or bfloat16 as unsigned short */
    const unsigned char *only; /* NULL: all */
    const unsigned *numbers;   /* (m, n) rows ld apart; NULL: first + column */
    unsigned first;
    bool goes_on, at_borders; /* at_borders: rows lie at borders of 16 bytes */
    float *best;              /* (m, parts, kept) */
    unsigned *which;
};

__device__ inline bool beats(float score, unsigned number, float other, unsigned other_number)
{
    return score > other || (score == other && number < other_number);
}

/* What a block has gathered. */
struct gathered {
    float score[ROOM];
    unsigned number[ROOM], counts[WARPS];
};

/* From the highest down; n a power of two, at least 2. */
__device__ void sort(gathered *g, unsigned n)
{
    for (unsigned run = 2; run <= n; run *= 2)
        for (unsigned apart = run / 2; apart > 0; apart /= 2) {
            for (unsigned t = threadIdx.x; t < n / 2; t += PNB__CUDA_THREADS) {
                unsigned i = 2 * t - (t & (apart - 1)), j = i + apart;
                float a = g->score[i], b = g->score[j];
                unsigned of_a = g->number[i], of_b = g->number[j];
                if (beats(b, of_b, a, of_a) != ((i & run) == 0))
                    continue;
                g->score[i] = b, g->score[j] = a;
                g->number[i] = of_b, g->number[j] = of_a;
            }
            __syncthreads();
        }
}

/* The best of what was gathered, at most `kept`, in order; returns how many. */
__device__ unsigned shorten(gathered *g, unsigned count, size_t kept)
{
    unsigned n = 2;
    while (n < count)
        n *= 2;
    __syncthreads();
    for (unsigned i = count + threadIdx.x; i < n; i += PNB__CUDA_THREADS) {
        g->score[i] = -INFINITY;
        g->number[i] = PNB__BEST_NONE;
    }
    __syncthreads();
    sort(g, n);
    return PNB_MIN(count, static_cast<unsigned>(kept));
}

/* Where the i-th of a thread's scores of the tile at `begin` stands: as many as 16 bytes hold are
 * neighbours. */
template <class T> __device__ inline size_t column_of(size_t begin, int i)
{
    const int run = 16 / sizeof(T);
    return begin + (static_cast<size_t>(i / run) * PNB__CUDA_THREADS + threadIdx.x) * run +
           static_cast<size_t>(i % run);
}

__device__ inline float widened(float x)
{
    return x;
}

__device__ inline float widened(unsigned short x)
{
    return pnb__cuda_bf16_widen(x);
}

__device__ inline void load_run(const float *x, float score[4])
{
    float4 four = *reinterpret_cast<const float4 *>(x);
    score[0] = four.x, score[1] = four.y, score[2] = four.z, score[3] = four.w;
}

__device__ inline void load_run(const unsigned short *x, float score[8])
{
    uint4 eight = *reinterpret_cast<const uint4 *>(x);
    score[0] = pnb__cuda_low(eight.x), score[1] = pnb__cuda_high(eight.x);
    score[2] = pnb__cuda_low(eight.y), score[3] = pnb__cuda_high(eight.y);
    score[4] = pnb__cuda_low(eight.z), score[5] = pnb__cuda_high(eight.z);
    score[6] = pnb__cuda_low(eight.w), score[7] = pnb__cuda_high(eight.w);
}

/* A thread's scores of the tile at `begin`; -infinity from `end` on. */
template <class T>
__device__ inline void load(const best_job &b, const T *row, size_t begin, size_t end,
                            float score[EACH])
{
    const int run = 16 / sizeof(T);
    for (int i = 0; i < EACH; i += run) {
        size_t j = column_of<T>(begin, i);
        if (b.at_borders && j + static_cast<size_t>(run) <= end) {
            load_run(row + j, score + i);
            continue;
        }
        for (int k = 0; k < run; k++)
            score[i + k] = j + static_cast<size_t>(k) < end
                               ? widened(row[j + static_cast<size_t>(k)])
                               : -INFINITY;
    }
}

__device__ inline unsigned number_of(const best_job &b, size_t row, size_t j)
{
    return b.numbers != nullptr ? b.numbers[row * b.ld + j] : b.first + static_cast<unsigned>(j);
}

/* Which of a thread's scores beat the limit and may be kept, as bits. */
template <class T>
__device__ unsigned passing(const best_job &b, size_t row, size_t begin, const float score[EACH],
                            float limit, unsigned limit_number)
{
    unsigned passes = 0;
    for (int i = 0; i < EACH; i++) {
        size_t j = column_of<T>(begin, i);
        if (score[i] > -INFINITY && (b.only == nullptr || b.only[j] != 0) &&
            beats(score[i], number_of(b, row, j), limit, limit_number))
            passes |= 1u << i;
    }
    return passes;
}

/* How many of `own` all threads before this one have, and all threads together in *all. */
__device__ unsigned n_before(gathered *g, unsigned own, unsigned *all)
{
    const unsigned lane = threadIdx.x % PNB__CUDA_WARP, warp = threadIdx.x / PNB__CUDA_WARP;
    unsigned sum = own, before = 0;
    for (unsigned step = 1; step < PNB__CUDA_WARP; step *= 2) {
        unsigned other =
            __shfl_sync(0xffffffffu, sum, static_cast<int>(lane >= step ? lane - step : lane));
        sum += lane >= step ? other : 0;
    }
    if (lane == PNB__CUDA_WARP - 1)
        g->counts[warp] = sum;
    __syncthreads();
    *all = 0;
    for (unsigned w = 0; w < WARPS; w++) {
        before += w < warp ? g->counts[w] : 0;
        *all += g->counts[w];
    }
    return before + sum - own;
}

/* Adds what passes of a tile behind the `count` there are; returns how many there are then. */
template <class T>
__device__ unsigned append(const best_job &b, gathered *g, unsigned count, size_t row, size_t begin,
                           const float score[EACH], float limit, unsigned limit_number)
{
    const unsigned passes = passing<T>(b, row, begin, score, limit, limit_number);
    unsigned own = 0, all, at;
    for (int i = 0; i < EACH; i++)
        own += passes >> i & 1;
    at = count + n_before(g, own, &all);
    for (int i = 0; i < EACH; i++)
        if (passes >> i & 1) {
            g->score[at] = score[i];
            g->number[at++] = number_of(b, row, column_of<T>(begin, i));
        }
    __syncthreads();
    return count + all;
}

/* Puts the list of before into what is gathered; returns how many there are. */
__device__ unsigned begin_list(const best_job &b, gathered *g, size_t list)
{
    const unsigned kept = static_cast<unsigned>(b.kept);
    unsigned own = 0;
    for (unsigned i = threadIdx.x; b.goes_on && i < kept; i += PNB__CUDA_THREADS) {
        g->score[i] = b.best[list * kept + i];
        g->number[i] = b.which[list * kept + i];
        own += g->number[i] != PNB__BEST_NONE;
    }
    return pnb__cuda_block_sum(own);
}

/* The score and number that a column has to beat. */
__device__ inline void set_limit(const gathered &g, unsigned count, unsigned kept, float *limit,
                                 unsigned *number)
{
    *limit = count == kept ? g.score[kept - 1] : -INFINITY;
    *number = count == kept ? g.number[kept - 1] : PNB__BEST_NONE;
}

template <class T> __global__ void __launch_bounds__(PNB__CUDA_THREADS, 5) best_kernel(best_job b)
{
    __shared__ gathered g;
    const size_t row = blockIdx.x, list = row * gridDim.y + blockIdx.y;
    const size_t begin = blockIdx.y * b.per_part, end = PNB_MIN(begin + b.per_part, b.n);
    const unsigned kept = static_cast<unsigned>(b.kept);
    const T *scores = static_cast<const T *>(b.scores) + row * b.ld;
    unsigned count = begin_list(b, &g, list), limit_number;
    bool is_sorted = true;
    float limit, score[EACH], next[EACH];
    set_limit(g, count, kept, &limit, &limit_number);
    load(b, scores, begin, end, score);
    for (size_t j = begin; j < end; j += TILE) {
        float most = -INFINITY;
        load(b, scores, j + TILE, end, next);
        for (int i = 0; i < EACH; i++)
            most = score[i] > most ? score[i] : most;
        if (__syncthreads_or(most > -INFINITY && most >= limit)) {
            count = append<T>(b, &g, count, row, j, score, limit, limit_number);
            is_sorted = false;
            if (count > ROOM - TILE) {
                count = shorten(&g, count, kept);
                is_sorted = true;
                set_limit(g, count, kept, &limit, &limit_number);
            }
        }
        for (int i = 0; i < EACH; i++)
            score[i] = next[i];
    }
    if (!is_sorted)
        count = shorten(&g, count, kept);
    for (unsigned i = threadIdx.x; i < kept; i += PNB__CUDA_THREADS) {
        b.best[list * kept + i] = i < count ? g.score[i] : -INFINITY;
        b.which[list * kept + i] = i < count ? g.number[i] : PNB__BEST_NONE;
    }
}

template <class T> bool are_at_borders(const void *scores, size_t ld)
{
    return ld * sizeof(T) % 16 == 0 && reinterpret_cast<uintptr_t>(scores) % 16 == 0;
}

template <class T> void launch(const pnb_ctx *ctx, size_t m, size_t parts, best_job b)
{
    const size_t most = 65535 * 1024;
    const T *scores = static_cast<const T *>(b.scores);
    b.at_borders = are_at_borders<T>(scores, b.ld);
    for (size_t row = 0; row < m; row += most) {
        best_job some = b;
        some.scores = scores + row * b.ld;
        some.numbers += b.numbers != nullptr ? row * b.ld : 0;
        some.best += row * parts * b.kept;
        some.which += row * parts * b.kept;
        pnb__cuda_launch(
            ctx, best_kernel<T>,
            dim3(static_cast<unsigned>(PNB_MIN(most, m - row)), static_cast<unsigned>(parts)),
            PNB__CUDA_THREADS, 0, some);
    }
}

/* Lists of parts, then those of the rows from them. */
template <class T> void keep_in_parts(const pnb_ctx *ctx, size_t m, size_t parts, const best_job &b)
{
    const size_t all = m * parts * b.kept;
    float *best =
        static_cast<float *>(pnb__cuda_borrow(ctx, all * (sizeof(float) + sizeof(unsigned))));
    if (best == NULL)
        return; /* the context knows */
    best_job part = b, merge = b;
    part.per_part = (b.n + parts * TILE - 1) / (parts * TILE) * TILE;
    part.goes_on = false;
    part.best = best;
    part.which = reinterpret_cast<unsigned *>(best + all);
    launch<T>(ctx, m, parts, part);
    merge.n = merge.ld = merge.per_part = parts * b.kept;
    merge.scores = best;
    merge.numbers = part.which;
    merge.only = nullptr;
    launch<float>(ctx, m, 1, merge);
    pnb__cuda_return(ctx, best);
}

template <class T> void keep(const pnb_ctx *ctx, size_t m, const best_job &b)
{
    size_t parts = PNB_MIN(4 * static_cast<size_t>(PNB__CUDA_MANY) / m, b.n / LEAST_PART);
    if (parts > 1)
        keep_in_parts<T>(ctx, m, parts, b);
    else
        launch<T>(ctx, m, 1, b);
}

} // namespace

extern "C" void pnb__cuda_keep_best(const pnb_ctx *ctx, const pnb__best_args *a)
{
    best_job b = best_job();
    b.n = b.per_part = a->n;
    b.ld = a->ld;
    b.kept = a->kept;
    b.scores = a->scores;
    b.only = a->only;
    b.first = a->first;
    b.goes_on = a->goes_on;
    b.best = static_cast<float *>(a->best);
    b.which = a->which;
    if (a->m > 0)
        (a->halves ? keep<unsigned short> : keep<float>)(ctx, a->m, b);
}
