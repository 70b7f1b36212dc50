/* Collections of real pictures that Debian packages bring: internal to src/data/collections.
 *
 * A list is read (clipart.c, stamps.c, mixed.c), its pictures are drawn (collection_image.c), equal
 * and nearly equal ones found (collection_twins.c), the splits dealt (collection_split.c) and
 * everything written (collection_write.c). */
#ifndef PNB_DATA_COLLECTIONS_COLLECTION_H
#define PNB_DATA_COLLECTIONS_COLLECTION_H

#include "base/base.h"
#include "data/synth/synth_write.h"
#include "penumbra/collections.h"
#include "penumbra/image.h"

enum { PNB__TRAIN, PNB__VAL, PNB__TEST, PNB__N_SPLITS };
enum { PNB__THUMB_SIDE = 16, PNB__THUMB = 3 * PNB__THUMB_SIDE * PNB__THUMB_SIDE };

typedef struct pnb__text {
    const char *text;
    int level;
    bool is_noise; /* does not describe the picture: only in a noisy set */
} pnb__text;

/* One picture. Texts live in the list's arena; so do captions, until the list is freed. */
typedef struct pnb__collected {
    const char *key;
    const char *svg, *png; /* files to draw: the first that can be; either may be NULL */
    const char *refused;   /* why there is an SVG that is not drawn; NULL */
    const char *file;      /* the same as the record names it, below the collection's root */
    const char *style, *group, *subgroup, *name;
    const char *concept; /* what it shows, one word; splits of a mixed set are dealt by it */
    const char *more;    /* JSON that only this collection has: ", \"author\": ..." */
    pnb__text *texts;
    size_t n_texts;
    unsigned char *encoded; /* PNG of size x size, freed with pnb_image_bytes_free */
    size_t n_encoded;
    float *thumb;       /* [PNB__THUMB] of unit length around its mean */
    size_t first_equal; /* first picture with the same pixels; its own index if none */
    size_t twins;       /* group of near-duplicates: index of its first picture */
    int split;
    bool is_new_style, is_new_concept; /* test: nothing like it in train */
} pnb__collected;

typedef struct pnb__collection {
    const pnb_collection_opts *opts;
    pnb__collected *items;
    size_t n;
    pnb__arena arena;
    pnb_collection_stats *stats;
} pnb__collection;

void pnb__collection_free(pnb__collection *c);
/* A copy in the arena with printf's words; NULL out of memory. */
const char *pnb__keep_text(pnb__collection *c, const char *text, size_t n);
const char *pnb__keep_format(pnb__collection *c, const char *fmt, ...) PNB_PRINTF(2, 3);
/* Appends a caption unless the picture has that text. NOMEM */
pnb_status pnb__text_add(pnb__collection *c, pnb__collected *item, const char *text, int level,
                         bool is_noise, pnb_error *err);
/* Counts a file that is left out because it cannot be read, and says so. */
void pnb__collection_skip(pnb__collection *c, const char *file, const char *why);
/* The same without the words, for a picture that the options leave out. Frees what it holds. */
void pnb__collected_reset(pnb__collected *item);

/* ---- readers ---- Errors  NOT_FOUND (a package is missing: what to install), FORMAT, IO, NOMEM */
pnb_status pnb__clipart_read(pnb__collection *c, pnb_error *err);
pnb_status pnb__stamps_read(pnb__collection *c, pnb_error *err);
/* Emoji as pictures of the collection, drawn already. */
pnb_status pnb__emoji_collect(pnb__collection *c, pnb_error *err);

/* ---- collection_sensitive.c ---- Of a path, a title, a keyword. */
bool pnb__is_sensitive_text(const char *text);

/* ---- collection_image.c ---- Draws what is not drawn yet, in parallel; what cannot be is taken
 * out of the list and reported in its order. Errors  UNSUPPORTED (no librsvg), NOMEM */
pnb_status pnb__collection_draw(const pnb_ctx *ctx, pnb__collection *c, pnb_error *err);
/* RGB on white, cut to what is drawn, centred on a square: the PNG and the thumbnail.
 * Errors  SHAPE (a picture that is white all over), NOMEM */
pnb_status pnb__collected_take(pnb__collected *item, const pnb_image *image, int size,
                               pnb_error *err);

/* ---- collection_twins.c ---- Errors  NOMEM */
pnb_status pnb__collection_twins(const pnb_ctx *ctx, pnb__collection *c, pnb_error *err);

/* ---- collection_split.c ---- Errors  NOMEM */
pnb_status pnb__collection_split(pnb__collection *c, bool by_concept, pnb_error *err);
/* The word that says what a text is of: "a yellow lemon slice with salt." -> "slice". */
const char *pnb__concept_of(pnb__collection *c, const char *text);

/* ---- collection_write.c ---- Shards, lists and truth of all splits; fills the counts. */
pnb_status pnb__collection_write(pnb__collection *c, const pnb__synth_out *out, pnb_error *err);

#endif
