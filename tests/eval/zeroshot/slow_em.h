/* An independent EM: everything by long double logarithms, every step from scratch. */
#ifndef PNB_TESTS_EVAL_ZEROSHOT_SLOW_EM_H
#define PNB_TESTS_EVAL_ZEROSHOT_SLOW_EM_H

#include "penumbra/classify.h"
#include "tests/prob/support.h"

static inline void slow_em(const pnb_em_data *x, const pnb_em_opts *o, size_t n_steps, double *pi)
{
    size_t n = x->n_components;
    for (size_t s = 0; s < n_steps; s++) {
        long double count[16] = {0}, total = 0;
        for (size_t p = 0; p < x->n_points; p++) {
            long double l[16], sum = 0, largest = -INFINITY;
            for (size_t i = 0; i < n; i++) {
                l[i] = logl(pi[i]);
                for (size_t d = 0; d < x->dim; d++) {
                    long double v = (long double)x->var[i * x->dim + d] + o->eps;
                    long double e =
                        x->points[p * x->dim + d] - (long double)x->mean[i * x->dim + d];
                    l[i] -= (e * e / v + logl(v)) / 2;
                }
                largest = fmaxl(largest, l[i]);
            }
            for (size_t i = 0; i < n; i++)
                sum += expl(l[i] - largest);
            for (size_t i = 0; i < n; i++)
                count[i] += expl(l[i] - largest) / sum;
        }
        for (size_t i = 0; i < n; i++)
            total += count[i] = fmaxl(0, count[i] + o->alpha - 1);
        for (size_t i = 0; i < n; i++)
            pi[i] = (double)(count[i] / total);
    }
}

#endif
