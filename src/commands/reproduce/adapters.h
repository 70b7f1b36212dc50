/* Post-hoc methods in an experiment: learned on the train sets, applied to the test sets. */
#ifndef PNB_COMMANDS_REPRODUCE_ADAPTERS_H
#define PNB_COMMANDS_REPRODUCE_ADAPTERS_H

#include "commands/eval/eval_retrieval.h"
#include "commands/reproduce/reproduce.h"

/* X(key, label) of what has learned nothing and stands beside what has, as in `adapt compare`; and
 * what a table says of it. */
#define PNB__ADAPTED_CONTROLS(X)                                                                   \
    X("untrained", "control: untrained head")                                                      \
    X("length", "control: caption length")
#define PNB__ADAPTED_CONTROLS_DIFFER                                                               \
    "The controls are not in the paper: an AsymVLM-shaped head with its first weights, and the "   \
    "number of a caption's words. Both have the frozen rows' means and say nothing of pictures."

/* A method of `adapt methods`, or a control; another name stands for the frozen rows. */
typedef struct pnb__adapted_opts {
    const char *method;
    const char *row;            /* of the table, and name of its files; NULL: the method's name */
    const char *option, *value; /* one that is not the method's default; NULL: none */
    uint64_t seed;
    pnb_measure measure; /* of sets of diagonal Gaussians; PNB__MEASURE_AUTO, and always of other
                          * families: their own */
    bool by_texts; /* pictures are sorted by the uncertainty of the caption that they find, as in
                    * AsymVLM; false: by their own */
} pnb__adapted_opts;

/* Learns and applies: paths of its sets in *e, which owner->entry is. A failure that is the
 * method's own becomes e->failed. Errors  INTERRUPTED, NOMEM, and those of loading the sets */
pnb_status pnb__adapted_make(pnb__reproduction *run, const pnb__adapted_opts *opts,
                             pnb__adapt_comparison *owner);
/* Keeps in `found` why there is no figure, where there is a reason, and warns. */
void pnb__adapted_keep_failure(const pnb__reproduction *run, const pnb__adapt_comparison *owner,
                               json_t *found);
/* What its sets are ranked by: `measure` of a method's diagonal Gaussians, of controls and of other
 * families their own. */
pnb_measure pnb__adapted_measure_of(const pnb__compare_entry *e, pnb_measure measure);

/* Learns, applies and ranks the test sets both ways, and puts into the method's row: i2t_r1, i2t_s,
 * i2t_r2, i2t_minus_s_r2, the same of t2i, and known_spearman where the captions' concentration is
 * known. What a method cannot do with these sets is no error: the reason is kept in `found`, and
 * its row stays empty.
 * Errors  INTERRUPTED, NOMEM, and those of loading the sets */
pnb_status pnb__adapted_measure(pnb__reproduction *run, const pnb__adapted_opts *opts,
                                json_t *found);

/* For `put`: whose rows are empty, and why. */
void pnb__adapted_put_failed(const pnb__reproduction *run, pnb__result *r);

#endif
