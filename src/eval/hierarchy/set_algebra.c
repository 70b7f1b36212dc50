/* Set algebra of mixed pictures: does the mixture of two lie in the intersection of their
 * embeddings (PCME section 4.4, Figure 8)? Measured with ProLIP's inclusion test, row by row, in
 * both directions, because which of the two a model does is what one wants to know. Erased pictures
 * need no code of their own: pnb_share_included of original and erased copy. */
#include "base/base.h"
#include "penumbra/hierarchy.h"

static pnb_status check(const pnb_gaussians *mixed, const pnb_gaussians *a, const pnb_gaussians *b,
                        pnb_error *err)
{
    if (mixed->n == 0)
        return pnb__fail(err, PNB_SHAPE, "no mixed pictures; at least one is needed");
    if (a->n != mixed->n || b->n != mixed->n)
        return pnb__fail(
            err, PNB_SHAPE,
            "%zu mixed pictures of %zu and %zu sources; row i is made of row i of both", mixed->n,
            a->n, b->n);
    return PNB_OK;
}

pnb_status pnb_mixed_included(const pnb_gaussians *mixed, const pnb_gaussians *a,
                              const pnb_gaussians *b, bool published, pnb_mixed_share *out,
                              pnb_error *err)
{
    pnb_measure measure = published ? PNB_MEASURE_INCLUSION_PUBLISHED : PNB_MEASURE_INCLUSION;
    pnb_mixed_share share = {0};
    size_t n = mixed->n;
    double *h = NULL;
    pnb_status status = PNB_OK;
    PNB_TRY(check(mixed, a, b, err));
    PNB_TRY(PNB_ALLOC_ROWS(h, n, 2, err));
    PNB_TRY(pnb_measure_rows(measure, mixed, a, NULL, h, err));
    PNB_TRY(pnb_measure_rows(measure, mixed, b, NULL, h + n, err));
    for (size_t i = 0; i < n; i++) {
        share.in_first += h[i] > 0.0;
        share.in_second += h[n + i] > 0.0;
        share.in_both += h[i] > 0.0 && h[n + i] > 0.0;
        share.holds_both += h[i] < 0.0 && h[n + i] < 0.0; /* H is antisymmetric */
    }
    share.in_first /= (double)n;
    share.in_second /= (double)n;
    share.in_both /= (double)n;
    share.holds_both /= (double)n;
    *out = share;
done:
    pnb__free(h);
    return status;
}
