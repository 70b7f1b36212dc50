/* GroVE's objective in a graph: two sparse processes over the same latents, pulled together. */
#ifndef PNB_ADAPT_GP_GROVE_LOSS_H
#define PNB_ADAPT_GP_GROVE_LOSS_H

#include "adapt/gp/svgp.h"

/* One side, images or texts. The first part is given. */
typedef struct pnb__grove_side {
    pnb__svgp f;
    pnb__tensor *noise;  /* variance of the likelihood, () or (D,1) */
    pnb__tensor *y;      /* (D,N) embeddings, columns beside the latents */
    pnb__tensor *mixing; /* (D,D), [l][t]: output t is sum_l mixing[l][t] f_l, as the released code
                          * has it; NULL: outputs are the processes */
    double added_var;    /* to every variance after mixing: the released code's second jitter */

    pnb__tensor *mean, *var; /* of the outputs, without noise: (D,N), var perhaps (1,N) */
    pnb__tensor *log_lik;    /* () expected, summed over outputs, mean over the batch */
    pnb__tensor *kl;         /* () of q(v), summed over processes */
    pnb__tensor *neg_elbo;   /* () kl / n_data - log_lik: per point of the data */
} pnb__grove_side;

typedef struct pnb__grove_loss_opts {
    double elbo_weight;  /* lambda_1: 0.01 */
    double align_weight; /* lambda_2: 400 */
    pnb__align align;
    double n_data; /* points of the whole set: a batch stands for all of them */
} pnb__grove_loss_opts;

/* Fills the second part. */
void pnb__grove_side_build(pnb__grove_side *side, double n_data);

/* The loss of a batch, ():
 *   lambda_1 sum over sides of -ELBO / n_data  +  lambda_2 mean over n of align(image_n, text_n)
 * Source  GroVE Eqs. (7)-(9). With "kl" and the default weights the released code's number, which
 *         is (sum of -ELBO)/100 + 200 (KL one way + KL the other way) */
pnb__tensor *pnb__grove_loss_build(pnb__grove_side sides[2], const pnb__grove_loss_opts *opts);

#endif
