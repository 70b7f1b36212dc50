/* Reading fits from JSON that is already parsed. */
#ifndef PNB_EVAL_CALIBRATION_FIT_FILE_H
#define PNB_EVAL_CALIBRATION_FIT_FILE_H

#include "io/json/json.h"
#include "penumbra/calibrate.h"

/* `where` starts messages. `out` is all zero, or untouched for a scaling, on failure.
 * Errors  FORMAT, NOMEM */
pnb_status pnb__match_probability_fit_read(pnb_match_probability_fit *out, json_t *root,
                                           const char *where, pnb_error *err);
pnb_status pnb__scaling_read(pnb_scaling *out, json_t *root, const char *where, pnb_error *err);

#endif
