/* A collection as other programs load it: vectors whose inner products rank as the collection's own
 * measure does (index/augmented.h), ids, and what is known of each row.
 *
 *   npy       vectors.npy, payload.jsonl                    a row a line, in the same order
 *   faiss     index.faiss (IndexFlatIP), payload.jsonl      written by FAISS itself
 *   qdrant    collection.json, points.jsonl                 bodies of its HTTP interface
 *   pgvector  rows.sql                                      for psql -f
 *
 * Rows are gone through twice, once for their numbers: a file says at its head how many there are.
 * Each file appears whole or not at all. */
#include <errno.h>
#include <string.h>

#include "base/grow.h"
#include "commands/collection/collection.h"
#include "index/ann/faiss_bridge.h"
#include "index/augmented.h"
#include "io/json/json.h"
#include "program/progress.h"

enum { BLOCK_ROWS = 2048, POINTS_A_LINE = 256 };

typedef struct exporting {
    pnb__app *app;
    const pnb__collection_export_opts *opts;
    pnb_store *store;
    pnb_store_about about;
    pnb__augmented form;
    int64_t *numbers;
    size_t n, n_done;
    pnb__out_file files[2];
    float *vectors; /* of a block */
    pnb__faiss *faiss;
} exporting;

/* One of the formats. `rows` and their vectors are a block. */
typedef struct format {
    const char *name;
    const char *files[2];                /* NULL: one file */
    pnb_status (*check)(pnb_error *err); /* can it be written at all?  NULL: yes */
    pnb_status (*begin)(exporting *e, pnb_error *err);
    pnb_status (*block)(exporting *e, const pnb_store_rows *rows, pnb_error *err);
    pnb_status (*end)(exporting *e, pnb_error *err);
    const char *how; /* to query, with two %s: what the query's vector is, and the measure */
} format;

/* ---- writing ---- */

static pnb_status put_bytes(pnb__out_file *f, const void *bytes, size_t n, pnb_error *err)
{
    return fwrite(bytes, 1, n, f->file) == n ? PNB_OK
                                             : pnb__fail_errno(err, "cannot write", f->path);
}

static pnb_status put_text(pnb__out_file *f, pnb__buf *text, pnb_error *err)
{
    pnb_status status = pnb__buf_check(text, err);
    if (status == PNB_OK)
        status = put_bytes(f, text->data, text->size, err);
    pnb__buf_reset(text);
    return status;
}

/* ---- what is known of a row ---- */

static json_t *tags_json(const char *tags)
{
    json_t *list = json_array();
    while (tags != NULL && *tags != '\0') {
        size_t n = strcspn(tags, "\n");
        json_array_append_new(list, json_stringn(tags, n));
        tags += n + (tags[n] == '\n');
    }
    return list;
}

/* The further fields of a row, then its own; NULL when out of memory. */
static json_t *payload(const pnb_store_row *row)
{
    json_t *o = NULL;
    if (row->extra != NULL &&
        pnb__json_load_bytes(&o, row->extra, strlen(row->extra), "row", NULL) == PNB_NOMEM)
        return NULL;
    if (o == NULL)
        o = json_object();
    json_object_set_new(o, "id", json_string(row->id));
    if (row->path != NULL)
        json_object_set_new(o, "path", json_string(row->path));
    if (row->text != NULL)
        json_object_set_new(o, "caption", json_string(row->text));
    json_object_set_new(o, "tags", tags_json(row->tags));
    json_object_set_new(o, "time", json_integer(row->time));
    json_object_set_new(o, "uncertainty", json_real(row->uncertainty));
    json_object_set_new(o, "sha256", json_string(row->sha256));
    return o;
}

static void append_payload(pnb__buf *text, const pnb_store_row *row)
{
    json_t *o = payload(row);
    if (o == NULL)
        text->failed = true;
    else
        pnb__json_append_value(text, o);
    json_decref(o);
}

static pnb_status put_payloads(exporting *e, const pnb_store_rows *rows, pnb_error *err)
{
    pnb__buf text = {0};
    for (size_t i = 0; i < rows->n; i++) {
        append_payload(&text, &rows->items[i]);
        pnb__buf_putc(&text, '\n');
    }
    return put_text(&e->files[1], &text, err);
}

static void append_vector(pnb__buf *text, const float *x, size_t n)
{
    pnb__buf_putc(text, '[');
    for (size_t i = 0; i < n; i++)
        pnb__buf_printf(text, i > 0 ? ",%.9g" : "%.9g", (double)x[i]);
    pnb__buf_putc(text, ']');
}

/* ---- npy ---- */

static pnb_status begin_npy(exporting *e, pnb_error *err)
{
    pnb__buf text = {0};
    char dict[160];
    int n = snprintf(dict, sizeof dict,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", e->n,
                     e->form.width);
    size_t length = (10 + (size_t)n + 1 + 63) / 64 * 64 - 10;
    const char head[] = {
        '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(length & 255), (char)(length >> 8)};
    pnb__buf_append(&text, head, sizeof head);
    pnb__buf_printf(&text, "%-*s\n", (int)length - 1, dict);
    return put_text(&e->files[0], &text, err);
}

static pnb_status put_vectors(exporting *e, const pnb_store_rows *rows, pnb_error *err)
{
    pnb_status status =
        put_bytes(&e->files[0], e->vectors, rows->n * e->form.width * sizeof *e->vectors, err);
    return status == PNB_OK ? put_payloads(e, rows, err) : status;
}

/* ---- faiss ---- */

static pnb_status fail_faiss(const exporting *e, const pnb__faiss_error *why, pnb_error *err)
{
    return why->is_memory
               ? pnb__fail_nomem(err, e->n * e->form.width * sizeof(float))
               : pnb__fail(err, PNB_IO, "FAISS, writing %s: %s", e->files[0].path, why->text);
}

static pnb_status check_faiss(pnb_error *err)
{
    return pnb__faiss_version() != NULL
               ? PNB_OK
               : pnb__fail(err, PNB_UNSUPPORTED,
                           "--to faiss needs FAISS, and this program was built without it: run "
                           "`tools/install-deps` (the package is libfaiss-dev) and build it again, "
                           "or take --to npy, whose vectors are the same");
}

static pnb_status begin_faiss(exporting *e, pnb_error *err)
{
    pnb__faiss_error why;
    return pnb__faiss_flat(&e->faiss, e->form.width, &why) ? PNB_OK : fail_faiss(e, &why, err);
}

static pnb_status put_rows(exporting *e, const pnb_store_rows *rows, pnb_error *err)
{
    pnb__faiss_error why;
    return pnb__faiss_add(e->faiss, e->vectors, rows->n, &why) ? put_payloads(e, rows, err)
                                                               : fail_faiss(e, &why, err);
}

static bool write_piece(void *user, const void *bytes, size_t n)
{
    pnb__out_file *f = user;
    return !pnb__disk_step_fails() && fwrite(bytes, 1, n, f->file) == n;
}

static pnb_status end_faiss(exporting *e, pnb_error *err)
{
    pnb__faiss_error why;
    errno = 0;
    if (pnb__faiss_write(e->faiss, write_piece, &e->files[0], &why))
        return PNB_OK;
    return errno != 0 ? pnb__fail_errno(err, "cannot write", e->files[0].path)
                      : fail_faiss(e, &why, err);
}

/* ---- qdrant ---- */

static pnb_status begin_qdrant(exporting *e, pnb_error *err)
{
    pnb__buf text = {0};
    pnb__buf_printf(&text, "{\"vectors\": {\"size\": %zu, \"distance\": \"Dot\"}}\n",
                    e->form.width);
    return put_text(&e->files[0], &text, err);
}

/* A line is the body of one request. */
static pnb_status put_points(exporting *e, const pnb_store_rows *rows, pnb_error *err)
{
    pnb__buf text = {0};
    for (size_t i = 0; i < rows->n; i++) {
        const pnb_store_row *row = &rows->items[i];
        pnb__buf_puts(&text, i % POINTS_A_LINE == 0 ? "{\"points\":[" : ",");
        pnb__buf_printf(&text, "{\"id\":%lld,\"vector\":", (long long)row->number);
        append_vector(&text, e->vectors + i * e->form.width, e->form.width);
        pnb__buf_puts(&text, ",\"payload\":");
        append_payload(&text, row);
        bool ends = (i + 1) % POINTS_A_LINE == 0 || i + 1 == rows->n;
        pnb__buf_puts(&text, ends ? "}]}\n" : "}");
    }
    return put_text(&e->files[1], &text, err);
}

/* ---- pgvector ---- */

/* HNSW of pgvector holds up to 2,000 dimensions as vector, 4,000 as halfvec; beyond, none. */
static pnb_status begin_pgvector(exporting *e, pnb_error *err)
{
    pnb__buf text = {0};
    pnb__buf_printf(&text,
                    "CREATE EXTENSION IF NOT EXISTS vector;\n"
                    "CREATE TABLE penumbra (number bigint PRIMARY KEY, id text NOT NULL, payload "
                    "jsonb NOT NULL, embedding vector(%zu) NOT NULL);\n"
                    "COPY penumbra (number, id, payload, embedding) FROM stdin;\n",
                    e->form.width);
    return put_text(&e->files[0], &text, err);
}

/* A text as COPY reads it: JSON has no tab or newline outside of escapes, ids may. */
static void append_copy(pnb__buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        const char *escaped = *text == '\\'   ? "\\\\"
                              : *text == '\n' ? "\\n"
                              : *text == '\t' ? "\\t"
                              : *text == '\r' ? "\\r"
                                              : NULL;
        if (escaped != NULL)
            pnb__buf_puts(out, escaped);
        else
            pnb__buf_putc(out, *text);
    }
}

static pnb_status put_copy(exporting *e, const pnb_store_rows *rows, pnb_error *err)
{
    pnb__buf text = {0}, json = {0};
    for (size_t i = 0; i < rows->n; i++) {
        const pnb_store_row *row = &rows->items[i];
        json_t *o = payload(row);
        const char *id = json_string_value(json_object_get(o, "id")); /* UTF-8 in any case */
        append_payload(&json, row);
        text.failed = text.failed || id == NULL || json.failed;
        if (!text.failed) {
            pnb__buf_printf(&text, "%lld\t", (long long)row->number);
            append_copy(&text, id);
            pnb__buf_putc(&text, '\t');
            append_copy(&text, json.data);
            pnb__buf_putc(&text, '\t');
            append_vector(&text, e->vectors + i * e->form.width, e->form.width);
            pnb__buf_putc(&text, '\n');
        }
        pnb__buf_reset(&json);
        json_decref(o);
    }
    return put_text(&e->files[0], &text, err);
}

static pnb_status end_pgvector(exporting *e, pnb_error *err)
{
    pnb__buf text = {0};
    pnb__buf_puts(&text, "\\.\n");
    if (e->form.width <= 2000)
        pnb__buf_puts(&text, "CREATE INDEX ON penumbra USING hnsw (embedding vector_ip_ops);\n");
    else if (e->form.width <= 4000)
        pnb__buf_printf(&text,
                        "CREATE INDEX ON penumbra USING hnsw ((embedding::halfvec(%zu)) "
                        "halfvec_ip_ops);\n",
                        e->form.width);
    return put_text(&e->files[0], &text, err);
}

static const format formats[] = {
    {.name = "npy",
     .files = {"vectors.npy", "payload.jsonl"},
     .begin = begin_npy,
     .block = put_vectors,
     .how = "inner products of rows with %s rank as %s does; row i of payload.jsonl is row i"},
    {.name = "faiss",
     .files = {"index.faiss", "payload.jsonl"},
     .check = check_faiss,
     .begin = begin_faiss,
     .block = put_rows,
     .end = end_faiss,
     .how =
         "faiss.read_index(\"index.faiss\").search(q, k) with q = %s, by inner product, ranks as "
         "%s does; its numbers are lines of payload.jsonl, from 0"},
    {.name = "qdrant",
     .files = {"collection.json", "points.jsonl"},
     .begin = begin_qdrant,
     .block = put_points,
     .how =
         "PUT collection.json to /collections/NAME and each line of points.jsonl to "
         "/collections/NAME/points; POST {\"vector\": %s, \"limit\": 10, \"with_payload\": true} "
         "to /collections/NAME/points/search ranks as %s does"},
    {.name = "pgvector",
     .files = {"rows.sql", NULL},
     .begin = begin_pgvector,
     .block = put_copy,
     .end = end_pgvector,
     .how = "psql -f rows.sql; then SELECT id FROM penumbra ORDER BY embedding <#> q LIMIT 10 with "
            "q = %s ranks as %s does"}};

/* ---- the job ---- */

static pnb_status find_numbers(exporting *e, const pnb_store_filter *filter)
{
    pnb_error *err = &e->app->err;
    size_t capacity = 0, n_page = 1;
    int64_t after = 0;
    pnb_status status = PNB_OK;
    while (status == PNB_OK && n_page > 0) {
        pnb_store_rows rows = {0};
        PNB_TRY(pnb_store_list(e->store, filter, after, BLOCK_ROWS, &rows, err));
        n_page = rows.n;
        status = PNB_GROW(e->numbers, capacity, e->n + rows.n, err);
        for (size_t i = 0; status == PNB_OK && i < rows.n; i++)
            e->numbers[e->n++] = after = rows.items[i].number;
        pnb_store_rows_reset(&rows);
    }
    if (status == PNB_OK && e->n == 0)
        status = pnb__fail(err, PNB_NOT_FOUND, "collection %s: there is no row to export",
                           e->opts->path);
done:
    return status;
}

static pnb_status export_block(exporting *e, const format *f, size_t first, size_t n)
{
    pnb_error *err = &e->app->err;
    pnb_store_rows rows = {0};
    pnb_embeddings *set = NULL;
    pnb_status status;
    PNB_TRY(pnb_store_get(e->store, e->numbers + first, n, &rows, err));
    if (rows.n != n)
        PNB_TRY(pnb__fail(err, PNB_BUSY,
                          "collection %s: rows were removed while it was exported; try again",
                          e->opts->path));
    PNB_TRY(pnb_store_set(e->store, &rows, &set, err));
    PNB_TRY(pnb__augmented_rows(set, e->vectors, err));
    status = f->block(e, &rows, err);
done:
    pnb_embeddings_free(set);
    pnb_store_rows_reset(&rows);
    return status;
}

static pnb_status open_files(exporting *e, const format *f)
{
    pnb_status status = pnb__make_dirs(e->opts->out, &e->app->err);
    for (size_t i = 0; i < PNB_COUNT(f->files) && f->files[i] != NULL && status == PNB_OK; i++) {
        char *path = pnb__path_join(e->opts->out, f->files[i]);
        status = path != NULL ? pnb__out_open(&e->files[i], path, &e->app->err)
                              : pnb__fail_nomem(&e->app->err, 0);
        pnb__free(path);
    }
    return status;
}

static pnb_status write_all(exporting *e, const format *f)
{
    pnb_error *err = &e->app->err;
    pnb__out_file *const files[] = {&e->files[0], f->files[1] != NULL ? &e->files[1] : NULL};
    pnb__watching progress;
    pnb_watch watch = pnb__watch_begin(&progress, e->app, "exporting", "rows");
    pnb_status status;
    PNB_TRY(PNB_ALLOC_ROWS(e->vectors, BLOCK_ROWS, e->form.width, err));
    PNB_TRY(open_files(e, f));
    PNB_TRY(f->begin(e, err));
    for (size_t first = 0; first < e->n; first += BLOCK_ROWS) {
        PNB_TRY(export_block(e, f, first, PNB_MIN((size_t)BLOCK_ROWS, e->n - first)));
        if (!watch.step(watch.user, first, e->n))
            PNB_TRY(pnb__fail(err, PNB_INTERRUPTED, "stopped; nothing was written"));
    }
    if (f->end != NULL)
        PNB_TRY(f->end(e, err));
    status = pnb__out_commit_all(files, PNB_COUNT(files), err);
done:
    pnb__watch_end(&progress);
    for (size_t i = 0; i < PNB_COUNT(e->files); i++)
        pnb__out_abort(&e->files[i]);
    pnb__free(e->vectors);
    return status;
}

static void put_exported(const exporting *e, const format *f, pnb__result *r)
{
    const char *measure = pnb_measure_name(e->form.measure);
    char how[400];
    /* the two words of the format's own sentence */
    const char *first = strstr(f->how, "%s"), *second = strstr(first + 2, "%s");
    snprintf(how, sizeof how, "%.*s%s%.*s%s%s", (int)(first - f->how), f->how, e->form.query,
             (int)(second - first - 2), first + 2, measure, second + 2);
    pnb__result_text(r, "collection", "collection", e->opts->path);
    pnb__result_text(r, "out", "written", e->opts->out);
    pnb__result_int(r, "n_rows", "rows", (int64_t)e->n);
    pnb__result_int(r, "dim", "width of a vector", (int64_t)e->form.width);
    pnb__result_text(r, "measure", NULL, measure);
    pnb__result_text(r, "query", "to query", how);
}

pnb_status pnb__collection_export(pnb__app *app, void *args, pnb__result *r)
{
    const pnb__collection_export_opts *o = args;
    exporting e = {.app = app, .opts = o};
    const format *f = formats;
    pnb_store_filter filter;
    bool is_filtered;
    pnb_status status;
    while (strcmp(f->name, o->to) != 0)
        f++;
    if (pnb_store_is_at(o->out))
        return pnb__fail(&app->err, PNB_EXISTS,
                         "%s is a collection; exported files go into a folder of their own",
                         o->out);
    PNB_TRY(pnb__row_filter_read(app, &o->filter, &filter, &is_filtered));
    if (f->check != NULL)
        PNB_TRY(f->check(&app->err));
    PNB_TRY(pnb_store_open(&e.store, o->path, &app->err));
    PNB_TRY(pnb_store_describe(e.store, &e.about, &app->err));
    PNB_TRY(find_numbers(&e, is_filtered ? &filter : NULL));
    PNB_TRY(pnb__augmented_form(e.about.family, e.about.dim, &e.form, &app->err));
    PNB_TRY(write_all(&e, f));
    put_exported(&e, f, r);
done:
    pnb__faiss_free(e.faiss);
    pnb__free(e.numbers);
    pnb_store_close(e.store);
    return status;
}
