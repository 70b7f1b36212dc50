/* Means of rows, and rows with one variance: what the methods without training are made of.
 *
 * Sums in f64, in the order of the rows, so that they do not depend on blocks or threads. Rows of a
 * mapped set are let go of as they are done with: a set larger than memory is gone through. */
#include <math.h>
#include <string.h>

#include "adapt/adapter.h"

const float *pnb__adapter_row(const pnb__adapter_rows *rows, size_t i)
{
    size_t row = rows->row != NULL ? rows->row[i] : i;
    return rows->set->mean + row * rows->set->dim;
}

pnb_status pnb__adapter_square(const float *x, size_t dim, size_t row, const char *what,
                               double *out, pnb_error *err)
{
    double square = 0.0; /* f32 squared fits f64: only a number that is not finite makes it so */
    for (size_t d = 0; d < dim; d++)
        square += (double)x[d] * (double)x[d];
    if (!isfinite(square))
        return pnb__fail(err, PNB_NUMERIC,
                         "row %zu of the %s embeddings holds a number that is not finite", row,
                         what);
    *out = square;
    return PNB_OK;
}

/* The factor a row enters the mean with. */
static pnb_status weight_of(const pnb__adapter_rows *rows, size_t i, bool is_unit, double *out,
                            pnb_error *err)
{
    size_t row = rows->row != NULL ? rows->row[i] : i;
    double square = 0.0;
    pnb_status status = pnb__adapter_square(pnb__adapter_row(rows, i), rows->set->dim, row,
                                            rows->what, &square, err);
    if (status != PNB_OK)
        return status;
    if (is_unit && square == 0.0)
        return pnb__fail(err, PNB_NUMERIC,
                         "row %zu of the %s embeddings has length 0: it has no direction", row,
                         rows->what);
    *out = is_unit ? 1.0 / sqrt(square) : 1.0;
    return PNB_OK;
}

pnb_status pnb__adapter_mean(const pnb__adapter_rows *rows, bool is_unit, double *mean,
                             pnb_error *err)
{
    size_t dim = rows->set->dim, done = 0;
    memset(mean, 0, dim * sizeof *mean);
    for (size_t i = 0; i < rows->n; i++) {
        const float *x = pnb__adapter_row(rows, i);
        double weight = 0.0;
        pnb_status status = weight_of(rows, i, is_unit, &weight, err);
        if (status != PNB_OK)
            return status;
        for (size_t d = 0; d < dim; d++)
            mean[d] += weight * (double)x[d];
        if (i - done >= 4096) {
            pnb__adapter_rows_done(rows, done, i);
            done = i;
        }
    }
    for (size_t d = 0; d < dim; d++)
        mean[d] /= (double)rows->n;
    return PNB_OK;
}

pnb_status pnb__adapter_check_kept(const pnb_adapter *a, const char *where, pnb_error *err)
{
    if (a->family != PNB_GAUSSIAN_DIAG)
        return pnb__fail(err, PNB_FORMAT, "%s: family %s, %s makes gaussian_diag", where,
                         pnb_family_name(a->family), a->about->name);
    for (int s = 0; s < PNB_N_ADAPTER_SIDES; s++)
        if (a->part[s].is_adapted && a->part[s].dim_out != a->part[s].dim)
            return pnb__fail(err, PNB_FORMAT, "%s: dim %zu and dim_out %zu, %s keeps the width",
                             where, a->part[s].dim, a->part[s].dim_out, a->about->name);
    return PNB_OK;
}

void pnb__adapter_rows_done(const pnb__adapter_rows *rows, size_t begin, size_t end)
{
    if (end <= begin || (rows->set->mapped_arrays & 1u) == 0) /* bit 0: mean */
        return;
    const float *from = pnb__adapter_row(rows, begin), *to = pnb__adapter_row(rows, end - 1);
    pnb__drop_pages(from, (size_t)(to - from) * sizeof *from);
}

/* N(x, (u/D) I): log var = log u - log D. */
void pnb__adapter_spread(const pnb__adapter_block *block, size_t i, double u)
{
    size_t dim = block->dim;
    float log_var = (float)(log(fmax(u, PNB__ADAPTER_LEAST)) - log((double)dim));
    memcpy(block->out->mean + i * dim, block->x + i * dim, dim * sizeof(float));
    for (size_t d = 0; d < dim; d++)
        block->out->log_var[i * dim + d] = log_var;
}
