/* The cosine of two uncertain embeddings, and class probabilities made of uncertain logits. */
#ifndef PNB_PROB_COSINE_H
#define PNB_PROB_COSINE_H

#include "penumbra/prob.h"

/* Mean and variance of cos(g, h) of independent g, h, rows of two sets, with E|g|^2 E|h|^2 in place
 * of their squared lengths: exact as the width grows, and where both lengths are known.
 *   mean = m.n / sqrt((|m|^2 + tr u)(|n|^2 + tr v))
 *   variance = sum_d (u_d (v_d + n_d^2) + v_d m_d^2) / ((|m|^2 + tr u)(|n|^2 + tr v))
 * Shape   one row of each set, of one width; log_var NULL: a point      Units  cosine, its square
 * Range   finite means, log_var below 700; both are 0 where a row is a point of length 0
 * Source  Smith et al., as BayesVLM has it */
void pnb__cosine_moments(const pnb_gaussians *a, size_t row_a, const pnb_gaussians *b, size_t row_b,
                         double *mean, double *variance);
/* The logit whose sigmoid stands for the mean sigmoid of N(mean, variance): mean / sqrt(1 + pi/8
 * variance). */
double pnb__probit_logit(double mean, double variance);
/* Class probabilities of independent Gaussian logits: softmax_k(mean_k / sqrt(1 + pi/8
 * variance_k)). Shape   mean, variance (n) -> out (n), may be mean      Range  n >= 1, variance >=
 * 0, finite Source  MacKay 1992; BayesVLM */
void pnb__softmax_probit(const double *mean, const double *variance, size_t n, double *out);

#endif
