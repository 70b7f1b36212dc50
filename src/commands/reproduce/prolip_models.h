/* The models of ProLIP's experiments: terms of the loss, training, embedding and ranking. */
#ifndef PNB_COMMANDS_REPRODUCE_PROLIP_MODELS_H
#define PNB_COMMANDS_REPRODUCE_PROLIP_MODELS_H

#include "commands/eval/eval_retrieval.h"
#include "commands/reproduce/reproduce.h"

/* Leaves out the inclusion of pictures in their captions, and that of originals in masked copies,
 * for which nothing is masked then. */
void pnb__prolip_terms(pnb_train_opts *opts, bool has_pairs, bool has_masked);

/* Trains or goes on with a model, embeds the test and ranks it by a measure: *sets, reset by
 * pnb__retrieval_reset in any case, and *dir, the model's folder, to be freed. */
pnb_status pnb__prolip_model(pnb__reproduction *run, const char *stage, uint64_t seed,
                             pnb_train_opts *opts, pnb_measure measure, pnb__retrieval *sets,
                             char **dir);

#endif
