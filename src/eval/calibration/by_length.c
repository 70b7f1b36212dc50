/* Values by length: is a short caption more uncertain than a long one?
 *
 * Lengths are whole numbers with many ties (words, tokens), so bins are runs of lengths, closed as
 * soon as they hold their share of the rows; a length is never split over two bins. The rank
 * correlation beside them uses the lengths themselves (Chun et al. 2025, Figure 7). */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "penumbra/hierarchy.h"
#include "penumbra/statistics.h"

typedef struct sized {
    size_t length, row;
} sized;

static int compare_sized(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static size_t cut_bins(const sized *sorted, const double *values, size_t n, pnb_length_bin *bins,
                       size_t n_bins)
{
    size_t b = 0, done = 0;
    for (size_t i = 0; i < n;) {
        pnb_length_bin *bin = &bins[b];
        if (bin->n == 0)
            bin->low = sorted[i].length;
        size_t length = sorted[i].length;
        for (; i < n && sorted[i].length == length; i++, bin->n++)
            bin->mean += values[sorted[i].row];
        bin->high = length;
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

static pnb_status correlate(const double *values, const sized *rows, size_t n, double *out,
                            pnb_error *err)
{
    double *length = pnb__alloc_array(n, sizeof *length);
    pnb_error why = PNB_ERROR_INIT;
    if (length == NULL)
        return pnb__fail_nomem(err, n * sizeof *length);
    for (size_t i = 0; i < n; i++)
        length[rows[i].row] = (double)rows[i].length;
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
    sized *sorted = pnb__alloc_array(n, sizeof *sorted);
    if (sorted == NULL)
        return pnb__fail_nomem(err, n * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = (sized){length[i], i};
    for (size_t b = 0; b < n_bins; b++)
        bins[b] = (pnb_length_bin){0};
    if (spearman != NULL)
        PNB_TRY(correlate(values, sorted, n, spearman, err));
    qsort(sorted, n, sizeof *sorted, compare_sized);
    *n_out = cut_bins(sorted, values, n, bins, n_bins);
done:
    pnb__free(sorted);
    return status;
}
