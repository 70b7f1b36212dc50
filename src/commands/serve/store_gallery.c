/* A collection behind routes: rows go by their numbers, which are nobody else's for ever.
 *
 * Every call reads the collection as it is at that moment: a row that another program has removed
 * is in no search that begins afterwards, and one that goes between a search and the reading of
 * what is known of it is left out. */
#include "commands/serve/store_gallery.h"

#include <math.h>
#include <string.h>

#include "commands/common/set_use.h"
#include "commands/serve/gallery_side.h"
#include "penumbra/view.h"
#include "sets/settle.h"

struct pnb__store_gallery {
    const pnb_ctx *ctx;
    pnb_store *store;
    pnb_embeddings *row; /* one of them: tells family and origin of all */
    char *name;
    pnb__gallery_side sides[2]; /* captions, pictures */
};

/* ---- opening ---- */

static pnb_status read_row(pnb__store_gallery *g, pnb__app *app, const char *path)
{
    pnb_store_rows rows = {0};
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(pnb_store_list(g->store, NULL, 0, 1, &rows, err));
    if (rows.n == 0)
        PNB_TRY(pnb__fail(err, PNB_NOT_FOUND, "collection %s: it has no rows yet", path));
    PNB_TRY(pnb_store_set(g->store, &rows, &g->row, err));
    status = pnb__set_note(app, path, g->row);
done:
    pnb_store_rows_reset(&rows);
    return status;
}

static pnb_status open_sides(pnb__store_gallery *g, pnb__app *app, const pnb_encoder *e,
                             const char *path, const char *calibration)
{
    pnb_error *err = &app->err;
    pnb_store_about about;
    char *set_path = pnb__path_join(path, "collection.safetensors");
    const pnb__gallery_place place = {path, set_path, calibration};
    pnb_status status = set_path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path));
    PNB_TRY(status);
    PNB_TRY(pnb_store_describe(g->store, &about, err));
    pnb_embeddings rows = *g->row; /* as many, of which one is looked at */
    rows.n = about.n_rows;
    if (e->tokenizer != NULL)
        PNB_TRY(pnb__gallery_side_settle(&g->sides[0], app, e, PNB_ENCODE_TEXTS, &rows, &place));
    if (e->preprocess.width > 0)
        PNB_TRY(pnb__gallery_side_settle(&g->sides[1], app, e, PNB_ENCODE_IMAGES, &rows, &place));
done:
    pnb__free(set_path);
    return status;
}

pnb_status pnb__store_gallery_open(pnb__store_gallery **out, pnb__app *app,
                                   const pnb_encoder *encoder, const char *path,
                                   const char *calibration)
{
    pnb_error *err = &app->err;
    pnb_status status;
    pnb__store_gallery *g = pnb__alloc_zero(1, sizeof *g);
    if (g == NULL)
        return pnb__fail_nomem(err, sizeof *g);
    g->ctx = app->ctx;
    PNB_TRY(pnb__copy_text(&g->name, pnb__path_base(path), err));
    PNB_TRY(pnb_store_open(&g->store, path, err));
    PNB_TRY(read_row(g, app, path));
    PNB_TRY(open_sides(g, app, encoder, path, calibration));
    *out = g;
done:
    if (status != PNB_OK)
        pnb__store_gallery_free(g);
    return status;
}

void pnb__store_gallery_free(pnb__store_gallery *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < PNB_COUNT(g->sides); i++)
        pnb__match_probability_reset(&g->sides[i].odds);
    pnb_embeddings_free(g->row);
    pnb_store_close(g->store);
    pnb__free(g->name);
    pnb__free(g);
}

/* ---- searching ---- */

static pnb_status settle_measure(const pnb__store_gallery *g, const pnb_embeddings *query,
                                 pnb_measure *out, pnb_error *err)
{
    pnb_view view = {0}, gallery = {0};
    pnb_status status;
    *out = PNB__MEASURE_AUTO;
    PNB_TRY(pnb_embeddings_check_mix(g->row, query, err));
    PNB_TRY(pnb_view_init(&view, query, err));
    PNB_TRY(pnb_view_init(&gallery, g->row, err));
    PNB_TRY(pnb__measure_of_sets(out, query, g->row, err));
    status = pnb__measure_settle(out, *out, &view.rows, &gallery.rows, err);
done:
    pnb_view_reset(&gallery);
    pnb_view_reset(&view);
    return status;
}

/* Rows come in the order asked for; those that are gone are not among them. */
static void take_found(const pnb__gallery_side *s, pnb_measure measure, const pnb_store_hits *hits,
                       const pnb_store_rows *rows, pnb__found *out, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < hits->k && *n < rows->n && hits->number[i] >= 0; i++) {
        const pnb_store_row *row = &rows->items[*n];
        double p =
            measure == s->measure ? pnb__match_probability_of(&s->odds, hits->score[i]) : NAN;
        if (row->number == hits->number[i])
            out[(*n)++] = (pnb__found){(size_t)row->number, hits->score[i], p, row->uncertainty};
    }
}

static pnb_status search_rows(void *self, const pnb_embeddings *query, size_t k,
                              const pnb_store_filter *only, pnb__found *out, size_t *n,
                              const char **measure, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    const pnb__gallery_side *s = &g->sides[strcmp(query->info.modality, "image") == 0];
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    pnb_store_hits hits = {0};
    pnb_store_rows rows = {0};
    size_t n_hits = 0;
    pnb_status status;
    opts.search.k = k;
    opts.search.measure_opts = s->opts;
    opts.filter = only;
    *n = 0;
    PNB_TRY(settle_measure(g, query, &opts.search.measure, err));
    *measure = pnb_measure_name(opts.search.measure);
    if (k == 0)
        goto done;
    PNB_TRY(pnb_store_search(g->store, g->ctx, query, &opts, &hits, err));
    while (n_hits < hits.k && hits.number[n_hits] >= 0)
        n_hits++;
    PNB_TRY(pnb_store_get(g->store, hits.number, n_hits, &rows, err));
    take_found(s, opts.search.measure, &hits, &rows, out, n);
done:
    pnb_store_rows_reset(&rows);
    pnb_store_hits_reset(&hits);
    return status;
}

/* ---- rows ---- */

/* None where the row is gone, or cannot be read. */
static pnb_store_rows row_of(const pnb__store_gallery *g, size_t number)
{
    pnb_store_rows rows = {0};
    pnb_error why = PNB_ERROR_INIT;
    if (number <= INT64_MAX)
        pnb_store_get(g->store, &(int64_t){(int64_t)number}, 1, &rows, &why);
    return rows;
}

static bool has_row(void *self, size_t row)
{
    pnb_store_rows rows = row_of(self, row);
    bool has = rows.n == 1;
    pnb_store_rows_reset(&rows);
    return has;
}

static bool find_id(void *self, const char *id, size_t *row)
{
    const pnb__store_gallery *g = self;
    pnb_store_rows rows = {0};
    pnb_error why = PNB_ERROR_INIT;
    bool has = pnb_store_get_ids(g->store, &id, 1, &rows, &why) == PNB_OK && rows.n == 1;
    if (has)
        *row = (size_t)rows.items[0].number;
    pnb_store_rows_reset(&rows);
    return has;
}

static pnb_status take_row(void *self, size_t row, pnb_embeddings **out, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    pnb_store_rows rows = row_of(g, row);
    pnb_status status = rows.n == 1
                            ? pnb_store_set(g->store, &rows, out, err)
                            : pnb__fail(err, PNB_NOT_FOUND, "the row was removed meanwhile");
    pnb_store_rows_reset(&rows);
    return status;
}

static void put_tags(const char *tags, pnb__buf *b)
{
    pnb__buf_puts(b, ",\"tags\":[");
    while (*tags != '\0') {
        size_t n = strcspn(tags, "\n");
        char *one = pnb__format("%.*s", (int)n, tags);
        b->failed = b->failed || one == NULL;
        pnb__json_append_string(b, one != NULL ? one : "");
        pnb__free(one);
        tags += n;
        if (*tags == '\n' && *++tags != '\0')
            pnb__buf_putc(b, ',');
    }
    pnb__buf_putc(b, ']');
}

static void put_fields(void *self, size_t number, pnb__buf *b)
{
    pnb_store_rows rows = row_of(self, number);
    const pnb_store_row *row = rows.n == 1 ? &rows.items[0] : NULL;
    pnb__json_put(b, "\"id\":%s", row != NULL ? row->id : "");
    if (row != NULL && row->caption != NULL)
        pnb__json_put(b, ",\"caption\":%s", row->caption);
    if (row != NULL && row->tags != NULL && row->tags[0] != '\0')
        put_tags(row->tags, b);
    if (row != NULL)
        pnb__buf_printf(b, ",\"time\":%lld", (long long)row->time);
    if (row != NULL && row->extra != NULL)
        pnb__gallery_put_extra(row->extra, row->caption != NULL, b);
    pnb_store_rows_reset(&rows);
}

static size_t count_rows(void *self)
{
    const pnb__store_gallery *g = self;
    pnb_store_about about = {0};
    pnb_error why = PNB_ERROR_INIT;
    return pnb_store_describe(g->store, &about, &why) == PNB_OK ? about.n_rows : 0;
}

pnb__gallery pnb__store_gallery_view(pnb__store_gallery *g)
{
    static const pnb__gallery_calls calls = {.search = search_rows,
                                             .find = find_id,
                                             .take = take_row,
                                             .put_fields = put_fields,
                                             .count = count_rows,
                                             .has_row = has_row};
    return (pnb__gallery){&calls, g, g->name, g->row->info.modality};
}
