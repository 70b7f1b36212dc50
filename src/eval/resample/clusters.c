/* Clusters of rows from labels, their draws, and the groups that a jackknife leaves out.
 *
 * Draws take one number a cluster from the counter generator; where every row is a cluster of its
 * own these are the draws of a bootstrap over rows. The groups of the jackknife bound its cost: the
 * skewness of a figure's influence is the same from sums over groups of clusters (interval.c). */
#include "eval/resample/clusters.h"

#include <stdlib.h>
#include <string.h>

typedef struct labelled {
    int64_t label;
    size_t row, first; /* first row of the label */
} labelled;

static int by_label(const void *a, const void *b)
{
    const labelled *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_first(const void *a, const void *b)
{
    const labelled *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static pnb_status sort_rows(labelled **out, const int64_t *label, size_t n, pnb_error *err)
{
    labelled *rows = pnb__alloc_array(PNB_MAX(n, 1), sizeof *rows);
    if (rows == NULL)
        return pnb__fail_nomem(err, n * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (labelled){label[i], i, i};
    qsort(rows, n, sizeof *rows, by_label);
    for (size_t i = 1; i < n; i++)
        if (rows[i].label == rows[i - 1].label)
            rows[i].first = rows[i - 1].first;
    qsort(rows, n, sizeof *rows, by_first);
    *out = rows;
    return PNB_OK;
}

pnb_status pnb__clusters_init(pnb__clusters *c, const int64_t *label, size_t n_rows, pnb_error *err)
{
    labelled *rows = NULL;
    pnb_status status = PNB_OK;
    *c = (pnb__clusters){.n_rows = n_rows};
    c->offset = pnb__alloc_array(n_rows + 1, sizeof *c->offset);
    c->row = pnb__alloc_array(PNB_MAX(n_rows, 1), sizeof *c->row);
    if (c->offset == NULL || c->row == NULL)
        return pnb__fail_nomem(err, 2 * n_rows * sizeof *c->row);
    if (label != NULL)
        status = sort_rows(&rows, label, n_rows, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < n_rows; i++) {
        c->row[i] = rows == NULL ? i : rows[i].row;
        if (rows == NULL || i == 0 || rows[i].first != rows[i - 1].first)
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
