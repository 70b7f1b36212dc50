/* Rows picked from a table and added back; pictures cut in patches, and put together.
 *
 * Adding rows back must not depend on which thread comes first, and one row of the table (the
 * padding of texts) may get most of what there is. So segments of 8,192 rows are sorted by where
 * they go: each finds its place by counting who goes before it, which costs 8,192 comparisons from
 * shared memory and no data. Chunks of 32 sorted rows are then summed by a block each. A chunk adds
 * to the table itself what its runs of equal places give, but for a run that began in an earlier
 * chunk: that part goes to the scratch memory, and a last launch adds the parts of such a run, in
 * order. */
#include "kernels/cuda/strided.h"

namespace
{

/* ---- rows of a table ---- */

template <class I> struct gather_at {
    typedef float value;
    axes<I, 2> where; /* row and column of an element */
    size_t width;
    const float *table;
    const int32_t *ids;
    float *y;
    __device__ float load(size_t i) const
    {
        I at[2];
        places(where, static_cast<I>(i), at);
        return table[static_cast<size_t>(ids[at[0]]) * width + at[1]];
    }
    __device__ void store(size_t i, float v) const
    {
        y[i] = v;
    }
};

enum {
    SEGMENT = 8192,
    CHUNK = 32,
    CHUNKS = SEGMENT / CHUNK,
    WARPS = PNB__CUDA_THREADS / PNB__CUDA_WARP,
    SLICE = 3 * PNB__CUDA_THREADS, /* columns whose parts fit the scratch memory */
    AHEAD = 8                      /* rows that are read before they are added */
};

/* A segment, sorted: ids[e] and the row of dy that goes there, in the order of e. */
struct scattering {
    unsigned n;
    const int32_t *from; /* as they came */
    int32_t *ids;
    unsigned *rows;
    size_t width, first_column, n_columns;
    const float *dy;
    float *table, *parts; /* (CHUNKS, SLICE) */
};

/* 32 rows to a block, one to each lane; every warp counts an eighth of those that may go before. */
__global__ void sort_kernel(scattering s)
{
    __shared__ int32_t ids[SEGMENT];
    __shared__ unsigned counts[WARPS][PNB__CUDA_WARP];
    const unsigned lane = threadIdx.x % PNB__CUDA_WARP, warp = threadIdx.x / PNB__CUDA_WARP;
    const unsigned i = blockIdx.x * PNB__CUDA_WARP + lane, each = (s.n + WARPS - 1) / WARPS;
    for (unsigned j = threadIdx.x; j < s.n; j += PNB__CUDA_THREADS)
        ids[j] = s.from[j];
    __syncthreads();
    const int32_t mine = ids[PNB_MIN(i, s.n - 1)];
    unsigned before = 0;
    for (unsigned j = warp * each; j < PNB_MIN((warp + 1) * each, s.n); j++)
        before += ids[j] < mine || (ids[j] == mine && j < i) ? 1 : 0;
    counts[warp][lane] = before;
    __syncthreads();
    if (warp != 0 || i >= s.n)
        return;
    for (unsigned w = 1; w < WARPS; w++)
        before += counts[w][lane];
    s.ids[before] = mine;
    s.rows[before] = i;
}

/* Whether the run at entry e began before it. */
__device__ inline bool goes_on(const scattering &s, unsigned e)
{
    return e > 0 && e < s.n && s.ids[e - 1] == s.ids[e];
}

/* One column of a chunk. */
struct chunk_sum {
    const scattering &s;
    size_t column; /* of the slice */
    float sum;
    bool is_part; /* the run began in an earlier chunk */
    __device__ void end_run(int32_t id)
    {
        size_t at = static_cast<size_t>(id) * s.width + s.first_column + column;
        if (is_part)
            s.parts[blockIdx.x * static_cast<size_t>(SLICE) + column] = sum;
        else
            s.table[at] += sum;
        sum = 0;
        is_part = false;
    }
};

__global__ void chunks_kernel(scattering s)
{
    const size_t column = blockIdx.y * static_cast<size_t>(PNB__CUDA_THREADS) + threadIdx.x;
    const unsigned first = blockIdx.x * CHUNK, end = PNB_MIN(first + CHUNK, s.n);
    if (column >= s.n_columns)
        return;
    const float *dy = s.dy + s.first_column + column;
    chunk_sum c = {s, column, 0, goes_on(s, first)};
    for (unsigned e = first; e < end; e += AHEAD) {
        float v[AHEAD];
        for (unsigned k = 0; k < AHEAD; k++)
            v[k] = e + k < end ? dy[s.rows[e + k] * s.width] : 0;
        for (unsigned k = 0; k < AHEAD && e + k < end; k++) {
            if (e + k > first && s.ids[e + k] != s.ids[e + k - 1])
                c.end_run(s.ids[e + k - 1]);
            c.sum += v[k];
        }
    }
    c.end_run(s.ids[end - 1]);
}

/* The block of a run's second chunk adds the parts of that one and of all that follow. */
__global__ void parts_kernel(scattering s)
{
    const size_t column = blockIdx.y * static_cast<size_t>(PNB__CUDA_THREADS) + threadIdx.x;
    const unsigned first = blockIdx.x * CHUNK, before = first - CHUNK;
    if (column >= s.n_columns || !goes_on(s, first) ||
        (goes_on(s, before) && s.ids[before] == s.ids[first]))
        return;
    const int32_t id = s.ids[first];
    unsigned end = blockIdx.x + 1;
    while (goes_on(s, end * CHUNK) && s.ids[end * CHUNK] == id)
        end++;
    double sum = 0;
    for (unsigned c = blockIdx.x; c < end; c++)
        sum += static_cast<double>(s.parts[c * static_cast<size_t>(SLICE) + column]);
    pnb__cuda_put(s.table + static_cast<size_t>(id) * s.width + s.first_column + column, sum, true);
}

void scatter_segment(const pnb_ctx *ctx, scattering s)
{
    dim3 blocks = dim3((s.n + PNB__CUDA_WARP - 1) / PNB__CUDA_WARP);
    pnb__cuda_launch(ctx, sort_kernel, blocks, PNB__CUDA_THREADS, 0, s);
    for (size_t done = 0; done < s.width; done += SLICE) {
        s.first_column = done;
        s.n_columns = PNB_MIN(s.width - done, static_cast<size_t>(SLICE));
        blocks =
            dim3((s.n + CHUNK - 1) / CHUNK,
                 static_cast<unsigned>((s.n_columns + PNB__CUDA_THREADS - 1) / PNB__CUDA_THREADS));
        pnb__cuda_launch(ctx, chunks_kernel, blocks, PNB__CUDA_THREADS, 0, s);
        pnb__cuda_launch(ctx, parts_kernel, blocks, PNB__CUDA_THREADS, 0, s);
    }
}

/* ---- patches: copies between arrays of six axes ---- */

struct patches {
    size_t dims[AXES], of_image[AXES], of_patches[AXES];
};

/* y (B, H/p, W/p, C, p, p) */
patches patches_of(const size_t bchw[4], size_t p)
{
    const size_t H = bchw[2], W = bchw[3];
    patches x = {{bchw[0], H / p, W / p, bchw[1], p, p},
                 {bchw[1] * H * W, p * W, p, H * W, W, 1},
                 {0, 0, 0, 0, 0, 0}};
    contiguous(AXES, x.dims, x.of_patches);
    return x;
}

} // namespace

extern "C" void pnb__cuda_gather_rows(const pnb_ctx *ctx, size_t n, size_t width, const void *table,
                                      const int32_t *ids, void *y)
{
    const size_t dims[2] = {n, width}, row[2] = {1, 0}, column[2] = {0, 1};
    const size_t *const strides[2] = {row, column};
    const float *from = static_cast<const float *>(table);
    float *out = static_cast<float *>(y);
    axes<size_t, 2> x = axes_of<2>(2, dims, strides);
    if (is_small(x))
        by_four(ctx, n * width,
                gather_at<unsigned>{with_index<unsigned>(x), width, from, ids, out});
    else
        by_four(ctx, n * width, gather_at<size_t>{x, width, from, ids, out});
}

extern "C" void pnb__cuda_scatter_add_rows(const pnb_ctx *ctx, size_t n, size_t, size_t width,
                                           const void *dy, const int32_t *ids, void *dtable)
{
    scattering s = {};
    s.ids = static_cast<int32_t *>(pnb__cuda_scratch(ctx));
    s.rows = reinterpret_cast<unsigned *>(s.ids + SEGMENT);
    s.parts = reinterpret_cast<float *>(s.rows + SEGMENT);
    s.width = width;
    s.table = static_cast<float *>(dtable);
    for (size_t done = 0; done < n; done += SEGMENT) {
        s.n = static_cast<unsigned>(PNB_MIN(n - done, static_cast<size_t>(SEGMENT)));
        s.from = ids + done;
        s.dy = static_cast<const float *>(dy) + done * width;
        scatter_segment(ctx, s);
    }
}

extern "C" void pnb__cuda_patchify(const pnb_ctx *ctx, const size_t bchw[4], size_t patch,
                                   const void *x, void *y)
{
    const patches p = patches_of(bchw, patch);
    const size_t *const strides[2] = {p.of_image, p.of_patches};
    strided_copy(ctx, axes_of<2>(AXES, p.dims, strides), static_cast<const float *>(x),
                 static_cast<float *>(y), false);
}

extern "C" void pnb__cuda_patchify_bwd(const pnb_ctx *ctx, const size_t bchw[4], size_t patch,
                                       const void *dy, void *dx, bool accumulate)
{
    const patches p = patches_of(bchw, patch);
    const size_t *const strides[2] = {p.of_patches, p.of_image};
    bool has_rim = bchw[2] % patch != 0 || bchw[3] % patch != 0;
    if (has_rim && !accumulate) /* it belongs to no patch */
        pnb__cuda_fill(ctx, bchw[0] * bchw[1] * bchw[2] * bchw[3], 0, dx);
    strided_copy(ctx, axes_of<2>(AXES, p.dims, strides), static_cast<const float *>(dy),
                 static_cast<float *>(dx), accumulate);
}
