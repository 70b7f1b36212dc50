/* The captions of a chained set, each text of a level once. */
#ifndef PNB_DATA_SYNTH_IMAGE_HIERARCHY_TEXTS_H
#define PNB_DATA_SYNTH_IMAGE_HIERARCHY_TEXTS_H

#include "base/map.h"

typedef struct pnb__chain_text {
    char *text, id[24];
    int level;
    size_t n_true; /* pictures it is true of */
} pnb__chain_text;

/* All zero is empty. */
typedef struct pnb__chain_texts {
    pnb__chain_text *items; /* in the order of first use */
    size_t n;
    pnb__key_map places; /* of items by level and text */
} pnb__chain_texts;

/* Number of the caption, added if it is new. Errors  NOMEM */
pnb_status pnb__chain_texts_add(pnb__chain_texts *c, const char *text, int level, size_t *out,
                                pnb_error *err);
void pnb__chain_texts_reset(pnb__chain_texts *c);

/* "dog", "dog and person", "dog, person and bench". */
void pnb__join_names(pnb__buf *out, const char *const *names, size_t n);

#endif
