/* The recogniser: a linear map from a side's embeddings to latents, by ridge regression over (at
 * most 8,192 of) the pairs that were learned from. It says where the search for a new row's latent
 * begins; the search itself is grove_read.c's. */
#include <string.h>

#include "adapt/gp/factors/dense.h"
#include "adapt/grove/grove.h"

enum { MOST_ROWS = 8192 };

typedef struct ridge {
    size_t n, d, q;
    double *y, *x, *gram, *right; /* (n,D + 1), (n,Q), (D+1,D+1), (D+1,Q) */
} ridge;

/* (Y^T Y + r I) W = Y^T X, the last column of Y is 1 */
static pnb_status solve_ridge(const ridge *w, const pnb_ctx *ctx, pnb_error *err)
{
    pnb__kernels kernels;
    size_t d = w->d + 1;
    double trace = 0;
    pnb__kernels_fill_host(&kernels, ctx, PNB__F64);
    pnb__dense_product gram = {
        .m = d, .n = d, .k = w->n, .a = w->y, .trans_a = true, .b = w->y, .alpha = 1};
    pnb__dense_product right = {
        .m = d, .n = w->q, .k = w->n, .a = w->y, .trans_a = true, .b = w->x, .alpha = 1};
    pnb__dense_multiply(&kernels, ctx, &gram, w->gram);
    pnb__dense_multiply(&kernels, ctx, &right, w->right);
    for (size_t i = 0; i < d; i++)
        trace += w->gram[i * d + i];
    for (size_t i = 0; i < d; i++)
        w->gram[i * d + i] += 1e-3 * trace / (double)d;
    if (!kernels.cholesky(ctx, d, w->gram, w->gram))
        return pnb__fail(err, PNB_NUMERIC, "the regression of latents has no solution");
    kernels.tri_solve(ctx, d, w->q, false, w->gram, w->right, w->right);
    kernels.tri_solve(ctx, d, w->q, true, w->gram, w->right, w->right);
    return PNB_OK;
}

pnb_status pnb__grove_recognise(pnb__grove *g, const pnb_ctx *ctx, const pnb__grove_pairs *pairs,
                                int side, pnb_error *err)
{
    pnb__grove_part *part = &g->part[side];
    size_t n = PNB_MIN(pairs->n, (size_t)MOST_ROWS), d = part->d, q = g->q;
    ridge w = {.n = n, .d = d, .q = q};
    uint32_t *sample = NULL;
    pnb_status status;
    PNB_TRY(pnb__grove_sample(&sample, pairs->n, n, 0, err));
    w.y = pnb__alloc_array(n * (2 * d + 1 + q) + (d + 1) * (d + 1 + q), sizeof(double));
    if (w.y == NULL)
        PNB_TRY(pnb__fail_nomem(err, n * (2 * d + 1 + q) * sizeof(double)));
    w.x = w.y + n * (d + 1);
    w.gram = w.x + n * q;
    w.right = w.gram + (d + 1) * (d + 1);
    double *rows = w.right + (d + 1) * q;
    pnb__grove_rows(g, pairs, side, sample, n, rows);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < d; k++)
            w.y[i * (d + 1) + k] = rows[i * d + k] - part->constant[k];
        w.y[i * (d + 1) + d] = 1;
        memcpy(w.x + i * q, pairs->x + sample[i] * q, q * sizeof *rows);
    }
    PNB_TRY(solve_ridge(&w, ctx, err));
    for (size_t i = 0; i < (d + 1) * q; i++)
        part->recognise[i % q * (d + 1) + i / q] = w.right[i];
done:
    pnb__free(sample);
    pnb__free(w.y);
    return status;
}
