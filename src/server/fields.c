/* Bodies against tables of fields, and tables of fields as JSON schema.
 *
 * A field that no table has is refused and the nearest one named: a limit with a slip in its name
 * would be no limit, and nobody would know. */
#include "server/fields.h"

#include <math.h>
#include <string.h>

enum { MAX_FIELDS = 32 };

const json_t *pnb__field_of(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    return json_is_null(value) ? NULL : value;
}

double pnb__field_real(const json_t *body, const char *name, double fallback)
{
    const json_t *value = pnb__field_of(body, name);
    return value != NULL ? json_number_value(value) : fallback;
}

size_t pnb__field_size(const json_t *body, const char *name, size_t fallback)
{
    const json_t *value = pnb__field_of(body, name);
    return value != NULL ? (size_t)json_integer_value(value) : fallback;
}

bool pnb__field_flag(const json_t *body, const char *name, bool fallback)
{
    const json_t *value = pnb__field_of(body, name);
    return value != NULL ? json_is_true(value) : fallback;
}

const char *pnb__field_text(const json_t *body, const char *name, const char *fallback)
{
    const json_t *value = pnb__field_of(body, name);
    return value != NULL ? json_string_value(value) : fallback;
}

const char *pnb__json_kind(const json_t *value)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null"};
    return value == NULL ? "nothing" : kinds[json_typeof(value)];
}

/* ---- checking ---- */

static bool has_choice(const char *choices, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = choices; *at != '\0'; at += *at == '|') {
        size_t n = strcspn(at, "|");
        if (n == length && memcmp(at, word, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static bool is_of_kind(const pnb__field *f, const json_t *value)
{
    switch (f->kind) {
    case PNB__VALUE_TEXT:
        return json_is_string(value);
    case PNB__VALUE_INT:
        return json_is_integer(value);
    case PNB__VALUE_REAL:
        return json_is_number(value);
    case PNB__VALUE_FLAG:
        return json_is_boolean(value);
    case PNB__VALUE_LIST:
        return json_is_array(value);
    default:
        return true;
    }
}

static const char *word_of(pnb__value_kind kind)
{
    static const char *const words[] = {"a string",      "a whole number", "a number",
                                        "true or false", "an array",       "something"};
    return words[kind];
}

static pnb_status check_value(const pnb__field *f, const json_t *value, pnb_error *err)
{
    bool has_range = f->min < f->max;
    double number = json_number_value(value);
    if (!is_of_kind(f, value))
        return pnb__fail(err, PNB_FORMAT, "'%s' is %s; wanted is %s", f->name,
                         pnb__json_kind(value), word_of(f->kind));
    if (json_is_number(value) && has_range && !(number >= f->min && number <= f->max))
        return pnb__fail(err, PNB_ARG, "'%s' is %g; wanted is %s from %g to %g", f->name, number,
                         word_of(f->kind), f->min, f->max);
    if (f->choices != NULL && !has_choice(f->choices, json_string_value(value)))
        return pnb__fail(err, PNB_ARG, "'%s' is '%.80s'; wanted is one of %s", f->name,
                         json_string_value(value), f->choices);
    return PNB_OK;
}

static pnb_status check_fields(const pnb__field *fields, size_t n, json_t *body, pnb_error *err)
{
    const char *names[MAX_FIELDS];
    pnb__jobj object = pnb__json_object(body, "the request", err);
    if (object.status != PNB_OK)
        return object.status;
    for (size_t i = 0; i < n; i++)
        names[i] = fields[i].name;
    pnb_status status = pnb__json_check_keys(&object, names, n, err);
    for (size_t i = 0; i < n && status == PNB_OK; i++) {
        const json_t *value = pnb__field_of(body, fields[i].name);
        if (value != NULL)
            status = check_value(&fields[i], value, err);
    }
    for (size_t i = 0; i < n && status == PNB_OK; i++)
        if (fields[i].required && pnb__field_of(body, fields[i].name) == NULL)
            status = pnb__fail(err, PNB_FORMAT, "'%s' is missing", fields[i].name);
    return status;
}

pnb_status pnb__fields_read(json_t **out, const pnb__field *fields, size_t n, const char *body,
                            size_t n_body, pnb_error *err)
{
    json_t *value = NULL;
    if (n_body == 0)
        return pnb__fail(err, PNB_FORMAT, "the request has no body; a JSON object is wanted");
    pnb_status status = pnb__json_load_bytes(&value, body, n_body, "the request", err);
    if (status == PNB_OK)
        status = check_fields(fields, n, value, err);
    if (status == PNB_OK)
        *out = value;
    else
        json_decref(value);
    return status;
}

/* ---- describing ---- */

static void put_choices(const char *choices, pnb__buf *b)
{
    char word[64];
    pnb__buf_puts(b, ",\"enum\":[");
    for (const char *at = choices; *at != '\0'; at += *at == '|') {
        size_t n = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (at != choices)
            pnb__buf_putc(b, ',');
        pnb__json_append_string(b, word);
        at += n;
    }
    pnb__buf_putc(b, ']');
}

static void put_field(const pnb__field *f, pnb__buf *b)
{
    static const char *const types[] = {"string", "integer", "number", "boolean", "array", NULL};
    pnb__json_append_string(b, f->name);
    pnb__json_put(b, ":{\"description\":%s", f->about);
    if (f->schema != NULL)
        pnb__buf_printf(b, ",%.*s", (int)strlen(f->schema) - 2, f->schema + 1);
    else if (types[f->kind] != NULL)
        pnb__json_put(b, ",\"type\":%s", types[f->kind]);
    if (f->choices != NULL)
        put_choices(f->choices, b);
    if (f->min < f->max)
        pnb__json_put(b, ",\"minimum\":%f,\"maximum\":%f", f->min, f->max);
    pnb__buf_putc(b, '}');
}

void pnb__fields_schema(const pnb__field *fields, size_t n, pnb__buf *b)
{
    size_t n_required = 0;
    pnb__buf_puts(b, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (size_t i = 0; i < n; i++) {
        pnb__buf_puts(b, i > 0 ? "," : "");
        put_field(&fields[i], b);
    }
    pnb__buf_putc(b, '}');
    for (size_t i = 0; i < n; i++)
        if (fields[i].required) {
            pnb__buf_puts(b, n_required++ == 0 ? ",\"required\":[" : ",");
            pnb__json_append_string(b, fields[i].name);
        }
    pnb__buf_puts(b, n_required > 0 ? "]}" : "}");
}
