/* A collection behind routes: rows go by their numbers, which are nobody else's for ever.
 *
 * Every call reads the collection as it is at that moment: a row that another program has removed
 * is in no search that begins afterwards, and one that goes between a search and the reading of
 * what is known of it is left out. A database that does not answer, is gone or is damaged is no
 * fault of a request, and no empty collection either: such errors are IO here. */
#include "commands/serve/store_gallery.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "commands/common/set_use.h"
#include "commands/serve/gallery_side.h"
#include "penumbra/view.h"
#include "program/progress.h"
#include "sets/settle.h"

struct pnb__store_gallery {
    const pnb_ctx *ctx;
    pnb_store *store;
    pnb_embeddings *row; /* one of them, or what the model makes: tells family and origin of all */
    char *name;
    pnb__gallery_side sides[2]; /* captions, pictures */
    pthread_mutex_t writing;    /* one request at a time */
    pnb_search_opts approx; /* how its shards are searched; kind EXACT: all rows are looked at */
    char *path;
};

/* What went wrong with the database or a file of the collection, not with what was asked. */
static pnb_status of_store(pnb_status status, pnb_error *err)
{
    if (status != PNB_FORMAT && status != PNB_NOT_FOUND)
        return status;
    if (err != NULL && err->status == status)
        err->status = PNB_IO;
    return PNB_IO;
}

/* ---- opening ---- */

/* Of an empty one what the model would put there: of what its rows were where it had some, or was
 * said when it was made, else of what the place says. */
static pnb_status make_row(pnb__store_gallery *g, const pnb_encoder *e, const char *modality,
                           pnb_error *err)
{
    pnb_store_about about;
    char preprocess[sizeof((pnb_embeddings_info *)NULL)->preprocess];
    pnb_status status;
    PNB_TRY(pnb_store_describe(g->store, &about, err));
    if (about.info.modality[0] != '\0')
        modality = about.info.modality;
    bool is_text = strcmp(modality, "text") == 0;
    PNB_TRY(pnb__gallery_probe(e, is_text ? PNB_ENCODE_TEXTS : PNB_ENCODE_IMAGES, &g->row, err));
    memcpy(preprocess, g->row->info.preprocess, sizeof preprocess);
    g->row->info.preprocess[0] = '\0'; /* options say more of it: seen when a row comes */
    status = pnb_store_check(g->store, g->row, err);
    memcpy(g->row->info.preprocess, preprocess, sizeof preprocess);
done:
    return status;
}

static pnb_status read_row(pnb__store_gallery *g, pnb__app *app, const pnb_encoder *e,
                           const pnb__store_gallery_place *place)
{
    pnb_store_rows rows = {0};
    pnb_error *err = &app->err;
    pnb_status status;
    PNB_TRY(pnb_store_list(g->store, NULL, 0, 1, &rows, err));
    if (rows.n == 0) {
        status = make_row(g, e, place->modality, err);
        goto done;
    }
    PNB_TRY(pnb_store_set(g->store, &rows, &g->row, err));
    status = pnb__set_note(app, place->path, g->row);
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
    const pnb__gallery_place place = {path, set_path, calibration, true};
    pnb_status status = set_path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path));
    PNB_TRY(status);
    PNB_TRY(pnb_store_describe(g->store, &about, err));
    pnb_embeddings rows = *g->row; /* as many, of which one is looked at */
    rows.n = PNB_MAX(about.n_rows, (size_t)1);
    if (e->tokenizer != NULL)
        PNB_TRY(pnb__gallery_side_settle(&g->sides[0], app, e, PNB_ENCODE_TEXTS, &rows, &place));
    if (e->preprocess.width > 0)
        PNB_TRY(pnb__gallery_side_settle(&g->sides[1], app, e, PNB_ENCODE_IMAGES, &rows, &place));
done:
    pnb__free(set_path);
    return status;
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

static pnb_status find_hits(const pnb__store_gallery *g, const pnb_embeddings *query,
                            const pnb__gallery_ask *ask, pnb_store_hits *hits, pnb_store_rows *rows,
                            pnb__gallery_way *way, pnb_error *err)
{
    const pnb__gallery_side *s = &g->sides[strcmp(query->info.modality, "image") == 0];
    pnb_store_search_opts opts = pnb_store_search_opts_default();
    size_t n_hits = 0;
    opts.search.k = ask->k;
    opts.search.measure_opts = s->opts;
    opts.filter = ask->only;
    pnb_status status = settle_measure(g, query, &opts.search.measure, err);
    if (status != PNB_OK)
        return status;
    hits->measure = opts.search.measure;
    if (ask->k == 0)
        return PNB_OK;
    bool is_approx = opts.search.measure == g->approx.measure && !ask->exact;
    opts.search.kind = is_approx ? g->approx.kind : PNB_INDEX_EXACT;
    opts.search.recall = g->approx.recall;
    status = of_store(pnb_store_search(g->store, g->ctx, query, &opts, hits, err), err);
    if (status != PNB_OK)
        return status;
    if (opts.search.kind != PNB_INDEX_EXACT)
        way->approx = pnb_index_kind_name(opts.search.kind);
    way->may_differ = hits->n_unsure > 0;
    while (n_hits < hits->k && hits->number[n_hits] >= 0)
        n_hits++;
    return of_store(pnb_store_get(g->store, hits->number, n_hits, rows, err), err);
}

static pnb_status search_rows(void *self, const pnb_embeddings *query, const pnb__gallery_ask *ask,
                              pnb__found *out, size_t *n, pnb__gallery_way *way, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    const pnb__gallery_side *s = &g->sides[strcmp(query->info.modality, "image") == 0];
    pnb_store_hits hits = {0};
    pnb_store_rows rows = {0};
    pnb_status status = find_hits(g, query, ask, &hits, &rows, way, err);
    *n = 0;
    if (status == PNB_OK) {
        way->measure = pnb_measure_name(hits.measure);
        take_found(s, hits.measure, &hits, &rows, out, n);
    }
    pnb_store_rows_reset(&rows);
    pnb_store_hits_reset(&hits);
    return status;
}

static pnb_status list_conformal(void *self, bool is_image, double alpha, const pnb__found *found,
                                 size_t n, size_t *n_kept, const char **by, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    return pnb__gallery_side_conformal(&g->sides[is_image], alpha, found, n, n_kept, by, err);
}

enum { NEAR_ROWS = 512 }; /* among which inclusion is looked for */

static pnb_status find_related(void *self, const pnb_embeddings *query, bool inside, size_t k,
                               pnb__found *out, size_t *n, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    pnb_store_hits hits = {0};
    pnb_store_rows rows = {0};
    pnb_embeddings *near = NULL;
    pnb__gallery_way way = {0};
    const pnb__gallery_ask ask = {.k = NEAR_ROWS};
    pnb_status status = find_hits(g, query, &ask, &hits, &rows, &way, err);
    *n = 0;
    if (status != PNB_OK || rows.n == 0)
        goto done;
    PNB_TRY(of_store(pnb_store_set(g->store, &rows, &near, err), err));
    PNB_TRY(pnb__gallery_related(g->ctx, query, near, inside, k, out, n, err));
    for (size_t i = 0; i < *n; i++) {
        out[i].uncertainty = rows.items[out[i].row].uncertainty;
        out[i].row = (size_t)rows.items[out[i].row].number;
    }
done:
    pnb_embeddings_free(near);
    pnb_store_rows_reset(&rows);
    pnb_store_hits_reset(&hits);
    return status;
}

/* ---- rows ---- */

/* None where the row is gone. */
static pnb_status row_of(const pnb__store_gallery *g, size_t number, pnb_store_rows *rows,
                         pnb_error *err)
{
    *rows = (pnb_store_rows){0};
    if (number > INT64_MAX)
        return PNB_OK;
    return of_store(pnb_store_get(g->store, &(int64_t){(int64_t)number}, 1, rows, err), err);
}

static pnb_status has_row(void *self, size_t row, bool *has, pnb_error *err)
{
    pnb_store_rows rows;
    pnb_status status = row_of(self, row, &rows, err);
    *has = rows.n == 1;
    pnb_store_rows_reset(&rows);
    return status;
}

static pnb_status find_id(void *self, const char *id, size_t *row, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    pnb_store_rows rows = {0};
    pnb_status status = of_store(pnb_store_get_ids(g->store, &id, 1, &rows, err), err);
    if (status == PNB_OK && rows.n == 1)
        *row = (size_t)rows.items[0].number;
    else if (status == PNB_OK)
        status = pnb__fail(err, PNB_NOT_FOUND, "there is no row '%.80s' in %s", id, g->name);
    pnb_store_rows_reset(&rows);
    return status;
}

static pnb_status take_rows(void *self, const size_t *rows, size_t n, pnb_embeddings **out,
                            pnb_error *err)
{
    const pnb__store_gallery *g = self;
    pnb_store_rows found = {0};
    int64_t *numbers = NULL;
    pnb_status status = PNB_ALLOC(numbers, n, err);
    for (size_t i = 0; status == PNB_OK && i < n; i++)
        numbers[i] = rows[i] <= INT64_MAX ? (int64_t)rows[i] : -1;
    if (status == PNB_OK)
        status = of_store(pnb_store_get(g->store, numbers, n, &found, err), err);
    if (status == PNB_OK)
        status = found.n == n ? pnb_store_set(g->store, &found, out, err)
                              : pnb__fail(err, PNB_NOT_FOUND, "a row was removed meanwhile");
    pnb_store_rows_reset(&found);
    pnb__free(numbers);
    return status;
}

static pnb_status pick_rows(void *self, pnb_store_order order, size_t limit, pnb__found *out,
                            size_t *n, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    pnb_store_rows rows = {0};
    pnb_status status = of_store(pnb_store_first(g->store, NULL, order, limit, &rows, err), err);
    *n = rows.n;
    for (size_t i = 0; i < rows.n; i++)
        out[i] = (pnb__found){(size_t)rows.items[i].number, NAN, NAN, rows.items[i].uncertainty};
    pnb_store_rows_reset(&rows);
    return status;
}

static pnb_status get_thumbnail(void *self, size_t row, pnb__buf *b, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    unsigned char *bytes = NULL;
    size_t n_bytes = 0;
    int64_t number = row <= INT64_MAX ? (int64_t)row : -1;
    pnb_status status = pnb_store_get_thumbnail(g->store, number, &bytes, &n_bytes, err);
    if (status == PNB_FORMAT) /* NOT_FOUND is that of the row */
        status = of_store(status, err);
    if (status == PNB_OK)
        pnb__buf_append(b, bytes, n_bytes);
    pnb_store_thumbnail_free(bytes);
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

static pnb_status put_fields(void *self, size_t number, pnb__buf *b, pnb_error *err)
{
    pnb_store_rows rows;
    pnb_status status = row_of(self, number, &rows, err);
    const pnb_store_row *row = rows.n == 1 ? &rows.items[0] : NULL;
    pnb__json_put(b, "\"id\":%s", row != NULL ? row->id : "");
    if (row != NULL && row->text != NULL)
        pnb__json_put(b, ",\"caption\":%s", row->text);
    if (row != NULL && row->tags != NULL && row->tags[0] != '\0')
        put_tags(row->tags, b);
    if (row != NULL)
        pnb__buf_printf(b, ",\"time\":%lld", (long long)row->time);
    if (row != NULL && row->extra != NULL)
        pnb__gallery_put_extra(row->extra, row->text != NULL, b);
    pnb_store_rows_reset(&rows);
    return status;
}

static pnb_status count_rows(void *self, size_t *n, pnb_error *err)
{
    const pnb__store_gallery *g = self;
    pnb_store_about about = {0};
    pnb_status status = of_store(pnb_store_describe(g->store, &about, err), err);
    *n = about.n_rows;
    return status;
}

/* ---- writing ---- */

#define WRITE_WAIT_S 1.0 /* for another program, which has the part of the writer for a moment */

static pnb_status add_rows(void *self, const pnb__gallery_batch *batch, pnb_store_added *added,
                           pnb_error *err)
{
    pnb__store_gallery *g = self;
    const pnb_store_batch rows = {.set = batch->set,
                                  .sha256 = batch->sha256,
                                  .thumbnails = batch->thumbnails,
                                  .tags = batch->tags,
                                  .n_tags = batch->n_tags};
    pnb_status status;
    if (strcmp(batch->set->info.modality, g->row->info.modality) != 0)
        return pnb__fail(err, PNB_ARG, "%s is a collection of %ss, not of %ss", g->name,
                         g->row->info.modality, batch->set->info.modality);
    pthread_mutex_lock(&g->writing);
    status = pnb_store_begin(g->store, WRITE_WAIT_S, err);
    if (status == PNB_OK)
        status = pnb_store_add(g->store, &rows, added, err);
    pnb_store_end(g->store);
    pthread_mutex_unlock(&g->writing);
    return of_store(status, err);
}

static pnb_status remove_rows(void *self, const char *const *ids, size_t n, size_t *n_removed,
                              pnb_error *err)
{
    pnb__store_gallery *g = self;
    pthread_mutex_lock(&g->writing);
    pnb_status status = pnb_store_begin(g->store, WRITE_WAIT_S, err);
    if (status == PNB_OK)
        status = pnb_store_remove(g->store, ids, n, n_removed, err);
    pnb_store_end(g->store);
    pthread_mutex_unlock(&g->writing);
    return of_store(status, err);
}

/* ---- approximate search ---- */

/* One search of a side, so that whatever it needs is there before the first request, and what its
 * measure does not allow is said at the start. */
static pnb_status try_side(pnb__store_gallery *g, const pnb_encoder *e, pnb_encode_side which,
                           pnb_error *err)
{
    const pnb__gallery_ask ask = {.k = 1};
    pnb_embeddings *probe = NULL;
    pnb_store_hits hits = {0};
    pnb_store_rows rows = {0};
    pnb__gallery_way way;
    pnb_status status = pnb__gallery_probe(e, which, &probe, err);
    if (status == PNB_OK) {
        probe->mean[0] = 1;
        status = find_hits(g, probe, &ask, &hits, &rows, &way, err);
    }
    pnb_store_rows_reset(&rows);
    pnb_store_hits_reset(&hits);
    pnb_embeddings_free(probe);
    return status;
}

static pnb_status build(pnb__store_gallery *g, pnb_store *store, const pnb_watch *watch,
                        pnb_store_built *built, pnb_error *err)
{
    pnb_search_opts opts = g->approx;
    opts.watch = *watch;
    return pnb_store_build(store, g->ctx, &opts, built, err);
}

static pnb_status build_all(pnb__store_gallery *g, pnb__app *app)
{
    pnb_store_built built = {0};
    size_t n_rows = 0;
    pnb__watching progress;
    pnb_status status = pnb_store_count_unbuilt(g->store, g->approx.kind, &n_rows, &app->err);
    if (status != PNB_OK || n_rows == 0)
        return status;
    pnb__say(app, "%s: building the %s index of %zu rows", g->path,
             pnb_index_kind_name(g->approx.kind), n_rows);
    pnb_watch watch = pnb__watch_begin(&progress, app, "building", "rows");
    status = build(g, g->store, &watch, &built, &app->err);
    pnb__watch_end(&progress);
    if (status == PNB_OK && built.least_recall < g->approx.recall)
        pnb__warn(app, "%s: the recall of %g that is wanted was not reached: %.4f", g->path,
                  g->approx.recall, built.least_recall);
    return status;
}

/* The measure of the side that the model has first: a side that is compared by another one is
 * searched exactly. */
static pnb_status prepare(pnb__store_gallery *g, pnb__app *app, const pnb_encoder *e,
                          const pnb__store_gallery_place *place)
{
    pnb_status status = PNB_OK;
    g->approx = pnb_search_opts_default();
    g->approx.kind = place->approx;
    g->approx.recall = place->recall;
    g->approx.measure = g->sides[0].is_there ? g->sides[0].measure : g->sides[1].measure;
    if (place->approx == PNB_INDEX_EXACT)
        return PNB_OK;
    if (place->approx == PNB_INDEX_HNSW || place->approx == PNB_INDEX_IVF)
        PNB_TRY(build_all(g, app));
    if (g->sides[0].is_there)
        PNB_TRY(try_side(g, e, PNB_ENCODE_TEXTS, &app->err));
    if (g->sides[1].is_there)
        status = try_side(g, e, PNB_ENCODE_IMAGES, &app->err);
done:
    if (status != PNB_OK)
        pnb__error_prefix(&app->err, "--approx: collection %s", g->path);
    return status;
}

enum { GROWN_ROWS = 20000 }; /* an exact search of so many is a millisecond or two */

/* By a store of its own: writing wants one thread at a time. */
pnb_status pnb__store_gallery_grow(pnb__store_gallery *g, const pnb_watch *watch, pnb_error *err)
{
    pnb_store *store = NULL;
    size_t n_rows = 0;
    pnb_status status;
    if (g->approx.kind != PNB_INDEX_HNSW && g->approx.kind != PNB_INDEX_IVF)
        return PNB_OK;
    PNB_TRY(pnb_store_count_unbuilt(g->store, g->approx.kind, &n_rows, err));
    if (n_rows < GROWN_ROWS)
        return PNB_OK;
    PNB_TRY(pnb_store_open(&store, g->path, err));
    status = build(g, store, watch, NULL, err);
done:
    pnb_store_close(store);
    return status;
}

/* ---- from beginning to end ---- */

pnb_status pnb__store_gallery_open(pnb__store_gallery **out, pnb__app *app,
                                   const pnb_encoder *encoder,
                                   const pnb__store_gallery_place *place)
{
    pnb_error *err = &app->err;
    pnb_status status;
    pnb__store_gallery *g = pnb__alloc_zero(1, sizeof *g);
    if (g == NULL)
        return pnb__fail_nomem(err, sizeof *g);
    g->ctx = app->ctx;
    pthread_mutex_init(&g->writing, NULL);
    PNB_TRY(pnb__copy_text(&g->name, pnb__path_base(place->path), err));
    PNB_TRY(pnb_store_open(&g->store, place->path, err));
    PNB_TRY(read_row(g, app, encoder, place));
    PNB_TRY(pnb__copy_text(&g->path, place->path, err));
    PNB_TRY(open_sides(g, app, encoder, place->path, place->calibration));
    PNB_TRY(prepare(g, app, encoder, place));
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
    pthread_mutex_destroy(&g->writing);
    pnb__free(g->name);
    pnb__free(g->path);
    pnb__free(g);
}

pnb__gallery pnb__store_gallery_view(pnb__store_gallery *g)
{
    static const pnb__gallery_calls calls = {.search = search_rows,
                                             .conformal = list_conformal,
                                             .related = find_related,
                                             .find = find_id,
                                             .take = take_rows,
                                             .pick = pick_rows,
                                             .thumbnail = get_thumbnail,
                                             .add = add_rows,
                                             .remove = remove_rows,
                                             .put_fields = put_fields,
                                             .count = count_rows,
                                             .has_row = has_row};
    return (pnb__gallery){&calls, g, g->name, g->row->info.modality};
}

/* Of rows spread evenly over the numbers that were given. */
pnb_status pnb__store_gallery_spread(const pnb__store_gallery *g, pnb__spread *out, pnb_error *err)
{
    enum { SAMPLE = 2000 };
    int64_t numbers[SAMPLE];
    double u[SAMPLE];
    pnb_store_rows last = {0}, rows = {0};
    size_t n;
    pnb_status status;
    *out = pnb__gallery_spread(u, 0);
    if (g->row->family == PNB_POINT)
        return PNB_OK;
    PNB_TRY(pnb_store_first(g->store, NULL, PNB_STORE_NEWEST, 1, &last, err));
    if (last.n == 0)
        goto done;
    int64_t end = last.items[0].number;
    n = (size_t)PNB_MIN(end, (int64_t)SAMPLE);
    for (size_t i = 0; i < n; i++)
        numbers[i] = 1 + (int64_t)((double)i * (double)end / (double)n);
    PNB_TRY(pnb_store_get(g->store, numbers, n, &rows, err));
    for (size_t i = 0; i < rows.n; i++)
        u[i] = rows.items[i].uncertainty;
    *out = pnb__gallery_spread(u, rows.n);
done:
    pnb_store_rows_reset(&rows);
    pnb_store_rows_reset(&last);
    return status;
}
