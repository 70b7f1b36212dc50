/* Two stages: the nearest means by the exact index (csd of points is 1 - |mean1 - mean2|^2 / 2),
 * then the measure of those pairs alone.
 *
 * For measures whose pairs are dear. What is found depends on how well means foretell the measure;
 * with as many items as the gallery has there is nothing to foretell, and the exact index answers.
 * Rows keep their numbers, which samples are a function of: a pair's score is that of the exact
 * search. */
#include "index/shortlist.h"

#include "index/rescore.h"
#include "prob/measure.h"

/* Means alone, as points. */
static pnb_gaussians points_of(const pnb_gaussians *rows)
{
    return (pnb_gaussians){.n = rows->n, .dim = rows->dim, .mean = rows->mean};
}

pnb_status pnb__shortlist_search(const pnb_ctx *ctx, const pnb_gaussians *queries,
                                 const pnb_gaussians *gallery, const pnb_search_opts *opts,
                                 pnb_hits *hits, pnb_error *err)
{
    const pnb_gaussians means[2] = {points_of(queries), points_of(gallery)};
    const pnb__rescoring again = {queries, gallery, opts, opts->k};
    pnb_search_opts by_mean = pnb_search_opts_default();
    pnb_hits near = {0};
    pnb_status status;
    *hits = (pnb_hits){0};
    if (opts->k == 0 || opts->shortlist < opts->k)
        return pnb__fail(err, PNB_ARG, "a shortlist of %zu for %zu hits; it holds as many at least",
                         opts->shortlist, opts->k);
    by_mean.k = opts->shortlist;
    PNB_TRY(pnb__measure_check(opts->measure, queries, gallery, &opts->measure_opts, err));
    PNB_TRY(pnb_search(ctx, &means[0], &means[1], &by_mean, &near, err));
    status = pnb__rescore(ctx, &again, &near, hits, err);
done:
    pnb_hits_reset(&near);
    return status;
}
