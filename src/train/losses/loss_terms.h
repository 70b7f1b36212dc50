/* The terms of a loss in a graph: one row each of what it needs and how it is built; loss.h weighs
 * and sums them. What they read is in term_build.h, what each computes is said in
 * include/penumbra/loss.h. */
#ifndef PNB_TRAIN_LOSS_TERMS_H
#define PNB_TRAIN_LOSS_TERMS_H

#include "train/losses/term_build.h"

/* What a term needs beside means, so that a model without it is refused by name. */
typedef struct pnb__term_row {
    pnb__tensor *(*build)(pnb__term_build *b);
    bool needs_log_var, needs_masked_image, needs_masked_text;
    bool needs_match;       /* measures something against the match of a row */
    bool needs_others;      /* is 0, and its gradient too, where a batch has one pair only */
    bool takes_labels;      /* of mixed pictures, between 0 and 1; or is not about matches */
    bool takes_several;     /* K embeddings of an input */
    bool refuses_negatives; /* is about matches, and knows no texts without one */
    bool needs_teacher, needs_spreads; /* its means; its log-variances, of the same width */
    bool asks_images; /* compares rows with all images: their gradient comes from all rows */
} pnb__term_row;

extern const pnb__term_row pnb__term_rows[PNB_N_LOSS_TERMS];

/* Shapes: image, text (B,D); masked ones (M,D) with M <= B. Means are not clipped: they are
 * unit. */
pnb__loss_in pnb__terms_clip(pnb__graph *g, const pnb__loss_in *in);
/* The PPCL logits (B,B), rows are images. */
pnb__tensor *pnb__loss_logits(pnb__graph *g, const pnb__loss_in *in);

#endif
