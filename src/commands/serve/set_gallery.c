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
#include "base/order.h"
#include "commands/common/set_use.h"
#include "commands/serve/gallery_side.h"
#include "penumbra/inclusion_search.h"
#include "penumbra/search.h"
#include "sets/settle.h"

struct pnb__set_gallery {
    const pnb_ctx *ctx;
    pnb_embeddings *set;
    pnb_view view;
    double *u;
    pnb__key_map ids;
    pnb__gallery_side sides[2]; /* captions, pictures */
    pnb_index *index[2];        /* for each */
};

/* ---- opening ---- */

static pnb_status open_side(pnb__set_gallery *g, pnb__app *app, const pnb_encoder *e,
                            pnb_encode_side which, const pnb__gallery_place *place)
{
    bool is_image = which == PNB_ENCODE_IMAGES;
    pnb__gallery_side *s = &g->sides[is_image];
    pnb_search_opts search = pnb_search_opts_default();
    pnb_status status = pnb__gallery_side_settle(s, app, e, which, g->set, place);
    if (status != PNB_OK)
        return status;
    search.measure = s->measure;
    search.measure_opts = s->opts;
    return pnb_index_create(&g->index[is_image], app->ctx, &g->view.rows, &search, &app->err);
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
                                 const char *path, const char *calibration)
{
    const pnb__gallery_place place = {path, path, calibration};
    pnb_error *err = &app->err;
    pnb_status status;
    pnb__set_gallery *g = pnb__alloc_zero(1, sizeof *g);
    if (g == NULL)
        return pnb__fail_nomem(err, sizeof *g);
    g->ctx = app->ctx;
    PNB_TRY(pnb__set_load(&g->set, path, app));
    PNB_TRY(pnb_view_init(&g->view, g->set, err));
    PNB_TRY(pnb__row_uncertainty(g->set, PNB__UNCERTAINTY_AUTO, &g->u, err));
    PNB_TRY(index_ids(g, err));
    if (encoder->tokenizer != NULL)
        PNB_TRY(open_side(g, app, encoder, PNB_ENCODE_TEXTS, &place));
    if (encoder->preprocess.width > 0)
        PNB_TRY(open_side(g, app, encoder, PNB_ENCODE_IMAGES, &place));
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
    pnb__key_map_reset(&g->ids);
    pnb__free(g->u);
    pnb_view_reset(&g->view);
    pnb_embeddings_free(g->set);
    pnb__free(g);
}

/* ---- searching ---- */

static pnb_status find_hits(const pnb__set_gallery *g, bool is_image, const pnb_rows *query,
                            size_t k, pnb_measure measure, pnb_hits *hits, pnb_error *err)
{
    const pnb__gallery_side *s = &g->sides[is_image];
    if (g->index[is_image] != NULL && measure == s->measure)
        return pnb_index_search(g->index[is_image], g->ctx, query, k, hits, err);
    pnb_search_opts search = pnb_search_opts_default();
    search.measure = measure;
    search.measure_opts = s->opts;
    search.k = k;
    return pnb_search(g->ctx, query, &g->view.rows, &search, hits, err);
}

static pnb_status search_rows(void *self, const pnb_embeddings *query, size_t k,
                              const pnb_store_filter *only, pnb__found *out, size_t *n,
                              const char **measure, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    bool is_image = strcmp(query->info.modality, "image") == 0;
    const pnb__gallery_side *s = &g->sides[is_image];
    pnb_measure asked = PNB__MEASURE_AUTO;
    pnb_view view = {0};
    pnb_hits hits = {0};
    pnb_status status;
    if (only != NULL)
        return pnb__fail(err, PNB_ARG,
                         "tags, times and bounds of uncertainty are of collections; what is "
                         "searched here is an embedding set");
    PNB_TRY(pnb_embeddings_check_mix(g->set, query, err));
    PNB_TRY(pnb_view_init(&view, query, err));
    PNB_TRY(pnb__measure_of_sets(&asked, query, g->set, err));
    PNB_TRY(pnb__measure_settle(&asked, asked, &view.rows, &g->view.rows, err));
    PNB_TRY(find_hits(g, is_image, &view.rows, k, asked, &hits, err));
    *measure = pnb_measure_name(asked);
    for (*n = 0; *n < k && hits.index[*n] >= 0; (*n)++) {
        size_t row = (size_t)hits.index[*n];
        double p = asked == s->measure ? pnb__match_probability_of(&s->odds, hits.score[*n]) : NAN;
        out[*n] = (pnb__found){row, hits.score[*n], p, g->u[row]};
    }
done:
    pnb_hits_reset(&hits);
    pnb_view_reset(&view);
    return status;
}

static pnb_status find_narrower(void *self, const pnb_embeddings *query, size_t k, pnb__found *out,
                                size_t *n, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    pnb_inclusion_search_opts opts = pnb_inclusion_search_opts_default();
    pnb_inclusion_hits hits = {0};
    pnb_view view = {0};
    pnb_status status;
    *n = 0;
    if (g->set->family != PNB_GAUSSIAN_DIAG || query->family != PNB_GAUSSIAN_DIAG)
        return PNB_OK;
    opts.inside = true;
    opts.order = PNB_INCLUSION_BY_NEARNESS;
    opts.k = k;
    PNB_TRY(pnb_view_init(&view, query, err));
    PNB_TRY(pnb_inclusion_search(g->ctx, &view.rows, &g->view.rows, &opts, &hits, err));
    for (; *n < hits.k && hits.index[*n] >= 0; (*n)++) {
        size_t row = (size_t)hits.index[*n];
        out[*n] = (pnb__found){row, hits.nearness[*n], NAN, g->u[row]};
    }
done:
    pnb_inclusion_hits_reset(&hits);
    pnb_view_reset(&view);
    return status;
}

/* ---- rows ---- */

static bool find_id(void *self, const char *id, size_t *row)
{
    const pnb__set_gallery *g = self;
    size_t place, step = 0;
    while ((place = pnb__key_map_next(&g->ids, hash_id(id), &step)) != PNB__NO_KEY &&
           strcmp(pnb__set_id(g->set, place), id) != 0) {
    }
    *row = place;
    return place != PNB__NO_KEY;
}

static pnb_status take_row(void *self, size_t row, pnb_embeddings **out, pnb_error *err)
{
    const pnb__set_gallery *g = self;
    return pnb_embeddings_select(out, g->set, &row, 1, err);
}

static const char *caption_of(void *self, size_t row)
{
    const pnb__set_gallery *g = self;
    return g->set->texts != NULL ? g->set->texts[row] : NULL;
}

static void put_fields(void *self, size_t row, pnb__buf *b)
{
    const pnb__set_gallery *g = self;
    const char *caption = caption_of(self, row);
    pnb__json_put(b, "\"id\":%s", pnb__set_id(g->set, row));
    if (caption != NULL)
        pnb__json_put(b, ",\"caption\":%s", caption);
    if (g->set->extras != NULL && g->set->extras[row] != NULL)
        pnb__gallery_put_extra(g->set->extras[row], caption != NULL, b);
}

static size_t count_rows(void *self)
{
    const pnb__set_gallery *g = self;
    return g->set->n;
}

static bool has_row(void *self, size_t row)
{
    return row < count_rows(self);
}

pnb__gallery pnb__set_gallery_view(pnb__set_gallery *g, const char *name)
{
    static const pnb__gallery_calls calls = {search_rows, find_narrower, find_id,    take_row,
                                             put_fields,  caption_of,    count_rows, has_row};
    return (pnb__gallery){&calls, g, name, g->set->info.modality};
}

double pnb__set_gallery_quantile(const pnb__set_gallery *g, double share, pnb_error *err)
{
    double *sorted = NULL, found = NAN;
    if (g->set->family == PNB_POINT || PNB_ALLOC(sorted, g->set->n, err) != PNB_OK)
        return NAN;
    memcpy(sorted, g->u, g->set->n * sizeof *sorted);
    qsort(sorted, g->set->n, sizeof *sorted, pnb__compare_doubles);
    found = sorted[(size_t)(share * (double)(g->set->n - 1))];
    pnb__free(sorted);
    return found;
}
