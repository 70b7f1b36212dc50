/* Sparse variational Gaussian processes in a graph: marginals, divergence, likelihood.
 *
 * What depends on the inducing points comes from inducing.h as the tensor B; the graph holds what
 * depends on the outputs, so that its gradients reach q(v), the constants, the noise and B.
 * Shape letters: D outputs, M inducing points, N points of the batch. */
#ifndef PNB_ADAPT_GP_SVGP_H
#define PNB_ADAPT_GP_SVGP_H

#include "tensor/graph.h"

/* Of which outputs q(v_d) = N(m_d, S_d), S_d = C_d C_d^T keeps a factor. */
typedef enum pnb__svgp_form {
    PNB__SVGP_SHARED_KERNEL,     /* B (M,N) for all; C (M,D,M) with C_d[m][m'] at [m][d][m'] */
    PNB__SVGP_SHARED_COVARIANCE, /* the same with one S: C (M,1,M) */
    PNB__SVGP_PER_OUTPUT         /* B (D,M,N), C (D,M,M): GroVE's released code */
} pnb__svgp_form;

/* Any tensor may be a parameter or an input. Only the lower triangles of C are read. */
typedef struct pnb__svgp {
    pnb__svgp_form form;
    size_t n_outputs, m, n; /* D, M, N */
    pnb__tensor *b;
    pnb__tensor *prior;  /* k(x,x): () or, per output, (D,1) */
    pnb__tensor *q_mean; /* (D,M) */
    pnb__tensor *q_chol;
    pnb__tensor *constant; /* prior mean, () or (D,1) */
    pnb__tensor *lower;    /* input (M,M): 1 on and below the diagonal, else 0 */
    pnb__tensor *diagonal; /* int32 input: where C's diagonals stand, pnb__svgp_diagonal */
} pnb__svgp;

typedef struct pnb__svgp_out {
    pnb__tensor *mean; /* (D,N) of f */
    pnb__tensor *var;  /* (D,N), with one covariance (1,N), of f without noise */
    pnb__tensor *kl;   /* () sum over outputs of KL(q(v_d) || N(0,I)) */
} pnb__svgp_out;

/* Makes the inputs `lower` and `diagonal`; give them their values after planning. */
void pnb__svgp_inputs(pnb__graph *g, pnb__svgp *s);
pnb_status pnb__svgp_write_inputs(const pnb__svgp *s, pnb_error *err);

/* NULL tensors after a building error, as everywhere in a graph. */
pnb__svgp_out pnb__svgp_build(const pnb__svgp *s);

/* Expected log likelihood of y under N(f, noise), summed over outputs and batch: ().
 *   E log N(y | f, s2) = -1/2 [log 2 pi + log s2 + ((y - mean)^2 + var) / s2]
 * Shape  y, mean (D,N), var (D,N) or (1,N), noise () or (D,1) */
pnb__tensor *pnb__gauss_expected_log_lik(pnb__tensor *y, pnb__tensor *mean, pnb__tensor *var,
                                         pnb__tensor *noise);

/* X(NAME, name, sentence): how far two diagonal Gaussians are apart */
#define PNB__ALIGN_LIST(X)                                                                         \
    X(KL, "kl", "mean of both Kullback-Leibler divergences (GroVE Eq. 8)")                         \
    X(JS, "js", "mean divergence from the Gaussian of averaged mean and variance (Eq. 18)")        \
    X(W2, "w2", "squared 2-Wasserstein distance (Eq. 19)")
typedef enum pnb__align {
#define PNB__ALIGN_ENUM(NAME, name, sentence) PNB__ALIGN_##NAME,
    PNB__ALIGN_LIST(PNB__ALIGN_ENUM)
#undef PNB__ALIGN_ENUM
        PNB__N_ALIGNS
} pnb__align;

/* One side's Gaussians in a graph: mean and var (D,N). */
typedef struct pnb__gauss {
    pnb__tensor *mean, *var;
} pnb__gauss;

/* Of each column, summed over outputs: (N). KL(p || q), and the symmetric alignments. */
pnb__tensor *pnb__gauss_kl(pnb__gauss p, pnb__gauss q);
pnb__tensor *pnb__gauss_align(pnb__align kind, pnb__gauss p, pnb__gauss q);

#endif
