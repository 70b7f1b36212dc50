/* The weights of a model: which exist for a configuration, loaded, initialised or saved. */
#ifndef PNB_MODELS_WEIGHTS_H
#define PNB_MODELS_WEIGHTS_H

#include "models/weights/weight_types.h"

/* Names and shapes for a configuration; no values yet. NOMEM. */
pnb_status pnb__weights_declare(pnb__weights *w, const pnb__config *c, const pnb_ctx *ctx,
                                pnb__real real, pnb_error *err);
/* The same for what a function declares, called twice: a trunk without a model around it. The
 * caller sets w->layout before files are read. */
typedef void (*pnb__declare_fn)(pnb__weights *w, void *user);
pnb_status pnb__weights_declare_by(pnb__weights *w, const pnb_ctx *ctx, pnb__real real,
                                   pnb__declare_fn declare, void *user, pnb_error *err);
void pnb__weights_reset(pnb__weights *w);

/* Values of the reference's initialisation, counter-based on (seed, index of the weight). */
pnb_status pnb__weights_init(pnb__weights *w, uint64_t seed, pnb_error *err);

/* Values from w->file by w->layout: mapped where order, type, alignment and device allow, else
 * converted. Every key must be expected and every expected key present. `resize` may be NULL.
 * Errors  NOT_FOUND, SHAPE, DTYPE, FORMAT */
pnb_status pnb__weights_load(pnb__weights *w, const pnb__config *c, const pnb__resize *resize,
                             pnb_error *err);
/* Writes w in its own layout. */
pnb_status pnb__weights_save(const pnb__weights *w, const char *path, pnb_error *err);

/* Writes w under the names of `to` with the bits and types of the file it was loaded from. */
pnb_status pnb__weights_write_as(const pnb__weights *w, const pnb__key_mapping *to,
                                 const char *path, pnb_error *err);

/* Is `key` of the file read or known to be passed over? */
bool pnb__weights_expects(const pnb__weights *w, const char *key);

/* Weights kept in 16 bits become real ones, in memory of their own: what reads values one by one
 * (pnb__param_read) needs that. Errors  UNSUPPORTED (weights in 8 bits), NOMEM, IO */
pnb_status pnb__weights_widen(pnb__weights *w, pnb_error *err);
/* That, and mapped weights are copied into memory of their own: all can be written. */
pnb_status pnb__weights_make_owned(pnb__weights *w, pnb_error *err);

/* NUMERIC naming the first weight of one tower (or of neither) that is not finite. */
pnb_status pnb__weights_check_finite(const pnb__weights *w, bool text, pnb_error *err);

#endif
