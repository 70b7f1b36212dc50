/* JSON files, and typed access to an object with one sticky error. The text is read and written by
 * the files of the folder of this name.
 */
#include "io/json/json.h"

#include "io/foreign.h"

#include <limits.h>
#include <string.h>

pnb_status pnb__json_load_file(json_t **out, const char *path, size_t max_bytes, pnb_error *err)
{
    char *bytes = NULL;
    size_t n = 0;
    pnb_status status =
        pnb__read_file(path, max_bytes > 0 ? max_bytes : PNB__JSON_MAX_BYTES, &bytes, &n, err);
    if (status != PNB_OK)
        return status;
    status = pnb__refuse_stand_in(path, bytes, n, err);
    if (status == PNB_OK)
        status = pnb__json_load_bytes(out, bytes, n, path, err);
    pnb__free(bytes);
    return status;
}

/* ---- typed access ---- */

int pnb__json_small_int(const json_t *value, int otherwise)
{
    json_int_t number = json_integer_value(value);
    return json_is_integer(value) && number >= 0 && number <= INT_MAX ? (int)number : otherwise;
}

pnb_status pnb__json_check_id(const json_t *entry, const char *key, bool is_number,
                              const char *path, const char *list, size_t i, pnb_error *err)
{
    const json_t *value = json_object_get(entry, key);
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        return PNB_OK;
    if (json_is_string(value) && !is_number)
        return PNB_OK;
    return pnb__fail(err, PNB_FORMAT, "%s: %s[%zu] needs a whole number from 0%s as \"%s\"", path,
                     list, i, is_number ? "" : " or a text", key);
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

void pnb__json_get_text(pnb__jobj *o, const char *key, char *out, size_t size, pnb_error *err)
{
    const char *text = pnb__json_get_string(o, key, "", err);
    if (o->status == PNB_OK && strlen(text) >= size)
        o->status = pnb__fail(err, PNB_FORMAT, "%s: %s of %zu bytes, at most %zu", o->where, key,
                              strlen(text), size - 1);
    if (o->status == PNB_OK)
        memcpy(out, text, strlen(text) + 1);
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
