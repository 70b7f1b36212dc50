/* The inclusion measure of Gaussian rows, element by element, as ref/inclusion.inc has it. In
 * double with its exponentials: 1/S12 - 1/S21 is a difference that weights as large as exp(30)
 * multiply. */
#include "kernels/cuda/cuda.h"

namespace
{

struct sides {
    double slope, factor; /* factor: exp(eps) as published, else 1 */
    const float *m1, *lv1, *m2, *lv2;
};

struct terms {
    double u1, u2, s12, s21, difference, weight; /* weight = factor d exp(-max) */
};

__device__ terms terms_at(const sides &s, size_t i)
{
    double lv1 = static_cast<double>(s.lv1[i]), lv2 = static_cast<double>(s.lv2[i]);
    double max = PNB_MAX(lv1, lv2), small = exp(PNB_MIN(lv1, lv2) - max);
    terms t;
    t.u1 = lv1 < lv2 ? small : 1;
    t.u2 = lv1 < lv2 ? 1 : small;
    t.s12 = t.u1 + 2 * t.u2;
    t.s21 = t.u2 + 2 * t.u1;
    t.difference = static_cast<double>(s.m1[i]) - static_cast<double>(s.m2[i]);
    t.weight = t.difference * s.factor * exp(-max);
    return t;
}

struct inclusion_at {
    sides s;
    float *h;
    __device__ void operator()(size_t i) const
    {
        terms t = terms_at(s, i);
        double lv1 = static_cast<double>(s.lv1[i]), lv2 = static_cast<double>(s.lv2[i]);
        h[i] = static_cast<float>(s.slope * (lv2 - lv1) - 0.5 * log(t.s12 / t.s21) -
                                  t.weight * t.difference * (t.u1 - t.u2) / (t.s12 * t.s21));
    }
};

struct inclusion_bwd_at {
    sides s;
    const float *dh;
    float *to[4];
    bool accumulate[4];
    __device__ void operator()(size_t i) const
    {
        terms t = terms_at(s, i);
        double d = static_cast<double>(dh[i]), wd = t.weight * t.difference;
        double r12 = 1 / t.s12, r21 = 1 / t.s21;
        double dm = -2 * t.weight * (t.u1 - t.u2) * (r12 * r21);
        double d1 =
            -s.slope - 0.5 * t.u1 * (r12 - 2 * r21) + wd * t.u1 * (r12 * r12 - 2 * (r21 * r21));
        double d2 =
            s.slope - 0.5 * t.u2 * (2 * r12 - r21) + wd * t.u2 * (2 * (r12 * r12) - r21 * r21);
        const double of[4] = {d * dm, d * d1, -d * dm, d * d2};
        for (int k = 0; k < 4; k++)
            if (to[k] != nullptr)
                pnb__cuda_put(to[k] + i, of[k], accumulate[k]);
    }
};

sides sides_of(const pnb__inclusion_args *a)
{
    return sides{a->published ? 1 : 0.5,
                 a->published ? exp(a->eps) : 1,
                 static_cast<const float *>(a->m1),
                 static_cast<const float *>(a->lv1),
                 static_cast<const float *>(a->m2),
                 static_cast<const float *>(a->lv2)};
}

} // namespace

extern "C" void pnb__cuda_inclusion(const pnb_ctx *ctx, const pnb__inclusion_args *a)
{
    pnb__cuda_each(ctx, a->n, inclusion_at{sides_of(a), static_cast<float *>(a->h)});
}

extern "C" void pnb__cuda_inclusion_bwd(const pnb_ctx *ctx, const pnb__inclusion_args *a)
{
    inclusion_bwd_at f = {sides_of(a), static_cast<const float *>(a->dh), {}, {}};
    void *const to[4] = {a->dm1, a->dlv1, a->dm2, a->dlv2};
    for (int k = 0; k < 4; k++) {
        f.to[k] = static_cast<float *>(to[k]);
        f.accumulate[k] = a->accumulate[k];
    }
    pnb__cuda_each(ctx, a->n, f);
}
