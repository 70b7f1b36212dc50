/* How well recovered distributions agree with known ones: of sets made by pnb_synth_ambiguous, say,
 * where it is known what each caption stands for.
 *
 * Families are compared by what they do to a picture: a row of any family has a mean cosine A of
 * its samples to its mean (on the sphere that of the family; with a variance v in all and a mean of
 * length m, 1/sqrt(1 + v/m^2)), and its concentration is that of the von Mises-Fisher density of
 * the same A in D dimensions. Definitions: docs/numerics.md#known-truth. */
#ifndef PENUMBRA_KNOWN_TRUTH_H
#define PENUMBRA_KNOWN_TRUTH_H

#include "penumbra/embeddings.h"
#include "penumbra/truth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Regions whose coverage is looked at: 50% and 90% of the recovered distribution. */
#define PNB_N_KNOWN_REGIONS 2

/* NaN where a number is not defined: points have no concentration, a constant one has no rank. */
typedef struct pnb_known_scores {
    size_t n;            /* rows that were compared */
    double spearman;     /* in [-1,1], of recovered and known concentration */
    double log_error;    /* root mean square of log(recovered / known); 0 is best */
    double slope;        /* of the line from log recovered to log known; 1 is best */
    double fitted_error; /* root mean square of what that line leaves: the error of a method whose
                          * scale is settled by others */
    double direction;    /* mean cosine of recovered and known means; NaN where widths differ */
    double coverage[PNB_N_KNOWN_REGIONS]; /* share of the pictures a caption fits that lie inside
                                           * its region, mean over captions; 0.5 and 0.9 are best.
                                           * NaN without pictures or where widths differ */
} pnb_known_scores;

/* Scores the rows of `recovered` by those of `known`, which have the same ids in the same order.
 *   images  with `truth` (images ask, rows of `recovered` are found): for the coverage; both or
 *           neither may be NULL
 * Errors  ARG (other rows, known points), SHAPE (truth of other rows), NUMERIC (a mean of length 0,
 *         a parameter outside its range: names the row), NOMEM */
pnb_status pnb_known_scores_compute(const pnb_embeddings *recovered, const pnb_embeddings *known,
                                    const pnb_embeddings *images, const pnb_truth *truth,
                                    pnb_known_scores *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
