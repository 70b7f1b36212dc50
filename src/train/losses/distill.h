/* Losses against a teacher's embeddings of the same pairs, which carry no gradient. */
#ifndef PNB_TRAIN_LOSSES_DISTILL_H
#define PNB_TRAIN_LOSSES_DISTILL_H

#include "models/tower.h"
#include "tensor/graph.h"
#include "train/losses/row_share.h"

/* Pairs of a step, ours and the teacher's of the same inputs. */
typedef struct pnb__distill_in {
    pnb__tensor *image, *text;                 /* (B,D); one of the two has the scale in it */
    pnb__tensor *targets;                      /* (B) int32: row numbers */
    pnb__tensor *teacher_image, *teacher_text; /* (B,D'), unit rows */
    double teacher_scale;                      /* c of its logits, above 0 */
    pnb__row_share share; /* the rows that are asked; `targets` is of these alone */
} pnb__distill_in;

/* Mean of both ways of the cross-entropy between the teacher's and our distributions over the
 * batch; nothing of size B^2 is held. Source  open_clip's DistillClipLoss */
pnb__tensor *pnb__distill_pairs(const pnb__distill_in *in);

/* KL(teacher | ours) of diagonal Gaussians, (B,D) both: mean over B and D. */
pnb__tensor *pnb__distill_gaussians(const pnb__dist *ours, const pnb__dist *teacher);

#endif
