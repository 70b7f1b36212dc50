/* JSON values but for objects: leaves, arrays, copies, comparison, json_pack.
 *
 * A leaf is one allocation, a string included. true, false and null are constants. */
#include <string.h>

#include "base/grow.h"
#include "io/json/value_internal.h"

static const json_t constants[] = {
    {JSON_TRUE, false, 1}, {JSON_FALSE, false, 1}, {JSON_NULL, false, 1}};

/* ---- leaves ---- */

json_t *json_true(void)
{
    return (json_t *)(uintptr_t)&constants[0];
}

json_t *json_false(void)
{
    return (json_t *)(uintptr_t)&constants[1];
}

json_t *json_null(void)
{
    return (json_t *)(uintptr_t)&constants[2];
}

json_t *json_integer(json_int_t value)
{
    pnb__jv_integer_node *node = pnb__alloc(sizeof *node);
    if (node == NULL)
        return NULL;
    *node = (pnb__jv_integer_node){{JSON_INTEGER, false, 1}, value};
    return &node->head;
}

json_t *json_real(double value)
{
    pnb__jv_real_node *node = pnb__alloc(sizeof *node);
    if (node == NULL)
        return NULL;
    *node = (pnb__jv_real_node){{JSON_REAL, false, 1}, value};
    return &node->head;
}

json_t *pnb__jv_utf8(const char *text, size_t n)
{
    size_t bytes;
    pnb__jv_string_node *node = NULL;
    if (!pnb__add_overflows(n, sizeof *node + 1, &bytes))
        node = pnb__alloc(bytes);
    if (node == NULL)
        return NULL;
    node->head = (json_t){JSON_STRING, false, 1};
    node->n = n;
    if (n > 0)
        memcpy(node->text, text, n);
    node->text[n] = '\0';
    return &node->head;
}

void pnb__jv_repair(pnb__buf *out, const char *text, size_t n)
{
    while (n > 0) {
        uint32_t code = 0;
        size_t length = pnb__utf8_decode(text, n, &code);
        pnb__buf_append(out, length > 0 ? text : "\xEF\xBF\xBD", length > 0 ? length : 3);
        length = PNB_MAX(length, (size_t)1);
        text += length;
        n -= length;
    }
}

json_t *json_stringn(const char *text, size_t n)
{
    if (text == NULL)
        return NULL;
    if (pnb__utf8_valid(text, n))
        return pnb__jv_utf8(text, n);
    pnb__buf clean = {0};
    pnb__jv_repair(&clean, text, n);
    json_t *value = clean.failed ? NULL : pnb__jv_utf8(clean.data, clean.size);
    pnb__buf_reset(&clean);
    return value;
}

json_t *json_string(const char *text)
{
    return text != NULL ? json_stringn(text, strlen(text)) : NULL;
}

const char *json_string_value(const json_t *value)
{
    return json_is_string(value) ? ((const pnb__jv_string_node *)value)->text : NULL;
}

size_t json_string_length(const json_t *value)
{
    return json_is_string(value) ? ((const pnb__jv_string_node *)value)->n : 0;
}

json_int_t json_integer_value(const json_t *value)
{
    return json_is_integer(value) ? ((const pnb__jv_integer_node *)value)->value : 0;
}

double json_real_value(const json_t *value)
{
    return json_is_real(value) ? ((const pnb__jv_real_node *)value)->value : 0.0;
}

double json_number_value(const json_t *value)
{
    return json_is_integer(value) ? (double)json_integer_value(value) : json_real_value(value);
}

/* ---- arrays ---- */

json_t *json_array(void)
{
    pnb__jv_array_node *node = pnb__alloc(sizeof *node);
    if (node == NULL)
        return NULL;
    *node = (pnb__jv_array_node){.head = {JSON_ARRAY, false, 1}};
    return &node->head;
}

size_t json_array_size(const json_t *array)
{
    return json_is_array(array) ? ((const pnb__jv_array_node *)array)->n : 0;
}

json_t *json_array_get(const json_t *array, size_t place)
{
    return place < json_array_size(array) ? ((const pnb__jv_array_node *)array)->items[place]
                                          : NULL;
}

int json_array_append_new(json_t *array, json_t *value)
{
    if (!json_is_array(array) || value == array) {
        json_decref(value);
        return -1;
    }
    pnb__jv_array_node *node = (pnb__jv_array_node *)array;
    if (value == NULL ||
        pnb__grow_one(&node->items, node->n, sizeof *node->items, NULL) != PNB_OK) {
        array->is_incomplete = true;
        json_decref(value);
        return -1;
    }
    node->items[node->n++] = value;
    return 0;
}

int json_array_append(json_t *array, json_t *value)
{
    return json_array_append_new(array, json_incref(value));
}

/* ---- whole trees ---- */

void json_delete(json_t *value)
{
    if (json_is_object(value)) {
        pnb__jv_object_clear((pnb__jv_object_node *)value);
    } else if (json_is_array(value)) {
        pnb__jv_array_node *node = (pnb__jv_array_node *)value;
        for (size_t i = 0; i < node->n; i++)
            json_decref(node->items[i]);
        pnb__free(node->items);
    }
    pnb__free(value);
}

bool json_is_complete(const json_t *value)
{
    if (value == NULL || value->is_incomplete)
        return false;
    bool complete = true;
    for (size_t i = 0; complete && i < json_array_size(value); i++)
        complete = json_is_complete(json_array_get(value, i));
    for (size_t i = 0; complete && i < json_object_size(value); i++)
        complete = json_is_complete(((const pnb__jv_object_node *)value)->entries[i].value);
    return complete;
}

/* With `deep` the parts are copied too. What could not be copied leaves the copy incomplete. */
static json_t *copy_array(const json_t *value, bool deep)
{
    json_t *copy = json_array();
    for (size_t i = 0; copy != NULL && i < json_array_size(value); i++) {
        json_t *item = json_array_get(value, i);
        json_array_append_new(copy, deep ? json_deep_copy(item) : json_incref(item));
    }
    return copy;
}

static json_t *copy_object(const json_t *value, bool deep)
{
    const pnb__jv_object_node *node = (const pnb__jv_object_node *)value;
    json_t *copy = json_object();
    for (size_t i = 0; copy != NULL && i < node->n; i++) {
        const pnb__jv_entry *e = &node->entries[i];
        json_object_setn_new(copy, e->key, e->n_key,
                             deep ? json_deep_copy(e->value) : json_incref(e->value));
    }
    return copy;
}

static json_t *copy_any(const json_t *value, bool deep)
{
    json_t *copy = NULL;
    if (value == NULL || value->is_incomplete)
        return NULL;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        copy = copy_object(value, deep);
        break;
    case JSON_ARRAY:
        copy = copy_array(value, deep);
        break;
    case JSON_STRING:
        return pnb__jv_utf8(json_string_value(value), json_string_length(value));
    case JSON_INTEGER:
        return json_integer(json_integer_value(value));
    case JSON_REAL:
        return json_real(json_real_value(value));
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
    default:
        return (json_t *)(uintptr_t)value;
    }
    if (copy == NULL || !copy->is_incomplete)
        return copy;
    json_decref(copy);
    return NULL;
}

json_t *json_copy(const json_t *value)
{
    return copy_any(value, false);
}

json_t *json_deep_copy(const json_t *value)
{
    return copy_any(value, true);
}

static bool equal_objects(const json_t *a, const json_t *b)
{
    const pnb__jv_object_node *node = (const pnb__jv_object_node *)a;
    if (json_object_size(a) != json_object_size(b))
        return false;
    for (size_t i = 0; i < node->n; i++) {
        const pnb__jv_entry *e = &node->entries[i];
        if (!json_equal(e->value, json_object_getn(b, e->key, e->n_key)))
            return false;
    }
    return true;
}

bool json_equal(const json_t *a, const json_t *b)
{
    if (a == NULL || b == NULL || json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_object(a))
        return equal_objects(a, b);
    if (json_is_string(a))
        return json_string_length(a) == json_string_length(b) &&
               memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0;
    if (json_is_integer(a))
        return json_integer_value(a) == json_integer_value(b);
    if (json_is_real(a))
        return json_real_value(a) == json_real_value(b);
    bool same = json_array_size(a) == json_array_size(b);
    for (size_t i = 0; same && i < json_array_size(a); i++)
        same = json_equal(json_array_get(a, i), json_array_get(b, i));
    return same;
}

/* ---- patterns ---- */

typedef struct packer {
    const char *at;
    va_list args;
    bool failed; /* the rest is still read, so that what `o` hands over is released */
} packer;

static char next_letter(packer *p)
{
    while (*p->at == ' ' || *p->at == ',' || *p->at == ':')
        p->at++;
    return *p->at != '\0' ? *p->at++ : '\0';
}

static json_t *pack_text(packer *p)
{
    const char *text = va_arg(p->args, const char *);
    bool may_be_null = *p->at == '?';
    p->at += may_be_null;
    return text == NULL && may_be_null ? json_null() : json_string(text);
}

static json_t *pack_value(packer *p, char letter);

static json_t *pack_container(packer *p, bool is_object)
{
    json_t *made = is_object ? json_object() : json_array();
    for (;;) {
        char letter = next_letter(p);
        if (letter == '\0' || letter == '}' || letter == ']')
            break;
        const char *key = is_object ? va_arg(p->args, const char *) : NULL;
        json_t *value = pack_value(p, is_object ? next_letter(p) : letter);
        if ((is_object ? json_object_set_new(made, key, value)
                       : json_array_append_new(made, value)) != 0)
            p->failed = true;
    }
    return made;
}

static json_t *pack_value(packer *p, char letter)
{
    switch (letter) {
    case '{':
    case '[':
        return pack_container(p, letter == '{');
    case 's':
        return pack_text(p);
    case 'i':
        return json_integer(va_arg(p->args, int));
    case 'I':
        return json_integer(va_arg(p->args, json_int_t));
    case 'f':
        return json_real(va_arg(p->args, double));
    case 'b':
        return json_boolean(va_arg(p->args, int) != 0);
    case 'n':
        return json_null();
    case 'o':
        return va_arg(p->args, json_t *);
    default: /* a pattern of ours that is wrong; found by the first test that runs it */
        p->failed = true;
        return NULL;
    }
}

json_t *json_pack(const char *pattern, ...)
{
    packer p = {.at = pattern};
    va_start(p.args, pattern);
    json_t *made = pack_value(&p, next_letter(&p));
    va_end(p.args);
    if (!p.failed)
        return made;
    json_decref(made);
    return NULL;
}
