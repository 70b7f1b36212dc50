/* Weights kept in fewer bits than the real type: which, how they come from a file and go into one.
 * On disk an 8-bit weight KEY (N,K) of dtype I8 has its scales beside it as KEY_scale (N). */
#ifndef PNB_MODELS_QUANTIZED_WEIGHTS_H
#define PNB_MODELS_QUANTIZED_WEIGHTS_H

#include "models/weights/weight_types.h"

#define PNB__SCALE_SUFFIX "_scale"

/* Key of the file's metadata that holds the record of an 8-bit or 16-bit model, a JSON object. */
#define PNB__STORE_RECORD "penumbra.quantization"

/* The four matrices of a block: nearly all of the arithmetic and of the memory is theirs. The rest
 * is small or read out directly and keeps its type. */
bool pnb__quantized_is_small(const pnb__param *p);

/* Bytes of the values of p in memory. */
size_t pnb__quantized_bytes(const pnb__weights *w, const pnb__param *p);

/* Of all weights with their scales; and in words: "f32", "int8, activations in 7 bits". */
size_t pnb__quantized_total_bytes(const pnb__weights *w);
const char *pnb__quantized_describe(const pnb__weights *w);

/* Takes a gathered weight whose dtype is I8, BF16 or F16 as it is; *taken false leaves it to be
 * widened. Errors  DTYPE (8 bits where no block reads them, no scales), SHAPE, NOMEM, IO */
pnb_status pnb__quantized_load(pnb__weights *w, pnb__weight *item, const pnb__gathered *g,
                               bool *taken, pnb_error *err);

/* Real values of a block matrix into 8 bits, in memory of their own. NOMEM, IO */
pnb_status pnb__quantized_make(pnb__weights *w, pnb__weight *item, int levels, pnb_error *err);
/* Rounds real values in place to what the 16-bit type can hold. Errors  IO */
pnb_status pnb__quantized_round(const pnb__weights *w, pnb__param *p, pnb_dtype dtype,
                                pnb_error *err);

/* A view of f32 values becomes one of 16 bits, with a copy of its own. NOMEM */
pnb_status pnb__quantized_narrow(pnb__gathered *g, pnb_dtype dtype, pnb_error *err);

/* Takes the record of the file's metadata, if any, and what it says of the activations.
 * Errors  FORMAT (not the JSON that is written here), NOMEM */
pnb_status pnb__quantized_read_record(pnb__weights *w, pnb_error *err);

/* Real values again, in memory of their own, for training. UNSUPPORTED for 8 bits, NOMEM, IO */
pnb_status pnb__quantized_widen(pnb__weights *w, pnb__weight *item, pnb_error *err);

/* Frees scales that were allocated. */
void pnb__quantized_reset(const pnb__weights *w, pnb__weight *item);

/* Are all values finite, of a weight that is not in the real type? Errors  IO */
pnb_status pnb__quantized_look(const pnb__weights *w, const pnb__param *p, bool *finite,
                               pnb_error *err);

/* Type in the file, and what the view of the weight is written as. */
pnb_dtype pnb__quantized_dtype(const pnb__weights *w, const pnb__param *p);

/* Appends the scales of an 8-bit weight to views, part by part as the layout splits the weight. */
pnb_status pnb__quantized_scatter_scales(const pnb__weights *w, const pnb__key_mapping *l,
                                         const pnb__param *p, pnb__arena *arena,
                                         pnb_array_view *views, size_t *n, pnb_error *err);

#endif
