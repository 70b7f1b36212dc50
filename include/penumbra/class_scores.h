/* Figures over classes, groups and data sets: the numbers that evaluation suites average.
 *
 * Accuracy counts pictures. Where classes or groups differ in size a suite reports what counts them
 * alike: the mean over classes of recall (balanced accuracy) and of F1, or the accuracy of the
 * group that does worst. Shares are fractions in [0,1]; intervals are the BCa bootstrap of
 * bootstrap.h. Definitions and sources: docs/numerics.md#class-scores.
 *
 *     pnb_class_scores_compute(label, predicted, n, n_classes, &scores, &err);
 *     pnb_group_scores_compute(right, group, n, n_groups, NULL, &groups, &err);
 *     pnb_suite_mean(figures, n_sets, &average, &err); */
#ifndef PENUMBRA_CLASS_SCORES_H
#define PENUMBRA_CLASS_SCORES_H

#include <stddef.h>
#include <stdint.h>

#include "penumbra/bootstrap.h"
#include "penumbra/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- classes ---- */

/* Means over the classes that have pictures; a class that is only predicted has no part in them. */
typedef struct pnb_class_scores {
    size_t n_present;      /* classes with pictures */
    pnb_interval balanced; /* mean of recall: balanced accuracy, mean accuracy of a class */
    pnb_interval macro_f1; /* mean of F1 = 2 TP/(2 TP + FP + FN) */
} pnb_class_scores;

/* Both means with their intervals. A class that a resample does not draw is not in its mean.
 *   f1    [n_classes] F1 of each class, NaN of one without pictures; may be NULL
 *   opts  0 resamples: values only; NULL: the defaults
 * Shape   label, predicted (n) in [0, n_classes)
 * Errors  ARG (no pictures, a number out of range: names the row; a level), NOMEM
 * Source  scikit-learn's f1_score(average="macro", labels=those of the truth), as WILDS takes it */
pnb_status pnb_class_scores_compute(const int32_t *label, const int32_t *predicted, size_t n,
                                    size_t n_classes, const pnb_bootstrap_opts *opts,
                                    pnb_class_scores *out, double *f1, pnb_error *err);

/* ---- groups ---- */

typedef struct pnb_group_score {
    size_t n;          /* rows of the group */
    pnb_interval mean; /* of their values; NaN of a group without rows */
} pnb_group_score;

/* Of the rows that have a group. */
typedef struct pnb_group_scores {
    size_t n, n_present;     /* rows with a group; groups with rows */
    size_t worst;            /* the group of the smallest mean, the first of several */
    pnb_interval worst_mean; /* what a resample has smallest, whichever group that is: the interval
                              * tells of the worst group, not of this one */
    pnb_interval average;    /* mean over the groups, each counted alike */
} pnb_group_scores;

/* Mean of a value by group (1 for a right answer: accuracy), and the worst of them.
 *   groups  [n_groups], the caller's; may be NULL
 *   opts    0 resamples: values only; NULL: the defaults. cluster: [n], as the rows
 * Shape   value (n), group (n) from 0 on, negative: left out
 * Errors  ARG (no row has a group, a group >= n_groups: names the row), NUMERIC (a value is not
 *         finite), NOMEM
 * Source  Sagawa et al. 2020 (worst-group accuracy); DataComp's suite (FMoW, GeoDE, Dollar Street)
 */
pnb_status pnb_group_scores_compute(const double *value, const int32_t *group, size_t n,
                                    size_t n_groups, const pnb_bootstrap_opts *opts,
                                    pnb_group_score *groups, pnb_group_scores *out, pnb_error *err);

/* ---- suites ---- */

/* The mean of figures of n data sets, each counted alike, with the interval of independent
 * estimates (MOVER): low = mean - sqrt(sum (value - low_i)^2)/n, high likewise. Its ends are NaN
 * where a figure has none.
 * Errors  ARG (n = 0), NUMERIC (a value is not finite: names its place)
 * Source  DataComp's suite, Gadre et al. 2023 (the average); Zou and Donner 2008 (the interval) */
pnb_status pnb_suite_mean(const pnb_interval *figure, size_t n, pnb_interval *out, pnb_error *err);

#ifdef __cplusplus
}
#endif
#endif
