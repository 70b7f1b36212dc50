/* Does a score follow what is known of the same rows? Spearman, Kendall's tau-b and AUROC with
 * intervals over clusters of rows, and several scores beside each other on the same resamples.
 *
 * What is known may be the entropy of a picture, a dose, or 1 for a row that is wrong. The scores
 * are an uncertainty and its controls: whoever claims that an uncertainty is right has to show that
 * it follows the truth better than a score that nobody would call an uncertainty. Rows that were
 * sampled together (captions of one picture) have one cluster label.
 * Definitions with their sources: docs/numerics.md#known-uncertainty. */
#ifndef PENUMBRA_RANK_AGREEMENT_H
#define PENUMBRA_RANK_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/bootstrap.h"
#include "penumbra/ctx.h"
#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The figures, with ties as statistics.h has them. */
typedef enum pnb_agreement {
    PNB_AGREEMENT_SPEARMAN, /* correlation of the average ranks, in [-1,1] */
    PNB_AGREEMENT_KENDALL,  /* tau-b: concordant less discordant pairs of rows, in [-1,1] */
    PNB_AGREEMENT_AUROC,    /* P(a row whose known value is high scores above one whose is not),
                             * ties half; 1/2 by chance */
    PNB_N_AGREEMENTS        /* how many there are */
} pnb_agreement;

/* Rows with what is known of them, and their scores, which should rise with it: of a control that
 * falls give the negative. Borrowed during the call. */
typedef struct pnb_known_rows {
    size_t n; /* at least 1; with one row nothing has a figure */
    /* [n] finite: what the scores are held against */
    const double *known;
    const double *const *score; /* [n_scores][n] finite; the first is the one that matters */
    size_t n_scores;            /* at least 1; each costs as much as the first */
    bool only_auroc; /* of known values that are 0 or 1 Spearman and tau say what AUROC says: they
                      * are left out, NaN, at a third of the cost */
} pnb_known_rows;

/* What came out for one score. low and high are NaN with 0 resamples, fewer than two clusters, or
 * where every resample has the same value: nothing is known of the spread then. A figure is NaN
 * where it is not defined, as any of constant values. */
typedef struct pnb_rank_agreement {
    pnb_interval figure[PNB_N_AGREEMENTS]; /* by pnb_agreement */
    pnb_interval lead[PNB_N_AGREEMENTS];   /* figure of the first score less that of this one, both
                                            * on the same resamples; 0 of the first itself */
    /* Spearman of the first score where this one is held fixed (partial correlation of the ranks,
     * in [-1,1]): what the first knows beside it. NaN of the first itself, with only_auroc, and
     * where this one alone says all of the first or of what is known. */
    pnb_interval held;
} pnb_rank_agreement;

/* What the known values alone decide: which rows AUROC calls high (those above the median, or,
 * where none is, those at it, so that 0 and 1 are split into the two, whichever is the more
 * common), and what their ties leave to Spearman. */
typedef struct pnb_known_split {
    double median;       /* mean of the two middle ones of an even number */
    size_t n_high;       /* rows that are high; all of them where all known values are equal */
    int includes_median; /* 1: high rows have known >= median, 0: known > median */
    /* The Spearman that a score has on average which orders unequal rows right and all others by
     * chance: below 1 where known values are equal; NaN where all are. */
    double most_spearman;
} pnb_known_split;
/* The split of n known values, as pnb_rank_agreement_compute makes it.
 * Shape   known (n)      Errors  ARG (no rows), NUMERIC (not finite: names it), NOMEM */
pnb_status pnb_known_split_of(const double *known, size_t n, pnb_known_split *out, pnb_error *err);

/* The figures of every score, and the lead of the first, all on the same resamples
 * of the clusters of `opts` (bootstrap.h; NULL: the defaults; 0 resamples: values only). The split
 * of AUROC is that of all rows. The same for any number of threads; a NULL ctx means one.
 * Shape   out (n_scores), the caller's; untouched on failure
 * Memory  O(n n_scores + threads n + resamples n_scores)
 * Errors  ARG (no rows, no scores, level), NUMERIC (a value is not finite: names it), NOMEM */
pnb_status pnb_rank_agreement_compute(const pnb_ctx *ctx, const pnb_known_rows *rows,
                                      const pnb_bootstrap_opts *opts, pnb_rank_agreement *out,
                                      pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
