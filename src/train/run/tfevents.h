/* Event files that TensorBoard reads. */
#ifndef PNB_TRAIN_TFEVENTS_H
#define PNB_TRAIN_TFEVENTS_H

#include <stdio.h>

#include "base/base.h"

typedef struct pnb__scalar {
    const char *tag;
    double value;
} pnb__scalar;

/* Opens a new event file in dir (made if missing), written up to its start mark: values of earlier
 * files of dir from `first_step` on are replaced. Errors  IO, NOMEM */
pnb_status pnb__tfevents_open(FILE **out, const char *dir, int64_t first_step, pnb_error *err);
/* Appends one event with n values. Errors  IO, NOMEM */
pnb_status pnb__tfevents_scalars(FILE *file, int64_t step, const pnb__scalar *scalars, size_t n,
                                 pnb_error *err);

uint32_t pnb__crc32c(const void *data, size_t n);

#endif
