/* What the files on prompts and classes share. */
#ifndef PNB_EVAL_ZEROSHOT_PROMPTS_H
#define PNB_EVAL_ZEROSHOT_PROMPTS_H

#include "base/base.h"
#include "penumbra/classify.h"

/* SHAPE for a view without classes or width, or with a class that has no prompt. */
pnb_status pnb__prompts_check(const pnb_prompts *prompts, pnb_error *err);

/* Row of a prompt in f64; `var` gets zeros for points. */
void pnb__prompts_row(const pnb_prompts *prompts, size_t row, double *mean, double *var);

/* Rows of the pictures whose means are nearest to each class's ensemble, best first.
 * Shape  row (K, k), -1 where there are fewer pictures */
pnb_status pnb__bprw_nearest(const pnb_ctx *ctx, const pnb_prompts *prompts,
                             const pnb_gaussians *images, size_t k, int64_t *row, pnb_error *err);

/* Weights of the prompts of class c from points (n_points, dim). */
pnb_status pnb__bprw_class(const pnb_prompts *prompts, size_t c, const double *points,
                           size_t n_points, const pnb_em_opts *opts, double *weight,
                           size_t *n_steps, pnb_error *err);

#endif
