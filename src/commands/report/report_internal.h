/* Sections of the report, one function each; report.c puts them in order. */
#ifndef PNB_COMMANDS_REPORT_REPORT_INTERNAL_H
#define PNB_COMMANDS_REPORT_REPORT_INTERNAL_H

#include "base/base.h"
#include "commands/report/report.h"
#include "encode/inputs/inputs.h"
#include "penumbra/search.h"
#include "program/app.h"
#include "report/page.h"

/* A retrieval and the first pictures of every caption. */
typedef struct pnb__found {
    const pnb__retrieval *run;
    pnb_hits hits;
} pnb__found;

/* A report at work: everything is measured before the first word is written. */
typedef struct pnb__report {
    pnb__app *app;
    const pnb__report_opts *opts;
    pnb__uncertainty_report claims; /* of opts->sets where they have texts */
    bool has_sets;                  /* of what follows */
    pnb__retrieval all, level;      /* all caption levels, and the one that was asked for */
    pnb__found found;               /* of the level, or of all */
    pnb__result *figures;           /* of found.run, as `eval retrieval` prints them */
    pnb__result *every;             /* of all levels; may be the same */
    pnb__result *more;              /* what nothing else prints: claims, classes, a run */
    pnb__page page;
    size_t n_missing; /* pictures that could not be found again and are shown by name */
} pnb__report;

/* ---- report_headline.c ---- Free the hits with pnb_hits_reset, after a failure too. */
pnb_status pnb__found_compute(pnb__app *app, const pnb__retrieval *run, pnb__found *out);
bool pnb__found_is_right(const pnb__found *found, size_t query); /* its first picture is true */
/* What the report answers, with the best and the worst caption; where there are no pictures the
 * order of levels, or what a training reached. */
void pnb__report_headline(pnb__report *r);
pnb_status pnb__report_best_and_worst(pnb__report *r);
void pnb__report_claims_headline(pnb__report *r);
void pnb__report_training_headline(pnb__report *r);

/* What the uncertainty of a report's rows is, in words: "trace of the covariance", "1/kappa". */
const char *pnb__report_uncertainty(const pnb__retrieval *run);
/* Whether rows of a side have an uncertainty of their own; points have none. */
bool pnb__report_is_uncertain(const pnb_rows *rows);

/* ---- report_opening.c ---- One question with the answer it found, how sure it was and how often
 * such answers are right; then one that it rightly does not answer. False where the sets do not
 * say enough for that, and nothing is written. Values go into `result` as "opening". */
pnb_status pnb__report_opening(pnb__report *r, pnb__result *result, bool *is_written);
/* All answers by thirds, behind the opening. */
void pnb__report_answers_table(pnb__report *r);

/* ---- report_methods.c ---- The methods of folders of `adapt compare` against how many pictures a
 * caption fits; nothing where no folder was given. */
pnb_status pnb__report_methods(pnb__report *r);
/* Whether those folders can be read, asked before anything long is computed.
 * Errors: PNB_IO, PNB_FORMAT. */
pnb_status pnb__report_check_methods(pnb__app *app, const pnb__report_opts *o);

/* ---- report_sets.c ---- Recalls; every figure of `eval retrieval` with its interval; bins of
 * uncertainty; risk and coverage of both directions. */
void pnb__report_retrieval(pnb__report *r);
void pnb__report_figures(pnb__report *r);
void pnb__report_bins(pnb__report *r);
void pnb__report_selective(pnb__report *r);
/* Histograms of uncertainty: pictures, and captions by level. A 2-D view of all embeddings. */
void pnb__report_histograms(pnb__report *r);
pnb_status pnb__report_pca(pnb__report *r);

/* ---- report_gallery.c ---- Most and least certain pictures and captions; retrieval shown. */
pnb_status pnb__report_certainty(pnb__report *r);
pnb_status pnb__report_examples(pnb__report *r);
/* What people would call a picture: a true caption of it, else its file or id. */
const char *pnb__report_image_name(const pnb__retrieval *run, size_t row);
/* A caption with the pictures found for it; true ones are framed. */
typedef struct pnb__shown_query {
    size_t query;
    const int64_t *item; /* [n], ends early at -1 */
    const double *score;
    size_t n;
} pnb__shown_query;
/* A picture of the sets with its name and a note; one that has gone is counted and shown by name.
 */
pnb_status pnb__report_shot(pnb__report *r, pnb__row_source *source, size_t row, const char *css,
                            const char *note);
pnb_status pnb__report_query(pnb__report *r, pnb__row_source *source,
                             const pnb__shown_query *shown);
bool pnb__report_is_true(const pnb_truth *truth, size_t query, size_t item);

/* ---- report_trust.c ---- Reliability of the match probability, fitted on one part of the captions
 * and drawn on the rest; uncertainty by the number of words. */
pnb_status pnb__report_reliability(pnb__report *r);
pnb_status pnb__report_lengths(pnb__report *r);

/* Caption levels that divide the pictures into classes, and pictures of none; `dummies` are texts
 * that name nothing, or NULL. Nothing is written where no level does. */
pnb_status pnb__report_classes(pnb__report *r, const pnb_rows *dummies);
/* Pictures and the captions of the first level that divides them; n 0 where none does. Free with
 * pnb__kinds_reset. */
typedef struct pnb__kinds {
    size_t n, n_kinds; /* pictures, captions */
    int32_t *label;    /* [n] */
    size_t *text;      /* [n_kinds] row of the caption */
    double *logits;    /* [n][n_kinds] */
} pnb__kinds;
pnb_status pnb__report_kinds(pnb__report *r, pnb__kinds *out);
void pnb__kinds_reset(pnb__kinds *kinds);
/* Captions on the way from some pictures to the root; `null_text` is the empty text's row, or NULL:
 * nothing is written. */
pnb_status pnb__report_paths(pnb__report *r, const pnb_gaussians *null_text);

/* ---- report_training.c ---- The records of opts->run into r->more, and their curves: loss, recall
 * and uncertainty over the steps. */
pnb_status pnb__report_read_training(pnb__report *r);
void pnb__report_training(pnb__report *r);

#endif
