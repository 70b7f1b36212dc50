/* Figures that count classes or groups alike: F1, balanced accuracy, the worst group. */
#ifndef PNB_COMMANDS_CLASSIFY_CLASS_GROUPS_H
#define PNB_COMMANDS_CLASSIFY_CLASS_GROUPS_H

#include "commands/classify/class_names.h"
#include "penumbra/class_scores.h"
#include "penumbra/classify.h"
#include "penumbra/embeddings.h"

/* Which group each picture is of. All zero: there are none. */
typedef struct pnb__image_groups {
    pnb__texts names;           /* in order */
    int32_t *group;             /* [set->n] -1: of none */
    pnb_group_score *acc1;      /* [names.n] accuracy of each group */
    pnb_group_score *acc5;      /* the same among the first five; NULL with fewer classes */
    pnb_group_scores all, all5; /* over the groups, of both */
    size_t n_without;           /* labelled pictures of no group */
} pnb__image_groups;

/* From a file of `id TAB group`, or with `path` NULL from the field `key` of the rows.
 * Errors  NOT_FOUND (an id that no picture has; no row with the field), ARG (an id that several
 *         pictures have, one that stands twice), FORMAT, NOMEM */
pnb_status pnb__image_groups_read(pnb__image_groups *out, const pnb_embeddings *set,
                                  const char *path, const char *key, pnb_error *err);
void pnb__image_groups_reset(pnb__image_groups *groups);

/* What of the labelled pictures is to be counted, one behind the other. */
typedef struct pnb__labelled_images {
    size_t n;
    int32_t *label, *predicted, *group; /* group NULL: none */
    double *right, *right5;             /* 1: the label is first, among the first five */
} pnb__labelled_images;
pnb_status pnb__labelled_images_init(pnb__labelled_images *out, const pnb_predictions *p,
                                     const int32_t *label, const int32_t *group, pnb_error *err);
void pnb__labelled_images_reset(pnb__labelled_images *rows);
/* Fills acc1 to n_without. Errors  ARG (no labelled picture has a group), NOMEM */
pnb_status pnb__image_groups_judge(pnb__image_groups *groups, const pnb__labelled_images *rows,
                                   size_t n_classes, const pnb_bootstrap_opts *opts,
                                   pnb_error *err);

#endif
