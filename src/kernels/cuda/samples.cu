/* Samples of distributions against samples (kernels/ref/samples.inc has the formulas), in doubles
 * as there: what is summed are exponentials whose exponents come of differences of large numbers.
 *
 * match_strip: a warp takes a pair of rows, its lanes the J x J products: J of them lie side by
 * side, and J is small. It looks at them twice, first for the largest exponent, then for the sums,
 * and backward a third time: making a term again costs less than a place for it. spread_strip: a
 * block takes a row, since rows are long and few. */
#include "kernels/cuda/warps.h"

namespace
{

/* ---- match_strip ---- */

/* z = gain (shift - scale d), gain = factor sign, d = sqrt(|x_j - y_k|^2 + floor) */
struct match_term {
    double d, z;
};

struct match_sums {
    double low, sum, missed; /* of s(z) e^-low, of 1 - s(z) */
};

struct match_pairs {
    pnb__match_args a;

    __device__ static double number(const void *p, size_t at)
    {
        return static_cast<double>(static_cast<const float *>(p)[at]);
    }

    __device__ double gain(size_t pair) const
    {
        return a.factor * number(a.signs, pair);
    }

    __device__ size_t n_terms() const
    {
        return a.n_samples * a.n_samples;
    }

    /* Place of a pair's term q in the products. */
    __device__ size_t place(size_t pair, size_t q) const
    {
        size_t i = pair / a.n2, t = pair % a.n2, n = a.n_samples;
        return (i * n + q / n) * a.n2 * n + t * n + q % n;
    }

    /* All lanes together; one whose q is no term gets numbers to be left alone. */
    __device__ match_term term(size_t pair, size_t q) const
    {
        const double floor = 1e-6; /* under the root: its slope stays finite */
        const pnb__cuda_sides sides = {static_cast<const float *>(a.x),
                                       static_cast<const float *>(a.y), a.dim};
        size_t x = pair / a.n2 * a.n_samples + q / a.n_samples;
        size_t y = pair % a.n2 * a.n_samples + q % a.n_samples;
        double sum = 0, product = 0;
        if (q < n_terms()) {
            sum = number(a.square_x, x) + number(a.square_y, y);
            product = number(a.products, place(pair, q));
        }
        match_term t;
        t.d = sqrt(sides.square(sum, product, x, y) + floor);
        t.z = gain(pair) * (number(a.shift, 0) - number(a.scale, 0) * t.d);
        return t;
    }

    /* s(z) e^-low = e^(min(z,0) - low) / (1 + e^-|z|), and s(-z): low <= 0 is the largest min(z,0)
     * of the pair, so that some term is at least 1/2, however small the probabilities are. */
    __device__ static void shares(double z, double low, double *hit, double *miss)
    {
        double e = exp(-fabs(z)), under = 1 / (1 + e);
        *hit = exp(fmin(z, 0.0) - low) * under;
        *miss = z > 0 ? e * under : under;
    }

    __device__ match_sums sums(size_t pair) const
    {
        match_sums s = {-HUGE_VAL, 0, 0};
        for (size_t q = pnb__cuda_lane(); q - pnb__cuda_lane() < n_terms(); q += PNB__CUDA_WARP) {
            match_term t = term(pair, q);
            if (q < n_terms())
                s.low = fmax(s.low, t.z);
        }
        s.low = fmin(pnb__cuda_warp(s.low, pnb__cuda_most()), 0.0);
        for (size_t q = pnb__cuda_lane(); q - pnb__cuda_lane() < n_terms(); q += PNB__CUDA_WARP) {
            match_term t = term(pair, q);
            double hit, miss;
            shares(t.z, s.low, &hit, &miss);
            s.sum += q < n_terms() ? hit : 0;
            s.missed += q < n_terms() ? miss : 0;
        }
        s.sum = pnb__cuda_warp(s.sum, pnb__cuda_add());
        s.missed = pnb__cuda_warp(s.missed, pnb__cuda_add());
        return s;
    }
};

/* -log of the mean of s(z): from what it misses of 1 where it is near it. */
struct match_forward {
    match_pairs of;

    __device__ void warp(size_t pair) const
    {
        match_sums s = of.sums(pair);
        double n = static_cast<double>(of.n_terms());
        double nll = s.missed < 0.5 * n ? -log1p(-s.missed / n) : log(n) - s.low - log(s.sum);
        if (pnb__cuda_lane() == 0)
            static_cast<float *>(of.a.nll)[pair] = static_cast<float>(nll);
    }
};

/* nll = log J^2 - log sum s(z):  dz_jk = -w_jk s(-z_jk) dnll,  w_jk = s(z_jk) / sum s(z);
 * dd2 = -gain scale / (2 d) dz. A product is read by the lane that puts the weight in its place. */
struct match_backward {
    match_pairs of;

    __device__ void warp(size_t pair) const
    {
        const pnb__match_args *a = &of.a;
        match_sums s = of.sums(pair);
        double gain = of.gain(pair), d_nll = of.number(a->d_nll, pair), d_scale = 0, d_shift = 0;
        for (size_t q = pnb__cuda_lane(); q - pnb__cuda_lane() < of.n_terms();
             q += PNB__CUDA_WARP) {
            match_term t = of.term(pair, q);
            double hit, miss;
            if (q >= of.n_terms())
                continue;
            of.shares(t.z, s.low, &hit, &miss);
            double dz = -d_nll * hit / s.sum * miss;
            d_scale -= dz * gain * t.d;
            d_shift += dz * gain;
            static_cast<float *>(a->products)[of.place(pair, q)] =
                static_cast<float>(-0.5 * dz * gain * of.number(a->scale, 0) / t.d);
        }
        d_scale = pnb__cuda_warp(d_scale, pnb__cuda_add());
        d_shift = pnb__cuda_warp(d_shift, pnb__cuda_add());
        if (pnb__cuda_lane() == 0) {
            static_cast<float *>(a->d_scale)[pair] = static_cast<float>(d_scale);
            static_cast<float *>(a->d_shift)[pair] = static_cast<float>(d_shift);
        }
    }
};

/* ---- spread_strip ---- */

struct spread_rows {
    pnb__spread_args a;

    /* The first column that counts for a row. */
    __device__ size_t begin(size_t i) const
    {
        return a.all_columns ? 0 : a.skip + i;
    }

    /* -rate |x_i - y_j|^2, by whole warps; j that do not count give 0 */
    __device__ double exponent(size_t i, size_t j) const
    {
        const pnb__cuda_sides sides = {static_cast<const float *>(a.x),
                                       static_cast<const float *>(a.y), a.dim};
        double sum = 0, product = 0;
        if (j >= begin(i) && j < a.n) {
            sum = static_cast<double>(static_cast<const float *>(a.square_x)[i]) +
                  static_cast<double>(static_cast<const float *>(a.square_y)[j]);
            product = static_cast<double>(static_cast<const float *>(a.products)[i * a.n + j]);
        }
        return -a.rate * sides.square(sum, product, i, j);
    }

    /* log sum_j exp(e_ij) over the columns that count, in every thread */
    __device__ double log_sum(size_t i) const
    {
        size_t behind = begin(i);
        double most = -HUGE_VAL, sum = 0;
        for (size_t from = behind; from < a.n; from += PNB__CUDA_THREADS) {
            double e = exponent(i, from + threadIdx.x);
            if (from + threadIdx.x < a.n)
                most = fmax(most, e);
        }
        most = pnb__cuda_block(most, pnb__cuda_most());
        for (size_t from = behind; from < a.n; from += PNB__CUDA_THREADS) {
            double e = exponent(i, from + threadIdx.x);
            if (from + threadIdx.x < a.n)
                sum += exp(e - most);
        }
        return most + log(pnb__cuda_block_sum(sum));
    }
};

struct spread_forward {
    spread_rows of;

    __device__ void row(size_t i) const
    {
        double sum = of.log_sum(i);
        if (threadIdx.x == 0)
            static_cast<float *>(of.a.sums)[i] = static_cast<float>(sum);
    }
};

/* sums_i = log sum_j e_ij:  dd2_ij = -rate exp(e_ij - sums_i) dsums_i. A sum far from 0 lost digits
 * as a float that its exponents have: it is made again, before weights take the products' place. */
struct spread_backward {
    spread_rows of;

    __device__ void row(size_t i) const
    {
        const double far = 1e3;
        const pnb__spread_args *a = &of.a;
        float *out = static_cast<float *>(a->products) + i * a->n;
        double sum = static_cast<double>(static_cast<const float *>(a->sums)[i]);
        double weight = -a->rate * static_cast<double>(static_cast<const float *>(a->d_sums)[i]);
        if (fabs(sum) > far && of.begin(i) < a->n)
            sum = of.log_sum(i);
        for (size_t from = 0; from < a->n; from += PNB__CUDA_THREADS) {
            size_t j = from + threadIdx.x;
            double e = of.exponent(i, j);
            if (j < a->n)
                out[j] = static_cast<float>(j >= of.begin(i) ? weight * exp(e - sum) : 0);
        }
    }
};

} // namespace

extern "C" void pnb__cuda_match_strip(const pnb_ctx *ctx, const pnb__match_args *a)
{
    pnb__cuda_warps(ctx, a->n1 * a->n2, match_forward{{*a}});
}

extern "C" void pnb__cuda_match_strip_bwd(const pnb_ctx *ctx, const pnb__match_args *a)
{
    pnb__cuda_warps(ctx, a->n1 * a->n2, match_backward{{*a}});
}

extern "C" void pnb__cuda_spread_strip(const pnb_ctx *ctx, const pnb__spread_args *a)
{
    pnb__cuda_rows(ctx, a->n1, spread_forward{{*a}});
}

extern "C" void pnb__cuda_spread_strip_bwd(const pnb_ctx *ctx, const pnb__spread_args *a)
{
    pnb__cuda_rows(ctx, a->n1, spread_backward{{*a}});
}
