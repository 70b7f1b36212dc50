/* Collections made, told of, listed, thinned out and checked; collection_add.c fills them.
 *
 * What a collection is and how it is kept is the store's business (penumbra/store.h); here is what
 * people type and read. */
#include "commands/collection/collection.h"

#include <math.h>
#include <string.h>

#include "commands/common/encode_use.h"
#include "commands/common/set_use.h"
#include "sets/provenance.h"
#include "sets/set_rows.h"

/* ---- create ---- */

static pnb_status describe_model(pnb__app *app, const char *name, pnb_embeddings_info *info)
{
    pnb_encoder encoder = {0};
    const pnb_encoder_opts parts = {0};
    pnb_status status = pnb__encoder_open_named(&encoder, app, name, &parts);
    if (status == PNB_OK)
        pnb_encoder_describe(&encoder, PNB_ENCODE_IMAGES, 0, info);
    info->modality[0] = '\0'; /* the first rows say it */
    pnb__encoder_reset(&encoder);
    return status;
}

pnb_status pnb__collection_create(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_create_opts *o = args;
    pnb_embeddings_info info = {.modality = ""};
    pnb_store_model model = {.dir = o->model, .info = &info};
    if (o->place.join && o->place.address == NULL)
        return pnb__usage(app, "--join speaks of a --store that is there already");
    pnb_status status = o->model != NULL ? describe_model(app, o->model, &info) : PNB_OK;
    if (status == PNB_OK)
        status =
            pnb_store_create_at(o->path, &o->place, o->model != NULL ? &model : NULL, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result_text(r, "collection", "made", o->path);
    pnb__result_text(r, "model", o->model != NULL ? "for the model" : NULL, o->model);
    return PNB_OK;
}

/* ---- info ---- */

static void put_origin(const pnb_store_about *about, pnb__result *r)
{
    const pnb_embeddings_info *info = &about->info;
    char text[PNB_PROVENANCE_BYTES];
    pnb_provenance_text(info, text, sizeof text);
    pnb__result_text(r, NULL, "model", text);
    pnb__result_text(r, "model", NULL, info->model);
    pnb__result_text(r, "weights_sha256", NULL, info->weights_sha256);
    pnb__put_adapters(&info->adapters, r);
    pnb__result_text(r, "model_dir", about->model_dir[0] != '\0' ? "folder of the model" : NULL,
                     about->model_dir);
    if (!about->is_settled)
        return;
    pnb__result_text(r, "family", "family", pnb_family_name(about->family));
    pnb__result_int(r, "dim", "width", (int64_t)about->dim);
    pnb__result_text(r, "modality", "rows are of", info->modality);
    pnb__result_text(r, "preprocess", "preprocessing", info->preprocess);
}

pnb_status pnb__collection_info(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_rows_opts *o = args;
    pnb_store *store = NULL;
    pnb_store_about about;
    pnb_status status = pnb_store_open(&store, o->path, &app->err);
    if (status == PNB_OK)
        status = pnb_store_describe(store, &about, &app->err);
    if (status == PNB_OK) {
        pnb__result_text(r, "collection", "collection", o->path);
        pnb__result_int(r, "n_rows", "rows", (int64_t)about.n_rows);
        pnb__result_int(r, "n_shards", "shards", (int64_t)about.n_shards);
        pnb__result_int(r, "n_removed", "removed rows that take room", (int64_t)about.n_removed);
        put_origin(&about, r);
    }
    pnb_store_close(store);
    return status;
}

/* ---- list ---- */

/* Tags as a list; in text in one word, with commas between. */
static void put_tags(const pnb_store_row *row, pnb__result *r)
{
    char text[200];
    json_t *list = json_array();
    snprintf(text, sizeof text, "%s", row->tags != NULL ? row->tags : "");
    for (char *p = text; *p != '\0'; p++)
        if (*p == '\n')
            *p = ',';
    for (const char *tag = row->tags; list != NULL && tag != NULL && *tag != '\0';) {
        size_t n = strcspn(tag, "\n");
        if (json_array_append_new(list, json_stringn(tag, n)) != 0) {
            json_decref(list);
            list = NULL;
        }
        tag += n + (tag[n] == '\n');
    }
    pnb__result_cell_value(r, list, text);
}

/* Collections from before have what a picture is called among its further fields only. */
static pnb_status put_text(const pnb_store_row *row, pnb__result *r, pnb_error *err)
{
    char *text = NULL;
    pnb_status status =
        row->text == NULL ? pnb__extra_text(&text, row->extra, "caption", err) : PNB_OK;
    pnb__result_cell_text(r, text != NULL ? text : row->text);
    pnb__free(text);
    return status;
}

static pnb_status put_rows(const pnb_store_rows *rows, pnb__result *r, pnb_error *err)
{
    pnb_status status = PNB_OK;
    static const pnb__column columns[] = {{"number", "number"}, {"id", "id"},
                                          {"time", "time"},     {"uncertainty", "uncertainty"},
                                          {"tags", "tags"},     {"caption", "caption"},
                                          {"path", NULL},       {"sha256", NULL},
                                          {"added", NULL}};
    pnb__result_table(r, "rows", NULL, columns, PNB_COUNT(columns));
    for (size_t i = 0; i < rows->n && status == PNB_OK; i++) {
        const pnb_store_row *row = &rows->items[i];
        char time[32], added[32];
        pnb__time_text(row->time, time);
        pnb__time_text(row->added, added);
        pnb__result_cell_int(r, row->number);
        pnb__result_row(r, "%s %s %.5f", row->id, time, row->uncertainty);
        put_tags(row, r);
        status = put_text(row, r, err);
        pnb__result_row(r, "%s %s %s", row->path, row->sha256, added);
    }
    return status;
}

pnb_status pnb__collection_list(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_rows_opts *o = args;
    pnb_store *store = NULL;
    pnb_store_filter filter;
    pnb_store_rows rows = {0};
    bool is_filtered;
    pnb_status status;
    PNB_TRY(pnb__row_filter_read(app, &o->filter, &filter, &is_filtered));
    PNB_TRY(pnb_store_open(&store, o->path, &app->err));
    PNB_TRY(
        pnb_store_list(store, is_filtered ? &filter : NULL, o->after, o->limit, &rows, &app->err));
    PNB_TRY(put_rows(&rows, r, &app->err));
    bool may_go_on = rows.n == o->limit;
    if (may_go_on)
        pnb__say(app, "there may be more rows: `--after %lld` goes on behind these",
                 (long long)rows.items[rows.n - 1].number);
done:
    pnb_store_rows_reset(&rows);
    pnb_store_close(store);
    return status;
}

/* ---- remove ---- */

enum { PAGE_ROWS = 4096 };

/* Rows that pass, a page at a time. */
static pnb_status remove_passing(pnb__app *app, pnb_store *store, const pnb_store_filter *filter,
                                 size_t *n_removed)
{
    pnb_status status = PNB_OK;
    size_t n_page = 1;
    while (status == PNB_OK && n_page > 0) {
        pnb_store_rows rows = {0};
        const char **ids = NULL;
        size_t n = 0;
        PNB_TRY(pnb_store_list(store, filter, 0, PAGE_ROWS, &rows, &app->err));
        n_page = rows.n;
        status = PNB_ALLOC(ids, PNB_MAX(rows.n, (size_t)1), &app->err);
        for (size_t i = 0; status == PNB_OK && i < rows.n; i++)
            ids[i] = rows.items[i].id;
        if (status == PNB_OK)
            status = pnb_store_remove(store, ids, rows.n, &n, &app->err);
        *n_removed += n;
        pnb__free(ids);
        pnb_store_rows_reset(&rows);
    }
done:
    return status;
}

/* Ids that are not there are named; the others go. */
static pnb_status remove_ids(pnb__app *app, pnb_store *store, const pnb__text_list *words,
                             size_t *n_removed)
{
    pnb_status status = PNB_OK;
    for (size_t i = 1; i < words->n && status == PNB_OK; i++) {
        size_t n = 0;
        status = pnb_store_remove(store, &words->items[i], 1, &n, &app->err);
        *n_removed += n;
        if (status == PNB_OK && n == 0)
            pnb__skipped(app, words->items[i], "no row has this id");
    }
    return status;
}

pnb_status pnb__collection_remove(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_rows_opts *o = args;
    pnb_store *store = NULL;
    pnb_store_filter filter;
    bool is_filtered;
    size_t n_removed = 0;
    pnb_status status;
    if (o->words.n == 0)
        return pnb__usage(app, "name the collection");
    PNB_TRY(pnb__row_filter_read(app, &o->filter, &filter, &is_filtered));
    if (is_filtered == (o->words.n > 1))
        PNB_TRY(pnb__usage(app, "name the ids to remove behind the collection, or say by --tags, "
                                "--since, --until, --min-uncertainty or --max-uncertainty which "
                                "rows go: one of both"));
    PNB_TRY(pnb_store_open(&store, o->words.items[0], &app->err));
    PNB_TRY(pnb_store_begin(store, 0, &app->err));
    status = is_filtered ? remove_passing(app, store, &filter, &n_removed)
                         : remove_ids(app, store, &o->words, &n_removed);
    if (status == PNB_OK)
        pnb__result_int(r, "n_removed", "rows removed", (int64_t)n_removed);
done:
    pnb_store_close(store);
    return status;
}

/* ---- build ---- */

pnb_status pnb__collection_build(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_build_opts *o = args;
    pnb_search_opts opts = pnb_search_opts_default();
    pnb_store *store = NULL;
    pnb_store_built built;
    opts.measure = o->measure;
    opts.recall = o->recall;
    opts.kind = strcmp(o->approx, "ivf") == 0 ? PNB_INDEX_IVF : PNB_INDEX_HNSW;
    pnb__watching progress;
    pnb_status status = pnb_store_open(&store, o->path, &app->err);
    opts.watch = pnb__watch_begin(&progress, app, "building", "rows");
    if (status == PNB_OK)
        status = pnb_store_build(store, app->ctx, &opts, &built, &app->err);
    pnb__watch_end(&progress);
    pnb_store_close(store);
    if (status != PNB_OK)
        return status;
    pnb__result_text(r, "collection", "collection", o->path);
    pnb__result_int(r, "n_shards", "shards", (int64_t)built.n_shards);
    pnb__result_int(r, "n_built", "indexes built", (int64_t)built.n_built);
    pnb__result_real(r, "recall", "least recall at 10 of rows that were held out",
                     built.least_recall, 4);
    pnb__result_real(r, "bytes", "bytes", built.bytes, 0);
    if (built.least_recall < o->recall)
        pnb__warn(app,
                  built.n_built == built.n_shards
                      ? "the recall of %g that is wanted was not reached"
                      : "an index has less than the recall of %g that is wanted; those that were "
                        "there stay: remove their files, shards/*.%s, to build them anew",
                  o->recall, o->approx);
    return PNB_OK;
}

/* ---- verify ---- */

static void tell_problem(void *user, const char *text)
{
    pnb__warn(user, "%s", text);
}

pnb_status pnb__collection_verify(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_rows_opts *o = args;
    const pnb_store_verify_opts opts = {o->repair, tell_problem, app};
    pnb_store_verified found;
    pnb_status status = pnb_store_verify(o->path, &opts, &found, &app->err);
    if (status != PNB_OK)
        return status;
    pnb__result_text(r, "collection", "collection", o->path);
    pnb__result_int(r, "n_rows", "rows", (int64_t)found.n_rows);
    pnb__result_int(r, "n_shards", "shards", (int64_t)found.n_shards);
    pnb__result_int(r, "n_leftovers", "files of interrupted writers", (int64_t)found.n_leftovers);
    pnb__result_int(r, "n_problems", "problems", (int64_t)found.n_problems);
    pnb__result_int(r, "n_repaired", "repaired", (int64_t)found.n_repaired);
    if (found.n_problems > found.n_repaired)
        return pnb__fail(&app->err, PNB_FORMAT, "collection %s: %zu problems%s", o->path,
                         found.n_problems - found.n_repaired,
                         o->repair ? " that cannot be repaired: put a copy back"
                                   : "; --repair takes out what cannot be read");
    return PNB_OK;
}
