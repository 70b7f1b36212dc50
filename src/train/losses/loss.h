/* The losses as part of a graph; what each computes is said in include/penumbra/loss.h. */
#ifndef PNB_TRAIN_LOSS_H
#define PNB_TRAIN_LOSS_H

#include "train/losses/loss_terms.h"

/* Errors  ARG: weights, limits or factors that no model could train with; also checked below. */
pnb_status pnb__loss_check_opts(const pnb_loss_opts *o, pnb_error *err);
/* Adds every term with a weight to the graph.
 * Errors  ARG (bad weights, a term that needs a log-variance on a tower without one), SHAPE */
pnb_status pnb__loss_build(pnb__loss *out, pnb__graph *g, const pnb__loss_in *in,
                           const pnb_loss_opts *opts, pnb_error *err);
/* Once after planning: fills the constant inputs. */
pnb_status pnb__loss_start(const pnb__loss *loss, pnb_error *err);
/* Before each run of a step, of a loss built with `draws`: which samples are drawn, those of pair p
 * a function of seed, step and p alone, for row row_of[p] (NULL: row p), which of them are
 * compared, and which negatives count.  Errors  NOMEM */
pnb_status pnb__loss_set_step(const pnb__loss *loss, uint64_t seed, int64_t step,
                              const size_t *row_of, pnb_error *err);
/* Whether a term compares rows with all images, so that their gradient is made by all processes
 * that have a share of the rows; that of texts always is. */
bool pnb__loss_asks_images(const pnb_loss_opts *opts);
/* Labels of pairs, rows images and rows texts, (B,K) each: those of a row that are not the base of
 * all, less it. Each label of the one stands in the other. */
typedef struct pnb__pair_labels {
    const int32_t *columns[2];
    const float *weights[2];
} pnb__pair_labels;
/* Of a loss built with has_labels, until the next call; pnb__loss_start has those of whole
 * pictures. The match of a row is the first of its largest labels. Errors  NOMEM */
pnb_status pnb__loss_set_labels(const pnb__loss *loss, const pnb__pair_labels *labels,
                                pnb_error *err);

#endif
