/* Does accuracy fall as uncertainty rises? S, R^2 and -S R^2 over bins of uncertainty.
 *
 * Queries are sorted by uncertainty (ties: the lower index first) and cut into bins b; each bin has
 * an accuracy A_b, usually R@1 of its queries. Over the bins that hold items
 *   S = Spearman(b, A_b)   R^2 of the least-squares line b -> A_b = Pearson(b, A_b)^2   -S R^2
 * so that -1, 1 and 1 are best: accuracy falls with every bin, in a line. Neither is comparable
 * between numbers of bins. Definitions: docs/numerics.md#calibration.
 *
 * Source  Upadhyay et al. 2023 (ProbVLM), GroVE section 4.1, AsymVLM section 5 */
#ifndef PENUMBRA_UNCERTAINTY_CALIBRATION_H
#define PENUMBRA_UNCERTAINTY_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text, sentence): how items become bins.
 *
 * - EQUAL_COUNT: AsymVLM's, the default of the program.
 * - EQUAL_COUNT_ALL: bin b holds items floor(b n/bins) .. floor((b+1) n/bins) of the sorted ones.
 * - EQUAL_WIDTH: bin b is (edge b, edge b+1], the smallest value in the first; bins may be empty.
 * - GROVE_SAMPLES, GROVE_SPACING: to reproduce that code's published figures, for nothing else. */
#define PNB_BINNING_LIST(X)                                                                        \
    X(EQUAL_COUNT, "equal_count", "floor(n/bins) a bin, the n mod bins most uncertain left out")   \
    X(EQUAL_COUNT_ALL, "equal_count_all", "all items, bin sizes differ by at most one")            \
    X(EQUAL_WIDTH, "equal_width", "equal intervals between the smallest and largest value")        \
    X(GROVE_SAMPLES, "grove_samples", "GroVE's released equal-sample bins, one lost a boundary")   \
    X(GROVE_SPACING, "grove_spacing", "GroVE's released equal-spacing bins, cumulative")

typedef enum pnb_binning {
#define PNB_BINNING_ENUM(name, text, sentence) PNB_BINS_##name,
    PNB_BINNING_LIST(PNB_BINNING_ENUM)
#undef PNB_BINNING_ENUM
        PNB_N_BINNINGS /* how many there are */
} pnb_binning;

const char *pnb_binning_name(pnb_binning binning); /* "equal_count"; "unknown" outside the list */

/* Of every figure that is taken over bins. */
#define PNB_MAX_BINS 256

/* Items by bin: bin i holds item[offset[i]] .. item[offset[i+1]-1], each in order of uncertainty
 * (ties: lower index first). GROVE_SAMPLES has the higher index of a tie first, GROVE_SPACING the
 * most uncertain item, as the released code works. Items left out stand in no bin, and item[] is
 * written up to offset[n_bins] only. Both arrays are the caller's.
 * Shape   uncertainty (n) -> offset (n_bins + 1), item (n; n_bins * n for GROVE_SPACING, whose bins
 *         overlap)
 * Errors  ARG (n_bins outside 1..PNB_MAX_BINS, fewer items than bins), NUMERIC (a value is not
 *         finite: names it), NOMEM */
pnb_status pnb_bins_assign(pnb_binning binning, const double *uncertainty, size_t n, size_t n_bins,
                           size_t *item, size_t *offset, pnb_error *err);

/* One bin that holds items. */
typedef struct pnb_bin {
    size_t index;                /* of the bin among n_bins asked for, 0 = most certain */
    size_t n;                    /* items in it, at least 1 */
    double u_min, u_max, u_mean; /* of their uncertainties */
    double accuracy;             /* mean of `correct` over its items */
} pnb_bin;

/* About 12 KB: its bins are in it. */
typedef struct pnb_uncertainty_calibration {
    size_t n_bins;             /* bins with items; empty ones are left out */
    pnb_bin bin[PNB_MAX_BINS]; /* from the most certain on */
    double s;                  /* in [-1,1]; -1: accuracy falls with every bin */
    double r2;                 /* in [0,1] */
    double minus_s_r2;         /* in [-1,1], the figure the papers rank by */
    bool is_degenerate; /* fewer than 2 bins, or accuracy or uncertainty constant: s and r2 are 0
                           by convention, for a model that is always right has not failed */
    size_t n_left_out;  /* items in no bin */
} pnb_uncertainty_calibration;

/* Bins, S and R^2 of one ranking. The uncertainty of what was found does in place of the query's
 * own: AsymVLM sorts pictures by the text they retrieve. A constant uncertainty is degenerate, not
 * an error: bins would be cut by the order of the rows.
 *   correct  1 where the query's first hit is right (best_rank == 1); any value in [0,1] does
 * Shape   uncertainty, correct (n)
 * Errors  as pnb_bins_assign; NUMERIC (`correct` outside [0,1]) */
pnb_status pnb_uncertainty_calibration_compute(const double *uncertainty, const double *correct,
                                               size_t n, pnb_binning binning, size_t n_bins,
                                               pnb_uncertainty_calibration *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
