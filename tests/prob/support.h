/* Helpers of the tests of prob, index and eval: random Gaussians, golden cases, tolerances. */
#ifndef PNB_TESTS_PROB_SUPPORT_H
#define PNB_TESTS_PROB_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "penumbra/prob.h"
#include "penumbra/safetensors.h"

/* Fails unless |got - want| <= atol + rtol |want|; NaN never passes. */
#define assert_near(got, want, atol, rtol)                                                         \
    do {                                                                                           \
        double got_ = (got), want_ = (want);                                                       \
        if (!isfinite(got_) || !(fabs(got_ - want_) <= (atol) + (rtol)*fabs(want_)))               \
            fail_msg("%s is %.17g, want %.17g", #got, got_, want_);                                \
    } while (0)

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        pnb_error err_ = PNB_ERROR_INIT, *err = &err_;                                             \
        if ((call) != PNB_OK)                                                                      \
            fail_msg("%s: %s", #call, err_.text);                                                  \
    } while (0)

/* The call fails with this status and a text that holds `part`. */
#define assert_fails(call, want, part)                                                             \
    do {                                                                                           \
        pnb_error err_ = PNB_ERROR_INIT, *err = &err_;                                             \
        pnb_status status_ = (call);                                                               \
        if (status_ != (want) || err_.status != (want))                                            \
            fail_msg("%s: status %s, want %s", #call, pnb_status_name(status_),                    \
                     pnb_status_name(want));                                                       \
        if (strstr(err_.text, (part)) == NULL)                                                     \
            fail_msg("%s: '%s' does not say '%s'", #call, err_.text, (part));                      \
    } while (0)

typedef struct gaussians {
    pnb_gaussians view;
    float *mean, *log_var;
} gaussians;

/* n rows with unit means and log-variances uniform in [low, high]. */
static inline gaussians random_gaussians(size_t n, size_t dim, double low, double high,
                                         uint64_t seed)
{
    gaussians g = {0};
    pnb__rng rng;
    pnb__rng_init(&rng, seed, 77);
    g.mean = malloc(n * dim * sizeof(float));
    g.log_var = malloc(n * dim * sizeof(float));
    assert_true(g.mean != NULL && g.log_var != NULL);
    for (size_t i = 0; i < n; i++) {
        double square = 0.0;
        for (size_t d = 0; d < dim; d++) {
            g.mean[i * dim + d] = (float)pnb__rng_normal(&rng);
            g.log_var[i * dim + d] = (float)(low + (high - low) * pnb__rng_uniform(&rng));
            square += (double)g.mean[i * dim + d] * g.mean[i * dim + d];
        }
        for (size_t d = 0; d < dim; d++)
            g.mean[i * dim + d] = (float)(g.mean[i * dim + d] / sqrt(square));
    }
    g.view = (pnb_gaussians){.n = n, .dim = dim, .mean = g.mean, .log_var = g.log_var};
    return g;
}

static inline void free_gaussians(gaussians *g)
{
    free(g->mean);
    free(g->log_var);
}

/* ---- golden cases ---- */

static inline pnb_safetensors *open_case(const char *name)
{
    char path[512];
    pnb_safetensors *file = NULL;
    snprintf(path, sizeof path, "%s/tests/golden/%s/tensors.safetensors", PNB_SOURCE_DIR, name);
    assert_ok(pnb_safetensors_open(&file, path, err));
    return file;
}

/* Values of a tensor as f64; n receives their number. Free with free. */
static inline double *case_values(const pnb_safetensors *file, const char *name, size_t *n)
{
    const pnb_array_view *view = pnb_safetensors_find(file, name);
    size_t count = 1;
    if (view == NULL)
        fail_msg("case has no tensor %s", name);
    for (int i = 0; i < view->n_dims; i++)
        count *= (size_t)view->shape[i];
    double *values = malloc((count > 0 ? count : 1) * sizeof *values);
    assert_non_null(values);
    assert_ok(pnb_array_to_f64(view, values, err));
    if (n != NULL)
        *n = count;
    return values;
}

static inline float *to_floats(const double *values, size_t n)
{
    float *out = malloc(n * sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)values[i];
    return out;
}

#endif
