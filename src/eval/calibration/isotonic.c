/* Isotonic regression: the non-decreasing function of the score of least weighted squared error.
 *
 * Pool adjacent violators: equal scores are one point from the start; a point that lies below the
 * block before it is merged into it, and so on backwards. Each block becomes a knot at its lowest
 * and one at its highest score; between knots the function is linear, so it has no jumps and its
 * values at the scores it was fitted to are the regression's (Barlow et al. 1972; Zadrozny and
 * Elkan 2002 for probabilities). Platt's targets are an affine map of the labels, so the regression
 * of the targets is that map of the regression. */
#include <math.h>
#include <stdlib.h>

#include "eval/calibration/scored.h"

typedef struct block {
    double low, high; /* scores */
    double weight, mean;
} block;

static int compare_blocks(const void *a, const void *b)
{
    const block *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

static void merge(block *into, const block *next)
{
    double weight = into->weight + next->weight;
    into->mean += (next->mean - into->mean) * (next->weight / weight);
    into->weight = weight;
    into->high = next->high;
}

/* Blocks of one case each, sorted, to blocks of strictly rising mean; returns how many. */
static size_t pool(block *blocks, size_t n)
{
    size_t n_points = 0, n_pooled = 0;
    for (size_t i = 0; i < n; i++)
        if (n_points > 0 && blocks[n_points - 1].low == blocks[i].low)
            merge(&blocks[n_points - 1], &blocks[i]);
        else
            blocks[n_points++] = blocks[i];
    for (size_t i = 0; i < n_points; i++) {
        blocks[n_pooled++] = blocks[i];
        while (n_pooled > 1 && blocks[n_pooled - 1].mean <= blocks[n_pooled - 2].mean) {
            merge(&blocks[n_pooled - 2], &blocks[n_pooled - 1]);
            n_pooled--;
        }
    }
    return n_pooled;
}

static pnb_status to_knots(const block *blocks, size_t n, const double target[2], pnb_isotonic *out,
                           pnb_error *err)
{
    pnb_isotonic fit = {.score = pnb__alloc_array(2 * n, sizeof(double)),
                        .p = pnb__alloc_array(2 * n, sizeof(double))};
    if (fit.score == NULL || fit.p == NULL) {
        pnb_isotonic_reset(&fit);
        return pnb__fail_nomem(err, 4 * n * sizeof(double));
    }
    for (size_t i = 0; i < n; i++) {
        double p = target[0] + (target[1] - target[0]) * fmin(fmax(blocks[i].mean, 0.0), 1.0);
        fit.score[fit.n] = blocks[i].low;
        fit.p[fit.n++] = p;
        if (blocks[i].high > blocks[i].low) {
            fit.score[fit.n] = blocks[i].high;
            fit.p[fit.n++] = p;
        }
    }
    *out = fit;
    return PNB_OK;
}

pnb_status pnb_isotonic_fit(const pnb_scored *data, bool smooth, pnb_isotonic *out, pnb_error *err)
{
    pnb__scored_sums sums;
    double target[2];
    pnb_status status = pnb__scored_check(data, &sums, err);
    if (status != PNB_OK)
        return status;
    block *blocks = pnb__alloc_array(data->n, sizeof *blocks);
    if (blocks == NULL)
        return pnb__fail_nomem(err, data->n * sizeof *blocks);
    for (size_t i = 0; i < data->n; i++)
        blocks[i] = (block){data->score[i], data->score[i], pnb__scored_weight(data, i),
                            (double)data->label[i]};
    qsort(blocks, data->n, sizeof *blocks, compare_blocks);
    pnb__platt_targets(&sums, smooth, target);
    status = to_knots(blocks, pool(blocks, data->n), target, out, err);
    pnb__free(blocks);
    return status;
}

double pnb_isotonic_apply(const pnb_isotonic *fit, double score)
{
    size_t low = 0, high = fit->n - 1; /* score[low] <= score < score[high] from the loop on */
    if (isnan(score))
        return (double)NAN;
    if (score <= fit->score[low])
        return fit->p[low];
    if (score >= fit->score[high])
        return fit->p[high];
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (score >= fit->score[middle])
            low = middle;
        else
            high = middle;
    }
    /* halves: the distance of two doubles may be beyond a double */
    double along = (score / 2 - fit->score[low] / 2) / (fit->score[high] / 2 - fit->score[low] / 2);
    return fit->p[low] + (fit->p[high] - fit->p[low]) * along;
}

void pnb_isotonic_reset(pnb_isotonic *fit)
{
    if (fit == NULL)
        return;
    pnb__free(fit->score);
    pnb__free(fit->p);
    *fit = (pnb_isotonic){0};
}
