/* Strips of logits of all pairs: labels, margins, kernels of distances (kernels/ref/pairs.inc has
 * the formulas), in doubles as there. A block takes a row of the strip: rows are as long as a
 * batch.
 *
 * pair_labels: the whole row first, then what its few marks add, each column by the thread of the
 * first mark on it, so that marks on one column add up in order.
 * margins: a thread looks at the k x k products of a pair. Rows are apart, so the one row of hinges
 * that the slot is given room for is left alone: a hinge is made again where it is needed.
 * kernel_strip: distances by warps, as in samples.cu. */
#include "kernels/cuda/warps.h"

namespace
{

/* ---- pair_labels ---- */

struct label_rows {
    pnb__label_args a;

    /* What the marks of row i give column j, from mark `from` on. */
    __device__ double marks(size_t i, int32_t j, size_t from) const
    {
        double label = 0;
        for (size_t q = i * a.k + from; q < (i + 1) * a.k; q++)
            if (a.columns[q] == j)
                label += static_cast<double>(static_cast<const float *>(a.weights)[q]);
        return label;
    }

    /* Whether mark q of row i is the first on its column. */
    __device__ bool is_first(size_t i, size_t q) const
    {
        for (size_t earlier = i * a.k; earlier < i * a.k + q; earlier++)
            if (a.columns[earlier] == a.columns[i * a.k + q])
                return false;
        return true;
    }

    /* out_j -= y, by one thread at a time; y l_j comes back */
    __device__ double take(size_t i, size_t j, double logit, double y) const
    {
        float *out = static_cast<float *>(a.out);
        if (out != NULL)
            out[i * a.n + j] = static_cast<float>(static_cast<double>(out[i * a.n + j]) - y);
        return y * logit;
    }

    /* A pair whose logit reaches the match's has its label, marks or none. */
    __device__ void row(size_t i) const
    {
        const float *l = static_cast<const float *>(a.logits) + i * a.n;
        bool has_pseudo = a.match != NULL;
        double bar = has_pseudo ? static_cast<double>(l[a.match[i]]) : 0, dot = 0;
        double high = has_pseudo ? a.base + marks(i, a.match[i], 0) : 0;
        __syncthreads(); /* out may be logits: the bar is known to all */
        for (size_t j = threadIdx.x; j < a.n && (has_pseudo || a.base != 0); j += blockDim.x) {
            double logit = static_cast<double>(l[j]);
            dot += take(i, j, logit, has_pseudo && logit >= bar ? high : a.base);
        }
        __syncthreads(); /* out has lost the base */
        for (size_t q = threadIdx.x; q < a.k; q += blockDim.x) {
            int32_t column = a.columns[i * a.k + q];
            size_t j = static_cast<size_t>(column) - a.first; /* before the strip: beyond it */
            double logit = j < a.n ? static_cast<double>(l[j]) : 0;
            if (j < a.n && !(has_pseudo && logit >= bar) && is_first(i, q))
                dot += take(i, j, logit, marks(i, column, q));
        }
        dot = pnb__cuda_block_sum(dot);
        if (a.dot != NULL && threadIdx.x == 0)
            static_cast<float *>(a.dot)[i] = static_cast<float>(dot);
    }
};

/* ---- margins ---- */

/* The larger one, a NaN if there is one: it must not be lost. */
struct largest {
    __device__ double operator()(double a, double b) const
    {
        return a > b || a != a ? a : b;
    }
};

struct least {
    __device__ size_t operator()(size_t a, size_t b) const
    {
        return a < b ? a : b;
    }
};

struct margin_rows {
    pnb__margin_args a;

    __device__ const float *products() const
    {
        return static_cast<const float *>(a.products);
    }

    /* Place of the best of the k x k products of pair (i, j): the first of the largest; a NaN is
     * the largest. */
    __device__ size_t best(size_t i, size_t j) const
    {
        size_t ld = a.n * a.k, place = i * a.k * ld + j * a.k;
        float most = products()[place];
        for (size_t u = 0; u < a.k; u++)
            for (size_t v = 0; v < a.k; v++) {
                size_t at = (i * a.k + u) * ld + j * a.k + v;
                float p = products()[at];
                if (p > most || (p != p && most == most)) {
                    place = at;
                    most = p;
                }
            }
        return place;
    }

    __device__ double score(size_t i, size_t j) const
    {
        return static_cast<double>(products()[best(i, j)]);
    }

    /* What a score of row i is compared with. */
    __device__ double bar(size_t i) const
    {
        return score(i, a.first + i) - a.margin;
    }

    /* [s_ij - bar]+ for j != i, NaN where it is one */
    __device__ static double hinge(double score, double bar)
    {
        return score - bar <= 0 ? 0 : score - bar;
    }

    /* The largest hinge of the row, in every thread; *where: the first place of it, n where none is
     * above 0. */
    __device__ double hardest(size_t i, double bar, size_t *where) const
    {
        double mine = 0;
        size_t place = a.n;
        for (size_t j = threadIdx.x; j < a.n; j += blockDim.x) {
            double h = j == a.first + i ? 0 : hinge(score(i, j), bar);
            if (h > mine || (h != h && mine == mine)) {
                mine = h;
                place = j;
            }
        }
        double most = pnb__cuda_block(mine, largest());
        bool is_most = mine == most || (mine != mine && most != most);
        *where = pnb__cuda_block(is_most ? place : a.n, least());
        return most;
    }
};

struct margin_forward {
    margin_rows of;

    __device__ void row(size_t i) const
    {
        double bar = of.bar(i), sum = 0;
        size_t where;
        if (of.a.is_hardest)
            sum = of.hardest(i, bar, &where);
        for (size_t j = threadIdx.x; j < of.a.n && !of.a.is_hardest; j += blockDim.x)
            sum += j == of.a.first + i ? 0 : of.hinge(of.score(i, j), bar);
        if (!of.a.is_hardest)
            sum = pnb__cuda_block_sum(sum);
        if (threadIdx.x == 0)
            static_cast<float *>(of.a.sums)[i] = static_cast<float>(sum);
    }
};

/* d hinge_ij: 1 at the best product of (i, j), -1 at that of (i, i), put in once all have read it
 */
struct margin_backward {
    margin_rows of;

    /* Zeros in the place of the products of (i, j), but for the best one. */
    __device__ void put(size_t i, size_t j, size_t best, double value) const
    {
        size_t k = of.a.k, ld = of.a.n * k;
        float *p = static_cast<float *>(of.a.products);
        for (size_t u = 0; u < k; u++)
            for (size_t v = 0; v < k; v++)
                p[(i * k + u) * ld + j * k + v] = 0;
        p[best] = static_cast<float>(value);
    }

    __device__ void row(size_t i) const
    {
        size_t own = of.a.first + i, where = of.a.n;
        double bar = of.bar(i), n_over = 0;
        double d = static_cast<double>(static_cast<const float *>(of.a.d_sums)[i]);
        if (of.a.is_hardest)
            of.hardest(i, bar, &where);
        for (size_t j = threadIdx.x; j < of.a.n; j += blockDim.x) {
            if (j == own)
                continue;
            size_t best = of.best(i, j);
            double score = static_cast<double>(of.products()[best]);
            bool counts = of.a.is_hardest ? j == where : of.hinge(score, bar) != 0;
            n_over += counts ? 1 : 0;
            put(i, j, best, counts ? d : 0);
        }
        n_over = pnb__cuda_block_sum(n_over);
        if (threadIdx.x == 0)
            put(i, own, of.best(i, own), -n_over * d);
    }
};

/* ---- kernel_strip ---- */

struct kernel_rows {
    pnb__kernel_args a;

    /* f_ij by whole warps; j beyond the row gives a number to be left alone */
    __device__ double distance(size_t i, size_t j) const
    {
        const pnb__cuda_sides sides = {static_cast<const float *>(a.x),
                                       static_cast<const float *>(a.y), a.dim};
        double sum = 0, product = 0;
        if (j < a.n) {
            sum = static_cast<double>(static_cast<const float *>(a.square_x)[i]) +
                  static_cast<double>(static_cast<const float *>(a.square_y)[j]);
            product = static_cast<double>(static_cast<const float *>(a.products)[i * a.n + j]);
        }
        double d2 = sides.square(sum, product, i, j);
        return a.is_root ? sqrt(d2 + 1e-12) : d2;
    }
};

struct kernel_forward {
    kernel_rows of;

    __device__ void row(size_t i) const
    {
        double sum = 0;
        for (size_t from = 0; from < of.a.n; from += blockDim.x) {
            double f = of.distance(i, from + threadIdx.x);
            if (from + threadIdx.x < of.a.n)
                sum += exp(-of.a.gamma * f);
        }
        sum = pnb__cuda_block_sum(sum);
        if (threadIdx.x == 0)
            static_cast<float *>(of.a.sums)[i] = static_cast<float>(sum);
    }
};

/* d sums / d |x_i - y_j|^2: -gamma k dsums, of a root f over 2 f. Equal rows have no slope; 1e6
 * times a rounding would be one. */
struct kernel_backward {
    kernel_rows of;

    __device__ void row(size_t i) const
    {
        const pnb__kernel_args *a = &of.a;
        double d = -a->gamma * static_cast<double>(static_cast<const float *>(a->d_sums)[i]);
        for (size_t from = 0; from < a->n; from += blockDim.x) {
            size_t j = from + threadIdx.x;
            double f = of.distance(i, j), w = d * exp(-a->gamma * f);
            if (a->is_root)
                w = f < 1.000001e-6 ? 0 : w / (2 * f);
            if (j < a->n)
                static_cast<float *>(a->products)[i * a->n + j] = static_cast<float>(w);
        }
    }
};

} // namespace

extern "C" void pnb__cuda_pair_labels(const pnb_ctx *ctx, const pnb__label_args *a)
{
    pnb__cuda_rows(ctx, a->m, label_rows{*a});
}

extern "C" void pnb__cuda_margins(const pnb_ctx *ctx, const pnb__margin_args *a)
{
    pnb__cuda_rows(ctx, a->m, margin_forward{{*a}});
}

extern "C" void pnb__cuda_margins_bwd(const pnb_ctx *ctx, const pnb__margin_args *a)
{
    pnb__cuda_rows(ctx, a->m, margin_backward{{*a}});
}

extern "C" void pnb__cuda_kernel_strip(const pnb_ctx *ctx, const pnb__kernel_args *a)
{
    pnb__cuda_rows(ctx, a->m, kernel_forward{{*a}});
}

extern "C" void pnb__cuda_kernel_strip_bwd(const pnb_ctx *ctx, const pnb__kernel_args *a)
{
    pnb__cuda_rows(ctx, a->m, kernel_backward{{*a}});
}
