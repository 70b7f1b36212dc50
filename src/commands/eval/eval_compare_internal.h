/* A comparison of models while it is computed (eval_compare.c) and shown (compare_show.c). */
#ifndef PNB_COMMANDS_EVAL_EVAL_COMPARE_INTERNAL_H
#define PNB_COMMANDS_EVAL_EVAL_COMPARE_INTERNAL_H

#include "commands/common/set_use.h"
#include "commands/eval/eval_compare.h"
#include "penumbra/figures.h"
#include "penumbra/uncertainty_calibration.h"

/* One pair of sets after ranking. */
typedef struct pnb__compare_member {
    char *name;
    const char *images, *texts; /* paths */
    pnb__side_values side[2];
    char rows[65]; /* hash of the ids of both sides */
    pnb_measure measure;
    pnb_uncertainty uncertainty;
    pnb_uncertainty_calibration bins[2];
    char pretrained[PNB__PRETRAINED_BYTES];
    size_t n_clusters[2];
    char cluster_unit[96];
    pnb__coco_row coco[PNB__MAX_COCO_ROWS];
    pnb__means coco_means[PNB__N_COCO_BLOCKS][2];
    size_t n_coco;
} pnb__compare_member;

/* Members of one name, as arrays for the bootstrap. */
typedef struct pnb__compare_group {
    const char *name;
    size_t n;
    pnb_query_values *query[2], *hit[2];          /* [n] by direction */
    pnb__means coco_means[PNB__N_COCO_BLOCKS][2]; /* of each query over the members */
    pnb__coco_row coco[PNB__MAX_COCO_ROWS];
    double coco_std[PNB__MAX_COCO_ROWS][2];
    pnb__coco_test coco_test[PNB__MAX_COCO_ROWS][2];
    size_t n_coco;
} pnb__compare_group;

typedef struct pnb__comparison {
    const pnb__compare_opts *opts;
    pnb__compare_member *member; /* [n] of those that could be ranked */
    size_t n;
    pnb__compare_group *group;
    pnb__table_row *row;
    size_t n_groups;
} pnb__comparison;

/* Tables, and the files that were asked for. Errors  NOMEM, those of writing files */
pnb_status pnb__comparison_show(pnb__app *app, const pnb__comparison *c, pnb__result *r);

#endif
