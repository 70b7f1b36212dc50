/* A `shapes` set while it is made: its scenes, captions and truth. See synth_shapes.c. */
#ifndef PNB_DATA_SYNTH_SHAPES_SET_H
#define PNB_DATA_SYNTH_SHAPES_SET_H

#include "base/base.h"
#include "data/synth/shapes/shapes.h"

enum { PNB__N_SPLITS = 3 };

typedef struct pnb__shapes_set {
    const pnb_ctx *ctx;
    const pnb_shapes_opts *opts;
    size_t n;
    pnb__scene *scenes;
    uint32_t *n_queries; /* per scene */
    uint64_t *queries;   /* PNB__MAX_SCENE_QUERIES a scene, packed */
    size_t n_texts;
    uint64_t *texts;     /* distinct, ascending: by level first */
    size_t *match_start; /* n_texts + 1 */
    uint32_t *matches;   /* scene indices, ascending within a caption */
    double *expected;    /* scenes that a caption is expected to fit: shapes_expected.c */
    size_t split_start[PNB__N_SPLITS + 1];
} pnb__shapes_set;

/* Fills match_start and matches from scenes and captions; the caller frees them, after a failure
 * too. NOMEM */
pnb_status pnb__shapes_find_truth(pnb__shapes_set *set, pnb_error *err);
/* Fills expected from scenes and captions; the caller frees it, after a failure too. NOMEM */
pnb_status pnb__shapes_find_expected(pnb__shapes_set *set, pnb_error *err);

#endif
