/* Copies of image-caption sets that were spoiled on purpose, with the truth of it in every record.
 *
 * Whether an uncertainty knows that a picture is hard to read, or that a caption belongs to another
 * picture, can be asked where it is known: pictures lose a known share of what they show, captions
 * change places. docs/data.md#corrupt
 *
 *     pnb_corrupt_opts opts = pnb_corrupt_opts_default();
 *     opts.swap_share = 0.2;
 *     if (pnb_dataset_open(&data, "shapes/train", NULL, &err) == PNB_OK)
 *         pnb_corrupt_build(data, "shapes/train", "noisy", &opts, &stats, &err);
 *
 * A dose is no entropy: it orders the pictures that were changed alike, and doses of two kinds of
 * change are not comparable. The same data, options and seed give the same bytes.
 *
 * Pictures are written at their own size: what is lost by shrinking is not told by the size. One
 * thread; the pictures of a sample are in memory one at a time, two where another is mixed in. */
#ifndef PENUMBRA_CORRUPT_H
#define PENUMBRA_CORRUPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/dataset.h"
#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text, sentence): what a dose d in [0,1] does to a picture. d = 0 changes nothing. */
#define PNB_CHANGE_LIST(X)                                                                         \
    X(NONE, "none", "nothing")                                                                     \
    X(ERASE, "erase", "a rectangle of the share d turns grey")                                     \
    X(SHRINK, "shrink", "the share d of the pixels is lost, by resizing down and up again")        \
    X(GREY, "grey", "the share d of the colour is lost")                                           \
    X(MIX, "mix", "another picture shows through, with weight d/2")

typedef enum pnb_change {
#define PNB_CHANGE_ENUM(name, text, sentence) PNB_CHANGE_##name,
    PNB_CHANGE_LIST(PNB_CHANGE_ENUM)
#undef PNB_CHANGE_ENUM
        PNB_N_CHANGES /* how many there are */
} pnb_change;

const char *pnb_change_name(pnb_change change); /* "erase"; "unknown" outside the list */

/* What is done to a set; a change, a swap or both. Draws of a sample are keyed by (seed, its number
 * in the data set), so that they do not depend on those before it. */
typedef struct pnb_corrupt_opts {
    pnb_change change; /* NONE */
    double max_dose;   /* 1: doses are uniform in [0, max_dose], 0 < max_dose <= 1 */
    double swap_share; /* 0: round(share n) of the samples get the captions of another of them */
    size_t shard_size; /* 1000: samples a shard */
    uint64_t seed;     /* 0: of doses and of who is swapped */
    const char *split; /* "train": folder below `dir` */
    /* Called for every sample that cannot be read and is left out. May be NULL. */
    void (*skipped)(void *user, const char *key, const char *why);
    void *user; /* given to skipped as it is */
} pnb_corrupt_opts;

/* The values that stand beside the fields. */
pnb_corrupt_opts pnb_corrupt_opts_default(void);

/* What was written. */
typedef struct pnb_corrupt_stats {
    size_t n_images;  /* samples in the copy */
    size_t n_swapped; /* of them with captions of another one */
    size_t n_skipped; /* unreadable, left out; whoever got its captions keeps them */
    bool reused;      /* the folder already held this very copy; the other counts but n_images are
                       * 0 */
} pnb_corrupt_stats;

/* Writes DIR/SPLIT/NNNNN.tar with the pictures as PNG and the records of `data`, to which are added
 *   "dose", "dose_kind"   where pictures are changed
 *   "swapped" 0 or 1, and "captions_of", the key of whom they belong to, where captions are swapped
 * The fields caption, captions, levels, caption_ids and template_captions go with the captions. No
 * swapped sample keeps its own captions; captions of another one may happen to be true all the
 * same. The folder appears whole or not at all; one that holds the copy of the same options is left
 * alone. `source` names the data set in that comparison.
 *   stats  may be NULL
 * Errors  ARG (neither change nor swap, options outside their range, fewer than two samples to
 *         swap), EXISTS (the folder holds something else), NOT_FOUND (no sample could be read), IO,
 *         NOMEM */
pnb_status pnb_corrupt_build(const pnb_dataset *data, const char *source, const char *dir,
                             const pnb_corrupt_opts *opts, pnb_corrupt_stats *stats,
                             pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
