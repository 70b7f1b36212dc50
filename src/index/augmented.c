/* Measures that are inner products of rows with one dimension more.
 *
 *   csd   1 - csd/2 = mean . mean_q - tr/2 - tr_q/2     [mean, -tr/2] . [mean_q, 1]
 *   vmf   log p(x) = kappa mean . x + log C(kappa)       [kappa mean, log C] . [x, 1]
 *
 * up to a term of the query alone, which changes no order; points need no further dimension. The
 * numbers are rounded to f32, so that scores closer than that may change places. */
#include "index/augmented.h"

#include <math.h>

#include "base/base.h"
#include "penumbra/distributions.h"
#include "penumbra/view.h"

pnb_status pnb__augmented_form(pnb_family family, size_t dim, pnb__augmented *out, pnb_error *err)
{
    switch (family) {
    case PNB_POINT:
        *out = (pnb__augmented){dim, "mean", "[mean of the query]"};
        return PNB_OK;
    case PNB_GAUSSIAN_DIAG:
    case PNB_GEN_GAUSSIAN:
        *out = (pnb__augmented){dim + 1, "csd", "[mean of the query, 1]"};
        return PNB_OK;
    case PNB_VMF:
        *out = (pnb__augmented){dim + 1, "vmf", "[the query's unit vector, 1]"};
        return PNB_OK;
    default:
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "rows of family %s have no form as vectors: their likelihood is no inner "
                         "product",
                         pnb_family_name(family));
    }
}

static double half_trace(const pnb_rows *rows, size_t row)
{
    double sum = 0;
    for (size_t d = 0; d < rows->dim; d++)
        sum += exp((double)rows->log_var[row * rows->dim + d]);
    return 0.5 * sum;
}

static bool fill_row(const pnb_rows *rows, size_t row, size_t width, float *out)
{
    const float *mean = rows->mean + row * rows->dim;
    double scale = rows->kappa != NULL ? (double)rows->kappa[row] : 1.0;
    bool is_finite = true;
    for (size_t d = 0; d < rows->dim; d++)
        out[d] = (float)(scale * (double)mean[d]);
    if (width > rows->dim)
        out[rows->dim] = (float)(rows->kappa != NULL ? pnb_vmf_log_norm_approx(rows->dim, scale)
                                                     : -half_trace(rows, row));
    for (size_t d = 0; d < width; d++)
        is_finite = is_finite && isfinite(out[d]);
    return is_finite;
}

pnb_status pnb__augmented_rows(const pnb_embeddings *set, float *out, pnb_error *err)
{
    pnb__augmented form = {0};
    pnb_view view = {0};
    pnb_status status;
    PNB_TRY(pnb__augmented_form(set->family, set->dim, &form, err));
    PNB_TRY(pnb_view_init(&view, set, err));
    for (size_t i = 0; i < set->n; i++)
        if (!fill_row(&view.rows, i, form.width, out + i * form.width))
            PNB_TRY(pnb__fail(err, PNB_NUMERIC, "row %zu does not fit into single precision", i));
done:
    pnb_view_reset(&view);
    return status;
}
