/* Weights of any supported file behind one handle.
 *
 * safetensors files and their indices are handed to safetensors.c; PyTorch files to torch_file.c,
 * one per shard. What a file is, its first bytes tell: a .bin may well be a safetensors file. This
 * file joins the shards, sorts the names, and knows where model folders keep their weights. */
#include "penumbra/checkpoint.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/foreign.h"
#include "io/json/json.h"
#include "io/weights/safetensors.h"
#include "io/weights/shards.h"
#include "io/weights/torch_file.h"

#define ARENA_BLOCK_BYTES ((size_t)64 * 1024)

typedef struct shard {
    pnb__map map; /* empty when the bytes are borrowed */
    const unsigned char *bytes;
    size_t n_bytes;
    const char *name; /* as weight_map spells it; NULL for a single file */
    const char *path; /* of the map */
    pnb__torch_file file;
} shard;

struct pnb_checkpoint {
    atomic_size_t n_references;
    pnb_safetensors *st; /* all is there when this is not NULL */
    pnb__arena arena;
    shard *shards; /* sorted by name */
    size_t n_shards;
    pnb__archive all;
    char *warning;
};

/* ---- life ---- */

static pnb_status create(pnb_checkpoint **out, size_t n_shards, pnb_error *err)
{
    pnb_checkpoint *c = pnb__alloc_zero(1, sizeof *c);
    if (c == NULL)
        return pnb__fail_nomem(err, sizeof *c);
    atomic_init(&c->n_references, 1);
    pnb__arena_init(&c->arena, ARENA_BLOCK_BYTES);
    c->shards = pnb__alloc_zero(PNB_MAX(n_shards, (size_t)1), sizeof *c->shards);
    if (c->shards == NULL) {
        pnb__free(c);
        return pnb__fail_nomem(err, n_shards * sizeof *c->shards);
    }
    c->n_shards = n_shards;
    *out = c;
    return PNB_OK;
}

void pnb_checkpoint_retain(pnb_checkpoint *c)
{
    if (c != NULL)
        atomic_fetch_add(&c->n_references, 1);
}

void pnb_checkpoint_free(pnb_checkpoint *c)
{
    if (c == NULL || atomic_fetch_sub(&c->n_references, 1) != 1)
        return;
    for (size_t i = 0; i < c->n_shards; i++) {
        pnb__torch_close(&c->shards[i].file);
        pnb__map_close(&c->shards[i].map);
    }
    pnb_safetensors_free(c->st);
    pnb__free(c->shards);
    pnb__archive_reset(&c->all);
    pnb__free(c->warning);
    pnb__arena_free(&c->arena);
    pnb__free(c);
}

/* ---- joining ---- */

static pnb__shard_content content_of(const void *user, size_t i)
{
    const shard *s = &((const pnb_checkpoint *)user)->shards[i];
    return (pnb__shard_content){s->name, s->file.views, s->file.n};
}

/* A pickle may name an array twice; safetensors' headers may not. */
static pnb_status collect_views(pnb_checkpoint *c, const json_t *weight_map, const char *where,
                                pnb_error *err)
{
    pnb_status status = pnb__archive_join(&c->all, content_of, c, c->n_shards, weight_map, err);
    for (size_t i = 1; status == PNB_OK && i < c->all.n; i++)
        if (strcmp(c->all.by_name[i - 1]->name, c->all.by_name[i]->name) == 0)
            status = pnb__fail(err, PNB_FORMAT, "%s: \"%.100s\" is there twice", where,
                               c->all.by_name[i]->name);
    return status;
}

static pnb_status note_warnings(pnb_checkpoint *c, const char *where, pnb_error *err)
{
    size_t n_trailing = 0, n_unnamed = 0, n_views = 0;
    for (size_t i = 0; i < c->n_shards; i++) {
        n_trailing += c->shards[i].file.n_trailing;
        n_unnamed += c->shards[i].file.n_unnamed;
        n_views += c->shards[i].file.n;
    }
    if (n_trailing == 0 && n_unnamed == 0 && n_views == c->all.n)
        return PNB_OK;
    c->warning = pnb__format("%s: ignored %zu bytes after the last storage, %zu tensors without a "
                             "name and %zu arrays the index does not name",
                             where, n_trailing, n_unnamed, n_views - c->all.n);
    return c->warning != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(where));
}

static pnb_status finish(pnb_checkpoint *c, const json_t *weight_map, const char *where,
                         pnb_error *err)
{
    pnb_status status = collect_views(c, weight_map, where, err);
    return status == PNB_OK ? note_warnings(c, where, err) : status;
}

/* ---- one file ---- */

static pnb_status refuse_unknown(const char *where, size_t n_bytes, pnb_error *err)
{
    return pnb__fail(err, PNB_FORMAT,
                     "%s: %zu bytes that are neither safetensors nor a file of torch.save", where,
                     n_bytes);
}

static bool looks_like_safetensors(const unsigned char *bytes, size_t n_bytes)
{
    return n_bytes > 8 && bytes[8] == '{';
}

static pnb_status open_torch_bytes(pnb_checkpoint *c, shard *s, const char *where, pnb_error *err)
{
    if (!pnb__torch_sniff(s->bytes, s->n_bytes))
        return refuse_unknown(where, s->n_bytes, err);
    return pnb__torch_open(&s->file, s->bytes, s->n_bytes, where, &c->arena, err);
}

static pnb_status map_shard(pnb_checkpoint *c, shard *s, const char *path, pnb_error *err)
{
    pnb_status status = pnb__map_open(&s->map, path, err);
    if (status != PNB_OK)
        return status;
    s->bytes = s->map.data;
    s->n_bytes = s->map.size;
    s->path = pnb__arena_strdup(&c->arena, path);
    return s->path != NULL ? PNB_OK : pnb__fail_nomem(err, strlen(path));
}

static pnb_status open_torch_file(pnb_checkpoint *c, shard *s, const char *path, pnb_error *err)
{
    pnb_status status = map_shard(c, s, path, err);
    return status == PNB_OK ? open_torch_bytes(c, s, path, err) : status;
}

static pnb_status open_single(pnb_checkpoint *c, const char *path, pnb_error *err)
{
    shard *s = &c->shards[0];
    pnb_status status = map_shard(c, s, path, err);
    if (status != PNB_OK)
        return status;
    status = pnb__refuse_stand_in(path, s->bytes, s->n_bytes, err);
    if (status != PNB_OK)
        return status;
    bool is_torch = pnb__torch_sniff(s->bytes, s->n_bytes);
    if (!is_torch &&
        (looks_like_safetensors(s->bytes, s->n_bytes) || pnb__ends_with(path, ".safetensors"))) {
        pnb__map_close(&s->map);
        return pnb_safetensors_open(&c->st, path, err);
    }
    status = open_torch_bytes(c, s, path, err);
    return status == PNB_OK ? finish(c, NULL, path, err) : status;
}

pnb_status pnb_checkpoint_open_bytes(pnb_checkpoint **out, const void *bytes, size_t n_bytes,
                                     pnb_error *err)
{
    const char *where = "checkpoint in memory";
    pnb_checkpoint *c = NULL;
    pnb_status status;
    if (out == NULL || bytes == NULL)
        return pnb__fail(err, PNB_ARG, "%s: out or bytes is NULL", where);
    PNB_TRY(create(&c, 1, err));
    c->shards[0].bytes = bytes;
    c->shards[0].n_bytes = n_bytes;
    if (looks_like_safetensors(bytes, n_bytes) && !pnb__torch_sniff(bytes, n_bytes)) {
        PNB_TRY(pnb_safetensors_open_bytes(&c->st, bytes, n_bytes, err));
    } else {
        PNB_TRY(open_torch_bytes(c, &c->shards[0], where, err));
        PNB_TRY(finish(c, NULL, where, err));
    }
    *out = c;
    c = NULL;
done:
    pnb_checkpoint_free(c);
    return status;
}

/* ---- shards ---- */

static pnb_status open_one(void *user, size_t i, const char *name, const char *at, pnb_error *err)
{
    pnb_checkpoint *c = user;
    c->shards[i].name = name;
    return open_torch_file(c, &c->shards[i], at, err);
}

/* Which kind the first entry names; all others must be of the same. */
static const char *ending_of(json_t *weight_map)
{
    static const char *const endings[] = {".bin", ".pt", ".pth"};
    const char *name = json_string_value(json_object_iter_value(json_object_iter(weight_map)));
    for (size_t i = 0; i < PNB_COUNT(endings); i++)
        if (name != NULL && pnb__ends_with(name, endings[i]))
            return endings[i];
    return ".safetensors";
}

static pnb_status open_torch_index(pnb_checkpoint **out, json_t *weight_map, const char *path,
                                   pnb_error *err)
{
    size_t n = json_object_size(weight_map), n_names = 0;
    pnb_checkpoint *c = NULL;
    pnb_status status;
    const char **names = NULL;
    PNB_TRY(PNB_ALLOC(names, n, err));
    PNB_TRY(pnb__shard_names(weight_map, ending_of(weight_map), names, &n_names, path, err));
    PNB_TRY(create(&c, n_names, err));
    PNB_TRY(pnb__shards_open(names, n_names, path, &c->arena, open_one, c, err));
    PNB_TRY(finish(c, weight_map, path, err));
    PNB_TRY(pnb__archive_check(&c->all, weight_map, path, err));
    *out = c;
    c = NULL;
done:
    pnb_checkpoint_free(c);
    pnb__free(names);
    return status;
}

static pnb_status open_index(pnb_checkpoint **out, const char *path, pnb_error *err)
{
    json_t *root = NULL;
    pnb_checkpoint *c = NULL;
    pnb_status status;
    PNB_TRY(pnb__json_load_file(&root, path, 0, err));
    json_t *weight_map = json_object_get(root, "weight_map");
    if (json_object_size(weight_map) > 0 && strcmp(ending_of(weight_map), ".safetensors") != 0) {
        status = open_torch_index(out, weight_map, path, err);
        goto done;
    }
    PNB_TRY(create(&c, 0, err));
    PNB_TRY(pnb_safetensors_open(&c->st, path, err)); /* words the errors of a bad index too */
    *out = c;
    c = NULL;
done:
    pnb_checkpoint_free(c);
    json_decref(root);
    return status;
}

pnb_status pnb_checkpoint_open(pnb_checkpoint **out, const char *path, pnb_error *err)
{
    pnb_checkpoint *c = NULL;
    if (out == NULL || path == NULL)
        return pnb__fail(err, PNB_ARG, "checkpoint: out or path is NULL");
    if (pnb__ends_with(path, ".index.json"))
        return open_index(out, path, err);
    pnb_status status = create(&c, 1, err);
    if (status == PNB_OK)
        status = open_single(c, path, err);
    if (status == PNB_OK)
        *out = c;
    else
        pnb_checkpoint_free(c);
    return status;
}

pnb_status pnb__checkpoint_check_files(const pnb_checkpoint *c, pnb_error *err)
{
    pnb_status status = c->st != NULL ? pnb__st_check_files(c->st, err) : PNB_OK;
    for (size_t i = 0; i < c->n_shards && status == PNB_OK; i++)
        if (c->shards[i].path != NULL)
            status = pnb__map_check(&c->shards[i].map, c->shards[i].path, err);
    return status;
}

/* ---- reading ---- */

size_t pnb_checkpoint_count(const pnb_checkpoint *c)
{
    return c->st != NULL ? pnb_safetensors_count(c->st) : c->all.n;
}

const pnb_array_view *pnb_checkpoint_at(const pnb_checkpoint *c, size_t i)
{
    if (c->st != NULL)
        return pnb_safetensors_at(c->st, i);
    return i < c->all.n ? &c->all.views[i] : NULL;
}

const pnb_array_view *pnb_checkpoint_find(const pnb_checkpoint *c, const char *name)
{
    if (c->st != NULL)
        return pnb_safetensors_find(c->st, name);
    return pnb__archive_find(&c->all, name);
}

const char *pnb_checkpoint_format(const pnb_checkpoint *c)
{
    return c->st != NULL ? "safetensors" : c->shards[0].file.format;
}

const char *pnb_checkpoint_root(const pnb_checkpoint *c)
{
    return c->st != NULL ? "" : c->shards[0].file.root;
}

const char *pnb_checkpoint_metadata(const pnb_checkpoint *c, const char *key)
{
    if (c->st != NULL)
        return pnb_safetensors_metadata(c->st, key);
    return strcmp(key, "word2idx") == 0 ? c->shards[0].file.words : NULL;
}

const char *pnb_checkpoint_warning(const pnb_checkpoint *c)
{
    return c->st != NULL ? pnb_safetensors_warning(c->st) : c->warning;
}

pnb_status pnb_checkpoint_sha256(const pnb_checkpoint *c, char hex[65], pnb_error *err)
{
    pnb__sha256 hash;
    if (c == NULL || hex == NULL)
        return pnb__fail(err, PNB_ARG, "checkpoint: file or hex is NULL");
    if (c->st != NULL)
        return pnb_safetensors_sha256(c->st, hex, err);
    pnb__sha256_init(&hash);
    for (size_t i = 0; i < c->n_shards; i++)
        pnb__sha256_update(&hash, c->shards[i].bytes, c->shards[i].n_bytes);
    pnb__sha256_hex(&hash, hex);
    return PNB_OK;
}

/* ---- folders ---- */

static const char *const folder_names[] = {
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "model.safetensors",
    "model.safetensors.index.json",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "pytorch_model.pth",
    "model.pth",
    "model.pt",
    "pcme_coco.pth", /* as released, and as PCME's code calls its last epoch's */
    "pcme_cutmix_coco.pth",
    "model_last.pth",
};

pnb_status pnb_checkpoint_locate(char *path, size_t size, const char *dir, pnb_error *err)
{
    if (path == NULL || dir == NULL)
        return pnb__fail(err, PNB_ARG, "checkpoint: path or dir is NULL");
    for (size_t i = 0; i < PNB_COUNT(folder_names); i++) {
        char *found = pnb__path_join(dir, folder_names[i]);
        if (found == NULL)
            return pnb__fail_nomem(err, strlen(dir) + 64);
        bool is_there = pnb__path_is_file(found), fits = strlen(found) < size;
        if (is_there && fits)
            memcpy(path, found, strlen(found) + 1);
        pnb__free(found);
        if (is_there)
            return fits ? PNB_OK
                        : pnb__fail(err, PNB_LIMIT, "%s: the path is longer than %zu bytes", dir,
                                    size);
    }
    pnb__buf names = {0};
    for (size_t i = 0; i < PNB_COUNT(folder_names); i++)
        pnb__buf_printf(&names, "%s%s", i > 0 ? ", " : "", folder_names[i]);
    pnb_status status = pnb__fail(err, PNB_NOT_FOUND, "%s: no weights there; looked for %s", dir,
                                  names.data != NULL ? names.data : "");
    pnb__buf_reset(&names);
    return status;
}
