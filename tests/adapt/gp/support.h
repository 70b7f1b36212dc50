/* Random numbers, comparison and central differences for the tests of this folder. */
#ifndef PNB_TESTS_ADAPT_GP_SUPPORT_H
#define PNB_TESTS_ADAPT_GP_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static inline void fill_normal(double *x, size_t n, uint64_t stream)
{
    pnb__rng rng;
    pnb__rng_init(&rng, 20251122, stream);
    for (size_t i = 0; i < n; i++)
        x[i] = pnb__rng_normal(&rng);
}

static inline void near(const char *what, size_t at, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        fail_msg("%s[%zu]: %.15g, wanted %.15g", what, at, got, want);
}

/* d f / d x[i] by central differences against slope[i], all n of them. */
static inline void check_slopes(const char *what, double (*f)(void *), void *user, double *x,
                                size_t n, const double *slope, double tolerance)
{
    const double h = 1e-5;
    for (size_t i = 0; i < n; i++) {
        double kept = x[i];
        x[i] = kept + h;
        double above = f(user);
        x[i] = kept - h;
        double below = f(user);
        x[i] = kept;
        near(what, i, slope[i], (above - below) / (2 * h), tolerance);
    }
}

#endif
