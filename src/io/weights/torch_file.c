/* The two containers of torch.save, down to one tree of values and a table of storages.
 *
 *   since 1.6    a zip archive: NAME/data.pkl, and each storage as NAME/data/KEY; TorchScript
 *                archives look the same and have NAME/constants.pkl beside it
 *   before 1.6   five pickles (magic, protocol, machine, the object, keys of the storages in
 *                order), then per key the number of elements (u64) and the raw elements
 *
 * torch/serialization.py and caffe2/serialize/inline_container.cc. Only what little-endian machines
 * wrote is read. Which tensors are offered is decided in torch_tensors.c. */
#include "io/weights/torch_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "io/weights/zip.h"

#define TREE_BLOCK_BYTES ((size_t)64 * 1024)
#define COPY_SPARE ((size_t)1 << 20)

/* 0x1950a86a20f9469cfc6c, little-endian */
static const char magic_line[] = "119547037146038801333356L"; /* the same in protocols 0 and 1 */
static const unsigned char magic[10] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

bool pnb__torch_sniff(const unsigned char *bytes, size_t n_bytes)
{
    return n_bytes >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0 ||
                            (bytes[0] == 0x80 && bytes[1] <= 5) || memcmp(bytes, "L119", 4) == 0);
}

pnb_status pnb__torch_own(pnb__torch_file *file, void *block, pnb_error *err)
{
    if (block == NULL)
        return PNB_OK;
    pnb_status status = PNB_PUSH(file->owned, file->n_owned, err, block);
    if (status != PNB_OK)
        pnb__free_aligned(block);
    return status;
}

void pnb__torch_close(pnb__torch_file *file)
{
    for (size_t i = 0; i < file->n_owned; i++)
        pnb__free_aligned(file->owned[i]);
    pnb__free(file->owned);
    *file = (pnb__torch_file){0};
}

int pnb__torch_compare_keys(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int order = memcmp(a, b, PNB_MIN(n_a, n_b));
    return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

/* ---- zip ---- */

/* The one member NAME/data.pkl; NAME is what the file was called when it was saved. */
static pnb_status find_pickle(const pnb__zip *zip, const pnb__zip_member **out, pnb_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < zip->n; i++) {
        const char *slash = strchr(zip->members[i].name, '/');
        if (slash == NULL || strcmp(slash, "/data.pkl") != 0)
            continue;
        if (*out != NULL)
            return pnb__fail(err, PNB_FORMAT, "%s: two checkpoints in one archive, %s and %s",
                             zip->where, (*out)->name, zip->members[i].name);
        *out = &zip->members[i];
    }
    if (*out == NULL)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: a zip archive of %zu members without NAME/data.pkl; not a PyTorch "
                         "checkpoint",
                         zip->where, zip->n);
    return PNB_OK;
}

/* NAME/byteorder, which PyTorch 2 writes. */
static pnb_status check_byte_order(const pnb__zip *zip, const char *name, size_t n_name,
                                   pnb_error *err)
{
    const unsigned char *data = NULL;
    void *owned = NULL;
    char *path = pnb__format("%.*s/byteorder", (int)n_name, name);
    if (path == NULL)
        return pnb__fail_nomem(err, n_name + 16);
    const pnb__zip_member *m = pnb__zip_find(zip, path);
    pnb__free(path);
    if (m == NULL)
        return PNB_OK;
    pnb_status status = pnb__zip_read(zip, m, &data, &owned, err);
    if (status == PNB_OK && (m->n_bytes != 6 || memcmp(data, "little", 6) != 0))
        status = pnb__fail(err, PNB_UNSUPPORTED, "%s: written by a big-endian machine", zip->where);
    pnb__free_aligned(owned);
    return status;
}

/* Members NAME/data/KEY. The directory is sorted by name, so keys come out sorted. */
static pnb_status collect_members(pnb__torch_job *job, const char *name, size_t n_name,
                                  pnb__arena *tree)
{
    const pnb__zip *zip = job->zip;
    size_t bytes = PNB_MAX(zip->n, (size_t)1) * sizeof *job->storages;
    job->storages = pnb__arena_alloc(tree, bytes);
    if (job->storages == NULL)
        return pnb__fail_nomem(job->err, bytes);
    for (size_t i = 0; i < zip->n; i++) {
        const pnb__zip_member *m = &zip->members[i];
        const char *rest = m->name + n_name;
        if (strncmp(m->name, name, n_name) != 0 || !pnb__starts_with(rest, "/data/"))
            continue;
        const char *key = rest + strlen("/data/");
        job->storages[job->n_storages++] = (pnb__torch_storage){
            .key = key, .n_key = strlen(key), .n_bytes = m->n_bytes, .member = m};
    }
    return PNB_OK;
}

static bool is_script(const pnb__pk_value *root)
{
    return root->kind == PNB__PK_OBJECT && root->detail == 1;
}

static pnb_status open_zip(pnb__torch_job *job, const unsigned char *bytes, size_t n_bytes,
                           pnb__arena *tree)
{
    pnb__zip zip;
    const pnb__zip_member *pickle = NULL;
    pnb__pk_source source = {.where = job->where, .arena = tree};
    pnb__pk_budget budget;
    pnb__pk_result result = {0};
    void *owned = NULL;
    pnb_status status;
    PNB_TRY(pnb__zip_open(&zip, bytes, n_bytes, job->where, tree, job->err));
    PNB_TRY(find_pickle(&zip, &pickle, job->err));
    size_t n_name = strlen(pickle->name) - strlen("/data.pkl");
    PNB_TRY(check_byte_order(&zip, pickle->name, n_name, job->err));
    job->zip = &zip;
    PNB_TRY(collect_members(job, pickle->name, n_name, tree));
    PNB_TRY(pnb__zip_read(&zip, pickle, &source.bytes, &owned, job->err));
    source.n_bytes = pickle->n_bytes;
    budget = pnb__pk_budget_for(source.n_bytes);
    source.budget = &budget;
    PNB_TRY(pnb__pickle_load(&source, &result, job->err));
    job->file->format = is_script(result.root) ? "torchscript" : "pytorch";
    status = pnb__torch_views(job, result.root);
done:
    job->zip = NULL; /* what it points to ends here */
    pnb__free_aligned(owned);
    return status;
}

/* ---- before 1.6 ---- */

typedef struct legacy {
    pnb__pk_source source; /* from the next pickle on */
    pnb__pk_result object, keys;
} legacy;

static pnb_status next_pickle(legacy *l, pnb__pk_result *result, pnb_error *err)
{
    pnb_status status = pnb__pickle_load(&l->source, result, err);
    if (status != PNB_OK)
        return status;
    assert(result->root != NULL); /* a pickle that loads leaves a value */
    l->source.bytes += result->used;
    l->source.n_bytes -= result->used;
    return PNB_OK;
}

static bool is_magic(const pnb__pk_value *v)
{
    if (v->kind != PNB__PK_BIG)
        return false;
    const void *wanted = v->u.text.n == sizeof magic ? (const void *)magic : magic_line;
    return (v->u.text.n == sizeof magic || v->u.text.n == sizeof magic_line - 1) &&
           memcmp(v->u.text.data, wanted, v->u.text.n) == 0;
}

static pnb_status read_pickles(legacy *l, pnb_error *err)
{
    pnb__pk_result head = {0}, protocol = {0}, machine = {0};
    const char *where = l->source.where;
    pnb_status status;
    PNB_TRY(next_pickle(l, &head, err));
    if (!is_magic(head.root))
        return pnb__fail(err, PNB_FORMAT,
                         "%s: a pickle without PyTorch's magic number; want a file of torch.save",
                         where);
    PNB_TRY(next_pickle(l, &protocol, err));
    if (protocol.root->kind != PNB__PK_INT || protocol.root->u.integer != 1001)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: an unknown protocol of torch.save; want 1001",
                         where);
    PNB_TRY(next_pickle(l, &machine, err));
    const pnb__pk_value *little = pnb__pk_get(machine.root, "little_endian");
    if (little == NULL || little->kind != PNB__PK_BOOL || !little->u.truth)
        return pnb__fail(err, PNB_UNSUPPORTED, "%s: written by a big-endian machine", where);
    PNB_TRY(next_pickle(l, &l->object, err));
    PNB_TRY(next_pickle(l, &l->keys, err));
    if (l->keys.root->kind != PNB__PK_LIST)
        return pnb__fail(err, PNB_FORMAT, "%s: the keys of the storages are no list", where);
done:
    return status;
}

static int compare_values(const void *left, const void *right)
{
    const pnb__pk_value *const *a = left, *const *b = right;
    return pnb__torch_compare_keys((*a)->u.storage.key, (*a)->u.storage.n_key, (*b)->u.storage.key,
                                   (*b)->u.storage.n_key);
}

static int compare_storages(const void *left, const void *right)
{
    const pnb__torch_storage *a = left, *b = right;
    return pnb__torch_compare_keys(a->key, a->n_key, b->key, b->n_key);
}

/* The storage that the object names by this key tells the width of its elements. */
static const pnb__pk_value *find_named(pnb__pk_value *const *sorted, uint32_t n,
                                       const pnb__pk_value *key)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const pnb__pk_value *v = sorted[middle];
        int order = pnb__torch_compare_keys(key->u.text.data, key->u.text.n, v->u.storage.key,
                                            v->u.storage.n_key);
        if (order == 0)
            return v;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static size_t element_size(const pnb__pk_value *storage)
{
    return storage->detail < PNB_N_DTYPES ? pnb_dtype_size((pnb_dtype)storage->detail) : 1;
}

/* One storage: u64 elements, then the elements. */
static pnb_status read_storage(legacy *l, const pnb__pk_value *named, pnb__torch_storage *s,
                               pnb_error *err)
{
    uint64_t n = 0;
    size_t n_bytes = 0, left = l->source.n_bytes;
    const char *key = named->u.storage.key;
    int n_key = (int)named->u.storage.n_key;
    if (left < sizeof n)
        return pnb__fail(err, PNB_FORMAT, "%s: ends before storage \"%.*s\"; it is truncated",
                         l->source.where, n_key, key);
    memcpy(&n, l->source.bytes, sizeof n); /* little-endian machines only, see dtype.c */
    if (n != (uint64_t)named->u.storage.n_elements)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: storage \"%.*s\" has %llu elements, its tensors say %lld",
                         l->source.where, n_key, key, (unsigned long long)n,
                         (long long)named->u.storage.n_elements);
    left -= sizeof n;
    if (pnb__mul_overflows((size_t)n, element_size(named), &n_bytes) || n_bytes > left)
        return pnb__fail(err, PNB_FORMAT,
                         "%s: storage \"%.*s\" needs more bytes than the file has; it is truncated",
                         l->source.where, n_key, key);
    *s = (pnb__torch_storage){.key = key,
                              .n_key = named->u.storage.n_key,
                              .data = l->source.bytes + sizeof n,
                              .n_bytes = n_bytes};
    l->source.bytes += sizeof n + n_bytes;
    l->source.n_bytes = left - n_bytes;
    return PNB_OK;
}

static pnb_status read_storages(pnb__torch_job *job, legacy *l)
{
    const pnb__pk_value *keys = l->keys.root, *named = l->object.storages;
    uint32_t n_named = named != NULL ? named->u.list.n : 0, n = keys->u.list.n;
    size_t bytes = PNB_MAX(n, 1u) * sizeof *job->storages;
    if (n_named > 0) /* the list belongs to nobody else: sort it in place */
        qsort(named->u.list.items, n_named, sizeof *named->u.list.items, compare_values);
    job->storages = pnb__arena_alloc(l->source.arena, bytes);
    if (job->storages == NULL)
        return pnb__fail_nomem(job->err, bytes);
    for (uint32_t i = 0; i < n; i++) {
        const pnb__pk_value *key = keys->u.list.items[i];
        if (key->kind != PNB__PK_STR)
            return pnb__fail(job->err, PNB_FORMAT, "%s: a storage key is no string", job->where);
        const pnb__pk_value *storage =
            n_named > 0 ? find_named(named->u.list.items, n_named, key) : NULL;
        if (storage == NULL)
            return pnb__fail(job->err, PNB_FORMAT, "%s: a storage that no tensor names",
                             job->where);
        pnb_status status = read_storage(l, storage, &job->storages[i], job->err);
        if (status != PNB_OK)
            return status;
    }
    job->n_storages = n;
    if (n > 0)
        qsort(job->storages, n, sizeof *job->storages, compare_storages);
    for (uint32_t i = 1; i < n; i++)
        if (compare_storages(&job->storages[i - 1], &job->storages[i]) == 0)
            return pnb__fail(job->err, PNB_FORMAT, "%s: storage \"%.*s\" is there twice",
                             job->where, (int)job->storages[i].n_key, job->storages[i].key);
    return PNB_OK;
}

static pnb_status open_legacy(pnb__torch_job *job, const unsigned char *bytes, size_t n_bytes,
                              pnb__arena *tree)
{
    pnb__pk_budget budget = pnb__pk_budget_for(n_bytes);
    legacy l = {.source = {.bytes = bytes,
                           .n_bytes = n_bytes,
                           .where = job->where,
                           .arena = tree,
                           .budget = &budget}};
    pnb_status status;
    PNB_TRY(read_pickles(&l, job->err));
    PNB_TRY(read_storages(job, &l));
    job->file->format = "pytorch (before 1.6)";
    job->file->n_trailing = l.source.n_bytes;
    status = pnb__torch_views(job, l.object.root);
done:
    return status;
}

pnb_status pnb__torch_open(pnb__torch_file *out, const unsigned char *bytes, size_t n_bytes,
                           const char *where, pnb__arena *arena, pnb_error *err)
{
    pnb__torch_file file = {.root = "", .format = "pytorch"};
    pnb__torch_job job = {.file = &file,
                          .where = where,
                          .arena = arena,
                          .copy_left = n_bytes + COPY_SPARE,
                          .err = err};
    pnb__arena tree;
    pnb__arena_init(&tree, TREE_BLOCK_BYTES);
    pnb_status status = n_bytes > 0 && bytes[0] == 'P' ? open_zip(&job, bytes, n_bytes, &tree)
                                                       : open_legacy(&job, bytes, n_bytes, &tree);
    pnb__arena_free(&tree);
    if (status == PNB_OK)
        *out = file;
    else
        pnb__torch_close(&file);
    return status;
}
