/* Distillation from a frozen teacher (formulas in include/penumbra/loss.h).
 *
 * Of the cross-entropy -sum_j P_ij log Q_ij = lse_i - sum_j P_ij l_ij no (B,B) of ours is kept: the
 * first part is that of the op for InfoNCE, the second is l_i against the rows mixed by P. P itself
 * is the teacher's and has no gradient. */
#include "train/losses/distill.h"

/* P_ij = softmax_j(c x_i . y_j) */
static pnb__tensor *shares(pnb__tensor *x, pnb__tensor *y, double scale)
{
    return pnb__softmax(pnb__affine(pnb__matmul(x, false, y, true), scale, 0));
}

/* mean_i (lse_i - sum_j P_ij l_ij), l_ij = x_i . y_j: the op gives lse_i - l_ii. */
static pnb__tensor *one_way(pnb__tensor *x, pnb__tensor *y, pnb__tensor *targets, pnb__tensor *p)
{
    pnb__tensor *against_own = pnb__pair_cross_entropy(x, y, targets);
    pnb__tensor *mixed = pnb__matmul(p, false, y, false);
    /* l_ii - sum_j P_ij l_ij in one product: x_i . (y_i - sum_j P_ij y_j) */
    pnb__tensor *rest = pnb__sum(pnb__mul(x, pnb__sub(y, mixed)), -1);
    return pnb__mean(pnb__add(against_own, rest), PNB__ALL_AXES);
}

pnb__tensor *pnb__distill_pairs(const pnb__distill_in *in)
{
    /* what the teacher finds for each picture, and for each caption: two distributions */
    pnb__tensor *rows = shares(in->teacher_image, in->teacher_text, in->teacher_scale);
    pnb__tensor *columns = shares(in->teacher_text, in->teacher_image, in->teacher_scale);
    pnb__tensor *i2t = one_way(in->image, in->text, in->targets, rows);
    pnb__tensor *t2i = one_way(in->text, in->image, in->targets, columns);
    return pnb__affine(pnb__add(i2t, t2i), 0.5, 0);
}

/* 1/2 mean(lv - lv' + (exp(lv') + (mu' - mu)^2) exp(-lv) - 1) */
pnb__tensor *pnb__distill_gaussians(const pnb__dist *ours, const pnb__dist *teacher)
{
    /* exp(-lv) once for both parts of what is divided by our variance */
    pnb__tensor *gap = pnb__apply(PNB__SQUARE, pnb__sub(ours->mean, teacher->mean));
    pnb__tensor *spread = pnb__add(pnb__apply(PNB__EXP, teacher->log_var), gap);
    pnb__tensor *ratio = pnb__mul(spread, pnb__apply(PNB__EXP, pnb__affine(ours->log_var, -1, 0)));
    pnb__tensor *all = pnb__add(pnb__sub(ours->log_var, teacher->log_var), ratio);
    return pnb__affine(pnb__mean(all, PNB__ALL_AXES), 0.5, -0.5);
}
