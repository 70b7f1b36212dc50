/* Retrieval between two embedding sets on disk: figures with intervals, chance, uncertainty bins,
 * the COCO table. eval_load.c joins sets and truth, eval_retrieval.c computes, eval_report.c shows.
 */
#ifndef PNB_COMMANDS_EVAL_EVAL_RETRIEVAL_H
#define PNB_COMMANDS_EVAL_EVAL_RETRIEVAL_H

#include "commands/common/match_use.h"
#include "eval/resample/means_bootstrap.h"
#include "penumbra/bootstrap.h"
#include "penumbra/coco.h"
#include "penumbra/embeddings.h"
#include "penumbra/figures.h"
#include "penumbra/retrieval.h"
#include "penumbra/rsum.h"
#include "penumbra/truth.h"
#include "penumbra/uncertainty_calibration.h"
#include "penumbra/view.h"
#include "program/app.h"
#include "program/result_end.h"
#include "sets/settle.h"

typedef struct pnb__retrieval_opts {
    const char *images, *texts; /* embedding sets */
    const char *truth;          /* truth file; NULL: row i belongs to row i */
    pnb_truth_read_opts read;   /* its format and split */
    const char *class_key;      /* field of the ids files whose equal values match, in place of a
                                 * truth file; NULL: none */
    const char *eccv;           /* folder of ECCV Caption's lists; NULL: none */
    const char *label_vectors;  /* labels of the pictures, for PMRP; NULL: none */
    size_t fold_images;         /* pictures in a fold of COCO 1K: 1,000 (smaller in tests) */
    int level;                  /* only captions of this level; -1: all */
    pnb_measure measure;
    pnb__match_words match; /* its constants, where it has any */
    pnb_uncertainty uncertainty;
    pnb_binning binning;
    size_t n_bins;
    bool bin_by_hit; /* bins by the uncertainty of the item found instead of the query's */
    size_t k[PNB_MAX_RECALLS];
    size_t n_k;
    size_t n_resamples;  /* of the intervals; 0: none */
    pnb_peers *ranks;    /* that share the queries; NULL: this process alone */
    const char *cluster; /* field of the ids files whose values are drawn together; NULL: what the
                          * truth connects */
} pnb__retrieval_opts;

/* Measure and uncertainty of the families, 10 bins of equal count, all levels, k = 1, 5, 10, no
 * intervals. */
pnb__retrieval_opts pnb__retrieval_opts_default(void);

/* Per-query values of one direction, owned; `hit` shares all but the uncertainty. */
typedef struct pnb__side_values {
    pnb_query_values query, hit; /* by the uncertainty of the query, of what it found */
    void *memory;
} pnb__side_values;

enum { PNB__N_COVERAGE = 20 };

/* One direction: ranks of each query, and what goes with them. */
typedef struct pnb__retrieval_side {
    pnb_ranks ranks;
    pnb_uncertainty_calibration bins;
    double chance[PNB_MAX_RECALLS]; /* recalls of a random ranking */
    double chance_r_precision;
    pnb__side_values values;
    pnb_figure_intervals by_query, by_hit;                   /* low, high NaN without resamples */
    double coverage[PNB__N_COVERAGE], risk[PNB__N_COVERAGE]; /* by the query's uncertainty */
} pnb__retrieval_side;

/* Figures of COCO, CxC, ECCV Caption or PMRP that are means over the same queries: a pnb_coco_kind,
 * or plausible matches in the whole gallery and in the folds of COCO 1K. */
enum { PNB__COCO_PMRP = PNB_N_COCO_KINDS, PNB__COCO_PMRP_1K, PNB__N_COCO_BLOCKS };

/* One of them; without resamples low and high are NaN. */
typedef struct pnb__coco_row {
    char key[24], label[24]; /* "coco_1k_r1", "1K R@1" */
    pnb_interval side[2];    /* image to text, text to image */
    size_t n_queries[2];
    size_t block, column; /* column of the block's means; behind the last: their mean */
} pnb__coco_row;
enum { PNB__MAX_COCO_ROWS = 22 };

/* Classes of the rows by opts->class_key; n = 0: not asked for. */
typedef struct pnb__row_classes {
    char **name; /* [n], in order */
    size_t n;
    int32_t *image, *text; /* of each row; -1: it has none */
} pnb__row_classes;
void pnb__row_classes_reset(pnb__row_classes *classes);

typedef struct pnb__retrieval {
    pnb_embeddings *images, *texts; /* texts of the level asked for */
    pnb_view image_view, text_view;
    pnb_rows image_rows, text_rows; /* of the views */
    pnb_truth *truth, *backward;    /* image -> texts, text -> images */
    pnb_measure measure;            /* that was used */
    pnb_measure_opts measure_opts;  /* its constants and the seed of its samples */
    pnb_uncertainty uncertainty;    /* that was used; cosine is of a query and its first hit */
    double *image_u, *text_u;       /* of rows, whatever the family; of points 0 */
    int *text_level;                /* -1 unknown */
    pnb__row_classes classes;
    pnb_retrieval figures;                 /* forward: image to text */
    int64_t *image_cluster, *text_cluster; /* rows of one label are drawn together */
    size_t n_clusters[2];                  /* among the queries of each direction */
    char cluster_unit[96];                 /* what a cluster is: "picture with its captions" */
    pnb__retrieval_side i2t, t2i;
    bool has_intervals;
    pnb_rsum rsum;
    pnb__coco_row coco[PNB__MAX_COCO_ROWS];
    size_t n_coco;
    pnb__means coco_means[PNB__N_COCO_BLOCKS][2]; /* by direction; n 0: not asked for */
    int64_t *karpathy_row; /* [n_karpathy] rows of the pictures in the order of a Karpathy file of
                            * COCO, -1: in none; NULL: the truth is another file */
    size_t n_karpathy;
    int32_t *image_fold, *text_fold; /* of COCO 1K; NULL: no folds */
} pnb__retrieval;

/* Loads, checks that the sets belong together, ranks and bins.
 * `run` is released by pnb__retrieval_reset in any case. */
pnb_status pnb__retrieval_run(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run);
void pnb__retrieval_reset(pnb__retrieval *run);

/* The result in CLIP_benchmark's JSON form with additions, and as text. */
void pnb__retrieval_report(const pnb__retrieval *run, const pnb__retrieval_opts *opts,
                           const char *dataset, pnb__result *r);

/* ---- eval_load.c ---- Sets, truth and what is kept of them, up to text_level. */
pnb_status pnb__retrieval_load(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run);

/* ---- eval_classes.c ---- The truth of opts->class_key, with run->classes.
 * Errors  NOT_FOUND (a side without the field), ARG (no class of both), FORMAT (a value that is
 *         neither a text nor a whole number), NOMEM */
pnb_status pnb__retrieval_class_truth(pnb__app *app, const pnb__retrieval_opts *opts,
                                      pnb__retrieval *run);
/* R@1 and R-Precision both ways of each class and as their mean, where there are classes. */
pnb_status pnb__retrieval_put_classes(pnb__app *app, const pnb__retrieval *run, pnb__result *r);

/* ---- eval_clusters.c ---- Labels, number and unit of what is drawn together; fewer clusters
 * than an interval needs are warned of. Errors  NOT_FOUND, FORMAT (the field of opts->cluster) */
pnb_status pnb__retrieval_clusters(pnb__app *app, const pnb__retrieval_opts *opts,
                                   pnb__retrieval *run);

/* ---- eval_folds.c ---- The folds of COCO 1K: of ECCV Caption's order of captions, else of a
 * Karpathy file's order of pictures; where a file of COCO is there and makes none, that is said.
 * `eccv_t2i` are the original pairs of opts->eccv. */
pnb_status pnb__retrieval_folds(pnb__app *app, const pnb__retrieval_opts *opts,
                                const pnb_truth *eccv_t2i, pnb__retrieval *run);

/* ---- eval_coco.c ---- Adds the table of opts->eccv, or that of the truth where it makes
 * folds, and PMRP of opts->label_vectors to run->coco, with intervals if there are resamples. */
pnb_status pnb__retrieval_coco(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run);
pnb_status pnb__retrieval_pmrp(pnb__app *app, const pnb__retrieval_opts *opts, pnb__retrieval *run);

#endif
