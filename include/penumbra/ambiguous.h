/* Embeddings whose ambiguity is known: a tree of concepts on the sphere, pictures drawn below its
 * leaves, captions that name a concept of any level. General concepts are wide, specific ones
 * narrow, and the concentration of each is exact, so that a method can be scored against the truth.
 *
 *   OUT/SPLIT/images.safetensors  points (.ids.jsonl: "concept", that of the leaf); SPLIT is train,
 *                                 val or test
 *   OUT/SPLIT/texts.safetensors   points, with text and "level", "concept", "n_images"
 *   OUT/SPLIT/known.safetensors   the same captions as the distributions that they stand for
 *   OUT/truth/SPLIT.pairs         image id TAB text id: every pair that fits
 *   OUT/truth/SPLIT.written.pairs each caption with the one picture that it was written for
 *   OUT/stats.json                the options and counts; its presence says the set is complete
 *
 * Source  docs/data.md#ambiguous has the model */
#ifndef PENUMBRA_AMBIGUOUS_H
#define PENUMBRA_AMBIGUOUS_H

#include "penumbra/embeddings.h"
#include "penumbra/synth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each comment begins with the default. A concept's mean cosine goes with the share of
 * pictures it holds. */
typedef struct pnb_ambiguous_opts {
    size_t n_images;            /* 5000: over all splits */
    size_t dim, text_dim;       /* 64, 0: widths of the two sides; text_dim 0 is dim */
    pnb_family family;          /* VMF: of the pictures below a concept; POINT is none */
    size_t n_levels;            /* 4: 1 to PNB_SYNTH_N_LEVELS */
    size_t n_roots, n_branches; /* 8, 4: concepts of level 0; children of a concept on average */
    /* 1280: captions of a level in a split, shared evenly by its concepts, each of which has one */
    size_t n_texts;
    double cosine_general;  /* 0.2: of a picture to the widest concept, on average */
    double cosine_specific; /* 0.6: to the narrowest leaf; above cosine_general, below 1 */
    /* 0.5, 0 to 1: how far numbers of children are from n_branches, and by what factor
     * exp(+-spread) roots differ in pictures */
    double spread;
    double wording;       /* 0.98: cosine of a caption to its concept, on average */
    double hint;          /* 0.5: how loud wording tells of generality, 0: not at all */
    double length;        /* 1: of the frozen rows on average, > 0 */
    double length_spread; /* 0.1: standard deviation of its log; no function of the concept */
    double val_share, test_share; /* 0.1, 0.1 */
    uint64_t seed;                /* 0 */
} pnb_ambiguous_opts;

/* The values that stand beside the fields. */
pnb_ambiguous_opts pnb_ambiguous_opts_default(void);

/* Makes the set. The bytes depend on the options only, not on the number of threads. A folder that
 * already holds the set of the same options is left alone (`reused`). Captions whose concept has no
 * picture in a split are left out of it.
 * Memory  that of the concepts, (families with variances: 2 or 3 times) n_concepts dim floats, and
 *         the names of a split
 * Errors  ARG (options outside their range), EXISTS (the folder holds something else), LIMIT (more
 *         than 10 million concepts), IO, NOMEM */
pnb_status pnb_synth_ambiguous(const pnb_ctx *ctx, const pnb_ambiguous_opts *opts, const char *dir,
                               pnb_synth_stats *stats /* may be NULL */, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
