/* Probability forecasts against what happened: ECE, MCE, Brier score, negative log-likelihood.
 *
 * ECE = sum_b n_b/n |accuracy_b - confidence_b|. Equal-width bins of [0,1]: bin k = (k/n_bins,
 * (k+1)/n_bins], confidence 0 in the first (Guo et al. 2017; torchmetrics up to the edges). The
 * walk over bins of equal mass is the plug-in ECE of retrieval. */
#include <math.h>

#include "eval/weighted.h"
#include "penumbra/ece.h"
#include "penumbra/uncertainty_calibration.h"

typedef struct sums {
    double n, confidence, label;
} sums;

/* The product may round across an edge, so edges decide. */
size_t pnb__ece_bin(double c, size_t n_bins)
{
    double guess = ceil(c * (double)n_bins) - 1.0;
    size_t k = guess > 0.0 ? (size_t)guess : 0;
    k = PNB_MIN(k, n_bins - 1);
    while (k > 0 && c <= (double)k / (double)n_bins)
        k--;
    while (k + 1 < n_bins && c > (double)(k + 1) / (double)n_bins)
        k++;
    return k;
}

static pnb_status check(const double *confidence, const int *label, size_t n, pnb_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!(confidence[i] >= 0.0 && confidence[i] <= 1.0))
            return pnb__fail(err, PNB_NUMERIC, "confidence %zu is %g; it must lie in [0,1]", i,
                             confidence[i]);
        if (label[i] != 0 && label[i] != 1)
            return pnb__fail(err, PNB_ARG, "label %zu is %d; labels are 0 or 1", i, label[i]);
    }
    return PNB_OK;
}

pnb_status pnb_ece_compute(const double *confidence, const int *label, size_t n, size_t n_bins,
                           pnb_ece *out, pnb_error *err)
{
    sums bin[PNB_MAX_BINS] = {{0}};
    pnb_ece f = {0};
    if (n == 0 || n_bins == 0 || n_bins > PNB_MAX_BINS)
        return pnb__fail(err, PNB_ARG,
                         "%zu forecasts in %zu bins; at least 1 and 1 to %d are needed", n, n_bins,
                         PNB_MAX_BINS);
    pnb_status status = check(confidence, label, n, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n; i++) {
        double c = confidence[i], y = label[i];
        double p = fmin(fmax(c, PNB__CONFIDENCE_FLOOR), 1.0 - PNB__CONFIDENCE_FLOOR);
        sums *b = &bin[pnb__ece_bin(c, n_bins)];
        b->n += 1.0;
        b->confidence += c;
        b->label += y;
        f.brier += (c - y) * (c - y) / (double)n;
        f.nll -= (label[i] == 1 ? log(p) : log1p(-p)) / (double)n;
    }
    for (size_t k = 0; k < n_bins; k++) {
        if (bin[k].n == 0.0)
            continue;
        double gap = fabs(bin[k].label - bin[k].confidence) / bin[k].n;
        f.ece += bin[k].n / (double)n * gap;
        f.mce = fmax(f.mce, gap);
    }
    *out = f;
    return PNB_OK;
}

/* ---- equal mass ---- */

/* A bin ends where the mass seen reaches its share, at the end of a run of equal confidence: the
 * rule of weighted_ece.c, exact in whole numbers. */
double pnb__ece_mass(const pnb__ece_cases *f, size_t n_bins)
{
    double ece = 0.0, gap = 0.0, total = (double)f->n;
    size_t edge = 1;
    for (size_t i = 0; i < f->n; i++) {
        size_t row = f->order[i];
        gap += f->correct[row] - f->confidence[row];
        bool is_last = i + 1 == f->n;
        size_t n_passed = (size_t)((double)(i + 1) / total * (double)n_bins + 1e-9);
        bool is_run_end = is_last || f->confidence[f->order[i + 1]] > f->confidence[row];
        if (!is_last && !(is_run_end && n_passed >= edge && edge < n_bins))
            continue;
        ece += fabs(gap) / total;
        gap = 0.0;
        edge = PNB_MIN(n_passed + 1, n_bins);
    }
    return ece;
}
