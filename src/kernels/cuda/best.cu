/* The best columns of each row, as lists that go on from one call to the next.
 *
 * A block reads a row in tiles of 1024 scores and looks only whether one of them beats the last of
 * the list: nearly all tiles behind the first ones hold none, so they cost what reading them does.
 * What beats it is gathered in shared memory, in the order of the columns, and sorted (bitonic)
 * when there is no room for another tile's, which raises the limit. Few rows are cut in parts, a
 * block each, whose lists are merged by the same kernel. Scores and numbers have one order, so the
 * lists do not depend on how the work was divided. */
#include "kernels/cuda/cuda.h"

namespace
{

enum {
    EACH = 4,
    TILE = EACH * PNB__CUDA_THREADS,
    ROOM = 2 * TILE, /* at most PNB__BEST_MOST in the list, and a tile */
    LEAST_PART = 4 * TILE,
    WARPS = PNB__CUDA_THREADS / PNB__CUDA_WARP
};

struct best_job {
    size_t n, ld, per_part, kept;
    const float *scores;
    const unsigned char *only; /* NULL: all */
    const unsigned *numbers;   /* (m, n) rows ld apart; NULL: first + column */
    unsigned first;
    bool goes_on;
    float *best; /* (m, parts, kept) */
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

struct few { /* of one thread */
    float score[EACH];
    unsigned number[EACH];
};

/* Adds those that `passes` marks, behind the `count` there are; returns how many there are then. */
__device__ unsigned append(gathered *g, unsigned count, const few *mine, unsigned passes)
{
    const unsigned lane = threadIdx.x % PNB__CUDA_WARP, warp = threadIdx.x / PNB__CUDA_WARP;
    unsigned own = 0, all = count, before;
    for (int i = 0; i < EACH; i++)
        own += passes >> i & 1;
    before = own;
    for (unsigned step = 1; step < PNB__CUDA_WARP; step *= 2) {
        unsigned other =
            __shfl_sync(0xffffffffu, before, static_cast<int>(lane >= step ? lane - step : lane));
        before += lane >= step ? other : 0;
    }
    if (lane == PNB__CUDA_WARP - 1)
        g->counts[warp] = before;
    __syncthreads();
    unsigned at = count + before - own;
    for (unsigned w = 0; w < WARPS; w++) {
        at += w < warp ? g->counts[w] : 0;
        all += g->counts[w];
    }
    for (int i = 0; i < EACH; i++)
        if (passes >> i & 1) {
            g->score[at] = mine->score[i];
            g->number[at++] = mine->number[i];
        }
    __syncthreads();
    return all;
}

/* A thread's scores of the tile from `begin` on; -infinity from `end` on. */
__device__ few load(const best_job &b, size_t row, size_t begin, size_t end)
{
    few mine;
    for (int i = 0; i < EACH; i++) {
        size_t j = begin + i * PNB__CUDA_THREADS + threadIdx.x;
        bool is_there = j < end && (b.only == nullptr || b.only[j] != 0);
        mine.score[i] = is_there ? b.scores[row * b.ld + j] : -INFINITY;
        mine.number[i] = b.numbers == nullptr ? b.first + static_cast<unsigned>(j)
                         : is_there           ? b.numbers[row * b.ld + j]
                                              : PNB__BEST_NONE;
    }
    return mine;
}

__device__ unsigned passing(const few &mine, float limit, unsigned limit_number)
{
    unsigned passes = 0;
    for (int i = 0; i < EACH; i++)
        if (mine.score[i] > -INFINITY && beats(mine.score[i], mine.number[i], limit, limit_number))
            passes |= 1u << i;
    return passes;
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

__global__ void best_kernel(best_job b)
{
    __shared__ gathered g;
    const size_t row = blockIdx.x, list = row * gridDim.y + blockIdx.y;
    const size_t begin = blockIdx.y * b.per_part, end = PNB_MIN(begin + b.per_part, b.n);
    const unsigned kept = static_cast<unsigned>(b.kept);
    unsigned count = begin_list(b, &g, list);
    bool is_sorted = true;
    float limit = count == kept ? g.score[kept - 1] : -INFINITY;
    unsigned limit_number = count == kept ? g.number[kept - 1] : PNB__BEST_NONE;
    few mine = load(b, row, begin, end);
    for (size_t j = begin; j < end; j += TILE) {
        few next = load(b, row, j + TILE, end);
        unsigned passes = passing(mine, limit, limit_number);
        if (__syncthreads_or(passes != 0)) {
            count = append(&g, count, &mine, passes);
            is_sorted = false;
            if (count > ROOM - TILE) {
                count = shorten(&g, count, kept);
                is_sorted = true;
                limit = count == kept ? g.score[kept - 1] : -INFINITY;
                limit_number = count == kept ? g.number[kept - 1] : PNB__BEST_NONE;
            }
        }
        mine = next;
    }
    if (!is_sorted)
        count = shorten(&g, count, kept);
    for (unsigned i = threadIdx.x; i < kept; i += PNB__CUDA_THREADS) {
        b.best[list * kept + i] = i < count ? g.score[i] : -INFINITY;
        b.which[list * kept + i] = i < count ? g.number[i] : PNB__BEST_NONE;
    }
}

void launch(const pnb_ctx *ctx, size_t m, size_t parts, const best_job &b)
{
    const size_t most = 65535 * 1024;
    for (size_t row = 0; row < m; row += most) {
        best_job some = b;
        some.scores += row * b.ld;
        some.numbers += b.numbers != nullptr ? row * b.ld : 0;
        some.best += row * parts * b.kept;
        some.which += row * parts * b.kept;
        pnb__cuda_launch(
            ctx, best_kernel,
            dim3(static_cast<unsigned>(PNB_MIN(most, m - row)), static_cast<unsigned>(parts)),
            PNB__CUDA_THREADS, 0, some);
    }
}

/* Lists of parts, then those of the rows from them. */
void keep_in_parts(const pnb_ctx *ctx, size_t m, size_t parts, const best_job &b)
{
    const size_t all = m * parts * b.kept;
    float *best =
        static_cast<float *>(pnb__cuda_borrow(ctx, all * (sizeof(float) + sizeof(unsigned))));
    if (best == NULL)
        return; /* the context knows */
    best_job part = b, merge = b;
    part.per_part = (b.n + parts - 1) / parts;
    part.goes_on = false;
    part.best = best;
    part.which = reinterpret_cast<unsigned *>(best + all);
    launch(ctx, m, parts, part);
    merge.n = merge.ld = merge.per_part = parts * b.kept;
    merge.scores = best;
    merge.numbers = part.which;
    merge.only = nullptr;
    launch(ctx, m, 1, merge);
    pnb__cuda_return(ctx, best);
}

} // namespace

extern "C" void pnb__cuda_keep_best(const pnb_ctx *ctx, const pnb__best_args *a)
{
    const best_job b = {
        a->n,    a->ld,   a->n,     a->kept,    static_cast<const float *>(a->scores),
        a->only, nullptr, a->first, a->goes_on, static_cast<float *>(a->best),
        a->which};
    if (a->m == 0)
        return;
    size_t parts = PNB_MIN(4 * static_cast<size_t>(PNB__CUDA_MANY) / a->m, a->n / LEAST_PART);
    if (parts > 1)
        keep_in_parts(ctx, a->m, parts, b);
    else
        launch(ctx, a->m, 1, b);
}
