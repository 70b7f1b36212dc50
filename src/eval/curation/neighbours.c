/* Searches a set with its own rows. A row finds itself too; who calls leaves it out by its number,
 * because an exact copy of a lower number may stand before it.
 *
 * A block of rows is a view; single rows are gathered into a block of their own first. How scores
 * are computed and what f32 rounding may do to them is the matter of src/index. */
#include "eval/curation/neighbours.h"

#include <string.h>

pnb_status pnb__neighbours_init(pnb__neighbours *n, const pnb_ctx *ctx, const pnb_gaussians *rows,
                                pnb_measure measure, const pnb_measure_opts *opts, pnb_error *err)
{
    pnb_search_opts search = pnb_search_opts_default();
    search.measure = measure;
    search.measure_opts = *opts;
    /* What is symmetric reads means and variances; other parameters would not be gathered. */
    *n = (pnb__neighbours){
        .ctx = ctx,
        .rows = {.n = rows->n, .dim = rows->dim, .mean = rows->mean, .log_var = rows->log_var}};
    if ((unsigned)measure < PNB_N_MEASURES && !pnb_measure_is_symmetric(measure))
        return pnb__fail(err, PNB_ARG,
                         "%s is not symmetric; neighbours within one set need a measure that is, "
                         "such as mean, csd or w2",
                         pnb_measure_name(measure));
    pnb_status status = pnb_measure_check_fit(measure, rows, rows, err);
    if (status != PNB_OK)
        return status;
    return pnb_index_create(&n->index, ctx, &n->rows, &search, err);
}

void pnb__neighbours_reset(pnb__neighbours *n)
{
    pnb_index_free(n->index);
    pnb__free(n->mean);
    pnb__free(n->log_var);
    *n = (pnb__neighbours){0};
}

pnb_status pnb__neighbours_of_block(pnb__neighbours *n, size_t begin, size_t count, size_t k,
                                    pnb_hits *hits, pnb_error *err)
{
    const pnb_rows queries = pnb_rows_slice(&n->rows, begin, count);
    return pnb_index_search(n->index, n->ctx, &queries, k, hits, err);
}

static pnb_status make_room(pnb__neighbours *n, pnb_error *err)
{
    size_t count = (size_t)PNB__NEIGHBOUR_BLOCK * n->rows.dim;
    if (n->mean == NULL)
        n->mean = pnb__alloc_array(count, sizeof(float));
    if (n->rows.log_var != NULL && n->log_var == NULL)
        n->log_var = pnb__alloc_array(count, sizeof(float));
    return n->mean != NULL && (n->rows.log_var == NULL || n->log_var != NULL)
               ? PNB_OK
               : pnb__fail_nomem(err, count * sizeof(float));
}

pnb_status pnb__neighbours_of_rows(pnb__neighbours *n, const size_t *row, size_t count, size_t k,
                                   pnb_hits *hits, pnb_error *err)
{
    size_t dim = n->rows.dim;
    pnb_status status = make_room(n, err);
    *hits = (pnb_hits){0};
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        memcpy(n->mean + i * dim, n->rows.mean + row[i] * dim, dim * sizeof(float));
        if (n->log_var != NULL)
            memcpy(n->log_var + i * dim, n->rows.log_var + row[i] * dim, dim * sizeof(float));
    }
    const pnb_rows queries = {.n = count, .dim = dim, .mean = n->mean, .log_var = n->log_var};
    return pnb_index_search(n->index, n->ctx, &queries, k, hits, err);
}
