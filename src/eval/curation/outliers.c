/* Outliers: rows that stand alone, or that their encoder is unsure of.
 *
 *   nearest      score to the nearest other row         knn   mean score to the k nearest others
 *   kth          score to the k-th nearest other row    uncertainty   the row's own
 * Ranked with the lowest score or the highest uncertainty first. The k-th neighbour's distance is
 * Ramaswamy, Rastogi and Shim 2000; the mean over k is Angiulli and Pizzuti 2002. A row is never
 * its own neighbour; an exact copy of it is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/order.h"
#include "eval/curation/neighbours.h"
#include "penumbra/outliers.h"

PNB_DEFINE_NAME(pnb_outlier_name, pnb_outlier, PNB_NAMES(PNB_OUTLIER_LIST), "unknown")

pnb_outliers_opts pnb_outliers_opts_default(void)
{
    return (pnb_outliers_opts){.kind = PNB_OUTLIER_KNN,
                               .k = 10,
                               .measure = PNB_MEASURE_MEAN,
                               .measure_opts = pnb_measure_opts_default()};
}

static pnb_status check(const pnb_gaussians *rows, const double *u, const pnb_outliers_opts *o,
                        size_t k, pnb_error *err)
{
    if ((unsigned)o->kind >= PNB_N_OUTLIERS || rows->n == 0)
        return pnb__fail(err, PNB_ARG, "outliers of %zu rows by number %d", rows->n, (int)o->kind);
    if (o->kind != PNB_OUTLIER_UNCERTAINTY)
        return k > 0 && k < rows->n
                   ? PNB_OK
                   : pnb__fail(err, PNB_ARG,
                               "%zu neighbours among %zu rows; at least 1 is wanted, and a row has "
                               "%zu others",
                               k, rows->n, rows->n - 1);
    if (u == NULL)
        return pnb__fail(err, PNB_ARG, "outliers by uncertainty, but there is none");
    for (size_t i = 0; i < rows->n; i++)
        if (!isfinite(u[i]))
            return pnb__fail(err, PNB_NUMERIC, "the uncertainty of row %zu is %g", i, u[i]);
    return PNB_OK;
}

/* The figure of one row from its k + 1 hits, of which one may be the row itself. */
static void take_row(const pnb_outliers_opts *o, size_t k, size_t row, const pnb_hits *hits,
                     size_t query, pnb_outliers *out)
{
    const int64_t *index = hits->index + query * hits->k;
    const double *score = hits->score + query * hits->k;
    double sum = 0, last = 0;
    size_t n = 0;
    for (size_t j = 0; j < hits->k && n < k; j++) {
        if (index[j] == (int64_t)row)
            continue;
        if (n++ == 0)
            out->nearest[row] = index[j];
        last = score[j];
        sum += last;
    }
    out->value[row] = o->kind == PNB_OUTLIER_KNN ? sum / (double)n : last;
}

static pnb_status find_neighbours(const pnb_ctx *ctx, const pnb_gaussians *rows,
                                  const pnb_outliers_opts *o, size_t k, pnb_outliers *out,
                                  pnb_error *err)
{
    pnb__neighbours near;
    pnb_hits hits = {0};
    pnb_status status = pnb__neighbours_init(&near, ctx, rows, o->measure, &o->measure_opts, err);
    for (size_t begin = 0; status == PNB_OK && begin < rows->n; begin += PNB__NEIGHBOUR_BLOCK) {
        size_t count = PNB_MIN((size_t)PNB__NEIGHBOUR_BLOCK, rows->n - begin);
        status = pnb__neighbours_of_block(&near, begin, count, k + 1, &hits, err);
        for (size_t i = 0; status == PNB_OK && i < count; i++)
            take_row(o, k, begin + i, &hits, i, out);
        pnb_hits_reset(&hits);
        if (status == PNB_OK && o->watch.step != NULL &&
            !o->watch.step(o->watch.user, begin + count, rows->n))
            status = pnb__fail(err, PNB_INTERRUPTED, "stopped after %zu of %zu rows", begin + count,
                               rows->n);
    }
    pnb__neighbours_reset(&near);
    return status;
}

static pnb_status rank(pnb_outliers *out, bool is_high_far, pnb_error *err)
{
    pnb__valued *sorted = pnb__alloc_array(out->n, sizeof *sorted);
    if (sorted == NULL)
        return pnb__fail_nomem(err, out->n * sizeof *sorted);
    for (size_t i = 0; i < out->n; i++)
        sorted[i] = (pnb__valued){is_high_far ? -out->value[i] : out->value[i], i};
    qsort(sorted, out->n, sizeof *sorted, pnb__by_value);
    for (size_t i = 0; i < out->n; i++)
        out->order[i] = sorted[i].place;
    pnb__free(sorted);
    return PNB_OK;
}

pnb_status pnb_outliers_rank(const pnb_ctx *ctx, const pnb_gaussians *rows, const double *u,
                             const pnb_outliers_opts *opts, pnb_outliers *out, pnb_error *err)
{
    pnb_outliers_opts o = opts != NULL ? *opts : pnb_outliers_opts_default();
    bool by_u = o.kind == PNB_OUTLIER_UNCERTAINTY;
    size_t k = o.kind == PNB_OUTLIER_NEAREST ? 1 : o.k;
    pnb_outliers found = {.n = rows->n};
    pnb_status status;
    *out = (pnb_outliers){0};
    PNB_TRY(check(rows, u, &o, k, err));
    found.order = pnb__alloc_array(rows->n, sizeof *found.order);
    found.value = pnb__alloc_array(rows->n, sizeof *found.value);
    found.nearest = by_u ? NULL : pnb__alloc_array(rows->n, sizeof *found.nearest);
    if (found.order == NULL || found.value == NULL || (!by_u && found.nearest == NULL))
        PNB_TRY(pnb__fail_nomem(err, 3 * rows->n * sizeof *found.order));
    if (by_u)
        memcpy(found.value, u, rows->n * sizeof *u);
    else
        PNB_TRY(find_neighbours(ctx, rows, &o, k, &found, err));
    PNB_TRY(rank(&found, by_u, err));
    *out = found;
    found = (pnb_outliers){0};
done:
    pnb_outliers_reset(&found);
    return status;
}

void pnb_outliers_reset(pnb_outliers *o)
{
    if (o == NULL)
        return;
    pnb__free(o->order);
    pnb__free(o->value);
    pnb__free(o->nearest);
    *o = (pnb_outliers){0};
}
