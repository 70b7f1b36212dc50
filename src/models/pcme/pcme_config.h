/* What PCME and its baselines differ in, as far as their captions and heads go. */
#ifndef PNB_MODELS_PCME_PCME_CONFIG_H
#define PNB_MODELS_PCME_PCME_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "penumbra/error.h"

/* PCME: attention, uncertainty, one embedding. PVSE: attention, K embeddings. VSE0, VSE++: neither
 * attention nor uncertainty. */
typedef struct pnb__pcme_config {
    size_t vocab_size, word_dim; /* of the word vectors: 300 */
    size_t embed_dim;            /* D; each direction of the GRU has D / 2 */
    size_t n_embeddings;         /* K; above 1 with attention and without uncertainty only */
    size_t image_dim;            /* channels of the trunk's feature map */
    bool with_attention, with_uncertainty;
    double init_log_std; /* bias of both log-deviation heads of a new model; 0 released */
} pnb__pcme_config;

/* Errors  ARG (what cannot be built, and the rule) */
pnb_status pnb__pcme_config_check(const pnb__pcme_config *c, const char *where, pnb_error *err);

#endif
