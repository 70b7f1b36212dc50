/* Scoring candidate answers to visual questions: choice, soft vote, confidence and calibration.
 *
 * A question is scored by itself; what questions of one picture have in common is for the caller's
 * intervals (pnb_bootstrap_opts.cluster). Nothing here keeps state: any thread may call anything.
 * Definitions: docs/numerics.md#vqa; questions as a file: docs/formats.md#questions. */
#ifndef PENUMBRA_VQA_H
#define PENUMBRA_VQA_H

#include <stdbool.h>
#include <stddef.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one question ---- */

/* One question with its candidate answers and what people answered; borrowed during the call. */
typedef struct pnb_vqa_question {
    size_t n_candidates;           /* 1 or more */
    const char *const *candidates; /* [n_candidates] UTF-8 */
    const double *scores;       /* [n_candidates], larger is better; NULL: the lowest u is chosen */
    const double *uncertainty;  /* [n_candidates] u(a); NULL: -scores */
    size_t n_answers;           /* 1 or more */
    const char *const *answers; /* of people, usually ten */
} pnb_vqa_question;

/* All false is what the field reports: normalised texts, the leave-one-out vote. */
typedef struct pnb_vqa_opts {
    bool exact;  /* compare texts as they are; false: after pnb_vqa_normalise */
    bool simple; /* min(m/3, 1) of all answers; false: averaged over leaving each one out */
} pnb_vqa_opts;

/* conf of C equally uncertain candidates is 1 - 1/C: compare only questions with as many. */
typedef struct pnb_vqa_answer {
    size_t choice;     /* index of the candidate */
    double confidence; /* 1 - softmax(u) of the choice, over the question's candidates */
    double accuracy;   /* soft vote in [0,1] */
} pnb_vqa_answer;

/* Share of right answers of one question: m of n people gave the candidate, m <= n.
 *   simple  min(m/3, 1)      else  (m/n) min((m-1)/3, 1) + ((n-m)/n) min(m/3, 1)
 * the second being the average over the n subsets of n - 1 people. One person alone counts fully.
 * Source  VQA's evaluation (Antol et al. 2015; Goyal et al. 2017) */
double pnb_vqa_vote(size_t m, size_t n, bool simple);

/* Answers in one form: lower case, no articles, number words up to ten as digits, full stops only
 * in numbers, no commas (10,000 is 10000), other punctuation but apostrophes and colons as space,
 * contractions without apostrophe where that is no other word. Free with pnb_vqa_text_free.
 * Errors  NOMEM
 * Source  visualqa.org/evaluation; docs/numerics.md#vqa says where its program differs */
pnb_status pnb_vqa_normalise(char **out, const char *answer, pnb_error *err);
void pnb_vqa_text_free(char *text); /* NULL is fine */

/* Chooses the candidate with the highest score, ties to the first, and says how sure that is.
 * Shape   softmax over the n_candidates of this question; accuracy by pnb_vqa_vote among n_answers
 * Errors  ARG (no candidate, no answer, neither scores nor uncertainty), NUMERIC (a score or an
 *         uncertainty is not finite: names the candidate), NOMEM
 * Source  GroVE section 4.1: conf(a) = 1 - softmax(u(a)) */
pnb_status pnb_vqa_score(const pnb_vqa_question *question, const pnb_vqa_opts *opts,
                         pnb_vqa_answer *out, pnb_error *err);

/* ---- many questions ---- */

/* Confidence against soft accuracy: sum over bins of (n_bin/n) |mean accuracy - mean confidence|.
 * Bins k of n_bins are (k/n, (k+1)/n], 0 joins the first; `equal_count` cuts the sorted values
 * into bins of equal size instead. The arrays [n_bins] may be NULL; empty bins are NaN. */
typedef struct pnb_answer_calibration {
    double ece, mce;               /* in [0,1]: the sum above, and its largest |difference| */
    size_t *n_in_bin;              /* items of each bin */
    double *confidence, *accuracy; /* means of each bin */
} pnb_answer_calibration;
/* Shape   confidence, accuracy (n), both in [0,1]
 * Errors  ARG (n = 0, n_bins 0 or above PNB_MAX_BINS), NUMERIC (outside [0,1]), NOMEM */
pnb_status pnb_answer_calibration_compute(const double *confidence, const double *accuracy,
                                          size_t n, size_t n_bins, bool equal_count,
                                          pnb_answer_calibration *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
