/* PCME's loss over samples of all pairs.
 *
 * s(l) in the paper is e^l/(e^l + e^-l) in the code, the logistic function of 2l, so a pair's
 *   m l - log(e^l + e^-l) = log s(2 m l).
 * The log-sum-exp of a row r of K numbers is r_k - log_softmax(r)_k for any k; the mean of that
 * over k is as exact and needs no op of its own. Every pair's J^2 distances come of one product of
 * all samples. The released code reads its log sigma as a log-variance in the divergence; here it
 * is the log-variance, and the divergence that of the distribution. */
#include "adapt/heads/soft_contrastive.h"

#include <math.h>

/* (B,J,D) -> (B J, D) */
static pnb__tensor *draw(pnb__sampled_side side)
{
    size_t n = pnb__dim(side.noise, 0), j = pnb__dim(side.noise, 1), dim = pnb__dim(side.noise, 2);
    pnb__tensor *std = pnb__apply(PNB__EXP, pnb__affine(side.log_var, 0.5, 0));
    pnb__tensor *mean = pnb__reshape(side.mean, 3, (size_t[]){n, 1, dim});
    pnb__tensor *away = pnb__mul(side.noise, pnb__reshape(std, 3, (size_t[]){n, 1, dim}));
    return pnb__reshape(pnb__add(away, mean), 2, (size_t[]){n * j, dim});
}

/* (B J, B J) -> (B, B, J^2) */
static pnb__tensor *by_pair(pnb__tensor *all, size_t n, size_t j)
{
    pnb__tensor *split = pnb__reshape(all, 4, (size_t[]){n, j, n, j});
    return pnb__reshape(pnb__permute(split, (int[]){0, 2, 1, 3}), 3, (size_t[]){n, n, j * j});
}

pnb__tensor *pnb__soft_contrastive(pnb__sampled_side images, pnb__sampled_side texts,
                                   pnb__tensor *scale, pnb__tensor *shift, pnb__tensor *signs)
{
    size_t n = pnb__dim(images.noise, 0), j = pnb__dim(images.noise, 1);
    pnb__tensor *square = pnb__pairwise_sqdist(draw(images), draw(texts));
    pnb__tensor *distance = pnb__apply(PNB__SQRT, pnb__affine(square, 1, 1e-6));
    pnb__tensor *logits = pnb__sub(shift, pnb__mul(by_pair(distance, n, j), scale));
    pnb__tensor *sign = pnb__affine(pnb__reshape(signs, 3, (size_t[]){n, n, 1}), 2, 0);
    pnb__tensor *each = pnb__apply(PNB__LOG_SIGMOID, pnb__mul(logits, sign));
    /* both are summed over J^2 places too: J^2 times the log-sum-exp of a pair, and log J^2 */
    pnb__tensor *lse = pnb__sub(each, pnb__log_softmax(each));
    double k = (double)(j * j), places = (double)(n * n);
    pnb__tensor *sum = pnb__affine(pnb__sum(lse, PNB__ALL_AXES), -1 / k, 0);
    return pnb__affine(sum, 2, 2 * places * log(k));
}

pnb__tensor *pnb__sampled_divergence(pnb__sampled_side side)
{
    pnb__tensor *spread = pnb__sub(pnb__apply(PNB__EXP, side.log_var), side.log_var);
    pnb__tensor *each = pnb__add(spread, pnb__apply(PNB__SQUARE, side.mean));
    return pnb__affine(pnb__sum(each, PNB__ALL_AXES), 0.5, -0.5 * (double)pnb__n(each));
}
