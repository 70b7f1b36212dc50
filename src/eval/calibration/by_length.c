/* Values by length: is a short caption more uncertain than a long one?
 *
 * Lengths are whole numbers with many ties (words, tokens), so bins are runs of lengths, closed as
 * soon as they hold their share of the rows; a length is never split over two bins. The rank
 * correlation beside them uses the lengths themselves (Chun et al. 2025, Figure 7). */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/order.h"
#include "penumbra/hierarchy.h"
#include "penumbra/statistics.h"

static size_t cut_bins(const pnb__labelled *sorted, const double *values, size_t n,
                       pnb_length_bin *bins, size_t n_bins)
{
    size_t b = 0, done = 0;
    for (size_t i = 0; i < n;) {
        pnb_length_bin *bin = &bins[b];
        if (bin->n == 0)
            bin->low = (size_t)sorted[i].label;
        int64_t length = sorted[i].label;
        for (; i < n && sorted[i].label == length; i++, bin->n++)
            bin->mean += values[sorted[i].place];
        bin->high = (size_t)length;
        /* what is left is shared by the bins that are left */
        double share = (double)(n - done) / (double)(n_bins - b);
        if (i == n || (b + 1 < n_bins && (double)bin->n >= share)) {
            bin->mean /= (double)bin->n;
            done += bin->n;
            b++;
        }
    }
    return b;
}

static pnb_status correlate(const double *values, const pnb__labelled *rows, size_t n, double *out,
                            pnb_error *err)
{
    double *length = pnb__alloc_array(n, sizeof *length);
    pnb_error why = PNB_ERROR_INIT;
    if (length == NULL)
        return pnb__fail_nomem(err, n * sizeof *length);
    for (size_t i = 0; i < n; i++)
        length[rows[i].place] = (double)rows[i].label;
    pnb_status status = pnb_spearman(length, values, n, out, &why);
    if (status == PNB_ARG) { /* constant or too few: no correlation rather than no table */
        *out = (double)NAN;
        status = PNB_OK;
    } else if (status != PNB_OK) {
        status = pnb__fail(err, status, "%s", why.text);
    }
    pnb__free(length);
    return status;
}

pnb_status pnb_length_bins(const double *values, const size_t *length, size_t n,
                           pnb_length_bin *bins, size_t n_bins, size_t *n_out, double *spearman,
                           pnb_error *err)
{
    pnb_status status = PNB_OK;
    if (n == 0 || n_bins == 0)
        return pnb__fail(err, PNB_ARG, "%zu rows and %zu bins; none may be 0", n, n_bins);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return pnb__fail(err, PNB_NUMERIC, "row %zu is %g, finite values are needed", i,
                             values[i]);
    pnb__labelled *sorted = NULL;
    PNB_TRY(PNB_ALLOC(sorted, n, err));
    for (size_t i = 0; i < n; i++)
        sorted[i] = (pnb__labelled){(int64_t)length[i], i};
    for (size_t b = 0; b < n_bins; b++)
        bins[b] = (pnb_length_bin){0};
    if (spearman != NULL)
        PNB_TRY(correlate(values, sorted, n, spearman, err));
    qsort(sorted, n, sizeof *sorted, pnb__by_label);
    *n_out = cut_bins(sorted, values, n, bins, n_bins);
done:
    pnb__free(sorted);
    return status;
}
