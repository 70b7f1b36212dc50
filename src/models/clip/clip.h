/* CLIP's towers, of which other families take parts: a ProLIP without [UNC] sees as CLIP does, and
 * SigLIP's text tower is CLIP's with other settings. */
#ifndef PNB_MODELS_CLIP_CLIP_H
#define PNB_MODELS_CLIP_CLIP_H

#include "models/transformer/transformer.h"

/* pnb__tower_calls.family: points. */
pnb_family pnb__clip_family(const pnb__config *c);
/* The image tower of points. */
void pnb__clip_declare_image(pnb__weights *w, const pnb__config *c);
pnb__dist pnb__clip_image(const pnb__weights *weights, const pnb__config *c, pnb__graph *g,
                          const pnb__tower_in *in, bool unit);
/* The text tower, read where c->text.pool says. */
extern const pnb__tower_calls pnb__clip_text;

/* pnb__family_calls.tokenizer_source of those who use CLIP's words. */
const char *pnb__clip_tokenizer_source(const pnb__config *c);

#endif
