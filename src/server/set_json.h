/* Rows of embedding sets as JSON. */
#ifndef PNB_SERVER_SET_JSON_H
#define PNB_SERVER_SET_JSON_H

#include "base/base.h"
#include "penumbra/embeddings.h"

/* Appends f32 numbers as an array, 9 digits each (exact), or as base64 of their bytes, lowest byte
 * first, in quotes. */
void pnb__floats_put(pnb__buf *b, const float *x, size_t n, bool base64);
/* Appends ,"NAME":numbers for every array of the row but its mean: log_var, kappa, ... */
void pnb__row_parameters_put(pnb__buf *b, const pnb_embeddings *set, size_t row, bool base64);

#endif
