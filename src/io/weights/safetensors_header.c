/* The header of one safetensors file: u64 little-endian length, JSON object, array bytes.
 *
 * Follows the format's reference implementation: the header starts with '{' and may end in spaces,
 * keys are unique, every array's byte range is as long as dtype and shape say, and the ranges tile
 * the rest of the file without overlap or hole. Unlike the reference, bytes after the last array
 * are tolerated and counted (real checkpoints have them). Nothing is believed before it is checked;
 * shards and lookup are left to safetensors.c. */
#include <stdlib.h>
#include <string.h>

#include "io/array.h"
#include "io/json/json.h"
#include "io/weights/safetensors.h"

#define LENGTH_BYTES ((size_t)8)

typedef struct parser {
    const unsigned char *data; /* first array byte */
    size_t n_data;
    const char *where;
    pnb__arena *arena;
    pnb_error *err;
} parser;

/* Checks the length word and the first byte. */
static pnb_status header_length(const unsigned char *bytes, size_t n_bytes, const char *where,
                                size_t *length, pnb_error *err)
{
    uint64_t found;
    if (n_bytes < LENGTH_BYTES + 2)
        return pnb__fail(err, PNB_FORMAT, "%s: %zu bytes are too few for a safetensors file", where,
                         n_bytes);
    memcpy(&found, bytes, sizeof(found)); /* little-endian machines only, see dtype.c */
    if (found > PNB__ST_MAX_HEADER)
        return pnb__fail(
            err, PNB_LIMIT,
            "%s: header of %llu bytes, at most %zu are accepted; is this a safetensors "
            "file?",
            where, (unsigned long long)found, PNB__ST_MAX_HEADER);
    if (found < 2 || found > n_bytes - LENGTH_BYTES)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: header of %llu bytes in a file of %zu; the file is truncated or not "
                         "safetensors",
                         where, (unsigned long long)found, n_bytes);
    if (bytes[LENGTH_BYTES] != '{')
        return pnb__fail(err, PNB_FORMAT, "%s: header starts with byte 0x%02x, wanted '{'", where,
                         bytes[LENGTH_BYTES]);
    *length = (size_t)found;
    return PNB_OK;
}

static pnb_status bad_array(const parser *p, const char *name, const char *problem)
{
    return pnb__fail(p->err, PNB_FORMAT, "%s: \"%.100s\": %s", p->where, name, problem);
}

static pnb_status read_dtype(const parser *p, const char *name, json_t *entry, pnb_dtype *out)
{
    const json_t *value = json_object_get(entry, "dtype");
    if (!json_is_string(value))
        return bad_array(p, name, "no dtype");
    if (!pnb_dtype_from_name(out, json_string_value(value)))
        return pnb__fail(p->err, PNB_UNSUPPORTED,
                         "%s: \"%.100s\": dtype \"%.20s\" is not supported", p->where, name,
                         json_string_value(value));
    return PNB_OK;
}

static pnb_status read_shape(const parser *p, const char *name, json_t *entry, pnb_array_view *a)
{
    const json_t *value = json_object_get(entry, "shape");
    size_t n = json_array_size(value);
    if (!json_is_array(value))
        return bad_array(p, name, "no shape");
    if (n > PNB_MAX_DIMS)
        return pnb__fail(p->err, PNB_UNSUPPORTED,
                         "%s: \"%.100s\": %zu dimensions, at most %d are supported", p->where, name,
                         n, PNB_MAX_DIMS);
    for (size_t i = 0; i < n; i++) {
        const json_t *extent = json_array_get(value, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return bad_array(p, name, "shape holds something else than whole numbers from 0");
        a->shape[i] = (int64_t)json_integer_value(extent);
    }
    a->n_dims = (int)n;
    return PNB_OK;
}

static pnb_status read_range(const parser *p, const char *name, json_t *entry, size_t *begin,
                             size_t *end)
{
    const json_t *value = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(value, 0), *second = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return bad_array(p, name, "data_offsets is not a pair of whole numbers");
    json_int_t low = json_integer_value(first), high = json_integer_value(second);
    if (low < 0 || high < low)
        return bad_array(p, name, "data_offsets are negative or reversed");
    if ((uint64_t)high > p->n_data)
        return pnb__fail(p->err, PNB_FORMAT,
                         "%s: \"%.100s\" ends at data byte %lld, the file has %zu; it is truncated",
                         p->where, name, (long long)high, p->n_data);
    *begin = (size_t)low;
    *end = (size_t)high;
    return PNB_OK;
}

static pnb_status read_array(const parser *p, const char *name, json_t *entry, pnb_array_view *a)
{
    size_t begin = 0, end = 0, wanted = 0;
    pnb_error inner = PNB_ERROR_INIT;
    pnb_status status;
    if (!json_is_object(entry))
        return bad_array(p, name, "entry is not an object");
    PNB_TRY(read_dtype(p, name, entry, &a->dtype));
    PNB_TRY(read_shape(p, name, entry, a));
    PNB_TRY(read_range(p, name, entry, &begin, &end));
    if (pnb__array_n_bytes(a->dtype, a->shape, a->n_dims, &wanted, &inner) != PNB_OK)
        return bad_array(p, name, inner.text);
    if (wanted != end - begin)
        return pnb__fail(p->err, PNB_FORMAT,
                         "%s: \"%.100s\": byte range of %zu, dtype %s and shape need %zu", p->where,
                         name, end - begin, pnb_dtype_name(a->dtype), wanted);
    a->data = p->data + begin;
    a->n_bytes = wanted;
    a->name = pnb__arena_strdup(p->arena, name);
    if (a->name == NULL)
        status = pnb__fail_nomem(p->err, strlen(name) + 1);
done:
    return status;
}

static pnb_status read_metadata(const parser *p, json_t *object, pnb__st_header *out)
{
    if (!json_is_object(object))
        return pnb__fail(p->err, PNB_FORMAT, "%s: __metadata__ is not an object", p->where);
    size_t n = json_object_size(object);
    out->metadata = pnb__arena_alloc(p->arena, PNB_MAX(n, (size_t)1) * sizeof(*out->metadata));
    if (out->metadata == NULL)
        return pnb__fail_nomem(p->err, n * sizeof(*out->metadata));
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it)) {
        const char *key = json_object_iter_key(it);
        const json_t *value = json_object_iter_value(it);
        if (!json_is_string(value))
            return pnb__fail(p->err, PNB_FORMAT, "%s: __metadata__ \"%.100s\" is not a string",
                             p->where, key);
        pnb__st_pair pair = {pnb__arena_strdup(p->arena, key),
                             pnb__arena_strdup(p->arena, json_string_value(value))};
        if (pair.key == NULL || pair.value == NULL)
            return pnb__fail_nomem(p->err, json_string_length(value) + 1);
        out->metadata[out->n_metadata++] = pair;
    }
    return PNB_OK;
}

static int compare_positions(const void *left, const void *right)
{
    const pnb_array_view *a = left, *b = right;
    uintptr_t first = (uintptr_t)a->data, second = (uintptr_t)b->data;
    if (first != second)
        return first < second ? -1 : 1;
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes < b->n_bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Sorts the arrays by position; each must start where the one before ends. */
static pnb_status check_tiling(const parser *p, pnb__st_header *out)
{
    size_t position = 0;
    if (out->n_views > 0)
        qsort(out->views, out->n_views, sizeof(*out->views), compare_positions);
    for (size_t i = 0; i < out->n_views; i++) {
        const pnb_array_view *a = &out->views[i];
        size_t begin = (size_t)((const unsigned char *)a->data - p->data);
        if (begin < position)
            return pnb__fail(p->err, PNB_FORMAT, "%s: \"%.100s\" overlaps \"%.100s\"", p->where,
                             a->name, out->views[i - 1].name);
        if (begin > position)
            return pnb__fail(
                p->err, PNB_FORMAT,
                "%s: hole of %zu bytes before \"%.100s\"; arrays must lie side by side", p->where,
                begin - position, a->name);
        position = begin + a->n_bytes;
    }
    out->n_trailing = p->n_data - position;
    return PNB_OK;
}

static pnb_status read_entries(const parser *p, json_t *root, pnb__st_header *out)
{
    size_t n = json_object_size(root), bytes = 0;
    if (pnb__mul_overflows(PNB_MAX(n, (size_t)1), sizeof(*out->views), &bytes))
        return pnb__fail_nomem(p->err, SIZE_MAX);
    out->views = pnb__arena_alloc(p->arena, bytes);
    if (out->views == NULL)
        return pnb__fail_nomem(p->err, bytes);
    for (void *it = json_object_iter(root); it != NULL; it = json_object_iter_next(root, it)) {
        const char *key = json_object_iter_key(it);
        json_t *value = json_object_iter_value(it);
        pnb_status status = strcmp(key, "__metadata__") == 0
                                ? read_metadata(p, value, out)
                                : read_array(p, key, value, &out->views[out->n_views++]);
        if (status != PNB_OK)
            return status;
    }
    return check_tiling(p, out);
}

pnb_status pnb__st_parse(pnb__st_header *out, const unsigned char *bytes, size_t n_bytes,
                         const char *where, pnb__arena *arena, pnb_error *err)
{
    size_t length = 0;
    json_t *root = NULL;
    pnb__st_header found = {0};
    pnb_status status = header_length(bytes, n_bytes, where, &length, err);
    if (status != PNB_OK)
        return status;
    parser p = {bytes + LENGTH_BYTES + length, n_bytes - LENGTH_BYTES - length, where, arena, err};
    PNB_TRY(pnb__json_load_bytes(&root, (const char *)bytes + LENGTH_BYTES, length, where, err));
    PNB_TRY(read_entries(&p, root, &found));
    *out = found;
done:
    json_decref(root);
    return status;
}
