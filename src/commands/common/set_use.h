/* Embedding sets as commands take them. */
#ifndef PNB_COMMANDS_COMMON_SET_USE_H
#define PNB_COMMANDS_COMMON_SET_USE_H

#include "penumbra/embeddings.h"
#include "penumbra/view.h"
#include "program/app.h"
#include "sets/set_rows.h"

/* Loads x.safetensors, or x.npy with its sidecars; every row has an id afterwards. A set that does
 * not tell its model or modality is noted in `app`: every result that uses it says so. */
pnb_status pnb__set_load(pnb_embeddings **out, const char *path, pnb__app *app);
/* The noting alone, for a set that was loaded otherwise. Errors  NOMEM */
pnb_status pnb__set_note(pnb__app *app, const char *path, const pnb_embeddings *set);
/* Warns where means are not of unit length and the measure reads their length: csd and its
 * relatives are similarities of unit means only. */
void pnb__check_means(pnb__app *app, pnb_measure measure, const char *path, const pnb_rows *rows);

#endif
