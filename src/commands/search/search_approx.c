/* --approx: the index of a set, from its file where it has one, and what its answer is worth: the
 * recall that was measured, and for how many queries the answer may differ from an exact search.
 * The search itself is src/index/ann. */
#include "commands/search/search_approx.h"

#include <string.h>

#include "base/base.h"

pnb_index_kind pnb__search_kind(const char *name)
{
    for (int i = 0; name != NULL && i < PNB_N_INDEX_KINDS; i++)
        if (strcmp(name, pnb_index_kind_name((pnb_index_kind)i)) == 0)
            return (pnb_index_kind)i;
    return PNB_INDEX_EXACT;
}

static void tell(pnb__app *app, const char *path, const pnb_index *index, double wanted)
{
    pnb_index_about about;
    pnb_index_describe(index, &about);
    pnb__say(app, "%s: recall at 10 of %zu of its own rows: %.4f; %.1f MB", path, about.n_sample,
             about.recall, 1e-6 * about.bytes);
    if (about.recall < wanted)
        pnb__warn(app, "%s: its recall of %.4f is below the %.4f that are wanted", path,
                  about.recall, wanted);
}

static pnb_status build(pnb__app *app, const pnb_search_opts *opts, const pnb_gaussians *gallery,
                        const char *path, pnb_index **index)
{
    pnb__say(app, "%s is not there yet: building it", path);
    pnb_status status = pnb_index_create(index, app->ctx, gallery, opts, &app->err);
    if (status == PNB_OK)
        status = pnb_index_save(*index, app->ctx, path, &app->err);
    if (status == PNB_OK)
        tell(app, path, *index, opts->recall);
    return status;
}

static pnb_status open_index(pnb__app *app, const char *set, const pnb_search_opts *opts,
                             const pnb_gaussians *gallery, pnb_index **index)
{
    if (opts->kind != PNB_INDEX_HNSW && opts->kind != PNB_INDEX_IVF)
        return pnb_index_create(index, app->ctx, gallery, opts, &app->err);
    char *path = pnb__format("%s.%s", set, pnb_index_kind_name(opts->kind));
    if (path == NULL)
        return pnb__fail_nomem(&app->err, strlen(set));
    pnb_status status = pnb__path_is_file(path)
                            ? pnb_index_open(index, app->ctx, gallery, opts, path, &app->err)
                            : build(app, opts, gallery, path, index);
    pnb__free(path);
    return status;
}

pnb_status pnb__search_approx(pnb__app *app, const char *set, const pnb_search_opts *opts,
                              const pnb_gaussians *queries, const pnb_gaussians *gallery,
                              pnb_hits *hits)
{
    pnb_index *index = NULL;
    *hits = (pnb_hits){0};
    pnb_status status = open_index(app, set, opts, gallery, &index);
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
