/* Files of caption hierarchies, as HierarCaps is distributed (Alper and Averbuch-Elor, "Emergent
 * visual-semantic hierarchies in image-text representations", ECCV 2024).
 *
 * One row is one picture with captions from the most general to the most specific: "animal", "a
 * bird", "a bird on a branch", "a kingfisher on a branch above water". `penumbra traverse` scores
 * what a walk from the root to a picture finds against them, `penumbra embed` takes the captions
 * with their levels, and a truth file of this format says which captions belong to which picture.
 *
 * The file is small beside what is embedded of it, so all of it is held in memory. */
#ifndef PENUMBRA_HIERARCAPS_H
#define PENUMBRA_HIERARCAPS_H

#include <stddef.h>

#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file of caption hierarchies: csv with a header row and the columns id, captions joined by
 * "=>" from general to specific, image_url. Every row has the same number of levels. */
typedef struct pnb_hierarcaps {
    size_t n, n_levels;
    char **id, **url; /* [n] */
    char **text;      /* [n][n_levels], white space at the ends removed */
} pnb_hierarcaps;

/* The three columns are taken in order, whatever the header calls them; more are ignored.
 * Errors  those of reading a csv; FORMAT (fewer than 3 columns, no "=>" in a row, an empty caption,
 *         a row with another number of levels, invalid UTF-8: the text names the line), ARG (no
 * row, an id that occurs twice), NOMEM */
pnb_status pnb_hierarcaps_load(pnb_hierarcaps **out, const char *path, pnb_error *err);
void pnb_hierarcaps_free(pnb_hierarcaps *h); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
