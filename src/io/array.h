/* Checks shared by everything that reads or writes array views. */
#ifndef PNB_IO_ARRAY_H
#define PNB_IO_ARRAY_H

#include "base/base.h"
#include "penumbra/safetensors.h"

/* Bytes of an array of that dtype and shape. SHAPE for a negative extent or an overflow of the
 * number of elements or bytes, LIMIT above PNB_MAX_DIMS dimensions, DTYPE outside the list. */
pnb_status pnb__array_n_bytes(pnb_dtype dtype, const int64_t *shape, int n_dims, size_t *n_bytes,
                              pnb_error *err);

/* A view is whole: dtype known, n_bytes as the shape says, data there when there are bytes. */
pnb_status pnb__array_check(const pnb_array_view *a, pnb_error *err);

/* "F32 [2, 3]" for error texts. */
void pnb__array_describe(const pnb_array_view *a, char *text, size_t size);

#endif
