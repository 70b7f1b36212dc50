/* Doses: pictures that show a known share less than they did. */
#ifndef PNB_DATA_SYNTH_DOSE_H
#define PNB_DATA_SYNTH_DOSE_H

#include "base/base.h"
#include "penumbra/corrupt.h"
#include "penumbra/image.h"

/* Changes a plain RGB picture by a dose in [0,1]; `rng` places what is erased. `other` is for MIX
 * alone, of any size. Errors  ARG (sizes of resizing), NOMEM */
pnb_status pnb__dose_apply(pnb_image *image, pnb_change change, double dose, pnb__rng *rng,
                           const pnb_image *other, pnb_error *err);

#endif
