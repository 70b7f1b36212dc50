/* Clusters of rows from labels, their draws, and the groups that a jackknife leaves out.
 *
 * Draws take one number a cluster from the counter generator; where every row is a cluster of its
 * own these are the draws of a bootstrap over rows. The groups of the jackknife bound its cost: the
 * skewness of a figure's influence is the same from sums over groups of clusters (interval.c). */
#include "eval/resample/clusters.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

/* Rows by the first row of their label, those of one label together. */
static pnb_status sort_rows(pnb__labelled **out, const int64_t *label, size_t n, pnb_error *err)
{
    int64_t first = 0, last = 0;
    if (pnb__labels_sort(out, label, n, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        pnb__labelled *row = &(*out)[i];
        if (i == 0 || row->label != last)
            first = (int64_t)row->place;
        last = row->label;
        row->label = first;
    }
    qsort(*out, n, sizeof **out, pnb__by_label);
    return PNB_OK;
}

pnb_status pnb__clusters_init(pnb__clusters *c, const int64_t *label, size_t n_rows, pnb_error *err)
{
    pnb__labelled *rows = NULL;
    pnb_status status = PNB_OK;
    *c = (pnb__clusters){.n_rows = n_rows};
    if (PNB_ALLOC(c->offset, n_rows + 1, err) != PNB_OK ||
        PNB_ALLOC(c->row, PNB_MAX(n_rows, 1), err) != PNB_OK)
        return PNB_NOMEM;
    if (label != NULL)
        status = sort_rows(&rows, label, n_rows, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n_rows; i++) {
        c->row[i] = rows == NULL ? i : rows[i].place;
        if (rows == NULL || i == 0 || rows[i].label != rows[i - 1].label)
            c->offset[c->n++] = i;
    }
    c->offset[c->n] = n_rows;
    pnb__free(rows);
    return PNB_OK;
}

void pnb__clusters_reset(pnb__clusters *c)
{
    pnb__free(c->offset);
    pnb__free(c->row);
    *c = (pnb__clusters){0};
}

void pnb__clusters_draw(const pnb__clusters *c, uint64_t seed, size_t r, uint32_t *weight)
{
    pnb__rng rng;
    pnb__rng_init(&rng, seed, r);
    memset(weight, 0, c->n_rows * sizeof *weight);
    for (size_t i = 0; i < c->n; i++) {
        size_t k = (size_t)pnb__rng_below(&rng, c->n);
        for (size_t p = c->offset[k]; p < c->offset[k + 1]; p++)
            weight[c->row[p]]++;
    }
}

size_t pnb__clusters_groups(const pnb__clusters *c)
{
    return PNB_MIN(c->n, (size_t)PNB__MAX_JACKKNIFE);
}

void pnb__clusters_leave_out(const pnb__clusters *c, size_t group, uint32_t *weight)
{
    size_t n_groups = pnb__clusters_groups(c);
    for (size_t i = 0; i < c->n_rows; i++)
        weight[i] = 1;
    for (size_t k = group; k < c->n; k += n_groups)
        for (size_t p = c->offset[k]; p < c->offset[k + 1]; p++)
            weight[c->row[p]] = 0;
}
