/* JSON objects: entries in the order of their setting, found through a hash table when there are
 * more than a few.
 *
 * Keys come from strangers, who may choose ones that fall together: the hash starts from the
 * object's own address, which differs from run to run, so the order of entries never depends on it
 * but the place in the table does. */
#include <string.h>

#include "base/grow.h"
#include "base/map.h"
#include "io/json/value_internal.h"

enum { FEW = 8 }; /* so many are compared one by one */

json_t *json_object(void)
{
    pnb__jv_object_node *node = pnb__alloc(sizeof *node);
    if (node == NULL)
        return NULL;
    *node = (pnb__jv_object_node){.head = {JSON_OBJECT, false, 1}};
    return &node->head;
}

void pnb__jv_object_clear(pnb__jv_object_node *o)
{
    for (size_t i = 0; i < o->n; i++) {
        pnb__free(o->entries[i].key);
        json_decref(o->entries[i].value);
    }
    pnb__free(o->entries);
    pnb__key_map_reset(&o->places);
}

size_t json_object_size(const json_t *object)
{
    return json_is_object(object) ? ((const pnb__jv_object_node *)object)->n : 0;
}

/* ---- the table ---- */

static uint64_t hash_of(const pnb__jv_object_node *o, const char *key, size_t n)
{
    return pnb__hash_bytes(key, n, (uint64_t)(uintptr_t)o);
}

static bool is_key(const pnb__jv_entry *e, const char *key, size_t n)
{
    return e->n_key == n && memcmp(e->key, key, n) == 0;
}

static bool is_few(const pnb__jv_object_node *o)
{
    return o->n <= FEW;
}

static pnb__jv_entry *find(const pnb__jv_object_node *o, const char *key, size_t n)
{
    size_t place = 0, step = 0;
    if (is_few(o)) {
        while (place < o->n && !is_key(&o->entries[place], key, n))
            place++;
        return place < o->n ? &o->entries[place] : NULL;
    }
    uint64_t hash = hash_of(o, key, n);
    while ((place = pnb__key_map_next(&o->places, hash, &step)) != PNB__NO_KEY &&
           !is_key(&o->entries[place], key, n)) {
    }
    return place != PNB__NO_KEY ? &o->entries[place] : NULL;
}

/* Enters what the table does not know yet, for which it has room. */
static void enter(pnb__jv_object_node *o)
{
    for (size_t i = o->places.n; i < o->n && !is_few(o); i++)
        pnb__key_map_add(&o->places, hash_of(o, o->entries[i].key, o->entries[i].n_key), i, NULL);
}

/* On failure the object is as it was. */
pnb__jv_added pnb__jv_object_add(json_t *object, const char *key, size_t n, json_t *value)
{
    pnb__jv_object_node *o = (pnb__jv_object_node *)object;
    if (find(o, key, n) != NULL)
        return PNB__JV_DUPLICATE;
    char *copy = pnb__alloc(n + 1);
    if (copy == NULL ||
        pnb__key_map_reserve(&o->places, o->n < FEW ? 0 : o->n + 1, NULL) != PNB_OK ||
        PNB_PUSH(o->entries, o->n, NULL, (pnb__jv_entry){copy, n, value}) != PNB_OK) {
        pnb__free(copy);
        return PNB__JV_NO_MEMORY;
    }
    if (n > 0)
        memcpy(copy, key, n);
    copy[n] = '\0';
    enter(o);
    return PNB__JV_ADDED;
}

/* ---- by key ---- */

json_t *json_object_getn(const json_t *object, const char *key, size_t n)
{
    if (!json_is_object(object) || key == NULL)
        return NULL;
    const pnb__jv_object_node *o = (const pnb__jv_object_node *)object;
    const pnb__jv_entry *e = find(o, key, n);
    return e != NULL ? e->value : NULL;
}

json_t *json_object_get(const json_t *object, const char *key)
{
    return key != NULL ? json_object_getn(object, key, strlen(key)) : NULL;
}

/* The key is UTF-8. */
static bool set(pnb__jv_object_node *o, const char *key, size_t n, json_t *value)
{
    pnb__jv_entry *e = find(o, key, n);
    if (e == NULL)
        return pnb__jv_object_add(&o->head, key, n, value) == PNB__JV_ADDED;
    json_decref(e->value);
    e->value = value;
    return true;
}

int json_object_setn_new(json_t *object, const char *key, size_t n, json_t *value)
{
    if (!json_is_object(object) || key == NULL || value == object) {
        json_decref(value);
        return -1;
    }
    pnb__buf clean = {0};
    if (value != NULL && !pnb__utf8_valid(key, n)) {
        pnb__jv_repair(&clean, key, n);
        key = clean.data;
        n = clean.size;
    }
    bool done = value != NULL && !clean.failed && set((pnb__jv_object_node *)object, key, n, value);
    pnb__buf_reset(&clean);
    if (done)
        return 0;
    object->is_incomplete = true;
    json_decref(value);
    return -1;
}

int json_object_set_new(json_t *object, const char *key, json_t *value)
{
    return json_object_setn_new(object, key, key != NULL ? strlen(key) : 0, value);
}

int json_object_set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, json_incref(value));
}

int json_object_del(json_t *object, const char *key)
{
    if (!json_is_object(object) || key == NULL)
        return -1;
    pnb__jv_object_node *o = (pnb__jv_object_node *)object;
    size_t n = strlen(key);
    pnb__jv_entry *e = find(o, key, n);
    if (e == NULL)
        return -1;
    size_t place = (size_t)(e - o->entries);
    pnb__free(e->key);
    json_decref(e->value);
    memmove(e, e + 1, (o->n - place - 1) * sizeof *e);
    o->n--;
    pnb__key_map_clear(&o->places);
    enter(o);
    return 0;
}

/* ---- one after the other ---- */

void *json_object_iter(json_t *object)
{
    return json_object_size(object) > 0 ? ((pnb__jv_object_node *)object)->entries : NULL;
}

void *json_object_iter_next(json_t *object, void *iter)
{
    pnb__jv_object_node *o = (pnb__jv_object_node *)object;
    pnb__jv_entry *next = (pnb__jv_entry *)iter + 1;
    return next < o->entries + o->n ? next : NULL;
}

const char *json_object_iter_key(void *iter)
{
    return iter != NULL ? ((pnb__jv_entry *)iter)->key : NULL;
}

json_t *json_object_iter_value(void *iter)
{
    return iter != NULL ? ((pnb__jv_entry *)iter)->value : NULL;
}
