/* Results of several models as a table of a paper: Markdown, and csv in long form. */
#ifndef PNB_COMMANDS_EVAL_EVAL_TABLE_H
#define PNB_COMMANDS_EVAL_EVAL_TABLE_H

#include "commands/eval/eval_retrieval.h"

/* A figure of COCO against that of the first model: second minus first. */
typedef struct pnb__coco_test {
    pnb_interval difference;
    double p;
} pnb__coco_test;

/* One model: its seeds' figures together. Directions: 0 image to text, 1 text to image. */
typedef struct pnb__table_row {
    const char *name;
    size_t n_seeds, n_queries[2], n_clusters[2];
    const char *cluster_unit;                    /* what was resampled */
    pnb_figure_intervals by_query[2], by_hit[2]; /* value: mean over seeds */
    pnb_figures std_query[2], std_hit[2];        /* over seeds; NaN with one */
    bool has_test;                               /* compared with the first row */
    pnb_figure_test test_query[2], test_hit[2];
    pnb_rsum rsum, rsum_test;             /* of both directions; the test as above */
    const pnb__coco_row *coco;            /* of the run, which must outlive this */
    const double (*coco_std)[2];          /* [n_coco] over seeds, by direction; NULL: of one run */
    const pnb__coco_test (*coco_test)[2]; /* [n_coco] where has_test; else not read */
    size_t n_coco;
} pnb__table_row;

typedef struct pnb__table {
    const char *dataset;
    const size_t *k;
    size_t n_k;
    const pnb__table_row *row;
    size_t n_rows;
    bool has_intervals;
} pnb__table;

/* A figure by number: recalls first, then pnb_figure. */
enum { PNB__N_TABLE_FIGURES = PNB_MAX_RECALLS + PNB_N_FIGURES };
double pnb__table_value(const pnb_figures *f, size_t i);
/* "recall@5", "aurc"; a figure that hangs on whose uncertainty sorts is_sorted. */
void pnb__table_name(const pnb__table *t, size_t i, char name[32], bool *is_sorted);
/* False for cut-offs that were not asked for and figures that no row has. */
bool pnb__table_has(const pnb__table *t, size_t i);

/* dataset, model, direction, figure, sorted_by, value, low, high, std, seeds, queries, and for a
 * comparison difference and its interval and p; number and unit of the clusters. Whole or not at
 * all.  Errors  IO, NOMEM */
pnb_status pnb__table_save_csv(const pnb__table *t, const char *path, pnb_error *err);
/* Percent with intervals, or +- over seeds; a star where p < 0.05 against the first row. */
pnb_status pnb__table_save_markdown(const pnb__table *t, const char *path, pnb_error *err);

/* The row of one run, with its COCO figures. */
pnb__table_row pnb__table_row_of(const pnb__retrieval *run, const char *name);

#endif
