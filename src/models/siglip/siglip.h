/* What SigLIP shares with ProLIP, whose released models read its words. */
#ifndef PNB_MODELS_SIGLIP_SIGLIP_H
#define PNB_MODELS_SIGLIP_SIGLIP_H

#include "models/tower.h"

/* pnb__family_calls.tokenizer_source. */
const char *pnb__siglip_tokenizer_source(const pnb__config *c);

#endif
