/* GroVE's loss. The released code mixes its processes by a dense matrix (a linear model of
 * coregionalisation), which the paper does not mention:
 *   mean_t = sum_l W[l][t] mean_l,    var_t = sum_l W[l][t]^2 var_l + jitter
 * Both are here; the paper's is the default. The released training never clears its gradients; that
 * is the optimiser's matter and not repeated here. */
#include "adapt/gp/grove_loss.h"

void pnb__grove_side_build(pnb__grove_side *side, double n_data)
{
    pnb__svgp_out f = pnb__svgp_build(&side->f);
    side->mean = f.mean;
    side->var = f.var;
    if (side->mixing != NULL) {
        pnb__tensor *squares = pnb__apply(PNB__SQUARE, side->mixing);
        side->mean = pnb__matmul(side->mixing, true, f.mean, false);
        side->var = pnb__matmul(squares, true, f.var, false);
    }
    if (side->added_var != 0)
        side->var = pnb__affine(side->var, 1, side->added_var);
    double n = (double)side->f.n;
    side->log_lik = pnb__affine(
        pnb__gauss_expected_log_lik(side->y, side->mean, side->var, side->noise), 1 / n, 0);
    side->kl = f.kl;
    side->neg_elbo = pnb__sub(pnb__affine(f.kl, 1 / n_data, 0), side->log_lik);
}

pnb__tensor *pnb__grove_loss_build(pnb__grove_side sides[2], const pnb__grove_loss_opts *opts)
{
    for (int s = 0; s < 2; s++)
        pnb__grove_side_build(&sides[s], opts->n_data);
    pnb__tensor *apart = pnb__gauss_align(opts->align, (pnb__gauss){sides[0].mean, sides[0].var},
                                          (pnb__gauss){sides[1].mean, sides[1].var});
    pnb__tensor *elbo = pnb__add(sides[0].neg_elbo, sides[1].neg_elbo);
    return pnb__add(pnb__affine(elbo, opts->elbo_weight, 0),
                    pnb__affine(pnb__mean(apart, 0), opts->align_weight, 0));
}
