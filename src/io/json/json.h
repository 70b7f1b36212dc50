/* JSON from strangers: limits, places of errors, typed getters with a sticky error. io/json/value.h
 * has the values themselves. */
#ifndef PNB_IO_JSON_JSON_H
#define PNB_IO_JSON_JSON_H

#include "base/base.h"
#include "io/json/value.h"

#define PNB__JSON_MAX_BYTES ((size_t)100 * 1000 * 1000)
#define PNB__JSON_MAX_DEPTH 64

/* Parses one object or array; free with json_decref. Duplicate keys, invalid UTF-8, NUL inside
 * strings, numbers that do not fit and trailing text are refused, with line and column. `max_bytes`
 * 0 means PNB__JSON_MAX_BYTES. `where` (a path) starts error texts. Errors  FORMAT, LIMIT (bytes,
 * depth), NOMEM; load_file also NOT_FOUND, IO */
pnb_status pnb__json_load_file(json_t **out, const char *path, size_t max_bytes, pnb_error *err);
pnb_status pnb__json_load_bytes(json_t **out, const char *bytes, size_t n, const char *where,
                                pnb_error *err);

/* As load_bytes for text that may be anything, a line cut short, say: *out is NULL where it is no
 * JSON.  Errors  NOMEM */
pnb_status pnb__json_try_bytes(json_t **out, const char *bytes, size_t n, pnb_error *err);

/* Writes a value with sorted keys, indented by 2, whole or not at all. An incomplete value is
 * NOMEM, here and (as b->failed) below. */
pnb_status pnb__json_save_file(const json_t *value, const char *path, pnb_error *err);

/* Appends `"s"` quoted and escaped; s must be valid UTF-8. */
void pnb__json_append_string(pnb__buf *b, const char *s);
/* Appends a number that reads back as the same double; null for NaN and infinity. */
void pnb__json_append_double(pnb__buf *b, double x);
/* Appends JSON as it is written in `format`, with its values in printf's words: %s a text quoted
 * and escaped, %f a real as above, %i true or false, %d %zu %lld %llu as they are. A text of fixed
 * width in quotes is put there by pnb__buf_printf. */
void pnb__json_put(pnb__buf *b, const char *format, ...) PNB_PRINTF(2, 3);
/* Appends a value as one line. */
void pnb__json_append_value(pnb__buf *b, const json_t *value);
/* Appends a value as pnb__json_save_file writes it. */
void pnb__json_append_pretty(pnb__buf *b, const json_t *value);

/* A whole number from 0 that an int holds; `otherwise` for anything else, NULL too. */
int pnb__json_small_int(const json_t *value, int otherwise);
/* FORMAT, by name, unless list[i] of a file has a whole number from 0 at `key`, or, where it need
 * not be a number, a text. */
pnb_status pnb__json_check_id(const json_t *entry, const char *key, bool is_number,
                              const char *path, const char *list, size_t i, pnb_error *err);

/* A JSON object being read. Getters return `fallback` for an absent key or null; a value of the
 * wrong type or range records the error (first one wins), and later calls do nothing: check
 * `status` once. */
typedef struct pnb__jobj {
    json_t *obj;       /* borrowed; must be an object */
    const char *where; /* starts error texts: a path, "config.json: text_cfg" */
    pnb_status status; /* PNB_OK until a getter fails */
} pnb__jobj;

/* Wraps a value; FORMAT (in status and err) when it is not an object. */
pnb__jobj pnb__json_object(json_t *value, const char *where, pnb_error *err);

bool pnb__json_has(const pnb__jobj *o, const char *key); /* present and not null */
int64_t pnb__json_get_int(pnb__jobj *o, const char *key, int64_t fallback, pnb_error *err);
/* An integer in [low, high]. The fallback is not checked. */
int64_t pnb__json_get_int_in(pnb__jobj *o, const char *key, int64_t fallback, int64_t low,
                             int64_t high, pnb_error *err);
double pnb__json_get_double(pnb__jobj *o, const char *key, double fallback, pnb_error *err);
bool pnb__json_get_bool(pnb__jobj *o, const char *key, bool fallback, pnb_error *err);
/* Borrowed from the object. */
const char *pnb__json_get_string(pnb__jobj *o, const char *key, const char *fallback,
                                 pnb_error *err);
/* A copy in `size` bytes, "" where the key is absent. FORMAT where it is longer than that. */
void pnb__json_get_text(pnb__jobj *o, const char *key, char *out, size_t size, pnb_error *err);
json_t *pnb__json_get_array(pnb__jobj *o, const char *key, pnb_error *err);  /* NULL if absent */
json_t *pnb__json_get_object(pnb__jobj *o, const char *key, pnb_error *err); /* NULL if absent */
/* Exactly n numbers into out; out untouched when absent. */
void pnb__json_get_floats(pnb__jobj *o, const char *key, float *out, size_t n, pnb_error *err);

/* FORMAT for a key that is not in `allowed`, naming it and the nearest allowed one. */
pnb_status pnb__json_check_keys(pnb__jobj *o, const char *const *allowed, size_t n, pnb_error *err);

/* The entry of `names` with the smallest edit distance to `word`, NULL if none is near. */
const char *pnb__nearest_name(const char *word, const char *const *names, size_t n);

#endif
