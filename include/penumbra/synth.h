/* Data sets made on this machine, without a download: `shapes` (rendered scenes with an exact
 * many-to-many truth) and `emoji` (pictures and texts of installed Debian packages).
 *
 * Both write the same layout:
 *   OUT/SPLIT/NNNNN.tar       SPLIT is train, val or test; members KEY.png and KEY.json
 *   OUT/SPLIT/sizes.json      {"00000.tar": samples, ...}
 *   OUT/SPLIT/captions.jsonl  {"id", "level", "text"}: the captions of the split, each once
 *   OUT/SPLIT/images.jsonl    {"id", "shard", "name", "group", "subgroup"}; id is KEY
 *   OUT/truth/SPLIT.pairs     image id TAB caption id, one pair a line, every true pair
 *   OUT/stats.json            the options and counts; its presence says the set is complete
 * The record KEY.json has caption, captions, levels, caption_ids, name, group, subgroup. */
#ifndef PENUMBRA_SYNTH_H
#define PENUMBRA_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Captions go from level 0, the most general, to the last, which says everything. */
#define PNB_SYNTH_N_LEVELS 4

/* What a set holds; also in OUT/stats.json. */
typedef struct pnb_synth_stats {
    size_t n_train, n_val, n_test;              /* pictures of each split */
    size_t n_texts[PNB_SYNTH_N_LEVELS];         /* distinct captions of a level */
    double texts_per_image[PNB_SYNTH_N_LEVELS]; /* those in the pictures' records */
    double images_per_text[PNB_SYNTH_N_LEVELS]; /* true pairs over distinct captions */
    size_t n_words;                             /* distinct words in the captions */
    size_t n_ambiguous;                         /* shapes: scenes with an ambiguity */
    bool reused; /* the folder already held this very set; nothing was written */
} pnb_synth_stats;

/* One side of a picture is at most twice the other; shares and probabilities are in [0,1], and the
 * two shares together at most 1: the rest is the training split. */
typedef struct pnb_shapes_opts {
    size_t n_scenes;                  /* 5000 */
    int width, height;                /* 64, 64; 16..4096 */
    uint64_t seed;                    /* 0 */
    double val_share, test_share;     /* 0.1, 0.1 */
    size_t shard_size;                /* samples a shard, 1000 */
    double blur_p, occlude_p, grey_p; /* 0: probability that a scene is made ambiguous this way */
    double max_blur;                  /* 0.12: largest standard deviation, share of the width */
    double wordy; /* 0: probability that a caption stands in words that say nothing more */
} pnb_shapes_opts;

/* The values that stand beside the fields. */
pnb_shapes_opts pnb_shapes_opts_default(void);

/* Renders scenes of 1-3 coloured shapes and writes them with captions at four nested levels.
 * The bytes depend on the options only, not on the number of threads. A folder that already holds
 * the set of the same options is left alone (`reused`).
 * Errors  ARG, EXISTS (the folder holds something else), IO, NOMEM */
pnb_status pnb_synth_shapes(const pnb_ctx *ctx, const pnb_shapes_opts *opts, const char *dir,
                            pnb_synth_stats *stats /* may be NULL */, pnb_error *err);

typedef struct pnb_emoji_opts {
    uint64_t seed;           /* 0: split and template choice */
    int size;                /* 64: pixels of KEY.png, 64 or 128; both sizes are always written, the
                                other one as KEY.128.png or KEY.64.png */
    bool skin_tones;         /* false: 1,870 pictures; true: 3,655 */
    size_t shard_size;       /* 1000 */
    bool sensitive;          /* keep what is left out by default: docs/data.md#emoji */
    const char *font;        /* NULL: where fonts-noto-color-emoji puts NotoColorEmoji.ttf */
    const char *emoji_test;  /* NULL: emoji-test.txt of unicode-data */
    const char *cldr_common; /* NULL: the `common` folder of unicode-cldr-core */
} pnb_emoji_opts;

/* The values that stand beside the fields, the sources where Debian puts them. */
pnb_emoji_opts pnb_emoji_opts_default(void);

/* Builds an image-caption set from the emoji font, the Unicode list and the CLDR annotations.
 * Errors  ARG, NOT_FOUND (a package is missing; the text names the apt packages), EXISTS, FORMAT,
 *         UNSUPPORTED (built without FreeType and HarfBuzz), IO, NOMEM */
pnb_status pnb_synth_emoji(const pnb_ctx *ctx, const pnb_emoji_opts *opts, const char *dir,
                           pnb_synth_stats *stats /* may be NULL */, pnb_error *err);

/* Templates for emoji captions ("a picture of {c}"), for pnb_loader_opts.templates; *n
 * receives how many. Constant. */
const char *const *pnb_emoji_templates(size_t *n);

#ifdef __cplusplus
}
#endif
#endif
