/* Entropy of what a row may match: the uncertainty that retrieval itself has, of any model, also of
 * one without variances.
 *   p(j|i) = softmax_j(scale score(i,j)),   H(i) = -sum_j p(j|i) log2 p(j|i)
 * It speaks of a gallery: a row that fits many of its items is uncertain, and so is one that the
 * model cannot tell from others. Under InfoNCE p is what the loss makes a probability.
 * Definitions with their sources: docs/numerics.md#match-entropy. */
#ifndef PENUMBRA_MATCH_ENTROPY_H
#define PENUMBRA_MATCH_ENTROPY_H

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* H of every query over the rows of `gallery`; scores are the cosines of means.
 *   scale  above 0: a model's own is logit_scale of its sets (pnb_embeddings_info)
 *          that was learned with pairs alone is not one of a softmax, and orders rows all the same
 * Shape   queries (Q,D), gallery (N,D) -> out (Q); untouched on failure
 * Range   0 (one item has all of it) .. log2 N (all items alike)      Units  bits
 * Memory  a row of N scores a thread
 * The same for any number of threads; a NULL ctx means one.
 * Errors  ARG (scale), SHAPE (widths differ, no rows), NUMERIC (a score is not finite: names query
 *         and item), NOMEM */
pnb_status pnb_match_entropy_compute(const pnb_ctx *ctx, const pnb_rows *queries,
                                     const pnb_rows *gallery, double scale, double *out,
                                     pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
