/* The way from a picture to the root of all captions, and the captions met on it.
 *
 * Start s is the caption nearest to the picture; the root r is the embedding of the empty text, the
 * caption that includes the picture most, or their average, which is not normalised. Point i
 *   p_i = s + f_i (r - s), brought to unit length;  f_i = i/(n-1), i = 0 .. n-1
 * takes its nearest caption, so that the captions of a way go from the specific to the general.
 * pnb_traversal_score compares them with the true captions of the picture, level by level.
 * A NULL ctx means one thread; no result depends on their number. What paper and released code do
 * otherwise: docs/numerics.md#traversal.
 *
 *     pnb_traverse_opts opts = pnb_traverse_opts_default();
 *     if (pnb_traverse(ctx, &pictures, &captions, &null_text, &opts, &ways, &err) == PNB_OK)
 *         ... captions ways.step[i * ways.n_steps + s], s from the specific to the general
 *     pnb_traversal_reset(&ways);
 *
 * Source  ProLIP section 4.4; Desai et al. 2023 */
#ifndef PENUMBRA_TRAVERSAL_H
#define PENUMBRA_TRAVERSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the way ---- */

/* X(name, text, sentence): where a way ends.
 *
 * - AVERAGE: ProLIP's; weighted by including_weight. Needs both of the others.
 * - NULL_TEXT: needs no variances, so it is the one for points.
 * - INCLUDING: the ways of two pictures may end in different captions. */
#define PNB_ROOT_LIST(X)                                                                           \
    X(AVERAGE, "average", "mean of the null text and the caption that includes the picture most")  \
    X(NULL_TEXT, "null", "the embedding of the empty text, for every picture the same")            \
    X(INCLUDING, "including", "the caption that includes the picture most")

typedef enum pnb_root {
#define PNB_ROOT_ENUM(name, text, sentence) PNB_ROOT_##name,
    PNB_ROOT_LIST(PNB_ROOT_ENUM)
#undef PNB_ROOT_ENUM
        PNB_N_ROOTS /* how many there are */
} pnb_root;

const char *pnb_root_name(pnb_root root); /* "average"; "unknown" outside the list */

/* X(name, text, sentence): how captions are ranked for "includes the picture most"; 1 is the
 * picture, 2 the caption.
 *
 * - INTEGRAL: the closed form (prob.h). It falls with the distance of the two.
 * - PUBLISHED: the printed form with its misprint and eps = 0, to compare with released figures.
 * - H: inc(1,2) - inc(2,1), which grows with the caption's width and even with its distance. */
#define PNB_INCLUDING_LIST(X)                                                                      \
    X(INTEGRAL, "integral", "by log int p1^2 p2: wide enough, and near")                           \
    X(PUBLISHED, "published", "by the same as ProLIP's released evaluation computes it")           \
    X(H, "h", "by the test H(1 in 2), which prefers the widest caption whatever the picture is")

typedef enum pnb_including {
#define PNB_INCLUDING_ENUM(name, text, sentence) PNB_INCLUDING_BY_##name,
    PNB_INCLUDING_LIST(PNB_INCLUDING_ENUM)
#undef PNB_INCLUDING_ENUM
        PNB_N_INCLUDINGS /* how many there are */
} pnb_including;

const char *pnb_including_name(pnb_including by); /* "integral"; "unknown" outside the list */

typedef struct pnb_traverse_opts {
    pnb_root root;           /* AVERAGE */
    size_t n_steps;          /* n, points of a way, 2 or more. 50 */
    pnb_measure measure;     /* MEAN: nearest caption of a point; CSD also weighs its variance */
    double including_weight; /* 1: weight of the including caption against 1 for the null text */
    pnb_including including; /* INTEGRAL */
    bool from_image;         /* start at the picture itself instead of at its nearest caption */
    bool stop_before_root;   /* f_i = i/n: the last point is one step short of the root, as in
                              * ProLIP's code; false: the last point is the root */
} pnb_traverse_opts;

/* The values that stand beside the fields, and false. */
pnb_traverse_opts pnb_traverse_opts_default(void);
/* What ProLIP's released evaluation does: stop_before_root, including PUBLISHED. */
pnb_traverse_opts pnb_traverse_opts_released(void);

/* Captions are row numbers of the set that was traversed. */
typedef struct pnb_traversal {
    size_t n, n_steps;  /* pictures, points of each way */
    int64_t *step;      /* [n][n_steps] caption nearest to each point, from the picture on */
    int64_t *start;     /* [n] caption nearest to the picture */
    int64_t *root;      /* [n] caption nearest to the root */
    int64_t *including; /* [n] caption that includes the picture most; -1: root is NULL_TEXT */
    double *score;      /* [n] of that caption by opts->including; NaN where including is -1 */
} pnb_traversal;

void pnb_traversal_reset(pnb_traversal *t); /* frees the arrays; NULL is fine */

/* The ways of all pictures. opts NULL: the defaults. `out` need not be initialised and is all zero
 * on failure; free it with pnb_traversal_reset. Ties go to the lower row.
 *   null_text  one row, the embedding of ""; may be NULL when opts->root is INCLUDING
 * Shape   pictures (N,D), captions (M,D), null_text (1,D)
 * Memory  O(N * n_steps) and a block of 4096 points
 * Errors  SHAPE (widths differ, an empty set, null_text of several rows), ARG (fewer than 2 steps,
 *         a measure other than mean, csd and w2, a weight that is not positive, null_text missing,
 *         variances missing where inclusion decides), NUMERIC (a point of length 0, a value that is
 *         not finite, variances beyond e^170 where inclusion decides), NOMEM */
pnb_status pnb_traverse(const pnb_ctx *ctx, const pnb_gaussians *images, const pnb_gaussians *texts,
                        const pnb_gaussians *null_text, const pnb_traverse_opts *opts,
                        pnb_traversal *out, pnb_error *err);

/* ---- what it comes to ---- */

/* Which captions are true of each picture. Captions with equal labels are the same text. A picture
 * has one true caption a level; two levels may have the same. Borrowed during the call. */
typedef struct pnb_traversal_truth {
    size_t n_texts;       /* rows of the captions that were traversed */
    size_t n_images;      /* ways */
    size_t n_levels;      /* HierarCaps: 4 */
    const int64_t *label; /* [n_texts] */
    const int64_t *truth; /* [n_images][n_levels] label, level 0 the most general */
} pnb_traversal_truth;

/* Of one picture: P = distinct labels along its path, G = its true labels. */
typedef struct pnb_traversal_row {
    size_t n_distinct; /* |P| */
    double precision;  /* |P and G| / |P| */
    double recall;     /* share of the levels whose label is in P */
    bool any;          /* P and G share a label */
    bool start_true;   /* the nearest caption of the picture is in G */
    bool root_true;    /* the nearest caption of the root is in G */
    bool root_top;     /* ... and is the caption of level 0 */
} pnb_traversal_row;

/* Means over the pictures, in [0,1] but for n_distinct. */
typedef struct pnb_traversal_figures {
    size_t n;                /* pictures */
    double precision;        /* how much of what was met is true */
    double recall;           /* how many of the true levels were met */
    double any_recall;       /* share of pictures where any was */
    double recall_at_1;      /* of start_true: R@1 */
    double root_recall_at_1; /* of root_true: R@1[ROOT] */
    double root_is_level_0;  /* of root_top */
    double n_distinct;       /* captions met, from 1 to n_steps */
} pnb_traversal_figures;

/* Counts as the released code does: texts, not rows.
 *   rows  n_images entries, the caller's; may be NULL
 * Errors  SHAPE (truth and traversal differ in pictures, or the traversal names a caption beyond
 *         n_texts), ARG (no picture, no level), NOMEM */
pnb_status pnb_traversal_score(const pnb_traversal *t, const pnb_traversal_truth *truth,
                               pnb_traversal_row *rows, pnb_traversal_figures *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
