/* From the tree of a checkpoint to named, contiguous arrays.
 *
 * The state dict is looked for under the keys that training programs use; nested dicts and
 * TorchScript modules join their keys with '.'. A tensor is offset, shape and strides over a
 * storage (torch/_utils.py: _rebuild_tensor): every element must lie inside. Contiguous ones are
 * used where they are, others copied once; a stride of 0 could turn few bytes into many, so all
 * copies together may not be larger than the file. Storages of tensors that are not offered
 * (optimiser states) are never touched. */
#include <string.h>

#include "io/array.h"
#include "io/weights/torch_file.h"
#include "io/weights/zip.h"

#define MAX_DEPTH 32
#define MAX_VISITS ((size_t)1 << 20)
#define MAX_VIEWS ((size_t)1 << 16) /* a dict may be in the tree many times over */
#define MAX_NAME ((size_t)1024)

typedef struct walk {
    pnb__torch_job *job;
    pnb__buf name; /* of the dict being walked, with its '.' */
    size_t n_visits;
} walk;

static pnb_status bad_tensor(const pnb__torch_job *job, const char *name, const char *problem)
{
    return pnb__fail(job->err, PNB_FORMAT, "%s: \"%.100s\": %s", job->where, name, problem);
}

/* ---- storages ---- */

static pnb__torch_storage *find_storage(const pnb__torch_job *job, const pnb__pk_value *v)
{
    size_t low = 0, high = job->n_storages;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        pnb__torch_storage *s = &job->storages[middle];
        int order = pnb__torch_compare_keys(v->u.storage.key, v->u.storage.n_key, s->key, s->n_key);
        if (order == 0)
            return s;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static pnb_status open_storage(pnb__torch_job *job, const char *name, const pnb__pk_value *v,
                               const pnb__torch_storage **out)
{
    pnb__torch_storage *s = find_storage(job, v);
    if (s == NULL)
        return bad_tensor(job, name, "its storage is not in the file");
    size_t size = v->detail < PNB_N_DTYPES ? pnb_dtype_size((pnb_dtype)v->detail) : 1, wanted = 0;
    if (pnb__mul_overflows((size_t)v->u.storage.n_elements, size, &wanted) || wanted != s->n_bytes)
        return pnb__fail(job->err, PNB_FORMAT,
                         "%s: \"%.100s\": its storage has %zu bytes, %lld elements of %zu are "
                         "promised",
                         job->where, name, s->n_bytes, (long long)v->u.storage.n_elements, size);
    if (s->member != NULL) {
        void *owned = NULL;
        pnb_status status = pnb__zip_read(job->zip, s->member, &s->data, &owned, job->err);
        if (status == PNB_OK)
            status = pnb__torch_own(job->file, owned, job->err);
        if (status != PNB_OK)
            return status;
        s->member = NULL;
    }
    *out = s;
    return PNB_OK;
}

/* ---- tensors ---- */

/* Row-major without gaps; strides of extents of 1 are never used. */
static bool is_contiguous(const pnb__pk_tensor *t)
{
    int64_t wanted = 1;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        if (t->shape[i] != 1 && t->stride[i] != wanted)
            return false;
        wanted *= t->shape[i]; /* fits: the array's bytes were counted before */
    }
    return true;
}

/* Position one past the last element, in elements; false when it cannot be counted. */
static bool find_end(const pnb__pk_tensor *t, size_t *end)
{
    size_t sum = (size_t)t->offset, step;
    for (int i = 0; i < t->n_dims; i++)
        if (pnb__mul_overflows((size_t)t->shape[i] - 1, (size_t)t->stride[i], &step) ||
            pnb__add_overflows(sum, step, &sum))
            return false;
    return !pnb__add_overflows(sum, 1, end);
}

/* Copies element by element, the last dimension in the inner loop. */
static void gather(unsigned char *out, const unsigned char *base, const pnb__pk_tensor *t,
                   size_t n_elements, size_t size)
{
    int64_t index[PNB_MAX_DIMS] = {0};
    int last = t->n_dims - 1;
    size_t run = (size_t)t->shape[last];
    for (size_t done = 0; done < n_elements; done += run) {
        int64_t at = t->offset;
        for (int i = 0; i < last; i++)
            at += index[i] * t->stride[i];
        for (size_t i = 0; i < run; i++, out += size)
            memcpy(out, base + ((size_t)at + i * (size_t)t->stride[last]) * size, size);
        for (int i = last - 1; i >= 0 && ++index[i] == t->shape[i]; i--)
            index[i] = 0;
    }
}

static pnb_status make_contiguous(pnb__torch_job *job, const pnb__pk_tensor *t,
                                  const unsigned char *base, pnb_array_view *a)
{
    if (a->n_bytes > job->copy_left)
        return pnb__fail(job->err, PNB_LIMIT,
                         "%s: \"%.100s\": strided tensors would unfold to more than the file holds",
                         job->where, a->name);
    unsigned char *copy = pnb__alloc_aligned(a->n_bytes);
    if (copy == NULL)
        return pnb__fail_nomem(job->err, a->n_bytes);
    size_t size = pnb_dtype_size(a->dtype);
    gather(copy, base, t, a->n_bytes / size, size);
    a->data = copy;
    job->copy_left -= a->n_bytes;
    return pnb__torch_own(job->file, copy, job->err);
}

static pnb_status fill_view(pnb__torch_job *job, const pnb__pk_tensor *t, pnb_array_view *a)
{
    const pnb__torch_storage *s = NULL;
    pnb_error inner = PNB_ERROR_INIT;
    size_t end = 0, size = pnb_dtype_size(t->dtype);
    a->dtype = t->dtype;
    a->n_dims = t->n_dims;
    memcpy(a->shape, t->shape, sizeof a->shape);
    if (pnb__array_n_bytes(t->dtype, t->shape, t->n_dims, &a->n_bytes, &inner) != PNB_OK)
        return bad_tensor(job, a->name, inner.text);
    pnb_status status = open_storage(job, a->name, t->storage, &s);
    if (status != PNB_OK || a->n_bytes == 0)
        return status;
    if (!find_end(t, &end) || end > s->n_bytes / size)
        return pnb__fail(job->err, PNB_FORMAT,
                         "%s: \"%.100s\" reaches beyond its storage of %zu elements", job->where,
                         a->name, s->n_bytes / size);
    if (!is_contiguous(t))
        return make_contiguous(job, t, s->data, a);
    a->data = s->data + (size_t)t->offset * size;
    return PNB_OK;
}

static pnb_status add_view(walk *w, const pnb__pk_tensor *t, const char *key, size_t n_key)
{
    pnb__torch_job *job = w->job;
    pnb__torch_file *file = job->file;
    size_t n_name = w->name.size + n_key;
    if (n_name == 0 || n_name > MAX_NAME || memchr(key, '\0', n_key) != NULL ||
        !pnb__utf8_valid(key, n_key))
        return pnb__fail(job->err, PNB_FORMAT,
                         "%s: a tensor's name is empty, not UTF-8 or longer than %zu bytes",
                         job->where, MAX_NAME);
    if (file->n == MAX_VIEWS)
        return pnb__fail(job->err, PNB_LIMIT, "%s: more than %zu tensors", job->where, MAX_VIEWS);
    if (file->n == file->capacity) { /* the arena keeps the smaller arrays: at most as much again */
        size_t capacity = PNB_MAX(2 * file->capacity, (size_t)64);
        pnb_array_view *views = pnb__arena_alloc(job->arena, capacity * sizeof *views);
        if (views == NULL)
            return pnb__fail_nomem(job->err, capacity * sizeof *views);
        if (file->n > 0)
            memcpy(views, file->views, file->n * sizeof *views);
        file->views = views;
        file->capacity = capacity;
    }
    char *name = pnb__arena_alloc(job->arena, n_name + 1);
    if (name == NULL)
        return pnb__fail_nomem(job->err, n_name + 1);
    if (w->name.size > 0)
        memcpy(name, w->name.data, w->name.size);
    memcpy(name + w->name.size, key, n_key);
    file->views[file->n] = (pnb_array_view){.name = name};
    return fill_view(job, t, &file->views[file->n++]);
}

/* ---- the tree ---- */

/* The dict of a nested part: itself, or the state of a TorchScript module. */
static const pnb__pk_value *dict_of(const pnb__pk_value *v)
{
    if (v->kind == PNB__PK_OBJECT && v->detail == 1 && v->u.list.n == 1)
        v = v->u.list.items[0];
    return v->kind == PNB__PK_DICT ? v : NULL;
}

static size_t count_tensors(const pnb__pk_value *list)
{
    size_t n = 0;
    for (uint32_t i = 0; i < list->u.list.n; i++)
        n += list->u.list.items[i]->kind == PNB__PK_TENSOR;
    return n;
}

static pnb_status walk_dict(walk *w, const pnb__pk_value *dict, int depth);

static pnb_status walk_item(walk *w, const pnb__pk_value *key, const pnb__pk_value *value,
                            int depth)
{
    const pnb__pk_value *inner = dict_of(value);
    if (value->kind == PNB__PK_LIST || value->kind == PNB__PK_TUPLE) {
        w->n_visits += value->u.list.n;
        w->job->file->n_unnamed += count_tensors(value);
    }
    if (value->kind != PNB__PK_TENSOR && inner == NULL)
        return PNB_OK;
    if (key->kind != PNB__PK_STR) { /* optimiser states are numbered; weights have names */
        w->job->file->n_unnamed += value->kind == PNB__PK_TENSOR;
        return PNB_OK;
    }
    const char *text = key->u.text.data;
    size_t n = key->u.text.n, kept = w->name.size;
    if (value->kind == PNB__PK_TENSOR)
        return add_view(w, value->u.tensor, text, n);
    if (n > MAX_NAME)
        return pnb__fail(w->job->err, PNB_FORMAT, "%s: a key of %zu bytes", w->job->where, n);
    pnb__buf_append(&w->name, text, n);
    pnb__buf_putc(&w->name, '.');
    if (w->name.failed)
        return pnb__fail_nomem(w->job->err, w->name.size);
    pnb_status status = walk_dict(w, inner, depth + 1);
    w->name.size = kept;
    return status;
}

static pnb_status walk_dict(walk *w, const pnb__pk_value *dict, int depth)
{
    pnb_status status = PNB_OK;
    if (depth > MAX_DEPTH)
        return pnb__fail(w->job->err, PNB_LIMIT,
                         "%s: dicts within dicts more than %d deep, or in a circle", w->job->where,
                         MAX_DEPTH);
    for (uint32_t i = 0; status == PNB_OK && i + 1 < dict->u.list.n; i += 2) {
        if (++w->n_visits > MAX_VISITS)
            return pnb__fail(w->job->err, PNB_LIMIT, "%s: more than %zu values in the state dict",
                             w->job->where, MAX_VISITS);
        status = walk_item(w, dict->u.list.items[i], dict->u.list.items[i + 1], depth);
    }
    return status;
}

static const pnb__pk_value *find_root(const pnb__pk_value *top, const char **key)
{
    static const char *const keys[] = {"state_dict", "model_state_dict", "model"};
    for (size_t i = 0; i < PNB_COUNT(keys) && top->kind == PNB__PK_DICT; i++) {
        const pnb__pk_value *v = pnb__pk_get(top, keys[i]);
        const pnb__pk_value *dict = v != NULL ? dict_of(v) : NULL;
        if (dict != NULL && dict->u.list.n > 0) {
            *key = keys[i];
            return dict;
        }
    }
    *key = "";
    return dict_of(top);
}

/* DistributedDataParallel puts its own name before every key. */
static void strip_module(pnb__torch_file *file)
{
    static const char prefix[] = "module.";
    for (size_t i = 0; i < file->n; i++)
        if (!pnb__starts_with(file->views[i].name, prefix) ||
            file->views[i].name[sizeof prefix - 1] == '\0')
            return;
    for (size_t i = 0; i < file->n; i++)
        file->views[i].name += sizeof prefix - 1;
}

/* PCME's loss has weights of its own, which lie beside the "model": names "criterion.*". The losses
 * of others are none of a model's arrays, so it is told by its negative_scale. */
static pnb_status walk_criterion(walk *w, const pnb__pk_value *top)
{
    static const char name[] = "criterion";
    const pnb__pk_value *v = pnb__pk_get(top, name);
    const pnb__pk_value *dict = v != NULL ? dict_of(v) : NULL;
    if (dict == NULL || pnb__pk_get(dict, "negative_scale") == NULL)
        return PNB_OK;
    pnb__buf_append(&w->name, name, sizeof name - 1);
    pnb__buf_putc(&w->name, '.');
    pnb_status status =
        w->name.failed ? pnb__fail_nomem(w->job->err, w->name.size) : walk_dict(w, dict, 1);
    w->name.size = 0;
    return status;
}

/* {word: id}, the ids 0 to n - 1 once each, as the rows of an embedding are; else no word. */
static const pnb__pk_value **words_by_id(walk *w, const pnb__pk_value *dict, size_t *n_bytes)
{
    size_t n = dict->u.list.n / 2;
    const pnb__pk_value **words = pnb__arena_alloc(w->job->arena, (n + 1) * sizeof(void *));
    for (size_t i = 0; i < n && words != NULL; i++) {
        const pnb__pk_value *word = dict->u.list.items[2 * i], *id = dict->u.list.items[2 * i + 1];
        bool fits = word->kind == PNB__PK_STR && id->kind == PNB__PK_INT && id->u.integer >= 0 &&
                    (size_t)id->u.integer < n && words[id->u.integer] == NULL &&
                    word->u.text.n > 0 && memchr(word->u.text.data, '\n', word->u.text.n) == NULL;
        if (!fits)
            return NULL;
        words[id->u.integer] = word;
        *n_bytes += word->u.text.n + 1;
    }
    return words;
}

/* The vocabulary that PCME's code saves with a model, so that a released file is enough. One that
 * is no list of words is nobody's, and left alone. */
static void take_words(walk *w, const pnb__pk_value *top)
{
    const pnb__pk_value *v = pnb__pk_get(top, "word2idx");
    const pnb__pk_value *dict = v != NULL ? dict_of(v) : NULL;
    size_t n_bytes = 0, at = 0;
    if (dict == NULL || dict->u.list.n / 2 > MAX_VISITS)
        return;
    const pnb__pk_value **words = words_by_id(w, dict, &n_bytes);
    char *text = words != NULL ? pnb__arena_alloc(w->job->arena, n_bytes + 1) : NULL;
    for (size_t i = 0; text != NULL && i < dict->u.list.n / 2; i++) {
        memcpy(text + at, words[i]->u.text.data, words[i]->u.text.n);
        at += words[i]->u.text.n;
        text[at++] = '\n';
    }
    if (text != NULL)
        text[at] = '\0';
    w->job->file->words = text;
}

pnb_status pnb__torch_views(pnb__torch_job *job, const pnb__pk_value *root)
{
    walk w = {.job = job};
    if (root->kind == PNB__PK_TENSOR) { /* torch.save of a tensor: it has no name of its own */
        job->file->root = "";
        return add_view(&w, root->u.tensor, "tensor", strlen("tensor"));
    }
    const pnb__pk_value *dict = find_root(root, &job->file->root);
    if (dict == NULL)
        return pnb__fail(job->err, PNB_FORMAT,
                         "%s: the file holds no dict of tensors; want a state_dict, bare or under "
                         "\"state_dict\", \"model_state_dict\" or \"model\"",
                         job->where);
    pnb_status status = walk_dict(&w, dict, 0);
    if (status == PNB_OK) /* before names that DataParallel has not made */
        strip_module(job->file);
    if (status == PNB_OK && strcmp(job->file->root, "model") == 0)
        status = walk_criterion(&w, root);
    if (status == PNB_OK && strcmp(job->file->root, "model") == 0)
        take_words(&w, root);
    pnb__buf_reset(&w.name);
    if (status != PNB_OK)
        return status;
    if (job->file->n == 0)
        return pnb__fail(job->err, PNB_FORMAT, "%s: no tensor with a name in its %s%s", job->where,
                         *job->file->root ? "dict " : "dict", job->file->root);
    return PNB_OK;
}
