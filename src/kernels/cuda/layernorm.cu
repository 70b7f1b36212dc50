/* y = (x - mean) rstd w + b over rows, and its derivatives.
 *
 * Forward: a team per row; the mean, then the variance of the differences (a mean far from 0 must
 * not cost digits), then y, the second and third time from the cache.
 * Backward, with xh = (x - mean) rstd and g = dy w:
 *   dx = rstd (g - mean(g) - xh mean(g xh)), dw = sum_rows dy xh, db = sum_rows dy
 * x and dy are read once: a block takes every P-th row, each of its threads the same few columns of
 * all of them, whose parts of dw and db stay in registers; short rows of fours by warps
 * (layernorm_bwd.cu). The P parts lie in `work`, dw's before db's, and are summed by rows. Rows too
 * long for that are read once more for dw and once more for db. */
#include "kernels/cuda/layernorm.h"
#include "kernels/cuda/strided.h"
#include "kernels/cuda/teams.h"

namespace
{

enum { WARPS = PNB__CUDA_THREADS / PNB__CUDA_WARP, MOST_EACH = 8, MOST_PARTS = 132 * 6 };

struct norm_rows {
    size_t width;
    double eps;
    const float *x, *w, *b;
    float *y, *mean, *rstd;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        const float *in = x + r * width;
        double sum = 0;
        for (size_t i = lane; i < width; i += TEAM)
            sum += static_cast<double>(in[i]);
        sum = team_sum<TEAM>(sum) / static_cast<double>(width);
        const float high = static_cast<float>(sum); /* the mean in two floats */
        const float low = static_cast<float>(sum - static_cast<double>(high));
        float squares = 0;
        for (size_t i = lane; i < width; i += TEAM) {
            float off = in[i] - high - low;
            squares += off * off;
        }
        double var = static_cast<double>(team_sum<TEAM>(squares)) / static_cast<double>(width);
        const float scale = static_cast<float>(1 / sqrt(var + eps));
        for (size_t i = lane; i < width; i += TEAM) {
            float xh = (in[i] - high - low) * scale;
            y[r * width + i] = xh * (w != nullptr ? w[i] : 1) + (b != nullptr ? b[i] : 0);
        }
        if (lane == 0 && mean != nullptr)
            mean[r] = high;
        if (lane == 0 && rstd != nullptr)
            rstd[r] = scale;
    }
};

/* ---- backward in one pass ---- */

typedef pnb__cuda_norm_bwd norm_bwd;

/* Sums of a and b over the block. The room changes sides from call to call, so one barrier is
 * enough: who writes to it again has passed the barrier of the call between. */
__device__ inline void two_sums(float *a, float *b, float room[2][WARPS])
{
    float one = pnb__cuda_warp(*a, pnb__cuda_add()), two = pnb__cuda_warp(*b, pnb__cuda_add());
    if (threadIdx.x % PNB__CUDA_WARP == 0) {
        room[0][threadIdx.x / PNB__CUDA_WARP] = one;
        room[1][threadIdx.x / PNB__CUDA_WARP] = two;
    }
    __syncthreads();
    *a = *b = 0;
    for (int i = 0; i < WARPS; i++) {
        *a += room[0][i];
        *b += room[1][i];
    }
}

/* This thread's columns: threadIdx.x and every 256th after it. */
template <int EACH> struct columns {
    float of[EACH];
};

template <int EACH>
__device__ void norm_bwd_row(const norm_bwd &a, size_t r, const columns<EACH> &w, columns<EACH> *dw,
                             columns<EACH> *db, float room[2][WARPS])
{
    const float *x = a.x + r * a.width;
    const float mean = a.mean[r], rstd = a.rstd[r];
    columns<EACH> xh, g;
    float sum_g = 0, sum_gx = 0;
    for (int k = 0; k < EACH; k++) {
        size_t i = threadIdx.x + k * PNB__CUDA_THREADS;
        xh.of[k] = i < a.width ? x[i] : mean;
        g.of[k] = i < a.width ? a.gradient(r * a.width + i) : 0;
    }
    for (int k = 0; k < EACH; k++) {
        xh.of[k] = (xh.of[k] - mean) * rstd;
        dw->of[k] += g.of[k] * xh.of[k];
        db->of[k] += g.of[k];
        g.of[k] *= w.of[k];
        sum_g += g.of[k];
        sum_gx += g.of[k] * xh.of[k];
    }
    if (a.dx == nullptr)
        return;
    two_sums(&sum_g, &sum_gx, room);
    sum_g /= static_cast<float>(a.width);
    sum_gx /= static_cast<float>(a.width);
    for (int k = 0; k < EACH; k++) {
        size_t i = threadIdx.x + k * PNB__CUDA_THREADS;
        if (i < a.width)
            pnb__cuda_put(a.dx + r * a.width + i, rstd * (g.of[k] - sum_g - xh.of[k] * sum_gx),
                          a.accumulate);
    }
}

template <int EACH> __global__ void norm_bwd_kernel(norm_bwd a)
{
    __shared__ float room[2][2][WARPS];
    columns<EACH> w, dw = {}, db = {};
    unsigned side = 0;
    for (int k = 0; k < EACH; k++) {
        size_t i = threadIdx.x + k * PNB__CUDA_THREADS;
        w.of[k] = a.w != nullptr && i < a.width ? a.w[i] : 1;
    }
    for (size_t r = blockIdx.x; r < a.rows; r += gridDim.x, side ^= 1)
        norm_bwd_row<EACH>(a, r, w, &dw, &db, room[side]);
    for (int k = 0; k < EACH; k++) {
        size_t i = threadIdx.x + k * PNB__CUDA_THREADS;
        if (i >= a.width)
            continue;
        a.parts[blockIdx.x * a.width + i] = dw.of[k];
        a.parts[(gridDim.x + blockIdx.x) * a.width + i] = db.of[k];
    }
}

/* Parts of dw and db: at least four rows to each. */
size_t n_parts(size_t rows, size_t width)
{
    if (width > MOST_EACH * PNB__CUDA_THREADS)
        return 0;
    return PNB_MIN((rows + 3) / 4, static_cast<size_t>(MOST_PARTS));
}

template <int EACH> void launch_bwd(const pnb_ctx *ctx, size_t parts, const norm_bwd &a)
{
    pnb__cuda_launch(ctx, norm_bwd_kernel<EACH>, dim3(static_cast<unsigned>(parts)),
                     PNB__CUDA_THREADS, 0, a);
}

void one_pass(const pnb_ctx *ctx, size_t parts, const norm_bwd &a)
{
    switch ((a.width + PNB__CUDA_THREADS - 1) / PNB__CUDA_THREADS) {
    case 0:
    case 1:
        launch_bwd<1>(ctx, parts, a);
        break;
    case 2:
        launch_bwd<2>(ctx, parts, a);
        break;
    case 3:
        launch_bwd<3>(ctx, parts, a);
        break;
    case 4:
        launch_bwd<4>(ctx, parts, a);
        break;
    case 5:
        launch_bwd<5>(ctx, parts, a);
        break;
    default:
        launch_bwd<MOST_EACH>(ctx, parts, a);
    }
}

/* ---- backward of long rows ---- */

struct norm_bwd_rows {
    norm_bwd a;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        const float *x = a.x + r * a.width;
        const float mean = a.mean[r], rstd = a.rstd[r];
        float sum_g = 0, sum_gx = 0;
        for (size_t i = lane; i < a.width; i += TEAM) {
            float g = a.gradient(r * a.width + i) * (a.w != nullptr ? a.w[i] : 1);
            sum_g += g;
            sum_gx += g * ((x[i] - mean) * rstd);
        }
        sum_g = team_sum<TEAM>(sum_g) / static_cast<float>(a.width);
        sum_gx = team_sum<TEAM>(sum_gx) / static_cast<float>(a.width);
        for (size_t i = lane; i < a.width; i += TEAM) {
            float g = a.gradient(r * a.width + i) * (a.w != nullptr ? a.w[i] : 1),
                  xh = (x[i] - mean) * rstd;
            pnb__cuda_put(a.dx + r * a.width + i, rstd * (g - sum_g - xh * sum_gx), a.accumulate);
        }
    }
};

template <class I> struct scale_term { /* of dw: places of an element and of its row */
    enum { A = 2 };
    norm_bwd n;
    __device__ double operator()(const I at[A]) const
    {
        float xh = (n.x[at[0]] - n.mean[at[1]]) * n.rstd[at[1]];
        return static_cast<double>(n.gradient(at[0]) * xh);
    }
};

void long_rows(const pnb_ctx *ctx, const norm_bwd &n, const pnb__layernorm_args *a)
{
    const size_t dims[2] = {a->rows, a->width};
    const size_t element[2] = {a->width, 1}, of_row[2] = {1, 0};
    const size_t column[2] = {0, 1};
    const size_t *const strides[3] = {element, of_row, column};
    if (a->dx != nullptr)
        by_rows(ctx, a->rows, a->width, norm_bwd_rows{n});
    if (a->dw != nullptr)
        sum_axes<scale_term>(ctx, 2, dims, strides, {n}, {n}, 1, static_cast<float *>(a->dw),
                             a->accumulate_w);
    if (a->db != nullptr && a->halves)
        pnb__cuda_halves_sum(ctx, a->rows, a->width, a->dy, a->db, a->accumulate_w);
    else if (a->db != nullptr)
        pnb__cuda_sum(ctx, 1, a->rows, a->width, 1, a->dy, a->db, a->accumulate_w);
}

} // namespace

extern "C" size_t pnb__cuda_layernorm_work(const pnb_ctx *, size_t rows, size_t width)
{
    return 2 * n_parts(rows, width) * width * sizeof(float);
}

extern "C" void pnb__cuda_layernorm(const pnb_ctx *ctx, const pnb__layernorm_args *a)
{
    if (a->halves) {
        pnb__cuda_layernorm_halves(ctx, a);
        return;
    }
    by_rows(ctx, a->rows, a->width,
            norm_rows{a->width, a->eps, static_cast<const float *>(a->x),
                      static_cast<const float *>(a->w), static_cast<const float *>(a->b),
                      static_cast<float *>(a->y), static_cast<float *>(a->mean),
                      static_cast<float *>(a->rstd)});
}

extern "C" void pnb__cuda_layernorm_bwd(const pnb_ctx *ctx, const pnb__layernorm_args *a)
{
    float *parts = static_cast<float *>(a->work);
    const norm_bwd n = {a->rows,
                        a->width,
                        static_cast<const float *>(a->x),
                        static_cast<const float *>(a->w),
                        static_cast<const float *>(a->mean),
                        static_cast<const float *>(a->rstd),
                        a->dy,
                        a->halves,
                        static_cast<float *>(a->dx),
                        parts,
                        a->accumulate_x};
    if (a->width > MOST_EACH * PNB__CUDA_THREADS) {
        long_rows(ctx, n, a);
        return;
    }
    size_t P = pnb__cuda_layernorm_bwd_by_warps(ctx, n);
    if (P == 0) {
        P = n_parts(a->rows, a->width);
        if (P > 0)
            one_pass(ctx, P, n);
    }
    if (a->dw != nullptr)
        pnb__cuda_sum(ctx, 1, P, a->width, 1, parts, a->dw, a->accumulate_w);
    if (a->db != nullptr)
        pnb__cuda_sum(ctx, 1, P, a->width, 1, parts + P * a->width, a->db, a->accumulate_w);
}
