/* One step of a GRU as torch.nn.GRU, gates in the order r, z, n:
 *   r = s(gx_r + gh_r), z = s(gx_z + gh_z), n = tanh(gx_n + r gh_n), h' = (1 - z) n + z h
 * in doubles: errors of a step go on to all that follow, and a step has few numbers beside the two
 * products with the weights, which are gemm's. A block takes a row; an element's numbers are all
 * read by one thread before it writes, so that results may take the place of what they are made
 * of. */
#include "kernels/cuda/cuda.h"

namespace
{

__device__ double number(const void *p, size_t i)
{
    return static_cast<double>(static_cast<const float *>(p)[i]);
}

__device__ void set(void *p, size_t i, double value)
{
    static_cast<float *>(p)[i] = static_cast<float>(value);
}

__device__ size_t row_at(const int32_t *at, size_t i)
{
    return at != NULL ? static_cast<size_t>(at[i]) : i;
}

/* Never overflows, keeps the small side exact. */
__device__ double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

struct step {
    pnb__gru_args a;

    __device__ void element(size_t i, size_t c) const
    {
        size_t w = a.width, gx = row_at(a.at, i) * 3 * w + c, gh = i * a.ld_gh + c;
        double gh_n = number(a.gh, gh + 2 * w), h = a.h != NULL ? number(a.h, i * w + c) : 0;
        double r = sigmoid(number(a.gx, gx) + number(a.gh, gh));
        double z = sigmoid(number(a.gx, gx + w) + number(a.gh, gh + w));
        double n = tanh(number(a.gx, gx + 2 * w) + r * gh_n), h_new = (1 - z) * n + z * h;
        set(a.out, row_at(a.out_at, i) * w + c, h_new);
        if (a.h_next != NULL && i < a.n_next)
            set(a.h_next, i * w + c, h_new);
        if (a.gates == NULL)
            return;
        size_t to = i * 4 * w + c;
        set(a.gates, to, r);
        set(a.gates, to + w, z);
        set(a.gates, to + 2 * w, n);
        set(a.gates, to + 3 * w, gh_n);
    }

    __device__ void row(size_t i) const
    {
        for (size_t c = threadIdx.x; c < a.width; c += blockDim.x)
            element(i, c);
    }
};

/* dr, dz, dn: of what goes into the gates */
struct slopes {
    double r, z, n, of_gh_n;
};

struct step_back {
    pnb__gru_args a;

    /* dh' of one element: what comes back from the step after, and from outside. */
    __device__ double d_new(size_t i, size_t c) const
    {
        double d = 0;
        if (i < a.n_next && a.d_next != NULL)
            d = number(a.d_next, i * a.width + c);
        if (i >= a.n_next || !a.d_out_ends)
            d += number(a.d_out, row_at(a.out_at, i) * a.width + c);
        return d;
    }

    __device__ void put_gates(size_t i, size_t c, const slopes &d) const
    {
        size_t w = a.width;
        if (a.dgx != NULL) {
            float *dgx = static_cast<float *>(a.dgx) + row_at(a.at, i) * 3 * w + c;
            pnb__cuda_put(dgx, d.r, a.accumulate_gx);
            pnb__cuda_put(dgx + w, d.z, a.accumulate_gx);
            pnb__cuda_put(dgx + 2 * w, d.n, a.accumulate_gx);
        }
        if (a.dgh != NULL) {
            float *dgh = static_cast<float *>(a.dgh) + i * a.ld_dgh + c;
            pnb__cuda_put(dgh, d.r, a.accumulate_gh);
            pnb__cuda_put(dgh + w, d.z, a.accumulate_gh);
            pnb__cuda_put(dgh + 2 * w, d.of_gh_n, a.accumulate_gh);
        }
    }

    __device__ void element(size_t i, size_t c) const
    {
        size_t w = a.width, at = i * 4 * w + c;
        double r = number(a.gates, at), z = number(a.gates, at + w);
        double n = number(a.gates, at + 2 * w), gh_n = number(a.gates, at + 3 * w);
        double h = a.h != NULL ? number(a.h, i * w + c) : 0, d = d_new(i, c);
        slopes s;
        s.n = d * (1 - z) * (1 - n * n);
        s.z = d * (h - n) * z * (1 - z);
        s.r = s.n * gh_n * r * (1 - r);
        s.of_gh_n = s.n * r;
        put_gates(i, c, s);
        if (a.dh != NULL)
            pnb__cuda_put(static_cast<float *>(a.dh) + i * w + c, d * z, a.accumulate_h);
    }

    __device__ void row(size_t i) const
    {
        for (size_t c = threadIdx.x; c < a.width; c += blockDim.x)
            element(i, c);
    }
};

} // namespace

extern "C" void pnb__cuda_gru(const pnb_ctx *ctx, const pnb__gru_args *a)
{
    pnb__cuda_rows(ctx, a->rows, step{*a});
}

extern "C" void pnb__cuda_gru_bwd(const pnb_ctx *ctx, const pnb__gru_args *a)
{
    pnb__cuda_rows(ctx, a->rows, step_back{*a});
}
