/* The ids file of an embedding set: one JSON object a line, line i names row i.
 *
 *   {"id": "000123", "path": "train/000123.png", "label": 7}
 *
 * id, path and text are the library's; other fields are kept as they are. An id and a path are any
 * bytes, as names of files are (byte_names.h); the rest is UTF-8. The ids, each followed by
 * a line end, are hashed, and the hash stands in the arrays' metadata: it tells when the two files
 * do not belong together. */
#include <string.h>

#include "io/byte_names.h"
#include "io/json/json.h"
#include "sets/embeddings.h"

#define FLUSH_BYTES ((size_t)64 * 1024)

pnb_status pnb__swap_suffix(char **out, const char *path, const char *suffix, const char *ending,
                            pnb_error *err)
{
    if (!pnb__ends_with(path, suffix) || strlen(path) == strlen(suffix))
        return pnb__fail(err, PNB_ARG, "%s does not end in %s", path, suffix);
    *out = pnb__format("%.*s%s", (int)(strlen(path) - strlen(suffix)), path, ending);
    return *out != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path) + strlen(ending));
}

/* ---- writing ---- */

/* The id of a row; its number where it has none. */
static const char *id_of(const pnb_embeddings *e, size_t row, size_t number, char digits[24])
{
    if (e->ids != NULL && e->ids[row] != NULL)
        return e->ids[row];
    snprintf(digits, 24, "%zu", number);
    return digits;
}

static void append_name(pnb__buf *b, const char *key, const char *value)
{
    pnb__buf_printf(b, "\"%s\": ", key);
    pnb__byte_name_append(b, value);
}

static pnb_status append_text(pnb__buf *b, const char *value, size_t number, pnb_error *err)
{
    if (!pnb__utf8_valid(value, strlen(value)))
        return pnb__fail(err, PNB_ARG, "row %zu: text is not valid UTF-8", number);
    pnb__buf_puts(b, ", \"text\": ");
    pnb__json_append_string(b, value);
    return PNB_OK;
}

static bool is_reserved(const char *key)
{
    return strcmp(key, "id") == 0 || strcmp(key, "path") == 0 || strcmp(key, "text") == 0;
}

static pnb_status append_extra(pnb__buf *b, const char *extra, size_t number, pnb_error *err)
{
    json_t *object = NULL;
    size_t start = b->size;
    pnb_status status = pnb__json_load_bytes(&object, extra, strlen(extra), "extras", err);
    if (status != PNB_OK)
        return status;
    if (!json_is_object(object))
        status = pnb__fail(err, PNB_ARG, "row %zu: extras is not a JSON object", number);
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it)) {
        if (is_reserved(json_object_iter_key(it)))
            continue;
        pnb__buf_puts(b, ", ");
        pnb__json_append_string(b, json_object_iter_key(it));
        pnb__buf_puts(b, ": ");
        pnb__json_append_value(b, json_object_iter_value(it));
    }
    if (!b->failed && b->size > start)
        pnb__byte_names_show(b->data + start, b->size - start);
    json_decref(object);
    return status;
}

pnb_status pnb__embeddings_append_names(pnb__buf *b, const pnb_embeddings *e, size_t row,
                                        size_t number, pnb_error *err)
{
    char digits[24];
    pnb_status status = PNB_OK;
    pnb__buf_putc(b, '{');
    append_name(b, "id", id_of(e, row, number, digits));
    if (e->paths != NULL && e->paths[row] != NULL) {
        pnb__buf_puts(b, ", ");
        append_name(b, "path", e->paths[row]);
    }
    if (e->texts != NULL && e->texts[row] != NULL)
        PNB_TRY(append_text(b, e->texts[row], number, err));
    if (e->extras != NULL && e->extras[row] != NULL)
        PNB_TRY(append_extra(b, e->extras[row], number, err));
done:
    return status;
}

static void hash_id(pnb__sha256 *hash, const pnb_embeddings *e, size_t row, size_t number)
{
    char digits[24];
    const char *id = id_of(e, row, number, digits);
    pnb__sha256_update(hash, id, strlen(id));
    pnb__sha256_update(hash, "\n", 1);
}

void pnb__ids_hash(const pnb_embeddings *e, char hex[65])
{
    pnb__sha256 hash;
    pnb__sha256_init(&hash);
    for (size_t i = 0; i < e->n; i++)
        hash_id(&hash, e, i, i);
    pnb__sha256_hex(&hash, hex);
}

pnb_status pnb__ids_writer_open(pnb__ids_writer *w, const char *path, pnb_error *err)
{
    *w = (pnb__ids_writer){0};
    pnb__sha256_init(&w->hash);
    return pnb__out_open(&w->out, path, err);
}

static pnb_status flush_lines(pnb__ids_writer *w, pnb__buf *lines, pnb_error *err)
{
    if (lines->failed)
        return pnb__fail_nomem(err, lines->size);
    if (lines->size > 0 && fwrite(lines->data, 1, lines->size, w->out.file) != lines->size)
        return pnb__fail_errno(err, "cannot write", w->out.path);
    lines->size = 0;
    return PNB_OK;
}

pnb_status pnb__ids_writer_append(pnb__ids_writer *w, const pnb_embeddings *e, pnb_error *err)
{
    pnb__buf lines = {0};
    pnb_status status;
    for (size_t i = 0; i < e->n; i++) {
        PNB_TRY(pnb__embeddings_append_names(&lines, e, i, w->n, err));
        pnb__buf_puts(&lines, "}\n");
        hash_id(&w->hash, e, i, w->n++);
        if (lines.size >= FLUSH_BYTES)
            PNB_TRY(flush_lines(w, &lines, err));
    }
    status = flush_lines(w, &lines, err);
done:
    pnb__buf_reset(&lines);
    return status;
}

void pnb__ids_writer_abort(pnb__ids_writer *w)
{
    pnb__out_abort(&w->out);
    *w = (pnb__ids_writer){0};
}

/* ---- reading ---- */

/* Fields that are not the library's, as JSON text; the object is changed. */
static pnb_status set_rest(pnb_embeddings *e, size_t row, json_t *object, pnb_error *err)
{
    pnb__buf text = {0};
    json_object_del(object, "id");
    json_object_del(object, "path");
    json_object_del(object, "text");
    if (json_object_size(object) == 0)
        return PNB_OK;
    pnb__json_append_value(&text, object);
    pnb_status status = text.failed ? pnb__fail_nomem(err, text.size)
                                    : pnb_embeddings_set_extra(e, row, text.data, err);
    pnb__buf_reset(&text);
    return status;
}

typedef pnb_status (*set_name_fn)(pnb_embeddings *e, size_t row, const char *name, pnb_error *err);

/* An id or a path: back to the bytes it was. */
static pnb_status set_bytes(pnb_embeddings *e, size_t row, const char *text, set_name_fn set,
                            pnb_error *err)
{
    char *name = text != NULL ? pnb__strdup(text) : NULL;
    if (text != NULL && name == NULL)
        return pnb__fail_nomem(err, strlen(text) + 1);
    if (name != NULL)
        pnb__byte_name_restore(name);
    pnb_status status = set(e, row, name, err);
    pnb__free(name);
    return status;
}

static pnb_status set_id(pnb_embeddings *e, size_t row, pnb__jobj *o, pnb_error *err)
{
    char digits[24];
    if (!json_is_integer(json_object_get(o->obj, "id")))
        return set_bytes(e, row, pnb__json_get_string(o, "id", NULL, err), pnb_embeddings_set_id,
                         err);
    snprintf(digits, sizeof(digits), "%lld", (long long)pnb__json_get_int(o, "id", 0, err));
    return pnb_embeddings_set_id(e, row, digits, err);
}

static pnb_status read_line(pnb_embeddings *e, size_t row, const char *line, size_t n,
                            const char *path, pnb_error *err)
{
    json_t *object = NULL;
    char *where = pnb__format("%s: row %zu", path, row);
    bool is_escaped = memmem(line, n, "\\u", 2) != NULL;
    char *copy = is_escaped ? pnb__alloc(n + 1) : NULL;
    pnb_status status = PNB_OK;
    if (where == NULL || (is_escaped && copy == NULL)) {
        status = pnb__fail_nomem(err, n + 1);
        goto done;
    }
    if (copy != NULL) {
        pnb__byte_names_hide(memcpy(copy, line, n), n);
        line = copy;
    }
    PNB_TRY(pnb__json_load_bytes(&object, line, n, where, err));
    pnb__jobj o = pnb__json_object(object, where, err);
    PNB_TRY(o.status);
    PNB_TRY(set_id(e, row, &o, err));
    PNB_TRY(set_bytes(e, row, pnb__json_get_string(&o, "path", NULL, err), pnb_embeddings_set_path,
                      err));
    PNB_TRY(pnb_embeddings_set_text(e, row, pnb__json_get_string(&o, "text", NULL, err), err));
    PNB_TRY(o.status);
    status = set_rest(e, row, object, err);
done:
    json_decref(object);
    pnb__free(where);
    pnb__free(copy);
    return status;
}

static size_t count_lines(const char *p, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += p[i] == '\n';
    return lines + (n > 0 && p[n - 1] != '\n');
}

pnb_status pnb__ids_load(pnb_embeddings *e, const char *path, pnb_error *err)
{
    pnb__map map;
    pnb_status status = pnb__map_open(&map, path, err);
    if (status != PNB_OK)
        return status;
    const char *p = map.size > 0 ? (const char *)map.data : "", *end = p + map.size;
    size_t n_lines = count_lines(p, map.size);
    if (n_lines != e->n)
        status = pnb__fail(err, PNB_SHAPE, "%s: %zu lines for %zu embeddings; wanted one a row",
                           path, n_lines, e->n);
    for (size_t row = 0; row < e->n && status == PNB_OK; row++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (stop == NULL)
            stop = end;
        status = read_line(e, row, p, (size_t)(stop - p), path, err);
        p = stop + (stop < end);
    }
    pnb__map_close(&map);
    return status;
}
