/* A set in memory with an index, its ids by hash, and the odds of a match for queries of each side.
 *
 * Everything is settled when it is opened; searching changes nothing, so any number of threads do
 * it at once. A query that the prepared index does not fit (a bare vector, say) is searched for
 * without it. */
#include "commands/serve/set_gallery.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "commands/common/approx_use.h"
#include "commands/common/set_use.h"
#include "commands/serve/gallery_side.h"
#include "penumbra/search.h"
#include "sets/settle.h"

struct pnb__set_gallery {
    const pnb_ctx *ctx;
    pnb_embeddings *set;
    pnb_view view;
    double *u;
    pnb__key_map ids;
    pnb__gallery_side sides[2]; /* captions, pictures */
    pnb_index *index[2];        /* for each, exact */
    pnb_index *approx;          /* NULL: there is none */
    pnb_measure approx_by;
    pnb_index_kind kind; /* of approx */
};

/* ---- opening ---- */

static pnb_status open_side(pnb__set_gallery *g, pnb__app *app, const pnb_encoder *e,
                            pnb_encode_side which, const pnb__set_gallery_place *where)
{
    const pnb__gallery_place place = {where->path, where->path, where->calibration, false};
    bool is_image = which == PNB_ENCODE_IMAGES;
    pnb__gallery_side *s = &g->sides[is_image];
    pnb_search_opts search = pnb_search_opts_default();
    pnb_status status = pnb__gallery_side_settle(s, app, e, which, g->set, &place);
    if (status != PNB_OK)
        return status;
    search.measure = s->measure;
    search.measure_opts = s->opts;
    status = pnb_index_create(&g->index[is_image], app->ctx, &g->view.rows, &search, &app->err);
    if (status != PNB_OK || where->approx == PNB_INDEX_EXACT || g->approx != NULL)
        return status;
    search.kind = g->kind = where->approx;
    search.recall = where->recall;
    g->approx_by = s->measure; /* a side that is compared by another one is searched exactly */
    return pnb__approx_open(app, where->path, &search, &g->view.rows, &g->approx);
}

static uint64_t hash_id(const char *id)
{
    return pnb__hash_bytes(id, strlen(id), 0);
}

static pnb_status index_ids(pnb__set_gallery *g, pnb_error *err)
{
    pnb_status status = pnb__key_map_reserve(&g->ids, g->set->n, err);
    for (size_t i = 0; i < g->set->n && status == PNB_OK; i++)
        status = pnb__key_map_add(&g->ids, hash_id(pnb__set_id(g->set, i)), i, err);
    return status;
}

pnb_status pnb__set_gallery_open(pnb__set_gallery **out, pnb__app *app, const pnb_encoder *encoder,
                                 const pnb__set_gallery_place *place)
{
    pnb_error *err = &app->err;
    pnb_status status;
    pnb__set_gallery *g = pnb__alloc_zero(1, sizeof *g);
    if (g == NULL)
        return pnb__fail_nomem(err, sizeof *g);
    g->ctx = app->ctx;
    PNB_TRY(pnb__set_load(&g->set, place->path, app));
    PNB_TRY(pnb_view_init(&g->view, g->set, err));
    PNB_TRY(pnb__row_uncertainty(g->set, PNB__UNCERTAINTY_AUTO, &g->u, err));
    PNB_TRY(index_ids(g, err));
    if (encoder->tokenizer != NULL)
        PNB_TRY(open_side(g, app, encoder, PNB_ENCODE_TEXTS, place));
    if (encoder->preprocess.width > 0)
        PNB_TRY(open_side(g, app, encoder, PNB_ENCODE_IMAGES, place));
    *out = g;
done:
    if (status != PNB_OK)
        pnb__set_gallery_free(g);
    return status;
}

void pnb__set_gallery_free(pnb__set_gallery *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < PNB_COUNT(g->sides); i++) {
        pnb__match_probability_reset(&g->sides[i].odds);
        pnb_index_free(g->index[i]);
    }
    pnb_index_free(g->approx);
    pnb__key_map_reset(&g->ids);
    pnb__free(g->u);
    pnb_view_reset(&g->view);
    pnb_embeddings_free(g->set);
    pnb__free(g);
}

/* ---- searching ---- */

static pnb_status find_hits(const pnb__set_gallery *g, bool is_image, const pnb_rows *query,
                            const pnb__gallery_ask *ask, pnb_measure measure, pnb_hits *hits,
                            pnb__gallery_way *way, pnb_error *err)
{
    const pnb__gallery_side *s = &g->sides[is_image];
    bool is_approx = g->approx != NULL && measure == g->approx_by && !ask->exact;
    way->measure = pnb_measure_name(measure);
    if (is_approx) {
        pnb_status status = pnb_index_search(g->approx, g->ctx, query, ask->k, hits, err);
        way->approx = pnb_index_kind_name(g->kind);
        way->may_differ = hits->n_unsure > 0;
        return status;
    }
    if (g->index[is_image] != NULL && measure == s->measure)
        return pnb_index_search(g->index[is_image], g->ctx, query, ask->k, hits, err);
    pnb_search_opts search = pnb_search_opts_default();
    search.measure = measure;
    search.measure_opts = s->opts;
    search.k = ask->k;
    return pnb_search(g->ctx, query, &g->view.rows, &search, hits, err);
}

static pnb_status search_rows(void *self, const pnb_embeddings *query, const pnb__gallery_ask *ask,
                              pnb__found *out, size_t *n, pnb__gallery_way *way, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    bool is_image = strcmp(query->info.modality, "image") == 0;
    const pnb__gallery_side *s = &g->sides[is_image];
    pnb_measure asked = PNB__MEASURE_AUTO;
    pnb_view view = {0};
    pnb_hits hits = {0};
    pnb_status status;
    if (ask->only != NULL)
        return pnb__fail(err, PNB_ARG,
                         "tags, times and bounds of uncertainty are of collections; what is "
                         "searched here is an embedding set");
    PNB_TRY(pnb_embeddings_check_mix(g->set, query, err));
    PNB_TRY(pnb_view_init(&view, query, err));
    PNB_TRY(pnb__measure_of_sets(&asked, query, g->set, err));
    PNB_TRY(pnb__measure_settle(&asked, asked, &view.rows, &g->view.rows, err));
    PNB_TRY(find_hits(g, is_image, &view.rows, ask, asked, &hits, way, err));
    for (*n = 0; *n < ask->k && hits.index[*n] >= 0; (*n)++) {
        size_t row = (size_t)hits.index[*n];
        double p = asked == s->measure ? pnb__match_probability_of(&s->odds, hits.score[*n]) : NAN;
        out[*n] = (pnb__found){row, hits.score[*n], p, g->u[row]};
    }
done:
    pnb_hits_reset(&hits);
    pnb_view_reset(&view);
    return status;
}

static pnb_status find_related(void *self, const pnb_embeddings *query, bool inside, size_t k,
                               pnb__found *out, size_t *n, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    pnb_status status = pnb__gallery_related(g->ctx, query, g->set, inside, k, out, n, err);
    for (size_t i = 0; status == PNB_OK && i < *n; i++)
        out[i].uncertainty = g->u[out[i].row];
    return status;
}

static pnb_status list_conformal(void *self, bool is_image, double alpha, const pnb__found *found,
                                 size_t n, size_t *n_kept, const char **by, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    return pnb__gallery_side_conformal(&g->sides[is_image], alpha, found, n, n_kept, by, err);
}

/* ---- rows ---- */

static pnb_status find_id(void *self, const char *id, size_t *row, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    size_t place, step = 0;
    while ((place = pnb__key_map_next(&g->ids, hash_id(id), &step)) != PNB__NO_KEY &&
           strcmp(pnb__set_id(g->set, place), id) != 0) {
    }
    if (place == PNB__NO_KEY)
        return pnb__fail(err, PNB_NOT_FOUND, "there is no row '%.80s' in this set", id);
    *row = place;
    return PNB_OK;
}

static pnb_status take_rows(void *self, const size_t *rows, size_t n, pnb_embeddings **out,
                            pnb_error *err)
{
    const pnb__set_gallery *g = self;
    return pnb_embeddings_select(out, g->set, rows, n, err);
}

/* Descending by `key`; ties to the row that came first. */
typedef struct keyed_row {
    double key;
    size_t row;
} keyed_row;

static int compare_keyed(const void *x, const void *y)
{
    const keyed_row *a = x, *b = y;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static double key_of(const pnb__set_gallery *g, size_t row, pnb_store_order order)
{
    switch (order) {
    case PNB_STORE_NEWEST:
        return (double)row;
    case PNB_STORE_CERTAIN:
        return -g->u[row];
    case PNB_STORE_UNCERTAIN:
        return g->u[row];
    default:
        return -(double)row;
    }
}

static pnb_status pick_rows(void *self, pnb_store_order order, size_t limit, pnb__found *out,
                            size_t *n, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    keyed_row *all = NULL;
    pnb_status status = PNB_ALLOC(all, g->set->n, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < g->set->n; i++)
        all[i] = (keyed_row){key_of(g, i, order), i};
    qsort(all, g->set->n, sizeof *all, compare_keyed);
    *n = PNB_MIN(limit, g->set->n);
    for (size_t i = 0; i < *n; i++)
        out[i] = (pnb__found){all[i].row, NAN, NAN, g->u[all[i].row]};
    pnb__free(all);
    return PNB_OK;
}

static pnb_status put_fields(void *self, size_t row, pnb__buf *b, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    const char *text = g->set->texts != NULL ? g->set->texts[row] : NULL;
    (void)err;
    pnb__json_put(b, "\"id\":%s", pnb__set_id(g->set, row));
    if (text != NULL)
        pnb__json_put(b, ",\"caption\":%s", text);
    if (g->set->extras != NULL && g->set->extras[row] != NULL)
        pnb__gallery_put_extra(g->set->extras[row], text != NULL, b);
    return PNB_OK;
}

static pnb_status count_rows(void *self, size_t *n, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    (void)err;
    *n = g->set->n;
    return PNB_OK;
}

static pnb_status has_row(void *self, size_t row, bool *has, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    (void)err;
    *has = row < g->set->n;
    return PNB_OK;
}

pnb__gallery pnb__set_gallery_view(pnb__set_gallery *g, const char *name)
{
    static const pnb__gallery_calls calls = {.search = search_rows,
                                             .conformal = list_conformal,
                                             .related = find_related,
                                             .find = find_id,
                                             .take = take_rows,
                                             .pick = pick_rows,
                                             .put_fields = put_fields,
                                             .count = count_rows,
                                             .has_row = has_row};
    return (pnb__gallery){&calls, g, name, g->set->info.modality};
}

pnb_status pnb__set_gallery_spread(const pnb__set_gallery *g, pnb__spread *out, pnb_error *err)
{
    double *u = NULL;
    size_t n = g->set->family == PNB_POINT ? 0 : g->set->n;
    pnb_status status = PNB_ALLOC(u, n + 1, err);
    if (status != PNB_OK)
        return status;
    memcpy(u, g->u, n * sizeof *u);
    *out = pnb__gallery_spread(u, n);
    pnb__free(u);
    return PNB_OK;
}
