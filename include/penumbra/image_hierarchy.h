/* Hierarchies of pictures from segmentations: one picture and its masks become a chain of pictures
 * from a single object to the whole scene, written as an ordinary data set with levels.
 *
 * Level 0 shows the largest segment alone, each further level one segment more, the last level is
 * the picture itself. Segments are ordered by their pixels, ties by the lower annotation id. With
 * such a set one sees whether a model is more uncertain of a part than of the whole (hierarchy.h).
 * One picture is in memory at a time.
 *
 * Source  ProLIP section 4.3 and appendix B.3 */
#ifndef PENUMBRA_IMAGE_HIERARCHY_H
#define PENUMBRA_IMAGE_HIERARCHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PNB_IMAGE_HIERARCHY_MAX_SEGMENTS 3 /* of a chain; the paper's number */

/* How a picture of a lower level shows its segments. */
typedef enum pnb_image_hierarchy_show {
    PNB_IMAGE_HIERARCHY_MASK, /* the segments on a blank canvas, each where it was */
    PNB_IMAGE_HIERARCHY_CROP  /* the rectangle around the segments, with what lies between them */
} pnb_image_hierarchy_show;

/* What makes a chain, and how it is shown. */
typedef struct pnb_image_hierarchy_opts {
    size_t n_segments; /* 3: segments of a chain, 1..3; it has one level more */
    size_t min_pixels; /* 5000: every segment of a picture must be larger, or it is left out */
    bool drop_small;   /* leave out the small segments instead of their pictures */
    bool crowds;       /* crowd annotations count as segments; otherwise they are not seen */
    pnb_image_hierarchy_show show; /* MASK */
    int fill;                      /* 255: value of the blank canvas, 0..255 */
    size_t max_images;             /* 0: all; else the first ones by image id that make a chain */
    size_t shard_size;             /* samples a shard, 1 or more; 1000 */
    const char *texts;             /* COCO captions_*.json for the last level; NULL: category names
                                    * there too */
    /* Called for every picture that had to be left out although it was wanted. May be NULL. */
    void (*skipped)(void *user, const char *image, const char *why);
    void *user; /* given to skipped as it is */
} pnb_image_hierarchy_opts;

/* Three segments of more than 5000 pixels each, masked on white, category names as captions. */
pnb_image_hierarchy_opts pnb_image_hierarchy_opts_default(void);

/* What was made and what was left out, and why. Counts of pictures, but for n_chains. */
typedef struct pnb_image_hierarchy_stats {
    size_t n_listed;  /* pictures in the annotations */
    size_t n_chains;  /* made */
    size_t n_images;  /* written: n_chains * (n_segments + 1) */
    size_t n_few;     /* left out: fewer segments than a chain needs */
    size_t n_small;   /* left out: a segment that is not larger than min_pixels */
    size_t n_skipped; /* could not be read or do not fit their annotations */
    bool reused;      /* the folder already held this very set; all counts but n_chains and
                       * n_images are 0 */
} pnb_image_hierarchy_stats;

/* Writes `dir` from COCO's instances_*.json and the folder of its pictures, in the layout of
 * synth.h with the split `test`: samples KEY_L (KEY the picture's id in 12 digits, L the level)
 * with captions made of category names; their records also have "name" (the picture's file),
 * "level" and "image_id". truth/test.pairs joins every picture with the captions of its chain up to
 * its own level. Segmentations are polygons, uncompressed RLE or compressed RLE. The folder appears
 * whole or not at all; one that holds the set of the same options is left alone.
 *   ctx    is not read: one thread
 *   opts   NULL: the defaults
 *   stats  may be NULL
 * Errors  NOT_FOUND (a file or the folder of pictures), FORMAT (json that is not COCO's: names the
 *         annotation), ARG (options outside their range, not one chain: tells why pictures were
 *         left out), EXISTS (the folder holds something else), LIMIT, IO, NOMEM */
pnb_status pnb_image_hierarchy_build(const pnb_ctx *ctx, const char *instances, const char *images,
                                     const char *dir, const pnb_image_hierarchy_opts *opts,
                                     pnb_image_hierarchy_stats *stats, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
