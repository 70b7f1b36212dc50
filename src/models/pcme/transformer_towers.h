/* PCME's heads over this project's transformers in place of a ResNet or of GRUs: which
 * configurations ask for them, and the two towers. */
#ifndef PNB_MODELS_PCME_TRANSFORMER_TOWERS_H
#define PNB_MODELS_PCME_TRANSFORMER_TOWERS_H

#include "models/pcme/pcme_heads.h"

/* Sections that describe a transformer: a vision_cfg with "patch_size", a text_cfg with "layers".
 */
bool pnb__pcme_is_vit(const json_t *vision_cfg);
bool pnb__pcme_is_text_transformer(const json_t *text_cfg);

/* Fills what open_clip's words say of such sections (all of *out: read first), the others' at their
 * defaults; `root` has both sections. Each such tower ends without a projection, which is the
 * heads'.
 * Errors  those of pnb__config_read; UNSUPPORTED (what the heads leave no place for) */
pnb_status pnb__pcme_read_transformers(pnb__config *out, const json_t *root, const char *where,
                                       pnb_error *err);

/* Weights of the transformer under CLIP's names, then the heads as over a ResNet: "visual.fc",
 * "text.fc", ... They are left in w->tower. */
void pnb__pcme_declare_vit(pnb__weights *w, const pnb__config *c, const pnb__pcme_config *heads);
void pnb__pcme_declare_text_transformer(pnb__weights *w, const pnb__config *c,
                                        const pnb__pcme_config *heads);

/* The calls of tower.h; texts have the places of pnb__pcme_find_places. */
pnb__dist pnb__pcme_build_vit(const pnb__weights *w, const pnb__config *c, pnb__graph *g,
                              const pnb__tower_in *in, bool unit);
pnb__dist pnb__pcme_build_text_transformer(const pnb__weights *w, const pnb__config *c,
                                           pnb__graph *g, const pnb__tower_in *in, bool unit);

#endif
