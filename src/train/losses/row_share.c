/* Rows of a process out of those of a batch: views of tensors, and copies of what inputs are filled
 * with. Where all rows are ours nothing is added to a graph, so that one process has the graph, and
 * the bits, that it would have without any of this. */
#include <string.h>

#include "train/losses/row_share.h"

/* One run is a view; two are copied behind each other. */
pnb__tensor *pnb__share_rows(const pnb__row_share *s, pnb__tensor *x)
{
    pnb__tensor *runs[PNB__SHARE_RUNS];
    size_t n_runs = 0;
    if (x == NULL || !pnb__is_shared(s))
        return x;
    for (int k = 0; k < PNB__SHARE_RUNS; k++)
        if (s->n[k] > 0)
            runs[n_runs++] = pnb__slice(x, 0, s->begin[k], s->n[k]);
    return n_runs == 1 ? runs[0] : pnb__concat(runs, n_runs, 0);
}

/* The parts of all processes are 1 together. */
pnb__tensor *pnb__share_part(const pnb__row_share *s, pnb__tensor *x)
{
    double ours = (double)(s->n[0] + s->n[1]);
    return pnb__is_shared(s) ? pnb__affine(x, ours / (double)s->n_all, 0) : x;
}

/* Rows that an input is filled with: `all`, or a copy of ours behind each other, which *held frees.
 */
static pnb_status rows_of(const pnb__row_share *s, const void *all, size_t row_bytes, void **held,
                          const void **rows, pnb_error *err)
{
    size_t at = 0, bytes = (s->n[0] + s->n[1]) * row_bytes;
    *held = NULL;
    *rows = all;
    if (!pnb__is_shared(s))
        return PNB_OK;
    char *ours = pnb__alloc(bytes);
    if (ours == NULL)
        return pnb__fail_nomem(err, bytes);
    for (int k = 0; k < PNB__SHARE_RUNS; at += s->n[k++] * row_bytes)
        memcpy(ours + at, (const char *)all + s->begin[k] * row_bytes, s->n[k] * row_bytes);
    *rows = *held = ours;
    return PNB_OK;
}

pnb_status pnb__share_write_i32(const pnb__row_share *s, pnb__tensor *x, const int32_t *all,
                                size_t width, pnb_error *err)
{
    const void *rows;
    void *held;
    pnb_status status = rows_of(s, all, width * sizeof *all, &held, &rows, err);
    if (status == PNB_OK)
        pnb__write_i32(x, rows);
    pnb__free(held);
    return status;
}

pnb_status pnb__share_write_f32(const pnb__row_share *s, pnb__tensor *x, const float *all,
                                size_t width, pnb_error *err)
{
    const void *rows;
    void *held;
    pnb_status status = rows_of(s, all, width * sizeof *all, &held, &rows, err);
    if (status == PNB_OK)
        pnb__write_f32(x, rows);
    pnb__free(held);
    return status;
}
