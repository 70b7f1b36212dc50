/* What the matches of a row leave open: the uncertainty that retrieval itself has, of any model,
 * also of one without variances.
 *
 * Its entropy is that of a softmax over a gallery,
 *   p(j|i) = softmax_j(scale score(i,j)),   H(i) = -sum_j p(j|i) log2 p(j|i)
 * It speaks of a gallery: a row that fits many of its items is uncertain, and so is one that the
 * model cannot tell from others. Under InfoNCE p is what the loss makes a probability.
 *
 * Doubt is of each pair whether it matches, by a calibration's probability,
 *   D(i) = sum_j h(p(match|i,j)),   h(p) = -p log2 p - (1-p) log2 (1-p)
 * A picture that says clearly of every caption whether it is true has none, however many are: where
 * pictures show one thing or several, the entropy counts them and the doubt does not.
 * Definitions with their sources: docs/numerics.md#match-entropy. */
#ifndef PENUMBRA_MATCH_ENTROPY_H
#define PENUMBRA_MATCH_ENTROPY_H

#include "penumbra/calibrate.h"
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

/* D of every query over the rows of `gallery`, by the measure of the fit and its constants.
 *   fit    of queries like these that searched a gallery like this one, on other data; of all
 * pairs. In a gallery of another size the odds are scaled as pnb_match_probability_fit_apply does
 * Shape   queries (Q,D), gallery (N,D) -> out (Q); untouched on failure
 * Range   0 (all is clear) .. N (every pair is open)      Units  bits
 * Memory  a row of N scores a thread
 * The same for any number of threads; a NULL ctx means one.
 * Errors  ARG (a fit of first hits, or of an unknown measure), SHAPE (widths differ, no rows),
 *         NUMERIC (a score is not finite: names query and item), NOMEM, and what the measure needs
 *         of the rows */
pnb_status pnb_match_doubt_compute(const pnb_ctx *ctx, const pnb_rows *queries,
                                   const pnb_rows *gallery, const pnb_match_probability_fit *fit,
                                   double *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
