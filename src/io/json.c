/* JSON reading through jansson behind limits, and typed access with one sticky error.
 *
 * jansson checks syntax, UTF-8, duplicate keys and number ranges; size and nesting are checked here
 * before it allocates anything. Text is made here too, because jansson prints 1e-06 as
 * 9.9999999999999995e-07: numbers get the fewest digits that read back as the same double. */
#include "io/json.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deepest nesting of brackets outside strings; no other syntax is looked at. */
static int nesting_of(const char *bytes, size_t n)
{
    int depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        char c = bytes[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > deepest)
                deepest = depth;
            if (depth > PNB__JSON_MAX_DEPTH)
                break;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

pnb_status pnb__json_load_bytes(json_t **out, const char *bytes, size_t n, const char *where,
                                pnb_error *err)
{
    json_error_t found;
    if (n > 0 && bytes == NULL)
        return pnb__fail(err, PNB_ARG, "%s: no bytes", where);
    if (nesting_of(bytes, n) > PNB__JSON_MAX_DEPTH)
        return pnb__fail(err, PNB_LIMIT, "%s: JSON nested deeper than %d levels", where,
                         PNB__JSON_MAX_DEPTH);
    json_t *value = json_loadb(n > 0 ? bytes : "", n, JSON_REJECT_DUPLICATES, &found);
    if (value == NULL) {
        /* jansson names every fault of the text; it gives up without a word when memory ends */
        if (found.text[0] == '\0' || json_error_code(&found) == json_error_out_of_memory)
            return pnb__fail_nomem(err, n);
        return pnb__fail(err, PNB_FORMAT, "%s: line %d, column %d: %s", where, found.line,
                         found.column, found.text);
    }
    *out = value;
    return PNB_OK;
}

pnb_status pnb__json_load_file(json_t **out, const char *path, size_t max_bytes, pnb_error *err)
{
    char *bytes = NULL;
    size_t n = 0;
    pnb_status status =
        pnb__read_file(path, max_bytes > 0 ? max_bytes : PNB__JSON_MAX_BYTES, &bytes, &n, err);
    if (status != PNB_OK)
        return status;
    status = pnb__json_load_bytes(out, bytes, n, path, err);
    pnb__free(bytes);
    return status;
}

/* ---- writing ---- */

void pnb__json_append_string(pnb__buf *b, const char *s)
{
    size_t start = 0, i = 0;
    pnb__buf_putc(b, '"');
    for (; s[i] != '\0'; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        pnb__buf_append(b, s + start, i - start);
        start = i + 1;
        if (c == '"' || c == '\\')
            pnb__buf_printf(b, "\\%c", c);
        else if (c == '\n')
            pnb__buf_puts(b, "\\n");
        else if (c == '\t')
            pnb__buf_puts(b, "\\t");
        else if (c == '\r')
            pnb__buf_puts(b, "\\r");
        else
            pnb__buf_printf(b, "\\u%04x", c);
    }
    pnb__buf_append(b, s + start, i - start);
    pnb__buf_putc(b, '"');
}

void pnb__json_append_double(pnb__buf *b, double x)
{
    char text[40];
    if (!isfinite(x)) {
        pnb__buf_puts(b, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    for (char *p = text; *p != '\0'; p++) {
        if (*p == ',') /* a host program may have set a locale with decimal commas */
            *p = '.';
    }
    pnb__buf_puts(b, text);
    if (strpbrk(text, ".e") == NULL)
        pnb__buf_puts(b, ".0"); /* stays a real number when read back */
}

typedef struct json_style {
    pnb__buf *buf;
    bool is_pretty; /* indented by 2, keys sorted */
} json_style;

static void append_json(const json_style *style, const json_t *value, int depth);

static void append_break(const json_style *style, int depth)
{
    if (style->is_pretty)
        pnb__buf_printf(style->buf, "\n%*s", 2 * depth, "");
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void append_array(const json_style *style, const json_t *value, int depth)
{
    size_t n = json_array_size(value);
    pnb__buf_putc(style->buf, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            pnb__buf_puts(style->buf, style->is_pretty ? "," : ", ");
        append_break(style, depth + 1);
        append_json(style, json_array_get(value, i), depth + 1);
    }
    if (n > 0)
        append_break(style, depth);
    pnb__buf_putc(style->buf, ']');
}

static void append_object(const json_style *style, const json_t *value, int depth)
{
    size_t n = json_object_size(value), i = 0;
    const char **keys = pnb__alloc_array(n > 0 ? n : 1, sizeof(*keys));
    if (keys == NULL) {
        style->buf->failed = true;
        return;
    }
    for (void *it = json_object_iter((json_t *)(uintptr_t)value); it != NULL && i < n;
         it = json_object_iter_next((json_t *)(uintptr_t)value, it))
        keys[i++] = json_object_iter_key(it);
    if (style->is_pretty)
        qsort(keys, n, sizeof(*keys), compare_keys);
    pnb__buf_putc(style->buf, '{');
    for (i = 0; i < n; i++) {
        if (i > 0)
            pnb__buf_puts(style->buf, style->is_pretty ? "," : ", ");
        append_break(style, depth + 1);
        pnb__json_append_string(style->buf, keys[i]);
        pnb__buf_puts(style->buf, ": ");
        append_json(style, json_object_get(value, keys[i]), depth + 1);
    }
    if (n > 0)
        append_break(style, depth);
    pnb__buf_putc(style->buf, '}');
    pnb__free(keys);
}

static void append_json(const json_style *style, const json_t *value, int depth)
{
    if (depth > PNB__JSON_MAX_DEPTH) {
        style->buf->failed = true;
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        append_object(style, value, depth);
        break;
    case JSON_ARRAY:
        append_array(style, value, depth);
        break;
    case JSON_STRING:
        pnb__json_append_string(style->buf, json_string_value(value));
        break;
    case JSON_INTEGER:
        pnb__buf_printf(style->buf, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        pnb__json_append_double(style->buf, json_real_value(value));
        break;
    case JSON_TRUE:
        pnb__buf_puts(style->buf, "true");
        break;
    case JSON_FALSE:
        pnb__buf_puts(style->buf, "false");
        break;
    case JSON_NULL:
    default:
        pnb__buf_puts(style->buf, "null");
        break;
    }
}

void pnb__json_append_value(pnb__buf *b, const json_t *value)
{
    append_json(&(json_style){b, false}, value, 0);
}

pnb_status pnb__json_save_file(const json_t *value, const char *path, pnb_error *err)
{
    pnb__buf text = {0};
    append_json(&(json_style){&text, true}, value, 0);
    pnb__buf_putc(&text, '\n');
    pnb_status status = pnb__buf_write(&text, path, err);
    pnb__buf_reset(&text);
    return status;
}

/* ---- typed access ---- */

int pnb__json_small_int(const json_t *value, int otherwise)
{
    json_int_t number = json_integer_value(value);
    return json_is_integer(value) && number >= 0 && number <= INT_MAX ? (int)number : otherwise;
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a fraction";
    case JSON_NULL:
        return "null";
    case JSON_TRUE:
    case JSON_FALSE:
    default:
        return "true or false";
    }
}

pnb__jobj pnb__json_object(json_t *value, const char *where, pnb_error *err)
{
    pnb__jobj o = {value, where, PNB_OK};
    if (!json_is_object(value))
        o.status = pnb__fail(err, PNB_FORMAT, "%s: found %s, wanted an object", where,
                             value != NULL ? type_name(value) : "nothing");
    return o;
}

/* The value to read, NULL when the getter has nothing to do. */
static json_t *present(const pnb__jobj *o, const char *key)
{
    json_t *value = o->status == PNB_OK ? json_object_get(o->obj, key) : NULL;
    return json_is_null(value) ? NULL : value;
}

static void wrong_type(pnb__jobj *o, const char *key, const json_t *value, const char *wanted,
                       pnb_error *err)
{
    o->status = pnb__fail(err, PNB_FORMAT, "%s: %s is %s, wanted %s", o->where, key,
                          type_name(value), wanted);
}

bool pnb__json_has(const pnb__jobj *o, const char *key)
{
    return present(o, key) != NULL;
}

int64_t pnb__json_get_int(pnb__jobj *o, const char *key, int64_t fallback, pnb_error *err)
{
    return pnb__json_get_int_in(o, key, fallback, INT64_MIN, INT64_MAX, err);
}

int64_t pnb__json_get_int_in(pnb__jobj *o, const char *key, int64_t fallback, int64_t low,
                             int64_t high, pnb_error *err)
{
    const json_t *value = present(o, key);
    if (value == NULL)
        return fallback;
    if (!json_is_integer(value)) {
        wrong_type(o, key, value, "an integer", err);
        return fallback;
    }
    int64_t found = (int64_t)json_integer_value(value);
    if (found < low || found > high) {
        o->status = pnb__fail(err, PNB_FORMAT, "%s: %s is %lld, wanted %lld to %lld", o->where, key,
                              (long long)found, (long long)low, (long long)high);
        return fallback;
    }
    return found;
}

double pnb__json_get_double(pnb__jobj *o, const char *key, double fallback, pnb_error *err)
{
    const json_t *value = present(o, key);
    if (value == NULL)
        return fallback;
    if (!json_is_number(value)) {
        wrong_type(o, key, value, "a number", err);
        return fallback;
    }
    return json_number_value(value);
}

bool pnb__json_get_bool(pnb__jobj *o, const char *key, bool fallback, pnb_error *err)
{
    const json_t *value = present(o, key);
    if (value == NULL)
        return fallback;
    if (!json_is_boolean(value)) {
        wrong_type(o, key, value, "true or false", err);
        return fallback;
    }
    return json_is_true(value);
}

const char *pnb__json_get_string(pnb__jobj *o, const char *key, const char *fallback,
                                 pnb_error *err)
{
    const json_t *value = present(o, key);
    if (value == NULL)
        return fallback;
    if (!json_is_string(value)) {
        wrong_type(o, key, value, "a string", err);
        return fallback;
    }
    return json_string_value(value);
}

json_t *pnb__json_get_array(pnb__jobj *o, const char *key, pnb_error *err)
{
    json_t *value = present(o, key);
    if (value != NULL && !json_is_array(value)) {
        wrong_type(o, key, value, "an array", err);
        return NULL;
    }
    return value;
}

json_t *pnb__json_get_object(pnb__jobj *o, const char *key, pnb_error *err)
{
    json_t *value = present(o, key);
    if (value != NULL && !json_is_object(value)) {
        wrong_type(o, key, value, "an object", err);
        return NULL;
    }
    return value;
}

void pnb__json_get_floats(pnb__jobj *o, const char *key, float *out, size_t n, pnb_error *err)
{
    const json_t *value = pnb__json_get_array(o, key, err);
    if (value == NULL)
        return;
    if (json_array_size(value) != n) {
        o->status = pnb__fail(err, PNB_FORMAT, "%s: %s has %zu numbers, wanted %zu", o->where, key,
                              json_array_size(value), n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (!json_is_number(json_array_get(value, i))) {
            wrong_type(o, key, json_array_get(value, i), "numbers only", err);
            return;
        }
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (float)json_number_value(json_array_get(value, i));
}

pnb_status pnb__json_check_keys(pnb__jobj *o, const char *const *allowed, size_t n, pnb_error *err)
{
    if (o->status != PNB_OK)
        return o->status;
    for (void *it = json_object_iter(o->obj); it != NULL; it = json_object_iter_next(o->obj, it)) {
        const char *key = json_object_iter_key(it);
        size_t i = 0;
        while (i < n && strcmp(allowed[i], key) != 0)
            i++;
        if (i < n)
            continue;
        const char *near = pnb__nearest_name(key, allowed, n);
        o->status = pnb__fail(err, PNB_FORMAT, "%s: unknown key \"%.80s\"%s%s%s", o->where, key,
                              near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                              near != NULL ? "\"?" : "");
        return o->status;
    }
    return PNB_OK;
}

enum { WORD_MAX = 64 };

/* Letters that differ only by case, and '-' against '_', count as equal. */
static char folded(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '-' ? '_' : c;
}

/* Levenshtein distance; both words are shorter than WORD_MAX. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX], n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t change = diagonal + (folded(a[i]) != folded(b[j]));
            diagonal = row[j + 1];
            row[j + 1] = PNB_MIN(change, PNB_MIN(row[j], row[j + 1]) + 1);
        }
    }
    return row[n];
}

const char *pnb__nearest_name(const char *word, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t length = strlen(word), best_distance = PNB_MAX((size_t)2, length / 3) + 1;
    for (size_t i = 0; i < n && length < WORD_MAX; i++) {
        if (strlen(names[i]) >= WORD_MAX)
            continue;
        size_t distance = edit_distance(word, names[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}
