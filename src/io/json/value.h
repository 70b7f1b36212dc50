/* JSON values in memory: a tree with reference counts, made by the reader and by commands.
 *
 * Every function has the name, arguments and ownership that jansson gave it: `_new` takes the
 * reference even when it fails, `_get` lends. The names are rewritten below, so that a program may
 * link jansson beside this library. What differs, and why this is not jansson: a failed allocation
 * inside jansson 2.14 corrupts the heap, and its allocator can only be set for the whole process,
 * which is not a library's to set.
 *
 *   - NULL from a function that makes a value means "out of memory" and nothing else: a string that
 *     is not UTF-8 gets U+FFFD in place of the bytes, NaN and infinity are written as null.
 *   - A container remembers: adding NULL to it, or failing to add, leaves it incomplete, and the
 *     writers refuse an incomplete tree as out of memory. A caller that only builds and writes need
 *     not look at any step; one that builds and reads asks json_is_complete first.
 *
 * Reading one tree from several threads is fine; changing it, or its reference count, is not. */
#ifndef PNB_IO_JSON_VALUE_H
#define PNB_IO_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define json_object pnb__jv_object
#define json_array pnb__jv_array
#define json_string pnb__jv_string
#define json_stringn pnb__jv_stringn
#define json_integer pnb__jv_integer
#define json_real pnb__jv_real
#define json_true pnb__jv_true
#define json_false pnb__jv_false
#define json_null pnb__jv_null
#define json_pack pnb__jv_pack
#define json_delete pnb__jv_delete
#define json_copy pnb__jv_copy
#define json_deep_copy pnb__jv_deep_copy
#define json_equal pnb__jv_equal
#define json_is_complete pnb__jv_is_complete
#define json_object_size pnb__jv_object_size
#define json_object_get pnb__jv_object_get
#define json_object_getn pnb__jv_object_getn
#define json_object_set pnb__jv_object_set
#define json_object_set_new pnb__jv_object_set_new
#define json_object_setn_new pnb__jv_object_setn_new
#define json_object_del pnb__jv_object_del
#define json_object_iter pnb__jv_object_iter
#define json_object_iter_next pnb__jv_object_iter_next
#define json_object_iter_key pnb__jv_object_iter_key
#define json_object_iter_value pnb__jv_object_iter_value
#define json_array_size pnb__jv_array_size
#define json_array_get pnb__jv_array_get
#define json_array_append pnb__jv_array_append
#define json_array_append_new pnb__jv_array_append_new
#define json_string_value pnb__jv_string_value
#define json_string_length pnb__jv_string_length
#define json_integer_value pnb__jv_integer_value
#define json_real_value pnb__jv_real_value
#define json_number_value pnb__jv_number_value
#define json_dumps pnb__jv_dumps

typedef enum json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_INTEGER,
    JSON_REAL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
} json_type;

typedef long long json_int_t;

/* What every value begins with. true, false and null are constants and not counted. */
typedef struct json_t {
    json_type type;
    bool is_incomplete; /* a container that misses a part */
    size_t n_refs;
} json_t;

/* ---- making: NULL when out of memory ---- */
json_t *json_object(void);
json_t *json_array(void);
json_t *json_string(const char *text); /* NULL for NULL too */
json_t *json_stringn(const char *text, size_t n);
json_t *json_integer(json_int_t value);
json_t *json_real(double value);
json_t *json_true(void);
json_t *json_false(void);
json_t *json_null(void);
static inline json_t *json_boolean(bool value)
{
    return value ? json_true() : json_false();
}
/* A tree from a pattern: {s:v, ...} and [v, ...] of s (text; s? makes NULL a null), i (int), I
 * (json_int_t), f (double), b (int), n (null, no argument), o (a json_t, taken in every case). */
json_t *json_pack(const char *pattern, ...);
json_t *json_copy(const json_t *value); /* shares the parts */
json_t *json_deep_copy(const json_t *value);

void json_delete(json_t *value); /* json_decref calls it */
static inline json_t *json_incref(json_t *value)
{
    if (value != NULL && value->type < JSON_TRUE)
        value->n_refs++;
    return value;
}
static inline void json_decref(json_t *value)
{
    if (value != NULL && value->type < JSON_TRUE && --value->n_refs == 0)
        json_delete(value);
}

/* ---- asking ---- */
#define json_typeof(value) ((value)->type)
#define json_is_type(value, what) ((value) != NULL && json_typeof(value) == (what))
#define json_is_object(value) json_is_type(value, JSON_OBJECT)
#define json_is_array(value) json_is_type(value, JSON_ARRAY)
#define json_is_string(value) json_is_type(value, JSON_STRING)
#define json_is_integer(value) json_is_type(value, JSON_INTEGER)
#define json_is_real(value) json_is_type(value, JSON_REAL)
#define json_is_true(value) json_is_type(value, JSON_TRUE)
#define json_is_false(value) json_is_type(value, JSON_FALSE)
#define json_is_null(value) json_is_type(value, JSON_NULL)
#define json_is_number(value) (json_is_integer(value) || json_is_real(value))
#define json_is_boolean(value) (json_is_true(value) || json_is_false(value))

const char *json_string_value(const json_t *value); /* NULL for anything but a string */
size_t json_string_length(const json_t *value);     /* bytes; 0 for anything else */
json_int_t json_integer_value(const json_t *value); /* 0 for anything else */
double json_real_value(const json_t *value);
double json_number_value(const json_t *value); /* of an integer or a real */
bool json_equal(const json_t *a, const json_t *b);
/* False for NULL and for a tree that misses a part for want of memory. */
bool json_is_complete(const json_t *value);

/* ---- arrays ---- 0 when it was done, -1 otherwise */
size_t json_array_size(const json_t *array);
json_t *json_array_get(const json_t *array, size_t place);
int json_array_append(json_t *array, json_t *value);
int json_array_append_new(json_t *array, json_t *value);
#define json_array_foreach(array, place, value)                                                    \
    for ((place) = 0;                                                                              \
         (place) < json_array_size(array) && ((value) = json_array_get(array, place)) != NULL;     \
         (place)++)

/* ---- objects: keys stay in the order they were first set ---- */
size_t json_object_size(const json_t *object);
json_t *json_object_get(const json_t *object, const char *key);
json_t *json_object_getn(const json_t *object, const char *key, size_t n);
int json_object_set(json_t *object, const char *key, json_t *value);
int json_object_set_new(json_t *object, const char *key, json_t *value);
int json_object_setn_new(json_t *object, const char *key, size_t n, json_t *value);
int json_object_del(json_t *object, const char *key);
/* Good until a key is added or removed. */
void *json_object_iter(json_t *object);
void *json_object_iter_next(json_t *object, void *iter);
const char *json_object_iter_key(void *iter);
json_t *json_object_iter_value(void *iter);
#define PNB__JV_PASTE(a, b) a##b
#define PNB__JV_NAME(line) PNB__JV_PASTE(json_iter_, line)
#define json_object_foreach(object, key, value)                                                    \
    for (void *PNB__JV_NAME(__LINE__) = json_object_iter(object);                                  \
         PNB__JV_NAME(__LINE__) != NULL &&                                                         \
         ((key) = json_object_iter_key(PNB__JV_NAME(__LINE__))) != NULL &&                         \
         ((value) = json_object_iter_value(PNB__JV_NAME(__LINE__))) != NULL;                       \
         PNB__JV_NAME(__LINE__) = json_object_iter_next(object, PNB__JV_NAME(__LINE__)))

/* ---- text ---- Allocated, NULL when out of memory or the tree is incomplete. Numbers get the
 * fewest digits that read back as the same double, unless a precision is asked for. */
#define JSON_INDENT(n) ((size_t)(n))
#define JSON_COMPACT ((size_t)0x20)
#define JSON_SORT_KEYS ((size_t)0x40)
#define JSON_REAL_PRECISION(n) ((size_t)(n) << 8)
char *json_dumps(const json_t *value, size_t flags);

#endif
