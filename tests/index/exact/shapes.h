/* Rows that are hard for bounds of scores, and contexts that compute as some machine does. */
#ifndef TESTS_INDEX_EXACT_SHAPES_H
#define TESTS_INDEX_EXACT_SHAPES_H

#include "tests/prob/support.h"

/* NULL: this machine has not that set of instructions. */
static inline pnb_ctx *context(pnb_isa isa)
{
    pnb_ctx_opts opts = pnb_ctx_opts_default();
    pnb_ctx *ctx = NULL;
    opts.n_threads = 2;
    opts.isa = isa;
    return pnb_ctx_create(&ctx, &opts, NULL) == PNB_OK ? ctx : NULL;
}

/* Spread out; close together (every pair is within the bounds); one row again and again; of very
 * different lengths, with rows of zeros and of what a unit takes as zeros; with one number that is
 * all a byte can tell from 0. */
enum { WIDE, CLOSE, SAME, LENGTHS, SPIKES, N_KINDS };

static inline void shape_rows(gaussians *g, size_t n, size_t dim, int kind, bool is_query)
{
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < dim; d++) {
            float *x = &g->mean[i * dim + d];
            if (kind == CLOSE)
                *x = 1.0f + 1e-4f * *x;
            else if (kind == SAME && !is_query)
                *x = g->mean[d];
            else if (kind == LENGTHS)
                *x *= i % 7 == 0 ? 0.0f : i % 7 == 1 ? 1e-39f : powf(10.0f, (float)(i % 11) - 5.0f);
            else if (kind == SPIKES && d == i % 3)
                *x *= 300.0f;
        }
}

#endif
