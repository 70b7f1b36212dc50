/* Bins of uncertainty.
 *
 * equal_count is AsymVLM's: floor(n/bins) a bin, the remainder (the most uncertain) left out.
 * equal_width has bin k = (edge k, edge k+1], the smallest value in the first bin. The two grove_
 * forms reproduce that code's released behaviour, kept for its published figures only: equal-sample
 * bins lose one item a boundary, equal-spacing bins are cumulative (each holds all that is below
 * its edge) and are walked from the most uncertain item down. */
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "eval/sorted.h"
#include "penumbra/uncertainty_calibration.h"

PNB_DEFINE_NAME(pnb_binning_name, pnb_binning, PNB_NAMES(PNB_BINNING_LIST), "unknown")

static void assign_equal_count(const pnb__valued *sorted, size_t n, size_t n_bins, size_t *item,
                               size_t *offset)
{
    size_t size = n / n_bins;
    for (size_t b = 0; b <= n_bins; b++)
        offset[b] = b * size;
    for (size_t i = 0; i < n_bins * size; i++)
        item[i] = sorted[i].place;
}

static void assign_equal_count_all(const pnb__valued *sorted, size_t n, size_t n_bins, size_t *item,
                                   size_t *offset)
{
    for (size_t b = 0; b <= n_bins; b++)
        offset[b] = b * (n / n_bins) + b * (n % n_bins) / n_bins;
    for (size_t i = 0; i < n; i++)
        item[i] = sorted[i].place;
}

/* Bin of a value among n_bins equal intervals of [low, high]. */
static size_t width_bin(double value, double low, double high, size_t n_bins)
{
    if (!(high > low))
        return 0;
    /* Halves: high - low may overflow. */
    double share = (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low);
    double k = ceil(share * (double)n_bins) - 1.0;
    return k <= 0.0 ? 0 : PNB_MIN((size_t)k, n_bins - 1);
}

static void assign_equal_width(const pnb__valued *sorted, size_t n, size_t n_bins, size_t *item,
                               size_t *offset)
{
    size_t i = 0;
    for (size_t b = 0; b < n_bins; b++) {
        offset[b] = i;
        while (i < n &&
               width_bin(sorted[i].value, sorted[0].value, sorted[n - 1].value, n_bins) <= b) {
            item[i] = sorted[i].place;
            i++;
        }
    }
    offset[n_bins] = i;
}

/* The order the released code works in: descending, equal values by place. `sorted` is ascending,
 * so its runs of equal values are walked from the last, each run forwards. */
static void descending_order(const pnb__valued *sorted, size_t n, pnb__valued *out)
{
    for (size_t end = n, written = 0; end > 0;) {
        size_t begin = end - 1;
        while (begin > 0 && sorted[begin - 1].value == sorted[begin].value)
            begin--;
        for (size_t i = begin; i < end; i++)
            out[written++] = sorted[i];
        end = begin;
    }
}

/* Python's z // q on doubles. */
static size_t floor_divide(double z, double q)
{
    double quotient = (z - fmod(z, q)) / q, whole = floor(quotient);
    return (size_t)(quotient - whole > 0.5 ? whole + 1.0 : whole);
}

static void assign_grove_samples(const pnb__valued *falling, size_t n, size_t n_bins, size_t *item,
                                 size_t *offset)
{
    size_t step = n / n_bins, z = 0, written = 0, bin = 0;
    double share = (double)n / (double)n_bins;
    offset[0] = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > z + step) {
            z += step; /* and the item is dropped, as in the released code */
            continue;
        }
        for (size_t k = floor_divide((double)z, share); bin < k && bin + 1 < n_bins;)
            offset[++bin] = written;
        item[written++] = falling[n - 1 - i].place;
    }
    while (bin < n_bins)
        offset[++bin] = written;
}

static void assign_grove_spacing(const pnb__valued *falling, size_t n, size_t n_bins, size_t *item,
                                 size_t *offset)
{
    double high = falling[0].value, low = falling[n - 1].value;
    double step = n_bins > 1 ? (high - low) / (double)(n_bins - 1) : 0.0;
    size_t written = 0;
    for (size_t b = 0; b < n_bins; b++) {
        double edge = b + 1 == n_bins && n_bins > 1 ? high : low + (double)b * step;
        offset[b] = written;
        for (size_t i = 0; i < n; i++)
            if (edge >= falling[i].value)
                item[written++] = falling[i].place;
    }
    offset[n_bins] = written;
}

static pnb_status assign_grove(pnb_binning binning, const pnb__valued *sorted, size_t n,
                               size_t n_bins, size_t *item, size_t *offset, pnb_error *err)
{
    pnb__valued *falling = pnb__alloc_array(n, sizeof *falling);
    if (falling == NULL)
        return pnb__fail_nomem(err, n * sizeof *falling);
    descending_order(sorted, n, falling);
    if (binning == PNB_BINS_GROVE_SAMPLES)
        assign_grove_samples(falling, n, n_bins, item, offset);
    else
        assign_grove_spacing(falling, n, n_bins, item, offset);
    pnb__free(falling);
    return PNB_OK;
}

static pnb_status check_counts(size_t n, size_t n_bins, pnb_error *err)
{
    if (n_bins == 0 || n_bins > PNB_MAX_BINS)
        return pnb__fail(err, PNB_ARG, "%zu bins; 1 to %d are possible", n_bins, PNB_MAX_BINS);
    if (n < n_bins)
        return pnb__fail(err, PNB_ARG, "%zu items for %zu bins; use at most as many bins as items",
                         n, n_bins);
    return PNB_OK;
}

pnb_status pnb_bins_assign(pnb_binning binning, const double *uncertainty, size_t n, size_t n_bins,
                           size_t *item, size_t *offset, pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__valued *sorted = NULL;
    PNB_TRY(check_counts(n, n_bins, err));
    PNB_TRY(pnb__sorted(&sorted, uncertainty, n, "uncertainty", err));
    switch (binning) {
    case PNB_BINS_EQUAL_COUNT:
        assign_equal_count(sorted, n, n_bins, item, offset);
        break;
    case PNB_BINS_EQUAL_COUNT_ALL:
        assign_equal_count_all(sorted, n, n_bins, item, offset);
        break;
    case PNB_BINS_EQUAL_WIDTH:
        assign_equal_width(sorted, n, n_bins, item, offset);
        break;
    case PNB_BINS_GROVE_SAMPLES:
    case PNB_BINS_GROVE_SPACING:
        status = assign_grove(binning, sorted, n, n_bins, item, offset, err);
        break;
    default:
        status = pnb__fail(err, PNB_ARG, "binning number %d does not exist", (int)binning);
    }
done:
    pnb__free(sorted);
    return status;
}
