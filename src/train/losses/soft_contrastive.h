/* PCME's losses over samples in a graph: soft contrastive, divergence, uniformity. */
#ifndef PNB_TRAIN_LOSSES_SOFT_CONTRASTIVE_H
#define PNB_TRAIN_LOSSES_SOFT_CONTRASTIVE_H

#include "tensor/graph.h"
#include "train/losses/row_share.h"

/* One side: mean, log_var (B,D); noise (B,J,D) of N(0,1), or NULL where samples are drawn,
 * n_samples of each row: `pairs` (B) and `key` (4) of pnb__draw. log_var is the log of the
 * VARIANCE: twice what PCME's heads give, which is log sigma. */
typedef struct pnb__sampled_side {
    pnb__tensor *mean, *log_var, *noise, *pairs, *key;
    size_t n_samples;
} pnb__sampled_side;

/* x_j = mean + exp(log_var/2) noise_j, (B,J,D); the draws of PCME section 3.1 (reparameterised). */
pnb__tensor *pnb__draw_samples(const pnb__sampled_side *side);
/* Those of rows first .. first + n, (n,J,D). */
pnb__tensor *pnb__draw_rows(const pnb__sampled_side *side, size_t first, size_t n);

/* Rows of a side in blocks: drawn samples of one block are all that is held of them. */
#define PNB__SAMPLE_BLOCK ((size_t)1 << 24) /* numbers */
size_t pnb__sample_block_rows(const pnb__sampled_side *side, size_t numbers);

/* Negative log of the match probability of every pair (B1,B2), in nats:
 *   log J^2 - logsumexp_jk log s(2 m l_jk),  l_jk = -scale sqrt(|x_j - y_k|^2 + 1e-6) + shift
 * samples x (B1,J,D), y (B2,J,D), m = 1 for matching rows and -1 else: `signs` (B1,B2).
 * Its gradient is PCME Eq. (5): with w_jk = s(2 m l_jk) / sum s,
 *   d nll / d l_jk = -2 m w_jk (1 - s(2 m l_jk)),
 * so that the pairs of samples that are near count most among matches.
 * Range   finite for scale * distance up to 1e300 in a graph of doubles, 1e38 in one of floats
 * Source  PCME Eq. (4) to (7); the 2 under the sigmoid (PNB_MATCH_FACTOR) and 1e-6 are its code's,
 *         where s(l) is written e^l/(e^l + e^-l) */
pnb__tensor *pnb__soft_contrastive_pairs(pnb__tensor *x, pnb__tensor *y, pnb__tensor *scale,
                                         pnb__tensor *shift, pnb__tensor *signs);
/* Twice the sum over all pairs, (): both directions of the reference are this one sum, and it adds
 * them up. */
pnb__tensor *pnb__soft_contrastive(const pnb__sampled_side *images, const pnb__sampled_side *texts,
                                   pnb__tensor *scale, pnb__tensor *shift, pnb__tensor *signs);

/* The same where pair ij is a match by a label y_ij of 0 to 1, as a mixed picture is of two texts:
 *   2 sum_ij y_ij nll_ij(m = 1) + (1 - y_ij) nll_ij(m = -1)
 * over the rows of `share` against all texts. Labels by `marks` of those rows; nothing of size B^2
 * is held, and where samples are drawn those of a block of pairs alone. `is_hard`: labels are 1 and
 * 0; else all pairs of samples are compared twice. Source  PCME++ section 3.4 for its own loss;
 * that PCME's takes labels so is ours */
typedef struct pnb__marked_pairs {
    pnb__graph *graph;
    pnb__sampled_side images, texts;
    pnb__tensor *scale, *shift;
    pnb__marks marks;
    bool is_hard;
    pnb__row_share share;
    size_t block; /* numbers of samples in one; 0: PNB__SAMPLE_BLOCK */
} pnb__marked_pairs;
pnb__tensor *pnb__soft_contrastive_marked(const pnb__marked_pairs *in);

/* -1/2 sum_{B,D} (1 + l - m^2 - e^l), l = log_var: the divergence from N(0, I), () in nats.
 * Source  PCME Eq. (8) */
pnb__tensor *pnb__sampled_divergence(pnb__tensor *mean, pnb__tensor *log_var);
/* The same formula as PCME's code has it: m is the mean of the J samples, and log sigma stands
 * where the log-variance should:  -1/2 sum (1 + l/2 - m_J^2 - e^(l/2)), over the rows of `share`,
 * in blocks as above. By name, to compare. */
pnb__tensor *pnb__sampled_divergence_published(pnb__graph *g, const pnb__sampled_side *side,
                                               const pnb__row_share *share, size_t block);

/* log of the mean over i < j of exp(-2 |x_i - x_j|^2), (): how evenly the samples of all rows lie.
 * Over all pairs of rows, in strips; PCME's code draws 128 rows first where there are more, which
 * the caller does (sampled_terms.c).
 * Shape   x (N,D), N >= 2      Source  Wang and Isola 2020, section 4.1.2, t = 2 */
pnb__tensor *pnb__uniformity(pnb__tensor *x);
/* Of the samples of both sides together, drawn in blocks as above where they have no noise. */
pnb__tensor *pnb__sampled_uniformity(pnb__graph *g, const pnb__sampled_side sides[2], size_t block);

#endif
