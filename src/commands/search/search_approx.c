/* --approx: a search by an index that may lie beside its set, and what its answer is worth: for how
 * many queries it may differ from an exact search.
 * The index is common/approx_use.c's. */
#include "commands/search/search_approx.h"

#include "commands/common/approx_use.h"

pnb_status pnb__search_approx(pnb__app *app, const char *set, const pnb_search_opts *opts,
                              const pnb_gaussians *queries, const pnb_gaussians *gallery,
                              pnb_hits *hits)
{
    pnb_index *index = NULL;
    *hits = (pnb_hits){0};
    pnb_status status = pnb__approx_open(app, set, opts, gallery, &index);
    if (status == PNB_OK)
        status = pnb_index_search(index, app->ctx, queries, opts->k, hits, &app->err);
    pnb_index_free(index);
    return status;
}

void pnb__put_approx(const pnb_search_opts *opts, const pnb_hits *hits, pnb__result *r)
{
    if (opts->kind == PNB_INDEX_EXACT)
        return;
    pnb__result_text(r, "approx", NULL, pnb_index_kind_name(opts->kind));
    pnb__result_int(r, "n_unsure", hits->n_unsure > 0 ? "queries that may have nearer rows" : NULL,
                    (int64_t)hits->n_unsure);
    pnb__result_note(r, hits->n_unsure > 0
                            ? "candidates were looked for and scored: for so many queries "
                              "an exact search may find nearer rows"
                            : "candidates were looked for and scored, and none was missed: an "
                              "exact search finds the same");
}
