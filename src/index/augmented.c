/* Measures that are inner products of rows with one dimension more: product_form.h's term is there.
 *
 *   csd   [mean, (1 - |mean|^2 - tr)/2] . [mean_q, 1]    -tr/2 where means have length 1
 *   vmf   [kappa mean, log C] . [x, 1]
 *   mean  mean at length 1, no further dimension
 *
 * up to a term of the query alone, which changes no order. The numbers are rounded to f32, so that
 * scores closer than that may change places. */
#include "index/augmented.h"

#include "base/base.h"
#include "index/product_form.h"
#include "penumbra/view.h"

pnb_status pnb__augmented_form(pnb_family family, size_t dim, pnb__augmented *out, pnb_error *err)
{
    switch (family) {
    case PNB_POINT:
        *out = (pnb__augmented){dim, PNB_MEASURE_MEAN, "[mean of the query]"};
        return PNB_OK;
    case PNB_GAUSSIAN_DIAG:
    case PNB_GEN_GAUSSIAN:
        *out = (pnb__augmented){dim + 1, PNB_MEASURE_CSD, "[mean of the query, 1]"};
        return PNB_OK;
    case PNB_VMF:
        *out = (pnb__augmented){dim + 1, PNB_MEASURE_VMF, "[the query's unit vector, 1]"};
        return PNB_OK;
    default:
        return pnb__fail(err, PNB_UNSUPPORTED,
                         "rows of family %s have no form as vectors: their likelihood is no inner "
                         "product",
                         pnb_family_name(family));
    }
}

static bool fill_row(const pnb_rows *rows, const pnb__augmented *form, size_t row, float *out)
{
    bool is_finite = true;
    double term = pnb__linear_item(rows, form->measure, row, out, &is_finite);
    if (form->width > rows->dim)
        out[rows->dim] = (float)term;
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
        if (!fill_row(&view.rows, &form, i, out + i * form.width))
            PNB_TRY(pnb__fail(err, PNB_NUMERIC, "row %zu does not fit into single precision", i));
done:
    pnb_view_reset(&view);
    return status;
}
