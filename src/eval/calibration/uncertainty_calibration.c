/* Does accuracy fall as uncertainty rises? Spearman S, R^2 and -S R^2 over bins (GroVE, AsymVLM).
 *
 * S and R^2 are taken between the index of a bin and the mean of `correct` in it; bins without
 * items are left out. R^2 of a least-squares line with one regressor is the squared correlation.
 * Where accuracy is the same in every bin neither is defined: 0 and is_degenerate, no error,
 * because a model that is always right is not a failure of the evaluation. So it is where all
 * uncertainties are equal: bins would be cut by the order of the rows. */
#include <math.h>

#include "base/base.h"
#include "penumbra/statistics.h"
#include "penumbra/uncertainty_calibration.h"

static pnb_bin describe(size_t index, const size_t *item, size_t n, const double *uncertainty,
                        const double *correct)
{
    pnb_bin bin = {.index = index, .n = n, .u_min = INFINITY, .u_max = -INFINITY};
    for (size_t i = 0; i < n; i++) {
        double u = uncertainty[item[i]];
        bin.u_min = fmin(bin.u_min, u);
        bin.u_max = fmax(bin.u_max, u);
        bin.u_mean += u / (double)n;
        bin.accuracy += correct[item[i]];
    }
    bin.accuracy /= (double)n;
    return bin;
}

/* Fills s, r2, minus_s_r2 and is_degenerate from the bins. */
static pnb_status relate(pnb_uncertainty_calibration *c, pnb_error *err)
{
    double index[PNB_MAX_BINS], accuracy[PNB_MAX_BINS], r;
    bool constant = true;
    for (size_t b = 0; b < c->n_bins; b++) {
        index[b] = (double)c->bin[b].index;
        accuracy[b] = c->bin[b].accuracy;
        constant = constant && accuracy[b] == accuracy[0];
    }
    c->is_degenerate = c->n_bins < 2 || constant;
    if (c->is_degenerate)
        return PNB_OK;
    pnb_status status = pnb_spearman(index, accuracy, c->n_bins, &c->s, err);
    if (status == PNB_OK)
        status = pnb_pearson(index, accuracy, c->n_bins, &r, err);
    if (status == PNB_OK) {
        c->r2 = r * r;
        c->minus_s_r2 = -c->s * c->r2;
    }
    return status;
}

static bool is_constant(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (x[i] != x[0])
            return false;
    return true;
}

pnb_status pnb_uncertainty_calibration_compute(const double *uncertainty, const double *correct,
                                               size_t n, pnb_binning binning, size_t n_bins,
                                               pnb_uncertainty_calibration *out, pnb_error *err)
{
    pnb_status status = PNB_OK;
    size_t offset[PNB_MAX_BINS + 1], n_entries;
    /* too many bins are refused below */
    size_t copies = binning == PNB_BINS_GROVE_SPACING ? PNB_MIN(n_bins, (size_t)PNB_MAX_BINS) : 1;
    pnb_uncertainty_calibration c = {0};
    for (size_t i = 0; i < n; i++)
        if (!(correct[i] >= 0.0 && correct[i] <= 1.0))
            return pnb__fail(err, PNB_NUMERIC, "correct %zu is %g; it must lie in [0,1]", i,
                             correct[i]);
    if (pnb__mul_overflows(n, copies, &n_entries))
        return pnb__fail(err, PNB_NOMEM, "%zu items in %zu bins are beyond memory", n, n_bins);
    size_t *item = NULL;
    PNB_TRY(PNB_ALLOC(item, PNB_MAX(n_entries, 1), err));
    PNB_TRY(pnb_bins_assign(binning, uncertainty, n, n_bins, item, offset, err));
    for (size_t b = 0; b < n_bins; b++)
        if (offset[b + 1] > offset[b])
            c.bin[c.n_bins++] =
                describe(b, item + offset[b], offset[b + 1] - offset[b], uncertainty, correct);
    c.n_left_out = binning == PNB_BINS_GROVE_SPACING ? 0 : n - offset[n_bins];
    c.is_degenerate = is_constant(uncertainty, n);
    if (!c.is_degenerate)
        PNB_TRY(relate(&c, err));
    *out = c;
done:
    pnb__free(item);
    return status;
}
