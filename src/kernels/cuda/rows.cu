/* What treats each row of a matrix by itself: softmax, cross-entropy, L2 norm, squares.
 *
 * Log-sum-exp takes one pass: a thread keeps the largest number m it has met and the sum of exp(x -
 * m), scaled anew when m grows; four numbers at once need five exponentials. Exponentials are in
 * floats, sums in double. A second pass, which short rows read from the cache, writes. */
#include "kernels/cuda/teams.h"

namespace
{

enum { AT_ONCE = 4 };

/* ---- softmax and cross-entropy ---- */

/* Of a row: log sum exp(x) is shift + log(sum). The largest number is the shift unless it is -inf.
 */
struct exponentials {
    float shift;
    double sum;
    __device__ double lse() const
    {
        return static_cast<double>(shift) + log(sum);
    }
};

__device__ inline float finite_shift(float most)
{
    return most == -INFINITY ? 0 : most; /* -inf - -inf would be NaN */
}

template <int TEAM>
__device__ exponentials row_exponentials(const float *x, size_t width, unsigned lane)
{
    float most = -INFINITY;
    double sum = 0;
    for (size_t i = lane; i < width; i += AT_ONCE * TEAM) {
        float v[AT_ONCE], before = most, some = 0;
        for (int k = 0; k < AT_ONCE; k++)
            v[k] = i + k * TEAM < width ? x[i + k * TEAM] : -INFINITY;
        for (int k = 0; k < AT_ONCE; k++)
            most = v[k] > most ? v[k] : most;
        for (int k = 0; k < AT_ONCE; k++)
            some += expf(v[k] - finite_shift(most));
        sum = sum * static_cast<double>(expf(before - finite_shift(most))) +
              static_cast<double>(some);
    }
    float all = finite_shift(over_team<TEAM>(most, pnb__cuda_most()));
    sum *= static_cast<double>(expf(most - all));
    return exponentials{all, team_sum<TEAM>(sum)};
}

struct softmax_rows {
    size_t width;
    bool is_log;
    const float *x;
    float *y;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        const float *in = x + r * width;
        float *out = y + r * width;
        exponentials e = row_exponentials<TEAM>(in, width, lane);
        if (is_log) {
            double lse = e.lse();
            for (size_t i = lane; i < width; i += TEAM)
                out[i] = static_cast<float>(static_cast<double>(in[i]) - lse);
        } else {
            float scale = static_cast<float>(1 / e.sum);
            for (size_t i = lane; i < width; i += TEAM)
                out[i] = expf(in[i] - e.shift) * scale;
        }
    }
};

struct softmax_bwd_rows {
    size_t width;
    bool is_log, accumulate;
    const float *y, *dy;
    float *dx;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        const float *out = y + r * width, *d_out = dy + r * width;
        double sum = 0;
        for (size_t i = lane; i < width; i += TEAM)
            sum += static_cast<double>(is_log ? d_out[i] : d_out[i] * out[i]);
        float total = static_cast<float>(team_sum<TEAM>(sum));
        for (size_t i = lane; i < width; i += TEAM) {
            float v = is_log ? d_out[i] - expf(out[i]) * total : out[i] * (d_out[i] - total);
            pnb__cuda_put(dx + r * width + i, v, accumulate);
        }
    }
};

struct entropy_rows {
    size_t width;
    const float *x;
    const int32_t *target;
    float *loss, *lse;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        const float *in = x + r * width;
        exponentials e = row_exponentials<TEAM>(in, width, lane);
        if (lane != 0)
            return;
        double all = e.lse();
        loss[r] = static_cast<float>(all - static_cast<double>(in[target[r]]));
        lse[r] = static_cast<float>(all);
    }
};

struct entropy_bwd_rows {
    size_t width;
    bool accumulate;
    const float *x;
    const int32_t *target;
    const float *lse, *dloss;
    float *dx;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        const size_t at = static_cast<size_t>(target[r]);
        const float all = lse[r], scale = dloss[r];
        for (size_t i = lane; i < width; i += TEAM) {
            float p = expf(x[r * width + i] - all) - (i == at ? 1 : 0);
            pnb__cuda_put(dx + r * width + i, scale * p, accumulate);
        }
    }
};

/* ---- L2 norm ---- */

template <int TEAM>
__device__ double row_dot(const float *a, const float *b, size_t n, unsigned lane)
{
    double sum = 0;
    for (size_t i = lane; i < n; i += TEAM)
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return team_sum<TEAM>(sum);
}

struct normalize_rows {
    size_t width;
    double eps;
    const float *x;
    float *y, *inv_norm;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        const float *in = x + r * width;
        double norm = sqrt(row_dot<TEAM>(in, in, width, lane)), inv = 1 / PNB_MAX(norm, eps);
        for (size_t i = lane; i < width; i += TEAM)
            y[r * width + i] = static_cast<float>(static_cast<double>(in[i]) * inv);
        if (lane == 0)
            inv_norm[r] = static_cast<float>(inv);
    }
};

/* Where the norm was below eps the divisor was constant. */
struct normalize_bwd_rows {
    size_t width;
    float most_inv;
    bool accumulate;
    const float *y, *inv_norm, *dy;
    float *dx;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        const float *out = y + r * width, *d_out = dy + r * width, inv = inv_norm[r];
        double dot = inv < most_inv ? row_dot<TEAM>(out, d_out, width, lane) : 0;
        for (size_t i = lane; i < width; i += TEAM) {
            double v = static_cast<double>(d_out[i]) - static_cast<double>(out[i]) * dot;
            pnb__cuda_put(dx + r * width + i, static_cast<double>(inv) * v, accumulate);
        }
    }
};

struct square_rows {
    size_t width;
    const float *x;
    float *y;
    template <int TEAM> __device__ void row(size_t r, unsigned lane) const
    {
        double sum = row_dot<TEAM>(x + r * width, x + r * width, width, lane);
        if (lane == 0)
            y[r] = static_cast<float>(sum);
    }
};

} // namespace

extern "C" void pnb__cuda_softmax(const pnb_ctx *ctx, size_t rows, size_t width, bool log,
                                  const void *x, void *y)
{
    by_rows(ctx, rows, width,
            softmax_rows{width, log, static_cast<const float *>(x), static_cast<float *>(y)});
}

extern "C" void pnb__cuda_softmax_bwd(const pnb_ctx *ctx, size_t rows, size_t width, bool log,
                                      const void *y, const void *dy, void *dx, bool accumulate)
{
    by_rows(ctx, rows, width,
            softmax_bwd_rows{width, log, accumulate, static_cast<const float *>(y),
                             static_cast<const float *>(dy), static_cast<float *>(dx)});
}

extern "C" void pnb__cuda_cross_entropy(const pnb_ctx *ctx, size_t rows, size_t width,
                                        const void *x, const int32_t *target, void *loss, void *lse)
{
    by_rows(ctx, rows, width,
            entropy_rows{width, static_cast<const float *>(x), target, static_cast<float *>(loss),
                         static_cast<float *>(lse)});
}

extern "C" void pnb__cuda_cross_entropy_bwd(const pnb_ctx *ctx, size_t rows, size_t width,
                                            const void *x, const int32_t *target, const void *lse,
                                            const void *dloss, void *dx, bool accumulate)
{
    by_rows(ctx, rows, width,
            entropy_bwd_rows{width, accumulate, static_cast<const float *>(x), target,
                             static_cast<const float *>(lse), static_cast<const float *>(dloss),
                             static_cast<float *>(dx)});
}

extern "C" void pnb__cuda_l2_normalize(const pnb_ctx *ctx, size_t rows, size_t width, double eps,
                                       const void *x, void *y, void *inv_norm)
{
    by_rows(ctx, rows, width,
            normalize_rows{width, eps, static_cast<const float *>(x), static_cast<float *>(y),
                           static_cast<float *>(inv_norm)});
}

extern "C" void pnb__cuda_l2_normalize_bwd(const pnb_ctx *ctx, size_t rows, size_t width,
                                           double eps, const void *y, const void *inv_norm,
                                           const void *dy, void *dx, bool accumulate)
{
    by_rows(ctx, rows, width,
            normalize_bwd_rows{width, static_cast<float>(1 / eps), accumulate,
                               static_cast<const float *>(y), static_cast<const float *>(inv_norm),
                               static_cast<const float *>(dy), static_cast<float *>(dx)});
}

extern "C" void pnb__cuda_row_squares(const pnb_ctx *ctx, size_t rows, size_t width, const void *x,
                                      void *y)
{
    by_rows(ctx, rows, width,
            square_rows{width, static_cast<const float *>(x), static_cast<float *>(y)});
}
