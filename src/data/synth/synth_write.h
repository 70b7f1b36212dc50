/* Writes a made data set: folders, shards, lists and the marker, all at once or not at all. */
#ifndef PNB_DATA_SYNTH_SYNTH_WRITE_H
#define PNB_DATA_SYNTH_SYNTH_WRITE_H

#include "base/base.h"
#include "io/tables/tar.h"
#include "penumbra/synth.h"

/* A set being written into DIR.partial, which becomes DIR at the end. All zero is empty. */
typedef struct pnb__synth_out {
    char *dir, *temp;
    int lock;      /* file descriptor + 1 of the lock in temp, 0 none */
    char *options; /* JSON object text that identifies the set */
} pnb__synth_out;

/* Decides what to do with `dir`. When it already holds the set of these `options` (JSON object
 * text, with "kind"), *stats is read from it, `reused` is set and nothing is opened.
 * Errors  EXISTS (something else is there), BUSY (another process writes it), IO, NOMEM */
pnb_status pnb__synth_begin(pnb__synth_out *out, const char *dir, const char *options,
                            pnb_synth_stats *stats, pnb_error *err);
/* Writes stats.json and moves the folder into place. */
pnb_status pnb__synth_commit(pnb__synth_out *out, const pnb_synth_stats *stats, pnb_error *err);
/* Removes what was written; fine after commit. */
void pnb__synth_abort(pnb__synth_out *out);

/* One picture with everything that belongs to it. `png2` may be NULL. */
typedef struct pnb__synth_item {
    const char *key, *name, *group, *subgroup;
    const char *more; /* ends its line of images.jsonl, ", \"style\": ..."; may be NULL */
    const char *json;
    const unsigned char *png, *png2;
    size_t n_png, n_png2;
    const char *png2_suffix; /* "128.png" */
} pnb__synth_item;

/* The shards and lists of one split. All zero is empty. */
typedef struct pnb__synth_split {
    char *dir;
    size_t shard_size, n_in_shard, n_shards, n_items;
    pnb__tar_writer tar;
    pnb__buf sizes, images;
} pnb__synth_split;

pnb_status pnb__split_open(pnb__synth_split *s, const pnb__synth_out *out, const char *name,
                           size_t shard_size, pnb_error *err);
pnb_status pnb__split_add(pnb__synth_split *s, const pnb__synth_item *item, pnb_error *err);
/* Writes the last shard, sizes.json and images.jsonl. */
pnb_status pnb__split_close(pnb__synth_split *s, pnb_error *err);
void pnb__split_abort(pnb__synth_split *s); /* fine after close and on an all-zero one */

/* A caption of a split and the pictures it is true of. */
typedef struct pnb__synth_text {
    const char *id, *text;
    int level;
    double entropy_bits;  /* log2 of the number of pictures of the set it is true of; NaN unknown */
    double expected_bits; /* log2 of the number it is expected to be true of; NaN unknown */
    const char *more;     /* ends its line of captions.jsonl; may be NULL */
} pnb__synth_text;
pnb_status pnb__split_texts(const pnb__synth_split *s, const pnb__synth_text *texts, size_t n,
                            pnb_error *err);
/* Opens OUT/truth/<split>.pairs for writing lines "image id TAB caption id". */
pnb_status pnb__truth_open(pnb__out_file *file, const pnb__synth_out *out, const char *split,
                           pnb_error *err);

/* Number of distinct words (separated by spaces) in `n` texts. SIZE_MAX when out of memory. */
size_t pnb__count_words(const char *const *texts, size_t n);

#endif
