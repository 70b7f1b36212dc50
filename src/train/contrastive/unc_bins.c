/* Does uncertainty foretell failure? One number for choosing checkpoints.
 *
 * Queries in ten bins of equal count by ascending trace, the remainder left out; Pearson's r
 * between the bin's number and its share of right answers, as ProLIP's training code does for its
 * --save-best-unc. The full set of such figures, on embedding sets, is left to src/eval. */
#include <math.h>
#include <stdlib.h>

#include "train/contrastive/contrastive.h"

enum { N_BINS = 10 };

/* Ascending; rows of one trace in their own order, so that sorting is a function of the data. */
static int by_trace(const void *a, const void *b)
{
    const pnb__answer *x = a, *y = b;
    if (x->trace != y->trace)
        return x->trace < y->trace ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* r = cov(b, share_b) / (sd(b) sd(share_b)) over the bins b = 0..9; NaN where no share differs. */
double pnb__unc_correlation(pnb__answer *answers, size_t n)
{
    double share[N_BINS] = {0}, mean = 0, cov = 0, var_bin = 0, var_share = 0;
    size_t size = n / N_BINS;
    if (size == 0)
        return NAN;
    qsort(answers, n, sizeof *answers, by_trace);
    for (size_t i = 0; i < size * N_BINS; i++)
        share[i / size] += answers[i].right ? 1.0 / (double)size : 0.0;
    for (int b = 0; b < N_BINS; b++)
        mean += share[b] / N_BINS;
    for (int b = 0; b < N_BINS; b++) {
        double db = b - (N_BINS - 1) / 2.0, ds = share[b] - mean;
        cov += db * ds;
        var_bin += db * db;
        var_share += ds * ds;
    }
    /* equal shares leave rounding of the mean behind, far below one answer in a bin */
    return var_share > 1e-20 ? cov / sqrt(var_bin * var_share) : NAN;
}
