/* Triplet losses on a matrix of similarities, and what PVSE adds to them.
 *
 * The hardest negative of a row is the largest of its hinges, whose gradient goes to the first
 * place that has it (pnb__row_max), so that ties do not depend on threads. Sums and not means:
 * VSE++'s code sums, and a mean only changes the rate. PVSE's code averages over all B^2 (or B)
 * places, which whoever compares divides by. */
#include "train/losses/triplet.h"

/* Over every place, () */
static pnb__tensor *sum_all(pnb__tensor *x)
{
    return pnb__sum(x, PNB__ALL_AXES);
}

/* [margin + s_it - s_ii]+ of the negatives, (B,B) */
static pnb__tensor *hinges(pnb__tensor *scores, pnb__tensor *own, pnb__tensor *others,
                           double margin)
{
    pnb__tensor *over = pnb__affine(pnb__sub(scores, own), 1, margin);
    return pnb__mul(pnb__apply(PNB__RELU, over), others);
}

/* The diagonal as a column (B,1), cut out of the flat square. */
static pnb__tensor *diagonal(pnb__tensor *scores)
{
    size_t n = pnb__dim(scores, 0);
    pnb__tensor *flat = pnb__reshape(scores, 1, (size_t[]){n * n});
    pnb__tensor *first = pnb__slice(flat, 0, 0, 1);
    if (n == 1)
        return pnb__reshape(first, 2, (size_t[]){1, 1});
    /* s_ii for i > 0 ends each of the n - 1 groups of n + 1 values behind the first */
    pnb__tensor *rest = pnb__slice(flat, 0, 1, n * n - 1);
    pnb__tensor *groups = pnb__reshape(rest, 2, (size_t[]){n - 1, n + 1});
    pnb__tensor *ends = pnb__reshape(pnb__slice(groups, 1, n, 1), 1, (size_t[]){n - 1});
    return pnb__reshape(pnb__concat((pnb__tensor *[]){first, ends}, 2, 0), 2, (size_t[]){n, 1});
}

/* Rows are images: i2t compares along a row, t2i along a column, which is a row of the transpose.
 */
pnb__tensor *pnb__triplet(pnb__tensor *scores, pnb__tensor *others, double margin,
                          pnb__negatives which)
{
    pnb__tensor *own = diagonal(scores);
    pnb__tensor *turned = pnb__permute(scores, (int[]){1, 0});
    pnb__tensor *turned_others = pnb__permute(others, (int[]){1, 0});
    pnb__tensor *i2t = hinges(scores, own, others, margin);
    pnb__tensor *t2i = hinges(turned, own, turned_others, margin);
    if (which == PNB__NEGATIVES_HARDEST) {
        i2t = pnb__row_max(i2t);
        t2i = pnb__row_max(t2i);
    }
    return pnb__add(sum_all(i2t), sum_all(t2i));
}

/* (B1,K,D), (B2,K,D) -> (B1 K, B2 K) -> (B1, B2, K^2) -> (B1, B2) */
pnb__tensor *pnb__best_of_pairs(pnb__tensor *x, pnb__tensor *y)
{
    size_t n1 = pnb__dim(x, 0), n2 = pnb__dim(y, 0), k = pnb__dim(x, 1), dim = pnb__dim(x, 2);
    pnb__tensor *rows = pnb__reshape(x, 2, (size_t[]){n1 * k, dim});
    pnb__tensor *cols = pnb__reshape(y, 2, (size_t[]){n2 * k, dim});
    pnb__tensor *all = pnb__matmul(rows, false, cols, true);
    if (k == 1)
        return all;
    pnb__tensor *split = pnb__reshape(all, 4, (size_t[]){n1, k, n2, k});
    pnb__tensor *pairs = pnb__permute(split, (int[]){0, 2, 1, 3});
    return pnb__row_max(pnb__reshape(pairs, 3, (size_t[]){n1, n2, k * k}));
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
    pnb__tensor *apart = pnb__pairwise_sqdist(x, y);
    if (is_published)
        apart = safe_root(apart);
    return pnb__mean(pnb__apply(PNB__EXP, pnb__affine(apart, -gamma, 0)), PNB__ALL_AXES);
}

/* (N + M)^2 distances are held: K rows a picture and caption of a batch, not J samples. */
pnb__tensor *pnb__domain_discrepancy(pnb__tensor *x, pnb__tensor *y, double gamma,
                                     bool is_published)
{
    pnb__tensor *same =
        pnb__add(kernel_mean(x, x, gamma, is_published), kernel_mean(y, y, gamma, is_published));
    return pnb__sub(same, pnb__affine(kernel_mean(x, y, gamma, is_published), 2, 0));
}
