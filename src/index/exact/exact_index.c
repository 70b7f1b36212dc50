/* The calls of the exact index (index/index_kind.h).
 *
 * Its struct is pnb__exact, a gallery with its row terms (exact.c). Every measure that fits the
 * rows is served; the searches are in exact_search.c, range.c and exact_rows.c. */
#include "index/exact/exact_search.h"

static pnb_status create(void **self, const pnb_ctx *ctx, const pnb_gaussians *gallery,
                         const pnb_search_opts *opts, pnb_error *err)
{
    pnb__exact *scan = pnb__alloc_zero(1, sizeof *scan);
    if (scan == NULL)
        return pnb__fail_nomem(err, sizeof *scan);
    pnb_status status = pnb__exact_init(scan, ctx, gallery, opts, err);
    if (status == PNB_OK)
        *self = scan;
    else
        pnb__free(scan);
    return status;
}

static void free_exact(void *self)
{
    pnb__exact_reset(self);
    pnb__free(self);
}

const pnb__index_calls pnb__index_exact = {.name = "exact",
                                           .check = pnb__exact_check,
                                           .create = create,
                                           .free = free_exact,
                                           .nearest = pnb__exact_nearest,
                                           .range = pnb__exact_range,
                                           .self_join = pnb__exact_self_join,
                                           .rows = pnb__exact_rows};
