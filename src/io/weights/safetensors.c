/* Opening safetensors files and sharded checkpoints, and finding arrays in them.
 *
 * An index is `{"weight_map": {array name: file name}}`; its shards are plain file names beside it
 * (symbolic links are followed, as snapshot caches use them; anything with a folder in it is
 * refused). The map of each file, all names and all views die with the last reference. What makes a
 * single file valid is decided in safetensors_header.c. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "io/foreign.h"
#include "io/json/json.h"
#include "io/weights/safetensors.h"
#include "io/weights/shards.h"

#define ARENA_BLOCK_BYTES ((size_t)64 * 1024)

typedef struct shard {
    pnb__map map; /* empty when the bytes are borrowed */
    const unsigned char *bytes;
    size_t n_bytes;
    const char *name; /* as weight_map spells it; NULL for a single file */
    const char *path; /* of the map */
    pnb__st_header header;
} shard;

struct pnb_safetensors {
    atomic_size_t n_references;
    pnb__arena arena; /* names, headers */
    shard *shards;    /* sorted by name */
    size_t n_shards;
    pnb__archive all;
    char *warning;
};

/* ---- life ---- */

static pnb_status create(pnb_safetensors **out, size_t n_shards, pnb_error *err)
{
    pnb_safetensors *st = pnb__alloc_zero(1, sizeof(*st));
    if (st == NULL)
        return pnb__fail_nomem(err, sizeof(*st));
    atomic_init(&st->n_references, 1);
    pnb__arena_init(&st->arena, ARENA_BLOCK_BYTES);
    st->shards = pnb__alloc_zero(PNB_MAX(n_shards, (size_t)1), sizeof(*st->shards));
    if (st->shards == NULL) {
        pnb__free(st);
        return pnb__fail_nomem(err, n_shards * sizeof(*st->shards));
    }
    st->n_shards = n_shards;
    *out = st;
    return PNB_OK;
}

void pnb_safetensors_retain(pnb_safetensors *st)
{
    if (st != NULL)
        atomic_fetch_add(&st->n_references, 1);
}

void pnb_safetensors_free(pnb_safetensors *st)
{
    if (st == NULL || atomic_fetch_sub(&st->n_references, 1) != 1)
        return;
    for (size_t i = 0; i < st->n_shards; i++)
        pnb__map_close(&st->shards[i].map);
    pnb__free(st->shards);
    pnb__archive_reset(&st->all);
    pnb__free(st->warning);
    pnb__arena_free(&st->arena);
    pnb__free(st);
}

/* ---- all arrays ---- */

static pnb__shard_content content_of(const void *user, size_t i)
{
    const shard *s = &((const pnb_safetensors *)user)->shards[i];
    return (pnb__shard_content){s->name, s->header.views, s->header.n_views};
}

/* What was tolerated, for pnb_safetensors_warning. */
static pnb_status note_warnings(pnb_safetensors *st, const char *where, pnb_error *err)
{
    size_t n_trailing = 0, n_views = 0;
    pnb__buf text = {0};
    for (size_t i = 0; i < st->n_shards; i++) {
        n_trailing += st->shards[i].header.n_trailing;
        n_views += st->shards[i].header.n_views;
    }
    if (n_trailing == 0 && n_views == st->all.n)
        return PNB_OK;
    pnb__buf_printf(&text, "%s: ignored", where);
    if (n_trailing > 0)
        pnb__buf_printf(&text, " %zu bytes after the last array", n_trailing);
    if (n_views != st->all.n)
        pnb__buf_printf(&text, "%s %zu arrays the index does not name",
                        n_trailing > 0 ? " and" : "", n_views - st->all.n);
    if (text.failed) {
        pnb__buf_reset(&text);
        return pnb__fail_nomem(err, text.size);
    }
    st->warning = text.data;
    return PNB_OK;
}

/* ---- one file ---- */

static pnb_status open_shard(pnb_safetensors *st, shard *s, const char *path, pnb_error *err)
{
    pnb_status status = pnb__map_open(&s->map, path, err);
    if (status != PNB_OK)
        return status;
    s->bytes = s->map.data;
    s->n_bytes = s->map.size;
    s->path = pnb__arena_strdup(&st->arena, path);
    if (s->path == NULL)
        return pnb__fail_nomem(err, strlen(path));
    status = pnb__refuse_stand_in(path, s->bytes, s->n_bytes, err);
    if (status != PNB_OK)
        return status;
    return pnb__st_parse(&s->header, s->bytes, s->n_bytes, path, &st->arena, err);
}

static pnb_status finish(pnb_safetensors *st, const json_t *weight_map, const char *where,
                         pnb_error *err)
{
    pnb_status status = pnb__archive_join(&st->all, content_of, st, st->n_shards, weight_map, err);
    return status == PNB_OK ? note_warnings(st, where, err) : status;
}

static pnb_status open_single(pnb_safetensors **out, const char *path, pnb_error *err)
{
    pnb_safetensors *st = NULL;
    pnb_status status;
    PNB_TRY(create(&st, 1, err));
    PNB_TRY(open_shard(st, &st->shards[0], path, err));
    PNB_TRY(finish(st, NULL, path, err));
    *out = st;
    st = NULL;
done:
    pnb_safetensors_free(st);
    return status;
}

pnb_status pnb_safetensors_open_bytes(pnb_safetensors **out, const void *bytes, size_t n_bytes,
                                      pnb_error *err)
{
    const char *where = "safetensors in memory";
    pnb_safetensors *st = NULL;
    pnb_status status;
    if (out == NULL || bytes == NULL)
        return pnb__fail(err, PNB_ARG, "%s: out or bytes is NULL", where);
    PNB_TRY(create(&st, 1, err));
    st->shards[0].bytes = bytes;
    st->shards[0].n_bytes = n_bytes;
    PNB_TRY(pnb__st_parse(&st->shards[0].header, bytes, n_bytes, where, &st->arena, err));
    PNB_TRY(finish(st, NULL, where, err));
    *out = st;
    st = NULL;
done:
    pnb_safetensors_free(st);
    return status;
}

pnb_status pnb__st_check_files(const pnb_safetensors *st, pnb_error *err)
{
    pnb_status status = PNB_OK;
    for (size_t i = 0; i < st->n_shards && status == PNB_OK; i++)
        status = pnb__map_check(&st->shards[i].map, st->shards[i].path, err);
    return status;
}

/* ---- shards ---- */

static pnb_status open_one(void *user, size_t i, const char *name, const char *at, pnb_error *err)
{
    pnb_safetensors *st = user;
    st->shards[i].name = name;
    return open_shard(st, &st->shards[i], at, err);
}

static pnb_status open_index(pnb_safetensors **out, const char *path, pnb_error *err)
{
    json_t *root = NULL, *weight_map = NULL;
    const char **names = NULL;
    size_t n_names = 0;
    pnb_safetensors *st = NULL;
    pnb_status status;
    PNB_TRY(pnb__json_load_file(&root, path, 0, err));
    weight_map = json_object_get(root, "weight_map");
    if (!json_is_object(weight_map) || json_object_size(weight_map) == 0) {
        status = pnb__fail(err, PNB_FORMAT, "%s: no weight_map object with array names", path);
        goto done;
    }
    names = pnb__alloc_array(json_object_size(weight_map), sizeof(*names));
    if (names == NULL) {
        status = pnb__fail_nomem(err, json_object_size(weight_map) * sizeof(*names));
        goto done;
    }
    PNB_TRY(pnb__shard_names(weight_map, ".safetensors", names, &n_names, path, err));
    PNB_TRY(create(&st, n_names, err));
    PNB_TRY(pnb__shards_open(names, n_names, path, &st->arena, open_one, st, err));
    PNB_TRY(finish(st, weight_map, path, err));
    PNB_TRY(pnb__archive_check(&st->all, weight_map, path, err));
    *out = st;
    st = NULL;
done:
    pnb_safetensors_free(st);
    pnb__free(names);
    json_decref(root);
    return status;
}

pnb_status pnb_safetensors_open(pnb_safetensors **out, const char *path, pnb_error *err)
{
    if (out == NULL || path == NULL)
        return pnb__fail(err, PNB_ARG, "safetensors: out or path is NULL");
    return pnb__ends_with(path, ".index.json") ? open_index(out, path, err)
                                               : open_single(out, path, err);
}

/* ---- reading ---- */

size_t pnb_safetensors_count(const pnb_safetensors *st)
{
    return st->all.n;
}

const pnb_array_view *pnb_safetensors_at(const pnb_safetensors *st, size_t i)
{
    return i < st->all.n ? &st->all.views[i] : NULL;
}

const pnb_array_view *pnb_safetensors_find(const pnb_safetensors *st, const char *name)
{
    return pnb__archive_find(&st->all, name);
}

const char *pnb_safetensors_metadata(const pnb_safetensors *st, const char *key)
{
    for (size_t i = 0; i < st->n_shards; i++) {
        const pnb__st_header *header = &st->shards[i].header;
        for (size_t j = 0; j < header->n_metadata; j++) {
            if (strcmp(header->metadata[j].key, key) == 0)
                return header->metadata[j].value;
        }
    }
    return NULL;
}

const char *pnb_safetensors_warning(const pnb_safetensors *st)
{
    return st->warning;
}

pnb_status pnb_safetensors_sha256(const pnb_safetensors *st, char hex[65], pnb_error *err)
{
    pnb__sha256 hash;
    if (st == NULL || hex == NULL)
        return pnb__fail(err, PNB_ARG, "safetensors: map or hex is NULL");
    pnb__sha256_init(&hash);
    for (size_t i = 0; i < st->n_shards; i++)
        pnb__sha256_update(&hash, st->shards[i].bytes, st->shards[i].n_bytes);
    pnb__sha256_hex(&hash, hex);
    return PNB_OK;
}
