/* Where the rows of an embedding set come from, as a chain: the weights that embedded, then every
 * adapter that the rows went through, in order. Each link has the SHA-256 of its files.
 *
 * Rows may be compared when their chains are equal. One exception is honest: an adapter may declare
 * that it leaves a side alone, as one that turns captions into distributions and takes pictures as
 * the frozen model gives them. Then the frozen pictures are the ones it was made for, and its own
 * captions may meet them. Two adapters of the same weights know nothing of each other's rows and
 * never meet. pnb_embeddings_check_mix is the rule; docs/formats.md#embedding-sets has the files.
 */
#ifndef PENUMBRA_PROVENANCE_H
#define PENUMBRA_PROVENANCE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pnb_embeddings_info; /* embeddings.h */

enum {
    PNB_MAX_ADAPTERS = 8,      /* links behind the weights */
    PNB_PROVENANCE_BYTES = 640 /* room for the longest chain in words */
};

/* One link behind the weights. Two links are the same when their hashes are: a hash says all that
 * an adapter is, its name is for people. */
typedef struct pnb_adapter_link {
    char name[32];   /* its method, "whitened": letters a to z, digits, - and _ */
    char sha256[65]; /* of the adapter, 64 lower-case hex digits: penumbra/adapt.h says of what */
    /* Sides that it declares not to change: rows of such a side that did not go through it may be
     * compared with rows of the other that did */
    bool leaves_images, leaves_texts;
} pnb_adapter_link;

/* The links behind the weights, first applied first. All zero: rows as the model embedded them,
 * which is also how files of version 1 are read. In the metadata of a set, in x.json beside x.npy
 * and in the sides of a calibration it is the list "adapters". */
typedef struct pnb_adapter_links {
    size_t n; /* 0 to PNB_MAX_ADAPTERS */
    pnb_adapter_link items[PNB_MAX_ADAPTERS];
} pnb_adapter_links;

/* The whole chain in words: "ViT-B-16 69081b72e4cd > whitened 0a1b2c3d4e5f", hashes by their first
 * 12 digits; "unknown weights" where the set does not tell. What errors and results show; files
 * have the links themselves.
 * Shape   text (size), PNB_PROVENANCE_BYTES for every chain; cut to `size`, always ended */
void pnb_provenance_text(const struct pnb_embeddings_info *info, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
