/* Samples of a Parquet table, as img2dataset, DataComp and Hugging Face write them: a row a sample.
 *
 * All columns of text, numbers and flags become the row's record, as a line of JSON would have
 * them, so captions, urls, uids and scores are found by the same names. The picture is the bytes of
 * a column "jpg", "image.bytes" and the like, read when it is asked for, or a path. A row that
 * img2dataset could not fetch (its "status" is not "success") is left out. Columns that are not
 * understood are left out, and named; what pages are is src/io/tables/parquet/parquet_page.c, and
 * that they stay parquet_rows.c. */
#include <string.h>

#include "data/sources/dataset_internal.h"
#include "io/json/json.h"

enum { MAX_BARE_BYTES = 1 << 16 };     /* of a value that nobody calls a text */
enum { MAX_SCALE = 38 };               /* of a decimal, as the widest one has it */
#define KEPT_BYTES ((size_t)256 << 20) /* of pages of pictures, of all tables of a data set */

/* A value of one column, its bytes in a buffer of the column. */
typedef struct cell {
    pnb__parquet_kind kind;
    int64_t integer;
    double real;
    size_t at, n;
} cell;

/* A column of the row group at hand. */
typedef struct column {
    const pnb__parquet_leaf *leaf;
    size_t number;
    cell *cells;
    pnb__buf bytes;
    bool is_left_out;
} column;

typedef struct scan {
    pnb_dataset *ds;
    const pnb__parquet *table;
    const char *dir;
    column *columns;
    size_t n_columns;
    size_t key, status, path, text; /* places in `columns`, SIZE_MAX: none */
    size_t n_failed, n_bare;        /* rows left out */
    pnb__buf record;
} scan;

/* ---- which column is what ---- */

static const char *const image_names[] = {"jpg",   "jpeg",        "png",         "webp",
                                          "image", "image.bytes", "image_bytes", "bytes",
                                          "img",   "img.bytes",   "image_data"};
static const char *const path_names[] = {"filepath",   "file_name", "image_path",
                                         "image.path", "path",      "image"};
static const char *const key_names[] = {"key", "uid", "id"};
static const char *const text_names[] = {"caption", "text", "captions"};
static const char *const other_names[] = {"status", "url"};

/* A column of bytes that nobody calls a text. */
static size_t find_image(const pnb__parquet *p)
{
    for (size_t i = 0; i < PNB_COUNT(image_names); i++) {
        size_t leaf = pnb__parquet_find(p, image_names[i]);
        if (leaf != SIZE_MAX && p->leaves[leaf].is_bytes &&
            p->leaves[leaf].meaning == PNB__PARQUET_BARE)
            return leaf;
    }
    return SIZE_MAX;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Whether something asks for a column, or one that has it inside, by its name. */
static bool is_asked_for(const scan *s, const char *name)
{
    const char *const own[] = {s->ds->opts.csv_caption_key, s->ds->opts.csv_img_key};
    char root[64];
    snprintf(root, sizeof root, "%.*s", (int)PNB_MIN(strcspn(name, "."), sizeof root - 1), name);
    return is_one_of(root, image_names, PNB_COUNT(image_names)) ||
           is_one_of(root, path_names, PNB_COUNT(path_names)) ||
           is_one_of(root, key_names, PNB_COUNT(key_names)) ||
           is_one_of(root, text_names, PNB_COUNT(text_names)) ||
           is_one_of(root, other_names, PNB_COUNT(other_names)) ||
           is_one_of(name, own, PNB_COUNT(own)) || is_one_of(root, own, PNB_COUNT(own)) ||
           pnb__ends_with(name, "score") || pnb__ends_with(name, "similarity");
}

static size_t find_column(const scan *s, const char *const *names, size_t n)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < s->n_columns; i++)
            if (strcmp(s->columns[i].leaf->name, names[k]) == 0)
                return i;
    return SIZE_MAX;
}

/* What a column is that has no place in a record, NULL: it has one. */
static const char *what_is_left_out(const pnb__parquet_leaf *leaf)
{
    bool is_integer = leaf->type == PNB__STORED_INT32 || leaf->type == PNB__STORED_INT64;
    if (leaf->is_list)
        return "a list";
    if (leaf->meaning == PNB__PARQUET_DECIMAL &&
        (!is_integer || leaf->scale < 0 || leaf->scale > MAX_SCALE))
        return "a decimal of bytes";
    return leaf->meaning == PNB__PARQUET_OTHER ? "neither text, number nor flag" : NULL;
}

static pnb_status choose_columns(scan *s, size_t image, pnb_error *err)
{
    const pnb__parquet *p = s->table;
    const char *const status[] = {"status"};
    const pnb_dataset_opts *o = &s->ds->opts;
    if (PNB_ALLOC_ZERO(s->columns, p->n_leaves + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < p->n_leaves; i++)
        if (i != image && what_is_left_out(&p->leaves[i]) == NULL)
            s->columns[s->n_columns++] = (column){.leaf = &p->leaves[i], .number = i};
    s->key = find_column(s, key_names, PNB_COUNT(key_names));
    s->status = find_column(s, status, 1);
    s->text = find_column(s, &o->csv_caption_key, 1);
    s->path = image == SIZE_MAX ? find_column(s, &o->csv_img_key, 1) : SIZE_MAX;
    if (image == SIZE_MAX && s->path == SIZE_MAX)
        s->path = find_column(s, path_names, PNB_COUNT(path_names));
    return PNB_OK;
}

/* ---- reading columns ---- */

/* A UUID as DataComp writes uids: 32 hexadecimal digits. */
static pnb_status take_uuid(column *c, cell *to, const unsigned char *bytes, pnb_error *err)
{
    to->n = 32;
    for (size_t i = 0; i < 16; i++)
        pnb__buf_printf(&c->bytes, "%02x", bytes[i]);
    pnb__buf_putc(&c->bytes, '\0');
    return pnb__buf_check(&c->bytes, err);
}

/* pnb__parquet_fn. What is no text is no value of a record. */
static pnb_status take_cell(void *user, size_t row, const pnb__parquet_value *v, pnb_error *err)
{
    column *c = user;
    cell *to = &c->cells[row];
    *to = (cell){v->kind, v->integer, v->real, c->bytes.size, v->n_bytes};
    if (v->kind != PNB__PARQUET_BYTES)
        return PNB_OK;
    if (c->leaf->meaning == PNB__PARQUET_UUID)
        return take_uuid(c, to, v->bytes, err);
    const char *text = (const char *)v->bytes;
    bool is_text = (c->leaf->meaning == PNB__PARQUET_UTF8 || v->n_bytes <= MAX_BARE_BYTES) &&
                   pnb__utf8_valid(text, v->n_bytes) &&
                   (v->n_bytes == 0 || memchr(text, 0, v->n_bytes) == NULL);
    if (!is_text) {
        *to = (cell){.kind = PNB__PARQUET_NULL};
        return PNB_OK;
    }
    pnb__buf_append(&c->bytes, v->bytes, v->n_bytes);
    pnb__buf_putc(&c->bytes, '\0');
    return pnb__buf_check(&c->bytes, err);
}

/* Columns that nothing asks for are left out without harm. */
static pnb_status tell_column(const scan *s, const char *name, const char *why, const char *then,
                              pnb_error *err)
{
    return is_asked_for(s, name) ? pnb__dataset_warn(s->ds, err, "%s%s is left out", why, then)
                                 : pnb__dataset_note(s->ds, err, "%s%s is left out", why, then);
}

/* One that is not understood is named once, and has no values. */
static pnb_status read_column(scan *s, size_t group, column *c, pnb_error *err)
{
    pnb_error why = PNB_ERROR_INIT;
    size_t n = s->table->groups[group].n_rows;
    pnb__free(c->cells);
    c->cells = NULL;
    c->bytes.size = 0;
    if (PNB_ALLOC_ZERO(c->cells, n + 1, err) != PNB_OK) /* kind 0: no value */
        return PNB_NOMEM;
    if (c->is_left_out)
        return PNB_OK;
    pnb_status status = pnb__parquet_read(s->table, group, c->number, take_cell, c, &why);
    if (status == PNB_UNSUPPORTED) {
        c->is_left_out = true;
        memset(c->cells, 0, n * sizeof *c->cells);
        return tell_column(s, c->leaf->name, why.text, "; the column", err);
    }
    return status == PNB_OK ? PNB_OK : pnb__fail(err, status, "%s", why.text);
}

static const char *text_of(const scan *s, size_t place, size_t row)
{
    if (place == SIZE_MAX || s->columns[place].cells[row].kind != PNB__PARQUET_BYTES)
        return NULL;
    return s->columns[place].bytes.data + s->columns[place].cells[row].at;
}

/* ---- rows ---- */

static void put_integer(pnb__buf *b, const pnb__parquet_leaf *leaf, int64_t x)
{
    unsigned long long size = x < 0 ? 0 - (unsigned long long)x : (unsigned long long)x;
    char digits[64];
    if (leaf->meaning == PNB__PARQUET_UNSIGNED) {
        pnb__buf_printf(b, "%llu", (unsigned long long)x);
        return;
    }
    int scale = leaf->meaning == PNB__PARQUET_DECIMAL ? leaf->scale : 0;
    int n = snprintf(digits, sizeof digits, "%0*llu", scale + 1, size);
    pnb__buf_printf(b, "%s%.*s", x < 0 ? "-" : "", n - scale, digits);
    if (scale > 0)
        pnb__buf_printf(b, ".%s", digits + n - scale);
}

/* A number that readers of JSON have no room for is a text. */
static void put_value(pnb__buf *b, const column *c, size_t row)
{
    const cell *v = &c->cells[row];
    const char *quote = c->leaf->meaning == PNB__PARQUET_UNSIGNED && v->integer < 0 ? "\"" : "";
    switch (v->kind) {
    case PNB__PARQUET_FLAG:
        pnb__buf_puts(b, v->integer != 0 ? "true" : "false");
        return;
    case PNB__PARQUET_INT:
        pnb__buf_puts(b, quote);
        put_integer(b, c->leaf, v->integer);
        pnb__buf_puts(b, quote);
        return;
    case PNB__PARQUET_REAL:
        pnb__json_put(b, "%f", v->real);
        return;
    case PNB__PARQUET_BYTES:
        pnb__json_append_string(b, c->bytes.data + v->at);
        return;
    case PNB__PARQUET_NULL:
        break;
    }
    pnb__buf_puts(b, "null");
}

/* The row as an object; captions of a column that was asked for stand where a reader looks first.
 */
static void put_record(scan *s, size_t row)
{
    pnb__buf *b = &s->record;
    const char *text = text_of(s, s->text, row), *comma = "";
    b->size = 0;
    pnb__buf_putc(b, '{');
    if (text != NULL) {
        pnb__buf_puts(b, "\"captions\":[");
        pnb__json_append_string(b, text);
        pnb__buf_putc(b, ']');
        comma = ",";
    }
    for (size_t i = 0; i < s->n_columns; i++) {
        const column *c = &s->columns[i];
        if (c->cells[row].kind == PNB__PARQUET_NULL ||
            (text != NULL && strcmp(c->leaf->name, "captions") == 0))
            continue;
        pnb__buf_puts(b, comma);
        pnb__json_append_string(b, c->leaf->name);
        pnb__buf_putc(b, ':');
        put_value(b, c, row);
        comma = ",";
    }
    pnb__buf_putc(b, '}');
}

static bool has_text(const scan *s, size_t row)
{
    if (text_of(s, s->text, row) != NULL)
        return true;
    for (size_t k = 0; k < PNB_COUNT(text_names); k++)
        if (text_of(s, find_column(s, &text_names[k], 1), row) != NULL)
            return true;
    return false;
}

static size_t add_path(pnb_dataset *ds, const char *dir, const char *name)
{
    char *path = name[0] == '/' || strstr(name, "://") != NULL ? pnb__strdup(name)
                                                               : pnb__path_join(dir, name);
    size_t text = path != NULL ? pnb__dataset_add_text(ds, path) : PNB__NO_TEXT;
    ds->texts.failed |= path == NULL; /* adding the entry reports it */
    pnb__free(path);
    return text;
}

static pnb_status add_row(scan *s, size_t group, size_t row, pnb_error *err)
{
    pnb_dataset *ds = s->ds;
    pnb__entry entry = pnb__entry_empty();
    const char *status = text_of(s, s->status, row), *path = text_of(s, s->path, row);
    const char *key = text_of(s, s->key, row);
    char name[40];
    if (status != NULL && strcmp(status, "success") != 0) {
        s->n_failed++;
        return PNB_OK;
    }
    if (!ds->opts.allow_no_caption && !has_text(s, row)) {
        s->n_bare++;
        return PNB_OK;
    }
    entry.row = s->table->groups[group].first_row + row;
    snprintf(name, sizeof name, "row %zu", entry.row);
    if (s->key != SIZE_MAX && s->columns[s->key].cells[row].kind == PNB__PARQUET_INT) {
        s->record.size = 0;
        put_integer(&s->record, s->columns[s->key].leaf, s->columns[s->key].cells[row].integer);
        pnb__buf_putc(&s->record, '\0');
        key = s->record.data;
    }
    entry.key = pnb__dataset_add_text(ds, key != NULL ? key : name);
    put_record(s, row);
    if (s->record.failed)
        return pnb__fail_nomem(err, s->record.size);
    pnb__buf_putc(&s->record, '\0');
    entry.record = pnb__dataset_add_text(ds, s->record.data);
    if (path != NULL && path[0] != '\0')
        entry.image_path = add_path(ds, s->dir, path);
    return pnb__dataset_add_entry(ds, &entry, err);
}

/* A number of rows that no column vouches for is only a number in the footer. */
static bool has_column(const scan *s, bool has_image)
{
    bool has = has_image;
    for (size_t i = 0; i < s->n_columns && !has; i++)
        has = !s->columns[i].is_left_out;
    return has;
}

static pnb_status read_groups(scan *s, bool has_image, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t g = 0; g < s->table->n_groups; g++) {
        for (size_t i = 0; i < s->n_columns; i++)
            PNB_TRY(read_column(s, g, &s->columns[i], err));
        if (!has_column(s, has_image))
            return pnb__fail(err, PNB_FORMAT,
                             "%s: no column that is read: wanted texts, numbers, flags or pictures",
                             s->table->where);
        for (size_t row = 0; row < s->table->groups[g].n_rows; row++)
            PNB_TRY(add_row(s, g, row, err));
    }
done:
    return status;
}

static pnb_status tell_left_out(const scan *s, const char *path, pnb_error *err)
{
    char text[900];
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < s->table->n_leaves && status == PNB_OK; i++) {
        const char *name = s->table->leaves[i].name;
        const char *what = what_is_left_out(&s->table->leaves[i]);
        if (what == NULL)
            continue;
        snprintf(text, sizeof text, "%s: column %s: is %s", path, name, what);
        status = tell_column(s, name, text, ", which", err);
    }
    if (status == PNB_OK && s->n_failed > 0)
        status = pnb__dataset_warn(
            s->ds, err, "%s: %zu rows whose status is not \"success\" left out", path, s->n_failed);
    if (status == PNB_OK && s->n_bare > 0)
        status = pnb__dataset_warn(s->ds, err, "%s: %zu rows without a caption left out", path,
                                   s->n_bare);
    return status;
}

/* ---- the source ---- */

pnb_status pnb__scan_parquet(pnb_dataset *ds, const char *path, pnb_error *err)
{
    char *dir = pnb__path_dir(path);
    scan s = {.ds = ds, .dir = dir};
    pnb__table *t = NULL;
    pnb_status status = dir != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path));
    if (status != PNB_OK)
        return status;
    PNB_TRY(pnb__dataset_add_source(ds, PNB_DATASET_PARQUET, path, err));
    PNB_TRY(PNB_ALLOC_ZERO(t, 1, err));
    pnb__source *source = &ds->sources[ds->n_sources - 1];
    source->table = t; /* the data set's from here on */
    PNB_TRY(pnb__parquet_open(&t->reader, source->map.data, source->map.size, path, err));
    s.table = &t->reader;
    size_t image = find_image(&t->reader);
    t->has_image = image != SIZE_MAX;
    if (t->has_image && ds->kept == NULL)
        PNB_TRY(pnb__parquet_kept_create(&ds->kept, KEPT_BYTES, err));
    if (t->has_image)
        PNB_TRY(pnb__parquet_rows_open(&t->image, &t->reader, image, ds->kept, err));
    PNB_TRY(choose_columns(&s, image, err));
    PNB_TRY(read_groups(&s, t->has_image, err));
    status = tell_left_out(&s, path, err);
done:
    for (size_t i = 0; i < s.n_columns; i++) {
        pnb__free(s.columns[i].cells);
        pnb__buf_reset(&s.columns[i].bytes);
    }
    pnb__free(s.columns);
    pnb__buf_reset(&s.record);
    pnb__free(dir);
    return status;
}

void pnb__table_free(pnb__table *t)
{
    if (t == NULL)
        return;
    pnb__parquet_rows_close(&t->image);
    pnb__parquet_close(&t->reader);
    pnb__free(t);
}

pnb_status pnb__table_image(const pnb__table *t, size_t row, pnb__buf *out, bool *found,
                            pnb_error *err)
{
    *found = false;
    return t->has_image ? pnb__parquet_row(&t->image, row, out, found, err) : PNB_OK;
}
