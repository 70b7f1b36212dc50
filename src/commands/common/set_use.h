/* Embedding sets as commands take them. */
#ifndef PNB_COMMANDS_COMMON_SET_USE_H
#define PNB_COMMANDS_COMMON_SET_USE_H

#include "penumbra/embeddings.h"
#include "penumbra/view.h"
#include "program/app.h"
#include "program/result_end.h"
#include "sets/set_rows.h"

/* Loads x.safetensors, or x.npy with its sidecars; every row has an id afterwards. A set that does
 * not tell its model or modality is noted in `app`: every result that uses it says so. */
pnb_status pnb__set_load(pnb_embeddings **out, const char *path, pnb__app *app);
/* The same with arrays left in the file, for reading: a set may be larger than memory. An .npy set
 * is loaded all the same. */
pnb_status pnb__set_map(pnb_embeddings **out, const char *path, pnb__app *app);
/* The noting alone, for a set that was loaded otherwise. Errors  NOMEM */
/* Says once, where embeddings of one model in two precisions meet: they are compared all the same.
 * Every set that is loaded comes by; those that a command encodes are handed over by it. */
void pnb__note_precision(pnb__app *app, const char *what, const pnb_embeddings *set);
pnb_status pnb__set_note(pnb__app *app, const char *path, const pnb_embeddings *set);
/* Warns where means are not of unit length and the measure reads their length: csd and its
 * relatives are similarities of unit means only. */
void pnb__check_means(pnb__app *app, pnb_measure measure, const char *path, const pnb_rows *rows);

/* Adds the measure of two sets and, where it reads the means alone of one that has variances, which
 * one: `taken_as_points` ("images", "texts", "index", ...). `label`: of the measure, for people. */
void pnb__put_measure(pnb__result *r, const char *label, pnb_measure measure,
                      const pnb_embeddings *const sets[2], const char *const words[2]);

/* Where the rows of a comparison come from: the side that went through more adapters, where the
 * other was left alone by them. */
const pnb_embeddings_info *pnb__set_origin(const pnb_embeddings *a, const pnb_embeddings *b);
/* CLIP_benchmark's word for the weights: their hash, and "+NAME-HASH" for every adapter behind. */
enum { PNB__PRETRAINED_BYTES = 512 };
void pnb__set_pretrained(const pnb_embeddings_info *info, char text[PNB__PRETRAINED_BYTES]);
/* Adds the list "adapters" to what a result says of the weights; nothing where there are none. */
void pnb__put_adapters(const pnb_adapter_links *links, pnb__result *r);

#endif
