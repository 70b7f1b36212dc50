/* Triplet losses of embeddings, and what PVSE adds to them.
 *
 * Scores are made a strip of rows at a time and their margins are one op (tensor/ops/margins.c),
 * for images against texts and for texts against images; of equal negatives the first has the
 * gradient, so that ties do not depend on threads. Sums and not means: VSE++'s code sums, and a
 * mean only changes the rate. PVSE's code averages over all B^2 (or B) places, which whoever
 * compares divides by. */
#include "train/losses/triplet.h"

/* Over every place, () */
static pnb__tensor *sum_all(pnb__tensor *x)
{
    return pnb__sum(x, PNB__ALL_AXES);
}

/* Rows first .. first + n of both sides, against all: i2t compares the texts of an image, t2i the
 * images of a text. */
static pnb__tensor *both_ways(pnb__tensor *images, pnb__tensor *texts, const size_t run[2],
                              double margin, bool is_hardest)
{
    bool all = run[1] == pnb__dim(images, 0);
    pnb__tensor *i = all ? images : pnb__slice(images, 0, run[0], run[1]);
    pnb__tensor *t = all ? texts : pnb__slice(texts, 0, run[0], run[1]);
    return pnb__add(sum_all(pnb__pair_margins(i, texts, run[0], margin, is_hardest)),
                    sum_all(pnb__pair_margins(t, images, run[0], margin, is_hardest)));
}

/* The op takes matches that lie one behind the other: a run at a time. */
pnb__tensor *pnb__triplet(pnb__tensor *images, pnb__tensor *texts, double margin,
                          pnb__negatives which, const pnb__row_share *share)
{
    bool is_hardest = which == PNB__NEGATIVES_HARDEST;
    const size_t all[2] = {0, images != NULL ? pnb__dim(images, 0) : 0};
    pnb__tensor *sum = NULL;
    if (images == NULL || texts == NULL)
        return NULL;
    if (share == NULL || !pnb__is_shared(share))
        return both_ways(images, texts, all, margin, is_hardest);
    for (int k = 0; k < PNB__SHARE_RUNS; k++) {
        const size_t run[2] = {share->begin[k], share->n[k]};
        pnb__tensor *of = run[1] > 0 ? both_ways(images, texts, run, margin, is_hardest) : NULL;
        sum = sum == NULL ? of : of == NULL ? sum : pnb__add(sum, of);
    }
    return sum;
}

/* sqrt(x + 1e-12): where all residuals are orthogonal the norm has no slope, and the code's is NaN
 */
static pnb__tensor *safe_root(pnb__tensor *x)
{
    return pnb__apply(PNB__SQRT, pnb__affine(x, 1, 1e-12));
}

/* || A A^T - I ||_F / K^2 of unit rows: the diagonal is 1 anyway, `off` takes it out. */
pnb__tensor *pnb__diversity(pnb__tensor *residuals, pnb__tensor *off)
{
    size_t n = pnb__dim(residuals, 0), k = pnb__dim(residuals, 1);
    pnb__tensor *unit = pnb__l2_normalize(residuals, 1e-12);
    pnb__tensor *gram = pnb__mul(pnb__matmul(unit, false, unit, true), off);
    pnb__tensor *square = pnb__apply(PNB__SQUARE, pnb__reshape(gram, 2, (size_t[]){n, k * k}));
    pnb__tensor *norm = safe_root(pnb__sum(square, 1));
    return pnb__affine(pnb__mean(norm, 0), 1 / (double)(k * k), 0);
}

/* mean over all pairs of the kernel */
static pnb__tensor *kernel_mean(pnb__tensor *x, pnb__tensor *y, double gamma, bool is_published)
{
    double n = (double)pnb__dim(x, 0) * (double)pnb__dim(y, 0);
    return pnb__affine(sum_all(pnb__pair_kernels(x, y, gamma, is_published)), 1 / n, 0);
}

/* All of a side with themselves too: a row's own distance is 0, which has no slope. */
pnb__tensor *pnb__domain_discrepancy(pnb__tensor *x, pnb__tensor *y, double gamma,
                                     bool is_published)
{
    pnb__tensor *same =
        pnb__add(kernel_mean(x, x, gamma, is_published), kernel_mean(y, y, gamma, is_published));
    return pnb__sub(same, pnb__affine(kernel_mean(x, y, gamma, is_published), 2, 0));
}
