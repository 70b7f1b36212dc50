/* How values lie in memory; for the files of this folder alone. */
#ifndef PNB_IO_JSON_VALUE_INTERNAL_H
#define PNB_IO_JSON_VALUE_INTERNAL_H

#include "base/map.h"
#include "io/json/value.h"

typedef struct pnb__jv_array_node {
    json_t head;
    size_t n;
    json_t **items;
} pnb__jv_array_node;

typedef struct pnb__jv_entry {
    char *key; /* n_key bytes and a zero */
    size_t n_key;
    json_t *value;
} pnb__jv_entry;

typedef struct pnb__jv_object_node {
    json_t head;
    size_t n;
    pnb__jv_entry *entries; /* in the order of their first setting */
    pnb__key_map places;    /* of entries by key; empty while there are few */
} pnb__jv_object_node;

typedef struct pnb__jv_string_node {
    json_t head;
    size_t n;
    char text[]; /* n bytes and a zero */
} pnb__jv_string_node;

typedef struct pnb__jv_integer_node {
    json_t head;
    json_int_t value;
} pnb__jv_integer_node;

typedef struct pnb__jv_real_node {
    json_t head;
    double value;
} pnb__jv_real_node;

/* A string known to be UTF-8. */
json_t *pnb__jv_utf8(const char *text, size_t n);
/* The bytes with U+FFFD for each one that is not UTF-8. */
void pnb__jv_repair(pnb__buf *out, const char *text, size_t n);

typedef enum pnb__jv_added { PNB__JV_ADDED, PNB__JV_DUPLICATE, PNB__JV_NO_MEMORY } pnb__jv_added;
/* Adds a key (UTF-8) that may not be there yet; the value is taken when it was added. */
pnb__jv_added pnb__jv_object_add(json_t *object, const char *key, size_t n, json_t *value);
void pnb__jv_object_clear(pnb__jv_object_node *o);

#endif
