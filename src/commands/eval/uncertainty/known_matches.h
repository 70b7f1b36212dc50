/* What the matches of a row leave open, as the score of its side. */
#ifndef PNB_COMMANDS_EVAL_UNCERTAINTY_KNOWN_MATCHES_H
#define PNB_COMMANDS_EVAL_UNCERTAINTY_KNOWN_MATCHES_H

#include "commands/eval/uncertainty/known_rows.h"

enum { PNB__MAX_MATCH_LEVELS = 8 };

typedef struct pnb__known_matching {
    bool is_asked;                    /* false: the variance of the row itself is looked at */
    double scale;                     /* of the softmax; 0 or NaN: the model's own */
    const char *const *calibration;   /* [n_calibrations] of one side; of several each tells the
                                       * level of its captions, whose doubts add up: general ones
                                       * match often, specific ones hardly ever */
    size_t n_calibrations;            /* 0: a softmax's entropy in place of their doubt */
    bool trust;                       /* a calibration, or a set, of unknown origin is taken */
    int level[PNB__MAX_MATCH_LEVELS]; /* a picture's softmax is over captions of these alone */
    size_t n_levels;                  /* 0: of all */
} pnb__known_matching;

/* Names and fills the first score of the side: the doubt about matches, summed over the
 * calibrations, where they were fitted on rows like these that searched rows like `other`, else the
 * entropy of a softmax over `other` (NULL: there is none, and the call fails).
 * Errors  ARG (no other set, no scale, a calibration of something else, of first hits, of captions
 *         of another level or of one that came before), NOT_FOUND (no caption of a level), and
 *         those of loading and scoring */
pnb_status pnb__known_matches(pnb__app *app, const pnb__known_matching *m, pnb__known_side *side,
                              const pnb_embeddings *other);

#endif
