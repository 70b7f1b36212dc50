/* Searching a collection and handing on what was found as a set of a few rows.
 *
 * What follows a search (probabilities, uncertainties, tables, pages) reads rows of a set; of a
 * collection that may be larger than memory only the rows of hits become one. */
#include "commands/search/search_collection.h"

#include <stdlib.h>
#include <string.h>

#include "commands/common/set_use.h"

pnb_status pnb__collection_search_model(pnb__app *app, const char *path, pnb_store_about *about)
{
    pnb_store *store = NULL;
    pnb_status status = pnb_store_open(&store, path, &app->err);
    if (status == PNB_OK)
        status = pnb_store_describe(store, about, &app->err);
    pnb_store_close(store);
    return status;
}

pnb_status pnb__collection_search_open(pnb__collection_search *c, pnb__app *app, const char *path,
                                       const pnb__row_filter *filter, pnb_embeddings **probe)
{
    pnb_error *err = &app->err;
    pnb_store_rows rows = {0};
    pnb_store_about about;
    pnb_status status;
    PNB_TRY(pnb__row_filter_read(app, filter, &c->filter, &c->is_filtered));
    PNB_TRY(pnb_store_open(&c->store, path, err));
    PNB_TRY(pnb_store_describe(c->store, &about, err));
    PNB_TRY(pnb_store_list(c->store, c->is_filtered ? &c->filter : NULL, 0, 1, &rows, err));
    c->n_rows = about.n_rows;
    c->set_path = pnb__path_join(path, "collection.safetensors");
    if (c->set_path == NULL)
        PNB_TRY(pnb__fail_nomem(err, strlen(path)));
    if (rows.n == 0)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "collection %s: %s", path,
                          about.n_rows > 0 ? "no row passes the filter" : "it has no rows yet"));
    PNB_TRY(pnb_store_set(c->store, &rows, probe, err));
    status = pnb__set_note(app, path, *probe);
done:
    pnb_store_rows_reset(&rows);
    return status;
}

void pnb__collection_search_reset(pnb__collection_search *c)
{
    pnb_store_close(c->store);
    pnb__free(c->set_path);
    pnb__free(c->number);
    *c = (pnb__collection_search){0};
}

static int compare_numbers(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* The numbers of all hits, each once, ascending. */
static pnb_status find_numbers(pnb__collection_search *c, const pnb_store_hits *hits, size_t *n,
                               pnb_error *err)
{
    size_t n_hits = hits->n_queries * hits->k, n_kept = 0;
    pnb__free(c->number);
    c->number = NULL;
    if (PNB_ALLOC(c->number, n_hits, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n_hits; i++)
        if (hits->number[i] >= 0)
            c->number[n_kept++] = hits->number[i];
    qsort(c->number, n_kept, sizeof *c->number, compare_numbers);
    *n = 0;
    for (size_t i = 0; i < n_kept; i++)
        if (i == 0 || c->number[i] != c->number[*n - 1])
            c->number[(*n)++] = c->number[i];
    return PNB_OK;
}

static pnb_status put_places(const pnb__collection_search *c, size_t n, pnb_store_hits *from,
                             pnb_hits *hits, pnb_error *err)
{
    size_t n_hits = from->n_queries * from->k;
    pnb_status status = PNB_ALLOC(hits->index, n_hits, err);
    for (size_t i = 0; status == PNB_OK && i < n_hits; i++) {
        const int64_t *found =
            bsearch(&from->number[i], c->number, n, sizeof *c->number, compare_numbers);
        hits->index[i] = found != NULL ? found - c->number : -1;
    }
    hits->n_queries = from->n_queries;
    hits->k = from->k;
    hits->score = from->score;
    hits->n_unsure = from->n_unsure;
    from->score = NULL;
    return status;
}

/* A row may be removed between the search and the reading of what is known of it: then the search
 * is made again, without it. */
static pnb_status search_once(pnb__collection_search *c, pnb__app *app,
                              const pnb_embeddings *queries, const pnb_store_search_opts *opts,
                              pnb_hits *hits, pnb_embeddings **found, bool *changed)
{
    pnb_error *err = &app->err;
    pnb_store_hits raw = {0};
    pnb_store_rows rows = {0};
    size_t n = 0;
    pnb_status status;
    PNB_TRY(pnb_store_search(c->store, app->ctx, queries, opts, &raw, err));
    PNB_TRY(find_numbers(c, &raw, &n, err));
    PNB_TRY(pnb_store_get(c->store, c->number, n, &rows, err));
    *changed = rows.n != n;
    if (*changed)
        goto done;
    if (n > 0)
        PNB_TRY(pnb_store_set(c->store, &rows, found, err));
    status = put_places(c, n, &raw, hits, err);
done:
    pnb_store_rows_reset(&rows);
    pnb_store_hits_reset(&raw);
    return status;
}

pnb_status pnb__collection_search_nearest(pnb__collection_search *c, pnb__app *app,
                                          const pnb_embeddings *queries,
                                          const pnb_search_opts *opts, pnb_hits *hits,
                                          pnb_embeddings **found)
{
    const pnb_store_search_opts o = {*opts, c->is_filtered ? &c->filter : NULL};
    bool changed = true;
    pnb_status status = PNB_OK;
    *hits = (pnb_hits){0};
    *found = NULL;
    for (int i = 0; i < 10 && changed && status == PNB_OK; i++)
        status = search_once(c, app, queries, &o, hits, found, &changed);
    if (status == PNB_OK && changed)
        status =
            pnb__fail(&app->err, PNB_BUSY, "rows of the collection are being removed; try again");
    return status;
}
