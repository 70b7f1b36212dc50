/* The index of a set by --approx: from its file where it has one, else built and put there, with
 * what it promises told: the recall that was measured.
 * The search itself is src/index. */
#include "commands/common/approx_use.h"

#include <string.h>

#include "base/base.h"
#include "program/progress.h"

pnb_index_kind pnb__search_kind(const char *name)
{
    for (int i = 0; name != NULL && i < PNB_N_INDEX_KINDS; i++)
        if (strcmp(name, pnb_index_kind_name((pnb_index_kind)i)) == 0)
            return (pnb_index_kind)i;
    return PNB_INDEX_EXACT;
}

/* What it promises is told when it is made, that this is too little always. */
static void tell(pnb__app *app, const char *path, const pnb_index *index, double wanted,
                 bool is_new)
{
    pnb_index_about about;
    pnb_index_describe(index, &about);
    if (is_new && about.n_sample == 0)
        pnb__say(app, "%s: of so few rows each is looked at; %.1f MB", path, 1e-6 * about.bytes);
    else if (is_new)
        pnb__say(app, "%s: recall at 10 of %zu rows that were held out: %.4f; %.1f MB", path,
                 about.n_sample, about.recall, 1e-6 * about.bytes);
    if (about.recall < wanted)
        pnb__warn(app, "%s: its recall of %.4f is below the %.4f that are wanted%s", path,
                  about.recall, wanted, is_new ? "" : ": remove the file to build it anew");
}

static pnb_status build(pnb__app *app, const pnb_search_opts *opts, const pnb_gaussians *gallery,
                        const char *path, pnb_index **index)
{
    pnb__watching progress;
    pnb_search_opts watched = *opts;
    pnb__say(app, "%s is not there yet: building it", path);
    watched.watch = pnb__watch_begin(&progress, app, "building", "rows");
    pnb_status status = pnb_index_create(index, app->ctx, gallery, &watched, &app->err);
    pnb__watch_end(&progress);
    if (status == PNB_OK)
        status = pnb_index_save(*index, app->ctx, path, &app->err);
    return status;
}

pnb_status pnb__approx_open(pnb__app *app, const char *set, const pnb_search_opts *opts,
                            const pnb_gaussians *gallery, pnb_index **index)
{
    if (opts->kind != PNB_INDEX_HNSW && opts->kind != PNB_INDEX_IVF)
        return pnb_index_create(index, app->ctx, gallery, opts, &app->err);
    char *path = pnb__format("%s.%s", set, pnb_index_kind_name(opts->kind));
    if (path == NULL)
        return pnb__fail_nomem(&app->err, strlen(set));
    bool is_new = !pnb__path_is_file(path);
    pnb_status status = is_new ? build(app, opts, gallery, path, index)
                               : pnb_index_open(index, app->ctx, gallery, opts, path, &app->err);
    if (status == PNB_OK)
        tell(app, path, *index, opts->recall, is_new);
    pnb__free(path);
    return status;
}
