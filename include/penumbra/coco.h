/* COCO 1K and 5K, CxC and ECCV Caption in one table, both ways, with intervals.
 *
 * The same two sets are judged by up to four truths in one pass over their scores:
 *   COCO 5K  the annotated pairs, every picture and caption of the test split
 *   COCO 1K  the same inside each of five folds; the figure is the mean over the folds
 *   CxC      pairs that people judged similar (Parekh et al. 2021)
 *   ECCV     the extended list of ECCV Caption, over its own queries only (Chun et al. 2022)
 * Shares are fractions in [0,1]; papers print them x 100. Queries without a positive are left out.
 * A NULL ctx means one thread; no result depends on their number. docs/numerics.md#retrieval */
#ifndef PENUMBRA_COCO_H
#define PENUMBRA_COCO_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/bootstrap.h"
#include "penumbra/ctx.h"
#include "penumbra/error.h"
#include "penumbra/prob.h"
#include "penumbra/retrieval.h"
#include "penumbra/search.h"
#include "penumbra/truth.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PNB_COCO_FOLDS 5 /* of COCO 1K */

/* Truths between pictures and captions. The two directions are read from files of their own: ECCV's
 * are not transposes of each other. cxc and eccv may be NULL, both directions of one together. */
typedef struct pnb_coco_truth {
    const pnb_truth *original_i2t, *original_t2i; /* the annotated pairs; needed */
    const pnb_truth *cxc_i2t, *cxc_t2i;           /* i2t: pictures ask, captions are ranked */
    const pnb_truth *eccv_i2t, *eccv_t2i;         /* t2i: captions ask, pictures are ranked */
    const int32_t *image_fold, *text_fold; /* by row, 0 .. PNB_COCO_FOLDS-1 of COCO 1K, negative:
                                            * in none. Both NULL: no coco_1k */
} pnb_coco_truth;

/* One figure in both directions; the two have lists of their own and need not be alike. */
typedef struct pnb_both_ways {
    double i2t, t2i; /* pictures ask for captions, captions for pictures */
} pnb_both_ways;

/* Names as ECCV Caption's package prints them; NaN where the truth was not given. */
typedef struct pnb_coco_figures {
    pnb_both_ways coco_1k_r[3], coco_5k_r[3];     /* R@1, R@5 and R@10 */
    pnb_both_ways cxc_r[3], eccv_r[3];            /* the same three */
    pnb_both_ways eccv_map_at_r, eccv_rprecision; /* by all positives of the extended list */
} pnb_coco_figures;

/* ---- folds ---- Arrays hold part of the result after a failure. */

/* Folds as ECCV Caption's code has them: n / 5 consecutive captions each, and the pictures they
 * belong to. The remainder of n is in no fold (-1), as are pictures without a caption in one.
 *   order  n_order row numbers of captions; NULL: all of them in row order
 * Errors  ARG (fewer than 5 captions, a row number out of range, a picture whose captions lie in
 *         two folds) */
pnb_status pnb_coco_folds(const pnb_truth *text_to_image, const size_t *order, size_t n_order,
                          int32_t *image_fold, int32_t *text_fold, pnb_error *err);

/* Folds by pictures, as a file of Karpathy's split has them (VSE++, PCME, PCME++): n_order / 5
 * consecutive pictures each, in the order of row numbers given, with all captions of theirs.
 * Errors  ARG (fewer than 5 pictures, a row number out of range, a caption of pictures in two
 *         folds) */
pnb_status pnb_coco_folds_by_image(const pnb_truth *image_to_text, const size_t *order,
                                   size_t n_order, int32_t *image_fold, int32_t *text_fold,
                                   pnb_error *err);

/* ---- figures ---- */

/* The whole table from two sets. opts as in pnb_ranks_compute, for pictures as queries; captions
 * ask with the same values of a pair. A query whose fold holds none of its positives is left out;
 * folds as made above hold all captions of their pictures, so it does not come up.
 * Shape   images (I,D), texts (T,D); i2t truths of I queries and T items, t2i the other way
 * Memory  O(pairs + N*block) and a copy of the rows of one fold
 * Errors  ARG (no original pairs, a truth or folds of one direction only, no query with a
 *         positive), and those of pnb_ranks_compute_tasks */
pnb_status pnb_coco_compute(const pnb_ctx *ctx, const pnb_gaussians *images,
                            const pnb_gaussians *texts, const pnb_coco_truth *truth,
                            const pnb_search_opts *opts, pnb_coco_figures *out, pnb_error *err);

/* Rows of scores of both directions, as pnb_ranks_from_rows takes them: i2t fills a score for every
 * caption, t2i for every picture. */
typedef struct pnb_coco_rows {
    pnb_score_row_fn i2t, t2i;
    void *user; /* given to both */
} pnb_coco_rows;

/* The whole table from scores of the caller: a measure of one's own, a model without embeddings.
 * Errors  as pnb_coco_compute, less those of measures */
pnb_status pnb_coco_from_rows(const pnb_ctx *ctx, const pnb_coco_rows *rows,
                              const pnb_coco_truth *truth, pnb_coco_figures *out, pnb_error *err);

/* ---- the two steps of the above: rankings by truth, then what they come to ---- */

/* The truths of the table. */
typedef enum pnb_coco_kind {
    PNB_COCO_1K,     /* original pairs, in folds */
    PNB_COCO_5K,     /* original pairs */
    PNB_COCO_CXC,    /* its own list */
    PNB_COCO_ECCV,   /* likewise */
    PNB_N_COCO_KINDS /* how many there are */
} pnb_coco_kind;

/* Rankings of one direction under each truth, and what was sampled together. The arrays are owned
 * by the pnb_coco_ranks that holds it. */
typedef struct pnb_coco_side {
    pnb_ranks ranks[PNB_N_COCO_KINDS]; /* n_queries 0: this truth was not given */
    int32_t *fold;                     /* [n_queries] of COCO 1K; NULL without */
    int64_t *cluster; /* [n_queries] drawn together: a picture with its captions, as the original
                       * pairs connect them. May be changed; NULL: each query by itself */
} pnb_coco_side;

/* Both directions, O(queries) in size. */
typedef struct pnb_coco_ranks {
    pnb_coco_side side[2]; /* image to text, text to image */
} pnb_coco_ranks;

/* Rankings from two sets, for more than the table: figures of single queries, tests of one's own.
 * `out` need not be initialised and is all zero on failure; free it with pnb_coco_ranks_reset.
 * Memory  O(queries) for what comes back.  Errors  as pnb_coco_compute but for the figures */
pnb_status pnb_coco_rank(const pnb_ctx *ctx, const pnb_gaussians *images,
                         const pnb_gaussians *texts, const pnb_coco_truth *truth,
                         const pnb_search_opts *opts, pnb_coco_ranks *out, pnb_error *err);
/* The same from rows of scores.
 * Errors  as pnb_coco_from_rows but for the figures */
pnb_status pnb_coco_rank_rows(const pnb_ctx *ctx, const pnb_coco_rows *rows,
                              const pnb_coco_truth *truth, pnb_coco_ranks *out, pnb_error *err);
void pnb_coco_ranks_reset(pnb_coco_ranks *ranks); /* frees, all zero afterwards; NULL is fine */
/* The table of such rankings; pnb_coco_compute is the two in one call.
 * Errors  ARG (a truth under which no query has a positive), NOMEM */
pnb_status pnb_coco_summarise(const pnb_coco_ranks *ranks, pnb_coco_figures *out, pnb_error *err);

/* NaN where no truth was given; low and high also with 0 resamples or fewer than two clusters. */
typedef struct pnb_coco_intervals {
    pnb_coco_figures value, low, high;
} pnb_coco_intervals;

/* The table with intervals (bootstrap.h) over resampled clusters: of each truth the queries that
 * have a positive; of COCO 1K the clusters of each fold are drawn among themselves and the folds
 * averaged. One truth's figures are drawn together, and the two directions apart. opts NULL: the
 * defaults; its clusters are not read. 0 resamples: values only.
 * Errors  ARG (no query with a positive, level), NOMEM */
pnb_status pnb_coco_bootstrap(const pnb_ctx *ctx, const pnb_coco_ranks *ranks,
                              const pnb_bootstrap_opts *opts, pnb_coco_intervals *out,
                              pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
