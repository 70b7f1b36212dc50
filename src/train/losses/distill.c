/* Distillation from a frozen teacher (formulas in include/penumbra/loss.h).
 *
 * Of the cross-entropy -sum_j P_ij log Q_ij = lse_i - sum_j P_ij l_ij the first part is that of the
 * op for InfoNCE, the second is l_i against the rows mixed by P, which is the teacher's and has no
 * gradient. Neither P nor our logits are held. */
#include "train/losses/distill.h"

/* mean_i (lse_i - sum_j P_ij l_ij), l_ij = x_i . y_j, P_ij = softmax_j(c a_i . b_j): the op gives
 * lse_i - l_ii. */
static pnb__tensor *one_way(const pnb__distill_in *in, bool is_turned)
{
    pnb__tensor *x = is_turned ? in->text : in->image, *y = is_turned ? in->image : in->text;
    pnb__tensor *a = is_turned ? in->teacher_text : in->teacher_image;
    pnb__tensor *b = is_turned ? in->teacher_image : in->teacher_text;
    pnb__tensor *asks = pnb__share_rows(&in->share, x);
    pnb__tensor *against_own = pnb__pair_cross_entropy(asks, y, in->targets);
    pnb__tensor *mixed = pnb__pair_blend(pnb__share_rows(&in->share, a), b, y, in->teacher_scale);
    /* l_ii - sum_j P_ij l_ij in one product: x_i . (y_i - sum_j P_ij y_j) */
    pnb__tensor *own = pnb__share_rows(&in->share, y);
    pnb__tensor *rest = pnb__sum(pnb__mul(asks, pnb__sub(own, mixed)), -1);
    return pnb__share_part(&in->share, pnb__mean(pnb__add(against_own, rest), PNB__ALL_AXES));
}

/* What the teacher finds for each picture, and for each caption: two distributions. */
pnb__tensor *pnb__distill_pairs(const pnb__distill_in *in)
{
    return pnb__affine(pnb__add(one_way(in, false), one_way(in, true)), 0.5, 0);
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
