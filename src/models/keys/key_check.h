/* A model folder looked at without stopping at the first thing that is wrong. */
#ifndef PNB_MODELS_KEYS_KEY_CHECK_H
#define PNB_MODELS_KEYS_KEY_CHECK_H

#include "models/model.h"

typedef enum pnb__key_kind {
    PNB__KEY_MISSING,
    PNB__KEY_SHAPE, /* or a type that is no floating-point one */
    PNB__KEY_UNEXPECTED,
    PNB__KEY_IGNORED /* a buffer that no computation reads */
} pnb__key_kind;

/* `text` is one sentence that names the key. */
typedef void (*pnb__key_fn)(void *user, pnb__key_kind kind, const char *text);

typedef struct pnb__key_check {
    char config[512], weights[512], format[32]; /* paths; config "" when the shapes decided */
    const char *warning;                        /* of the reader; lives until reset */
    pnb__config settings;
    pnb__key_mapping layout;
    pnb_model_info info; /* what the configuration says of the towers; no numbers of the weights */
    pnb__weight_file file;
    size_t n_expected, n_found;
} pnb__key_check;

/* Finds and reads configuration and weights, then tells every key that does not fit.
 * Errors  those that leave nothing to compare: no or unreadable configuration or weights, an
 *         architecture that is not known */
pnb_status pnb__model_check_keys(pnb__key_check *out, const pnb_ctx *ctx, const char *dir,
                                 pnb__key_fn fn, void *user, pnb_error *err);
void pnb__key_check_reset(pnb__key_check *e);

#endif
