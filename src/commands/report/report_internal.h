/* Sections of the report, one function each; report.c puts them in order. */
#ifndef PNB_COMMANDS_REPORT_REPORT_INTERNAL_H
#define PNB_COMMANDS_REPORT_REPORT_INTERNAL_H

#include "base/base.h"
#include "commands/report/report.h"
#include "encode/inputs/inputs.h"
#include "penumbra/search.h"
#include "program/app.h"

/* A retrieval and the first pictures of every caption. */
typedef struct pnb__found {
    const pnb__retrieval *run;
    pnb_hits hits;
} pnb__found;
/* ---- report_headline.c ---- Free the hits with pnb_hits_reset, after a failure too. */
pnb_status pnb__found_compute(pnb__app *app, const pnb__retrieval *run, pnb__found *out);
bool pnb__found_is_right(const pnb__found *found, size_t query); /* its first picture is true */

/* Loss, recall and uncertainty over the steps of a run. */
pnb_status pnb__report_training(pnb__buf *out, const char *run_dir, pnb_error *err);

/* What the uncertainty of a report's rows is, in words: "trace of the covariance", "1/kappa". */
const char *pnb__report_uncertainty(const pnb__retrieval *run);
/* Whether rows of a side have an uncertainty of their own; points have none. */
bool pnb__report_is_uncertain(const pnb_rows *rows);

/* The retrieval figures and the bins of uncertainty. */
pnb_status pnb__report_retrieval(pnb__buf *out, const pnb__retrieval *run);
/* Every figure of `eval retrieval` with its interval; nothing without resamples. */
void pnb__report_figures(pnb__buf *out, const pnb__retrieval *run);
pnb_status pnb__report_bins(pnb__buf *out, const pnb__retrieval *run,
                            const pnb__retrieval_opts *opts);

/* Histograms of uncertainty: pictures, and captions by level. `all` holds every level. */
pnb_status pnb__report_histograms(pnb__buf *out, const pnb__retrieval *all, pnb_error *err);
pnb_status pnb__report_pca(pnb__buf *out, const pnb__retrieval *all, pnb_error *err);

/* Most and least certain pictures and captions; retrieval shown. Pictures that cannot be found
 * again are shown by name and counted in *n_missing. */
pnb_status pnb__report_certainty(pnb__buf *out, const pnb__retrieval *all, size_t n,
                                 size_t *n_missing, pnb_error *err);
pnb_status pnb__report_examples(pnb__buf *out, const pnb__found *found, size_t n, size_t *n_missing,
                                pnb_error *err);

/* What people would call a picture: a true caption of it, else its file or id. */
const char *pnb__report_picture_name(const pnb__retrieval *run, size_t row);
/* That picture, small, with a note. */
pnb_status pnb__report_shot(pnb__buf *out, pnb__row_source *source, const pnb__retrieval *run,
                            size_t row, const char *css, const char *note, size_t *n_missing,
                            pnb_error *err);
/* A caption with the pictures found for it; true ones are framed. */
typedef struct pnb__shown_query {
    size_t query;
    const int64_t *item; /* [n], ends early at -1 */
    const double *score;
    size_t n;
} pnb__shown_query;
pnb_status pnb__report_query(pnb__buf *out, pnb__row_source *source, const pnb__retrieval *run,
                             const pnb__shown_query *shown, size_t *n_missing, pnb_error *err);
bool pnb__report_is_true(const pnb_truth *truth, size_t query, size_t item);

/* ---- report_headline.c ---- What the report answers, with the best and the worst caption. */
void pnb__report_headline(pnb__buf *out, const pnb__found *found);
pnb_status pnb__report_best_and_worst(pnb__buf *out, const pnb__found *found, size_t *n_missing,
                                      pnb_error *err);
/* Headline where there are no pictures: the order of levels, or what a training reached. */
void pnb__report_claims_headline(pnb__buf *out, const pnb__uncertainty_report *claims);
pnb_status pnb__report_training_headline(pnb__buf *out, const char *run_dir, pnb_error *err);

/* Risk and coverage of both directions; reliability of the match probability, fitted on one part of
 * the captions and drawn on the rest; uncertainty by the number of words. */
pnb_status pnb__report_selective(pnb__buf *out, const pnb__retrieval *run, pnb_error *err);
pnb_status pnb__report_reliability(pnb__app *app, pnb__buf *out, const pnb__retrieval *run);
pnb_status pnb__report_lengths(pnb__buf *out, const pnb__retrieval *all, pnb_error *err);

/* Caption levels that divide the pictures into classes, and pictures of none; `dummies` are texts
 * that name nothing, or NULL. Nothing is written where no level does. */
pnb_status pnb__report_classes(pnb__app *app, pnb__buf *out, const pnb__retrieval *all,
                               const pnb_rows *dummies);
/* Captions on the way from n pictures to the root; `null_text` is the empty text's row, or NULL:
 * nothing is written. */
pnb_status pnb__report_paths(pnb__app *app, pnb__buf *out, const pnb__retrieval *all,
                             const pnb_gaussians *null_text, size_t n, size_t *n_missing);

/* The claims table, each figure with its control and meaning. */
void pnb__report_claims(pnb__buf *out, const pnb__uncertainty_report *claims,
                        const pnb__uncertainty_report *control);

#endif
