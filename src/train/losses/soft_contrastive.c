/* PCME's losses over samples of all pairs.
 *
 * s(l) in the paper is e^l/(e^l + e^-l) in the code, the logistic function of 2l, so a pair's
 *   m l - log(e^l + e^-l) = log s(2 m l).
 * Distances and the log-sum-exp of a pair are one op (tensor/ops/samples.c), which never holds all
 * of them. The released code reads its log sigma as a log-variance in the divergence; here log_var
 * is the log-variance and the divergence that of the distribution, and the code's form has a name
 * of its own. */
#include "train/losses/soft_contrastive.h"

#include <math.h>

#include "penumbra/prob.h"

/* (B,D) and (B,J,D) -> (B,J,D): the mean and the spread go to all samples of a row. */
pnb__tensor *pnb__draw_samples(pnb__sampled_side side)
{
    size_t n = pnb__dim(side.noise, 0), dim = pnb__dim(side.noise, 2);
    pnb__tensor *std = pnb__apply(PNB__EXP, pnb__affine(side.log_var, 0.5, 0));
    pnb__tensor *mean = pnb__reshape(side.mean, 3, (size_t[]){n, 1, dim});
    pnb__tensor *away = pnb__mul(side.noise, pnb__reshape(std, 3, (size_t[]){n, 1, dim}));
    return pnb__add(away, mean);
}

/* The factor is fixed: released a and b were trained with it. */
pnb__tensor *pnb__soft_contrastive_pairs(pnb__tensor *x, pnb__tensor *y, pnb__tensor *scale,
                                         pnb__tensor *shift, pnb__tensor *signs)
{
    const pnb__match_in in = {x, y, scale, shift, signs, PNB_MATCH_FACTOR};
    return pnb__match_nll(&in);
}

/* Image to text and text to image are the same J^2 terms of a pair: one sum, counted twice. */
pnb__tensor *pnb__soft_contrastive(pnb__sampled_side images, pnb__sampled_side texts,
                                   pnb__tensor *scale, pnb__tensor *shift, pnb__tensor *signs)
{
    pnb__tensor *each = pnb__soft_contrastive_pairs(pnb__draw_samples(images),
                                                    pnb__draw_samples(texts), scale, shift, signs);
    return pnb__affine(pnb__sum(each, PNB__ALL_AXES), 2, 0);
}

/* 1 - P loses digits where P is near 1, so the second share is computed for itself. */
pnb__tensor *pnb__soft_contrastive_marked(pnb__sampled_side images, pnb__sampled_side texts,
                                          pnb__tensor *scale, pnb__tensor *shift,
                                          const pnb__marks *marks, bool is_hard)
{
    const pnb__match_in in = {.x = pnb__draw_samples(images),
                              .y = pnb__draw_samples(texts),
                              .scale = scale,
                              .shift = shift,
                              .factor = PNB_MATCH_FACTOR};
    pnb__tensor *rows = pnb__match_sums(&in, marks, is_hard);
    return pnb__affine(pnb__sum(rows, PNB__ALL_AXES), 2, 0);
}

/* 1/2 sum (m^2 + e^l - l - 1), m of any shape whose last two dims are those of l */
static pnb__tensor *divergence(pnb__tensor *mean, pnb__tensor *log_var)
{
    pnb__tensor *spread = pnb__sub(pnb__apply(PNB__EXP, log_var), log_var);
    pnb__tensor *each = pnb__add(spread, pnb__apply(PNB__SQUARE, mean));
    return pnb__affine(pnb__sum(each, PNB__ALL_AXES), 0.5, -0.5 * (double)pnb__n(each));
}

/* Of the distribution itself: no sample is read. */
pnb__tensor *pnb__sampled_divergence(pnb__sampled_side side)
{
    return divergence(side.mean, side.log_var);
}

/* log sigma = log_var/2 in the place of the log-variance, as kl_divergence of the code has it. */
pnb__tensor *pnb__sampled_divergence_published(pnb__sampled_side side)
{
    return divergence(pnb__mean(pnb__draw_samples(side), 1), pnb__affine(side.log_var, 0.5, 0));
}

/* lse(r) = r_0 - log_softmax(r)_0 of the rows' log-sums r, less log of the number of pairs */
pnb__tensor *pnb__uniformity(pnb__tensor *x)
{
    double n = (double)pnb__dim(x, 0);
    pnb__tensor *rows = pnb__pair_log_sums(x, 2.0);
    pnb__tensor *lse = pnb__sub(rows, pnb__log_softmax(rows));
    return pnb__affine(pnb__mean(lse, 0), 1, -log(n * (n - 1) / 2));
}
