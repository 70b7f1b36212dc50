/* What the Gaussian heads with frozen means share: PCME, PCME++ and ProLIP differ in their losses.
 *
 *   mean = x/|x|,  log var = h(mean) of either side,  h four layers with ReLU between
 *
 * In the small recipe log-variances begin where ProLIP's do, at a trace of 768 e^-10 whatever the
 * width is (docs/numerics-training.md); in the published one as torch's Linear does, near 0. */
#include <math.h>

#include "adapt/heads/learned.h"

pnb_status pnb__learned_declare_gaussians(pnb_adapter *a, pnb__learned *l)
{
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t dim = a->part[s].dim;
        bool is_small = a->opts.recipe == PNB_ADAPT_RECIPE_SMALL;
        const pnb__head_shape shape = {"log_var",
                                       dim,
                                       (size_t)a->opts.hidden,
                                       (size_t)a->opts.layers,
                                       dim,
                                       is_small ? log(768.0 / (double)dim) - 10.0 : (double)NAN};
        pnb__learned_add_head(l, s, 0, &shape);
        l->is_unit[s] = true;
    }
    return PNB_OK;
}
