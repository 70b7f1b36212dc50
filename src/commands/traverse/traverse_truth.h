/* HierarCaps data beside embedding sets: which row is which picture, which caption is which text.
 */
#ifndef PNB_COMMANDS_TRAVERSE_TRAVERSE_TRUTH_H
#define PNB_COMMANDS_TRAVERSE_TRAVERSE_TRUTH_H

#include "penumbra/embeddings.h"
#include "penumbra/hierarcaps.h"
#include "penumbra/truth.h"

typedef struct pnb__hierarchy_truth {
    int64_t *label; /* of every caption row: equal texts, equal labels */
    int64_t *truth; /* [kept picture][level] */
    size_t *row;    /* [kept picture] row of the picture set */
    size_t n_kept;  /* pictures of the file that the set has */
} pnb__hierarchy_truth;

/* A picture of the set is the file's by its id, or by the file name of the url without its ending.
 * Errors  NOT_FOUND (no picture in common; a true caption is missing: named), NOMEM */
pnb_status pnb__hierarchy_truth_match(pnb__hierarchy_truth *out, const pnb_hierarcaps *file,
                                      const pnb_embeddings *images, const pnb_embeddings *texts,
                                      pnb_error *err);
void pnb__hierarchy_truth_reset(pnb__hierarchy_truth *t);

#endif
