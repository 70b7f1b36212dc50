/* PFE on frozen rows: the mean is the row with its length, the variance a head of it.
 *
 *   v = softplus(h(x)) of either side,   sum_d delta^2/(v_i + v_t) + log(v_i + v_t)
 *
 * over true pairs alone (pair_loss.c), as AsymVLM's benchmark trains it. In the small recipe the
 * variances begin at the share of a dimension, 1/D: from softplus(0) the few steps there are would
 * be spent on the way. Ranking is that of the frozen rows. */
#include <math.h>

#include "adapt/heads/learned.h"

static pnb_status declare(pnb_adapter *a, pnb__learned *l, pnb_error *err)
{
    (void)err;
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++) {
        size_t dim = a->part[s].dim;
        double start =
            a->opts.recipe == PNB_ADAPT_RECIPE_SMALL ? log(expm1(1.0 / (double)dim)) : (double)NAN;
        const pnb__head_shape shape = {
            "spread", dim, (size_t)a->opts.hidden, (size_t)a->opts.layers, dim, start};
        pnb__learned_add_head(l, s, 0, &shape);
        pnb__learned_add_length(l, s);
    }
    return PNB_OK;
}

static void side(pnb__learned_graph *lg, int number, pnb__tensor *x, pnb__learned_side *out)
{
    out->mean = x;
    out->var = pnb__apply(PNB__SOFTPLUS, pnb__learned_apply(lg, number, 0, x));
}

static void loss(pnb__learned_graph *lg)
{
    pnb__side_rows rows[PNB_N_ADAPTER_SIDES];
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        rows[s] = (pnb__side_rows){.mean = lg->side[s].mean, .var = lg->side[s].var};
    pnb__learned_tell(lg, "mutual_likelihood",
                      pnb__mutual_likelihood(rows[PNB_ADAPTER_IMAGES], rows[PNB_ADAPTER_TEXTS]));
}

/* AsymVLM's Table A.1. */
static const pnb__learned_calls learned = {.published =
                                               PNB__LEARNED_BENCHMARK(PNB_OPTIM_SGD, 1e-3, 5e-4),
                                           .declare = declare,
                                           .side = side,
                                           .loss = loss};

static const pnb__field fields[] = {PNB__LEARNED_FIELDS(PNB__LEARNED_FIELD) PNB__LEARNED_FIELD(
    "layers", layers, NULL, PNB__FIELD_I64, PNB__ALSO_NONE)};

const pnb__adapter_calls pnb__adapter_pfe = {PNB__LEARNED_CALLS(learned, fields)};
