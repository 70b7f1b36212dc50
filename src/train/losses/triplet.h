/* Triplet losses of the deterministic baselines in a graph: VSE0, VSE++, PVSE. */
#ifndef PNB_TRAIN_LOSSES_TRIPLET_H
#define PNB_TRAIN_LOSSES_TRIPLET_H

#include "tensor/graph.h"
#include "train/losses/row_share.h"

/* X(NAME, name, sentence): which negatives of a row count. */
#define PNB__NEGATIVES_LIST(X)                                                                     \
    X(ALL, "all", "every negative of a row (VSE0)")                                                \
    X(HARDEST, "hardest", "the nearest negative of a row (VSE++)")
typedef enum pnb__negatives {
#define PNB__NEGATIVES_ENUM(NAME, name, sentence) PNB__NEGATIVES_##NAME,
    PNB__NEGATIVES_LIST(PNB__NEGATIVES_ENUM)
#undef PNB__NEGATIVES_ENUM
        PNB__N_NEGATIVES
} pnb__negatives;

/* sum_i sum_t [margin + s_it - s_ii]+ + [margin + s_ti - s_ii]+ over t != i, (); of each row and
 * each column all negatives, or the one that is most; of equal ones the first takes the gradient.
 * s_ij is the best of the K x K products of the embeddings of an image and a text, cosines of unit
 * rows: the multiple instance similarity of PVSE, K = 1 the product itself. Nothing of size B^2 is
 * held.
 * Shape   images (B,K,D), texts (B,K,D); of the rows and columns those of the share, NULL: all
 * Range   margin > 0, 0.2 published
 * Source  VSE++ Eq. (4) to (6) (Faghri et al. 2018), VSE0 is its "sum of hinges"; PVSE Eq. (3)
 * (Song and Soleymani 2019) */
pnb__tensor *pnb__triplet(pnb__tensor *images, pnb__tensor *texts, double margin,
                          pnb__negatives which, const pnb__row_share *share);

/* Mean over rows of || A A^T - I ||_F / K^2, A (K,D) the rows made unit vectors, (): the K
 * residuals of a row must differ. `off` (K,K) is 1 but on the diagonal. Shape   residuals (B,K,D),
 * the attended parts before they are added      Source  PVSE Eq. (5) */
pnb__tensor *pnb__diversity(pnb__tensor *residuals, pnb__tensor *off);

/* Maximum mean discrepancy between the embeddings of two sides, ():
 *   mean k(x,x') - 2 mean k(x,y) + mean k(y,y'),  k(x,y) = exp(-gamma |x - y|^2)
 * Its code has |x - y| in place of the square, and gamma = 0.5: `is_published`.
 * Shape   x (N,D), y (M,D)      Source  PVSE Eq. (6) */
pnb__tensor *pnb__domain_discrepancy(pnb__tensor *x, pnb__tensor *y, double gamma,
                                     bool is_published);

#endif
