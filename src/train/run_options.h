/* Options of a run as text: params.txt, the record in a checkpoint, and the check on resuming. */
#ifndef PNB_TRAIN_RUN_OPTIONS_H
#define PNB_TRAIN_RUN_OPTIONS_H

#include "base/base.h"
#include "io/json/json.h"
#include "penumbra/train.h"

/* Errors  ARG, naming the option and what it may be */
pnb_status pnb__train_check_opts(const pnb_train_opts *o, pnb_error *err);

/* "name: value" lines, every option, in the order of the table in options.c. */
void pnb__train_params_text(const pnb_train_opts *o, pnb__buf *out);

/* The options that shape the weights, as a JSON object of strings; NULL when out of memory. */
json_t *pnb__train_settings(const pnb_train_opts *o);
/* ARG when a setting of the checkpoint differs from this run's, naming option and both values. */
pnb_status pnb__train_compare_settings(const json_t *saved, const json_t *now, pnb_error *err);

#endif
