/* What the matches of a row leave open, as the score of its side. */
#ifndef PNB_COMMANDS_EVAL_UNCERTAINTY_KNOWN_MATCHES_H
#define PNB_COMMANDS_EVAL_UNCERTAINTY_KNOWN_MATCHES_H

#include "commands/eval/uncertainty/known_entropy.h"

/* Names and fills the first score of the side: the doubt about matches where o->calibration was
 * fitted on rows like these that searched rows like `other`, else the entropy of a softmax over
 * `other` (NULL: there is none, and the call fails), of captions those of o->match_level alone.
 * Errors  ARG (no other set, no scale, a calibration of something else or of first hits),
 *         NOT_FOUND (no caption of that level), and those of loading and scoring */
pnb_status pnb__known_matches(pnb__app *app, const pnb__known_opts *o, pnb__known_side *side,
                              const pnb_embeddings *other);

#endif
