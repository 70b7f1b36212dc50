/* Finds rows that are the same bit for bit: a table of row numbers by a hash of their bytes,
 * compared byte by byte where hashes meet. Zero and minus zero differ here.
 *
 * Copies score the same against everything, so a search need see one of them only; what becomes of
 * the others is the matter of who asks. */
#include "eval/curation/exact_duplicates.h"

#include <string.h>

#include "base/map.h"

/* ---- kinds ---- */

static const float *parameters(const float *array, size_t row, size_t dim)
{
    return array == NULL ? NULL : array + row * dim;
}

static uint64_t hash_row(const pnb_rows *g, size_t row)
{
    size_t bytes = g->dim * sizeof(float);
    uint64_t hash = pnb__hash_bytes(parameters(g->mean, row, g->dim), bytes, 1);
    if (g->log_var != NULL)
        hash = pnb__hash_bytes(parameters(g->log_var, row, g->dim), bytes, hash);
    return hash;
}

static bool are_same(const pnb_rows *g, size_t a, size_t b)
{
    size_t bytes = g->dim * sizeof(float);
    if (memcmp(parameters(g->mean, a, g->dim), parameters(g->mean, b, g->dim), bytes) != 0)
        return false;
    return g->log_var == NULL ||
           memcmp(parameters(g->log_var, a, g->dim), parameters(g->log_var, b, g->dim), bytes) == 0;
}

static pnb_status find_kinds(pnb__exact_duplicates *c, const pnb_rows *g, pnb_error *err)
{
    pnb__key_map kinds = {0};
    pnb_status status = pnb__key_map_reserve(&kinds, g->n, err);
    for (size_t i = 0; i < g->n && status == PNB_OK; i++) {
        uint64_t hash = hash_row(g, i);
        size_t kind, step = 0;
        while ((kind = pnb__key_map_next(&kinds, hash, &step)) != PNB__NO_KEY &&
               !are_same(g, c->first[kind], i)) {
        }
        if (kind == PNB__NO_KEY) {
            kind = c->n_kinds++;
            c->first[kind] = i;
            status = pnb__key_map_add(&kinds, hash, kind, err);
        }
        c->kind[i] = kind;
    }
    pnb__key_map_reset(&kinds);
    return status;
}

/* offset[k + 1] is first the number of rows of kind k, then where its next row goes. */
static void list_rows(pnb__exact_duplicates *c)
{
    memset(c->offset, 0, (c->n_kinds + 1) * sizeof *c->offset);
    for (size_t i = 0; i < c->n; i++)
        c->offset[c->kind[i] + 1]++;
    for (size_t k = 0, at = 0; k < c->n_kinds; k++) {
        size_t count = c->offset[k + 1];
        c->offset[k + 1] = at;
        at += count;
    }
    for (size_t i = 0; i < c->n; i++)
        c->row[c->offset[c->kind[i] + 1]++] = i;
}

pnb_status pnb__exact_duplicates_find(pnb__exact_duplicates *c, const pnb_rows *rows, bool apart,
                                      pnb_error *err)
{
    size_t n = rows->n;
    pnb_status status = PNB_OK;
    *c = (pnb__exact_duplicates){.n = n};
    PNB_TRY(PNB_ALLOC(c->kind, n, err));
    PNB_TRY(PNB_ALLOC(c->first, n, err));
    PNB_TRY(PNB_ALLOC(c->offset, n + 1, err));
    PNB_TRY(PNB_ALLOC(c->row, n, err));
    if (!apart)
        PNB_TRY(find_kinds(c, rows, err));
    for (size_t i = 0; apart && i < n; i++)
        c->kind[i] = c->first[i] = i;
    c->n_kinds = apart ? n : c->n_kinds;
    list_rows(c);
done:
    if (status != PNB_OK)
        pnb__exact_duplicates_reset(c);
    return status;
}

void pnb__exact_duplicates_reset(pnb__exact_duplicates *c)
{
    pnb__free(c->kind);
    pnb__free(c->first);
    pnb__free(c->offset);
    pnb__free(c->row);
    *c = (pnb__exact_duplicates){0};
}

/* ---- gathering ---- */

static void gather(float *out, const float *from, const size_t *row, size_t n, size_t dim)
{
    for (size_t i = 0; i < n; i++)
        memcpy(out + i * dim, from + row[i] * dim, dim * sizeof(float));
}

pnb_status pnb__gathered_init(pnb__gathered *g, const pnb_rows *rows, const size_t *row, size_t n,
                              pnb_error *err)
{
    size_t dim = rows->dim;
    *g = (pnb__gathered){0};
    if (row[n - 1] - row[0] == n - 1) {
        g->rows = pnb_rows_slice(rows, row[0], n);
        return PNB_OK;
    }
    g->mean = pnb__alloc_array(n, dim * sizeof(float));
    if (rows->log_var != NULL)
        g->log_var = pnb__alloc_array(n, dim * sizeof(float));
    if (g->mean == NULL || (rows->log_var != NULL && g->log_var == NULL)) {
        pnb__gathered_reset(g);
        return pnb__fail_nomem(err, 2 * n * dim * sizeof(float));
    }
    gather(g->mean, rows->mean, row, n, dim);
    if (rows->log_var != NULL)
        gather(g->log_var, rows->log_var, row, n, dim);
    g->rows = (pnb_rows){.n = n, .dim = dim, .mean = g->mean, .log_var = g->log_var};
    return PNB_OK;
}

void pnb__gathered_reset(pnb__gathered *g)
{
    pnb__free(g->mean);
    pnb__free(g->log_var);
    *g = (pnb__gathered){0};
}
