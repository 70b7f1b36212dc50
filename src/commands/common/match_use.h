/* The constants of avg_l2 and match_prob as commands take them: options, what sets carry, defaults.
 */
#ifndef PNB_COMMANDS_COMMON_MATCH_USE_H
#define PNB_COMMANDS_COMMON_MATCH_USE_H

#include "penumbra/embeddings.h"
#include "penumbra/prob.h"
#include "program/app.h"
#include "program/options.h"
#include "program/result_end.h"

/* Fields that PNB__MATCH_ROWS fill; NaN and 0 where nothing was given. */
typedef struct pnb__match_words {
    int64_t n_samples;
    double a, b;
} pnb__match_words;

#define PNB__MATCH_ROWS(at_samples, at_a, at_b)                                                    \
    PNB__ROW_INT(                                                                                  \
        "samples", (at_samples), "J",                                                              \
        "Samples of each row for the measures avg_l2 and match_prob; by default what the "         \
        "sets carry, else 7",                                                                      \
        PNB__RANGE(1, 10000)),                                                                     \
        PNB__ROW_REAL("match-a", (at_a), "A",                                                      \
                      "match_prob is the mean of s(2 (b - a d)) over distances d of samples: a; "  \
                      "by default what the sets carry, else 5",                                    \
                      PNB__RANGE(0, 1e30)),                                                        \
        PNB__ROW_REAL("match-b", (at_b), "B", "and b; by default what the sets carry, else 5",     \
                      PNB__RANGE(-1e30, 1e30))

/* Constants of `measure` between two sets (infos NULL: none): the options, else what both sets
 * carry, else the defaults; the seed stays as it is in `out`. Errors  ARG (an option that the
 * measure does not read, sets that carry different a or b: wrong usage, which the text mends) */
pnb_status pnb__match_settle(pnb__app *app, const pnb__match_words *words, pnb_measure measure,
                             const pnb_embeddings_info *a, const pnb_embeddings_info *b,
                             pnb_measure_opts *out);
/* Whether a set (NULL: none) carries a and b of match_prob, as those of a PCME do. */
bool pnb__carries_match(const pnb_embeddings_info *info);
/* Adds the constants that the measure reads: samples, match_a, match_b; labels for people or NULL
 * (`is_for_people` false). */
void pnb__put_match(pnb__result *r, pnb_measure measure, const pnb_measure_opts *opts,
                    bool is_for_people);

#endif
