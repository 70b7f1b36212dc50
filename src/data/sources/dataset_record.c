/* The text side of a sample. A JSON record gives its captions in one of these forms, tried in
 * order: "captions": [text, ...]        with "levels": [0..3, ...] of the same length, if there
 *   "sentences": [{"raw": text}]   COCO's Karpathy form
 *   "caption" or "text": text      or a list of texts
 * Captions that do not fit stand under a key of the caller's, a text or a list. A .txt gives one
 * caption a line. "label" and "class" name its class. Everything must be UTF-8. Unknown keys are
 * left to the reader of pnb_sample.json. */
#include <string.h>

#include "data/sources/dataset_internal.h"
#include "io/json/json.h"

enum { MAX_TEXT_BYTES = 16 << 20, MAX_TEXTS = 100000 };

struct pnb__sample_memory {
    json_t *root;
    char *json, *text, *path;
    pnb__buf image; /* of a row of a table */
    const char **texts, **negatives;
    int *levels;
};

void pnb_sample_reset(pnb_sample *s)
{
    pnb__sample_memory *m = s->memory;
    if (m) {
        json_decref(m->root);
        pnb__free(m->json);
        pnb__free(m->text);
        pnb__free(m->path);
        pnb__buf_reset(&m->image);
        pnb__free(m->texts);
        pnb__free(m->negatives);
        pnb__free(m->levels);
        pnb__free(m);
    }
    *s = (pnb_sample){0};
}

static pnb_status reserve(pnb__sample_memory *m, size_t n, pnb_error *err)
{
    if (n > MAX_TEXTS)
        return pnb__fail(err, PNB_LIMIT, "%zu captions, at most %d are read", n, (int)MAX_TEXTS);
    pnb__free(m->texts);
    pnb__free(m->levels);
    m->texts = pnb__alloc_array(PNB_MAX(n, 1), sizeof *m->texts);
    m->levels = pnb__alloc_array(PNB_MAX(n, 1), sizeof *m->levels);
    if (!m->texts || !m->levels)
        return pnb__fail_nomem(err, n * sizeof *m->texts);
    return PNB_OK;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static pnb_status read_levels(pnb__sample_memory *m, json_t *levels, size_t n, pnb_error *err)
{
    if (!levels || json_is_null(levels))
        return PNB_OK;
    if (!json_is_array(levels) || json_array_size(levels) != n)
        return pnb__fail(err, PNB_FORMAT, "\"levels\" must be a list of %zu numbers, one a caption",
                         n);
    for (size_t i = 0; i < n; i++) {
        json_t *level = json_array_get(levels, i);
        json_int_t value = json_integer_value(level);
        if (!json_is_integer(level) || value < -1 || value > 1000)
            return pnb__fail(err, PNB_FORMAT, "\"levels\"[%zu] must be an integer from -1 to 1000",
                             i);
        m->levels[i] = (int)value;
    }
    return PNB_OK;
}

/* A list of texts, or of objects with "raw" when `key` is "sentences". */
static pnb_status read_list(pnb__sample_memory *m, json_t *list, const char *key, size_t *n,
                            pnb_error *err)
{
    size_t size = json_array_size(list);
    pnb_status status = reserve(m, size, err);
    if (status != PNB_OK)
        return status;
    for (size_t i = 0; i < size; i++) {
        json_t *item = json_array_get(list, i);
        const char *text =
            json_string_value(json_is_object(item) ? json_object_get(item, "raw") : item);
        if (!text)
            return pnb__fail(err, PNB_FORMAT, "\"%s\"[%zu] is not a text", key, i);
        m->texts[i] = text;
        m->levels[i] = -1;
    }
    *n = size;
    return PNB_OK;
}

static pnb_status list_texts(pnb__sample_memory *m, size_t *n, pnb_error *err)
{
    static const char *const KEYS[] = {"captions", "sentences", "caption", "text"};
    *n = 0;
    for (size_t k = 0; k < PNB_COUNT(KEYS) && *n == 0; k++) {
        json_t *value = json_object_get(m->root, KEYS[k]);
        pnb_status status = PNB_OK;
        if (json_is_array(value)) {
            status = read_list(m, value, KEYS[k], n, err);
        } else if (json_is_string(value)) {
            status = reserve(m, 1, err);
            if (status == PNB_OK) {
                m->texts[0] = json_string_value(value);
                m->levels[0] = -1;
                *n = 1;
            }
        } else if (value && !json_is_null(value)) {
            status = pnb__fail(err, PNB_FORMAT, "\"%s\" is neither a text nor a list", KEYS[k]);
        }
        if (status == PNB_OK && k == 0 && *n > 0)
            status = read_levels(m, json_object_get(m->root, "levels"), *n, err);
        if (status != PNB_OK)
            return status;
    }
    return PNB_OK;
}

/* "label" is a number or a name, "class" a name; what the source itself says comes first. */
static void read_class(pnb_sample *out, const json_t *root)
{
    const json_t *label = json_object_get(root, "label");
    const char *name = json_string_value(json_object_get(root, "class"));
    if (out->label >= 0 || out->class_name)
        return;
    if (json_is_integer(label) && json_integer_value(label) >= 0)
        out->label = json_integer_value(label);
    out->class_name = name ? name : json_string_value(label);
}

static pnb_status read_json(pnb_sample *out, const char *bytes, size_t n_bytes, pnb_error *err)
{
    pnb__sample_memory *m = out->memory;
    m->json = pnb__strndup(bytes, n_bytes);
    if (!m->json)
        return pnb__fail_nomem(err, n_bytes);
    pnb_status status = pnb__json_load_bytes(&m->root, bytes, n_bytes, "record", err);
    if (status != PNB_OK)
        return status;
    if (!json_is_object(m->root))
        return pnb__fail(err, PNB_FORMAT, "the record is not a JSON object");
    out->json = m->json;
    out->name = json_string_value(json_object_get(m->root, "name"));
    out->group = json_string_value(json_object_get(m->root, "group"));
    out->subgroup = json_string_value(json_object_get(m->root, "subgroup"));
    read_class(out, m->root);
    return list_texts(m, &out->n_texts, err);
}

/* ---- plain text ---------------------------------------------------------------------------- */

/* One caption a line, in a copy; blank lines are passed over. A line ends at \n, \r or both. */
static pnb_status read_lines(pnb_sample *out, const char *bytes, size_t n_bytes, pnb_error *err)
{
    pnb__sample_memory *m = out->memory;
    size_t n = 0, n_lines = 1;
    if (n_bytes > MAX_TEXT_BYTES)
        return pnb__fail(err, PNB_LIMIT, "a caption file of %zu bytes", n_bytes);
    if (!pnb__utf8_valid(bytes, n_bytes) || (n_bytes && memchr(bytes, 0, n_bytes)))
        return pnb__fail(err, PNB_FORMAT, "the caption is not valid UTF-8 text");
    for (size_t i = 0; i < n_bytes; i++)
        n_lines += bytes[i] == '\n' || bytes[i] == '\r';
    m->text = pnb__strndup(bytes ? bytes : "", n_bytes);
    if (!m->text)
        return pnb__fail_nomem(err, n_bytes);
    pnb_status status = reserve(m, n_lines, err);
    if (status != PNB_OK)
        return status;
    for (char *p = m->text; *p;) {
        size_t length = strcspn(p, "\r\n");
        char *next = p + length + (p[length] != 0);
        p[length] = 0;
        if (p[strspn(p, " \t")]) {
            m->texts[n] = p;
            m->levels[n++] = -1;
        }
        p = next;
    }
    out->n_texts = n;
    return PNB_OK;
}

/* ---- where the text lies ------------------------------------------------------------------- */

/* Bytes of a text: a span of the map, or a file. */
typedef struct text_bytes {
    const char *data;
    size_t n;
    char *file; /* owned contents of a file, NULL for bytes of the map */
} text_bytes;

static pnb_status find_bytes(const pnb_dataset *ds, const pnb__source *source,
                             const pnb__span *span, size_t path, text_bytes *out, pnb_error *err)
{
    *out = (text_bytes){0};
    if (span->is_set) {
        out->data = (const char *)source->map.data + span->offset;
        out->n = span->size;
        return PNB_OK;
    }
    pnb_status status =
        pnb__read_file(ds->texts.data + path, MAX_TEXT_BYTES, &out->file, &out->n, err);
    out->data = out->file;
    return status;
}

pnb_status pnb__record_image(const pnb__source *source, const pnb__entry *e, pnb_sample *out,
                             pnb_error *err)
{
    pnb__buf *image = &((pnb__sample_memory *)out->memory)->image;
    bool found = false;
    pnb_status status = pnb__table_image(source->table, e->row, image, &found, err);
    if (status == PNB_OK && found) {
        out->image_bytes = (const unsigned char *)image->data;
        out->n_image_bytes = image->size;
    }
    return status;
}

/* The picture named by a line of JSON, relative to the folder of the file. */
static pnb_status find_line_image(const pnb_dataset *ds, const pnb__entry *e, pnb_sample *out,
                                  pnb_error *err)
{
    static const char *const KEYS[] = {"image", "filepath", "file_name", "path"};
    pnb__sample_memory *m = out->memory;
    const char *name = NULL;
    for (size_t k = 0; k < PNB_COUNT(KEYS) && !name; k++)
        name = json_string_value(json_object_get(m->root, KEYS[k]));
    if (!name || !*name)
        return pnb__fail(err, PNB_FORMAT,
                         "no picture: wanted \"image\", \"filepath\", \"file_name\" or \"path\"");
    char *dir = pnb__path_dir(ds->sources[e->source].path);
    m->path = !dir                                            ? NULL
              : name[0] == '/' || strstr(name, "://") != NULL ? pnb__strdup(name)
                                                              : pnb__path_join(dir, name);
    pnb__free(dir);
    out->image_path = m->path;
    const char *key = json_string_value(json_object_get(m->root, "id"));
    out->key = key ? key : name;
    return m->path ? PNB_OK : pnb__fail_nomem(err, strlen(name));
}

static pnb_status read_texts(const pnb_dataset *ds, const pnb__entry *e, pnb_sample *out,
                             pnb_error *err)
{
    const pnb__source *source = &ds->sources[e->source];
    text_bytes json = {0}, txt = {0};
    pnb_status status = PNB_OK;
    if (e->json.is_set || e->json_path != PNB__NO_TEXT) {
        PNB_TRY(find_bytes(ds, source, &e->json, e->json_path, &json, err));
        PNB_TRY(read_json(out, json.data, json.n, err));
    }
    if (e->record != PNB__NO_TEXT) {
        const char *record = ds->texts.data + e->record;
        PNB_TRY(read_json(out, record, strlen(record), err));
    }
    if (out->n_texts == 0 && (e->txt.is_set || e->txt_path != PNB__NO_TEXT)) {
        PNB_TRY(find_bytes(ds, source, &e->txt, e->txt_path, &txt, err));
        PNB_TRY(read_lines(out, txt.data, txt.n, err));
    }
    if (out->n_texts == 0 && e->text != PNB__NO_TEXT) {
        const char *text = ds->texts.data + e->text;
        PNB_TRY(read_lines(out, text, strlen(text), err));
    }
done:
    pnb__free(json.file);
    pnb__free(txt.file);
    return status;
}

/* A text or a list of texts under the key that was asked for, or the table's column. */
static pnb_status read_negatives(const pnb_dataset *ds, const pnb__entry *e, pnb_sample *out,
                                 pnb_error *err)
{
    pnb__sample_memory *m = out->memory;
    const char *key = ds->opts.negatives_key;
    json_t *value = key != NULL && m->root != NULL ? json_object_get(m->root, key) : NULL;
    bool is_list = json_is_array(value), is_absent = value == NULL || json_is_null(value);
    size_t n = is_list ? json_array_size(value) : 1;
    if (key == NULL || (is_absent && e->negative == PNB__NO_TEXT))
        return PNB_OK;
    if (n > MAX_TEXTS)
        return pnb__fail(err, PNB_LIMIT, "%zu texts under \"%s\", at most %d are read", n, key,
                         (int)MAX_TEXTS);
    if (PNB_ALLOC(m->negatives, n + 1, err) != PNB_OK)
        return PNB_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = is_list ? json_array_get(value, i) : value;
        const char *text = is_absent ? ds->texts.data + e->negative : json_string_value(item);
        if (text == NULL || text[0] == '\0')
            return pnb__fail(err, PNB_FORMAT, "\"%s\" is neither a text nor a list of texts", key);
        m->negatives[i] = text;
    }
    out->negatives = m->negatives;
    out->n_negatives = n;
    return PNB_OK;
}

pnb_status pnb__record_read(const pnb_dataset *ds, const pnb__entry *e, pnb_sample *out,
                            pnb_error *err)
{
    pnb_status status = PNB_OK;
    pnb__sample_memory *m = pnb__alloc_zero(1, sizeof *m);
    if (!m)
        return pnb__fail_nomem(err, sizeof *m);
    out->memory = m;
    out->key = ds->texts.data + e->key;
    if (e->image_path != PNB__NO_TEXT)
        out->image_path = ds->texts.data + e->image_path;
    out->label = e->label;
    if (e->label >= 0 && (size_t)e->label < ds->n_classes)
        out->class_name = ds->classes[e->label];
    else if (e->class_name != PNB__NO_TEXT)
        out->class_name = ds->texts.data + e->class_name;
    PNB_TRY(read_texts(ds, e, out, err));
    PNB_TRY(read_negatives(ds, e, out, err));
    if (ds->sources[e->source].kind == PNB_DATASET_JSONL)
        PNB_TRY(find_line_image(ds, e, out, err));
    if (out->n_texts == 0 && !ds->opts.allow_no_caption) {
        status = pnb__fail(err, PNB_FORMAT,
                           "no caption: wanted \"captions\", \"caption\", \"text\" or "
                           "\"sentences\" in the record, or a text file");
        goto done;
    }
    out->texts = m->texts;
    out->levels = m->levels;
done:
    if (status != PNB_OK)
        pnb_sample_reset(out);
    return status;
}
